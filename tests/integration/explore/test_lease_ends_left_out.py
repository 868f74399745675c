"""A lease that no write can end: what was not run is said, and does not count as held."""

import asyncio
import dataclasses

import pytest

from harness.contracts.verdict import Verdict
from harness.explore.case import Case
from harness.explore.face import as_data, as_text
from harness.explore.inside import NEED_A_TAKEOVER, ORDERS_WITH_A_TAKEOVER, explore_inside
from harness.explore.run import Exploration, Options, Report
from harness.history.recorder import Recorder
from harness.run.judge import judge
from harness.run.play import play_once
from harness.run.provision import open_site
from harness.run.subject_file import load_subject
from harness.wire.statements import StatementBook
from scenarios.workers_every_interleaving import workers_every_interleaving

DONE = "set state = 'done', worker = null, lease_until = null\nwhere id = %(id)s"
UNFENCED = (f"{DONE} and state = 'running' and worker = %(worker)s and version = %(token)s", DONE)
COUNTED = ('lease_until = "lease_until"\n', "lease_until = \"lease_until + interval '0 s'\"\n")
WHY = "subject.jobs.lease_until is not a plain column"
NEEDY = {each.name for each in NEED_A_TAKEOVER}


@pytest.fixture
def played(cluster, watchdog, tmp_path):
    """Plays the scenario on a subject's folder and judges it."""

    async def play(folder, scenario):
        tmp_path.chmod(0o755)
        site = await open_site(load_subject(folder), cluster, watchdog, tmp_path)
        try:
            with Recorder(tmp_path / "history.jsonl") as recorder:
                play = recorder.play("workers_every_interleaving:1")
                done = await play_once(site, scenario, play, StatementBook(), frozenset(), 0)
        finally:
            await cluster.drop_database("template")
        return done.story, judge(done.story)

    return lambda folder, scenario=workers_every_interleaving: asyncio.run(play(folder, scenario))


def test_a_queue_without_a_fence_is_not_cleared_of_stale_writes(played, pasted):
    story, judged = played(pasted("counted", complete=UNFENCED, lease=COUNTED))
    assert judged.verdict is Verdict.PASS
    assert f"the end of a lease was left out, because {WHY}" in judged.reason
    unheld = {each.invariant.name for each in judged.judgements if WHY in each.reason}
    assert {each.invariant.name: each.verdict for each in judged.judgements}["no_stale_write"] is Verdict.NOT_APPLICABLE
    assert "no_stale_write" in unheld
    assert unheld <= NEEDY
    assert all(WHY in seen.what.evidence for seen in story.saws)


def test_where_leases_can_be_ended_all_that_needs_it_is_judged(played, pasted):
    story, judged = played(pasted("sound"))
    assert judged.verdict is Verdict.PASS
    assert judged.left_out == ()
    assert ORDERS_WITH_A_TAKEOVER in {seen.what.what for seen in story.saws}
    by_name = {each.invariant.name: each.verdict for each in judged.judgements}
    assert by_name["no_stale_write"] is by_name["token_fences"] is Verdict.PASS


def test_orders_for_which_there_was_no_time_clear_nobody(played, pasted):
    async def hurried(lab):
        await explore_inside(lab, ORDERS_WITH_A_TAKEOVER, Case(expiries=1, polls=0), budget_seconds=1.5)

    scenario = dataclasses.replace(workers_every_interleaving, play=hurried, must_happen=())
    story, judged = played(pasted("sound"), scenario)
    assert ORDERS_WITH_A_TAKEOVER not in {seen.what.what for seen in story.saws}
    by_name = {each.invariant.name: each.verdict for each in judged.judgements}
    assert by_name["no_stale_write"] is Verdict.NOT_APPLICABLE
    assert "a part of the orders with the end of a lease was left out, because their 1.5 s were over" in judged.reason


def test_an_exploration_says_that_it_left_out_the_end_of_a_lease(grounds, pasted):
    async def explore():
        async with grounds(pasted("counted", lease=COUNTED)) as (ground, recorder):
            exploration = Exploration(ground, recorder, Options(budget_seconds=6))
            return await exploration.run(lambda _: None), exploration.left_out

    explored, left_out = asyncio.run(explore())
    assert not any(each.case.expiries for each in explored)
    report = Report("counted", "here", explored, left_out, 1.0, 0)
    assert f"Left out: the end of a lease, because {WHY}; " in as_text(report)
    assert as_data(report)["left_out"][0] == f"the end of a lease, because {WHY}"
