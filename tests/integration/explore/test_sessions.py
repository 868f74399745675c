"""Plain SQL sessions: every order, blocked ones recognised by the server, infeasible orders never run."""

import asyncio

from harness.explore.sessions import Script, SessionStage
from harness.explore.tree import Explorer

SETUP = "create table counter (id int primary key, n int not null); insert into counter values (1, 0), (2, 0);"
TEARDOWN = "drop table counter;"


def explore(database, sessions, check=""):
    async def run():
        found = []
        async with SessionStage(database, Script(SETUP, TEARDOWN, sessions, check)) as stage:
            tally = await Explorer(stage, reduce=False).run(lambda ran: found.append(ran) is None, lambda: True)
        return tally, found

    return asyncio.run(run())


def test_all_orders_of_steps_that_do_not_block_are_run(database):
    one, other = ("update counter set n = n + 1 where id = 1;",) * 3, ("select n from counter where id = 1;",) * 3
    tally, _ = explore(database, (one, other))
    assert (tally.runs, tally.complete) == (20, True)


def test_a_lost_update_is_found_in_the_orders_that_have_it_and_no_others(database):
    steps = (
        "select set_config('mine.n', n::text, false) from counter where id = 1;",
        "update counter set n = current_setting('mine.n')::int + 1 where id = 1;",
    )
    _, found = explore(database, (steps, steps), "select 'lost' from counter where id = 1 and n <> 2")
    bad = ["".join(map(str, ran.schedule)) for ran in found if ran.ending.findings]
    assert len(found) == 6
    assert sorted(bad) == ["w1w2w1w2", "w1w2w2w1", "w2w1w1w2", "w2w1w2w1"]


def test_a_blocked_session_is_not_asked_to_move(database):
    steps = ("begin;", "update counter set n = n + 1 where id = 1;", "commit;")
    tally, found = explore(database, (steps, steps), "select 'lost' from counter where id = 1 and n <> 2")
    assert tally.complete
    assert 0 < tally.runs < 20
    assert not any(ran.ending.findings for ran in found)


def test_a_deadlock_is_ended_by_the_server_and_explored_like_anything_else(database):
    one = (
        "begin;",
        "update counter set n = n + 1 where id = 1;",
        "update counter set n = n + 1 where id = 2;",
        "commit;",
    )
    other = (one[0], one[2], one[1], one[3])
    tally, found = explore(database, (one, other), "select 'torn' from counter having min(n) <> max(n)")
    assert tally.complete
    assert not any(ran.ending.findings for ran in found)
