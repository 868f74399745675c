"""Whole load runs on real PostgreSQL with real workers: short ones, judged by what does not depend on the machine's speed."""

import json

import pytest

from harness.contracts.verdict import Verdict
from harness.load.compose import load_document, save_trace
from harness.run.compose import RunFacts
from harness.run.subject_file import load_subject

PATIENT = """[subject]
extends = "{reference}"
name = "patient"
max_attempts = 1000
enqueue.sql = '''with added as (
    insert into queue_job (operation_key, max_attempts) values (%(key)s::text, 1000) returning id, state, version
) insert into queue_audit (job_id, to_state, version, reason) select id, state, version, 'enqueued' from added'''
"""

pytestmark = pytest.mark.timeout(240)


def parts(loaded):
    return {part.name: part for part in loaded.parts}


def test_workers_are_killed_and_the_queue_is_current_again(play, tmp_path, reference):
    seen = []
    loaded = play(watch=seen.append)
    run, found = loaded.run, loaded.found
    assert parts(loaded)["nothing_lost"].verdict is Verdict.PASS
    assert parts(loaded)["oldest_job_moves"].verdict is not Verdict.FAIL
    assert run.phases.recovery_began - run.phases.outage_began >= 3
    assert not any(run.phases.outage_began + 0.1 < each.called < run.phases.recovery_began for each in run.attempts)
    assert found.backlog_jobs >= 40
    assert {job.state for job in run.ended} <= {"done", "pending", "retry", "running"}
    assert {each.phase for each in seen} == {"warm-up", "steady", "outage", "recovery"}
    assert run.samples["accounted"].dropna().eq(run.samples["table_total"].dropna()).all()
    document = load_document(RunFacts("a test", "now", 1.0, 7), load_subject(reference), loaded)
    assert document.records[-1].name == "net drain"
    assert document.records[-1].verdict == document.verdict
    assert {each.name for each in document.load.series} >= {
        "backlog",
        "oldest age",
        "arrivals",
        "completions",
        "commit flush",
    }
    save_trace(run, tmp_path)
    assert (tmp_path / "calls.csv").read_text().startswith("job,worker,called,served,ended,status")
    assert (tmp_path / "samples.csv").is_file()


@pytest.mark.slow
def test_a_head_that_stays_locked_fails_although_throughput_is_met(play):
    loaded = play(stuck_head="locked")
    assert loaded.verdict is Verdict.FAIL
    assert parts(loaded)["oldest_job_moves"].verdict is Verdict.FAIL
    assert "load-7-00000000" in loaded.reason
    assert loaded.run.looks[-1].done > 100


@pytest.mark.slow
def test_a_head_that_fails_for_ever_fails_by_its_first_due_time(play, tmp_path, reference):
    folder = tmp_path / "patient"
    folder.mkdir()
    (folder / "subject.toml").write_text(PATIENT.format(reference=reference))
    loaded = play(folder=folder, stuck_head="failing")
    run = loaded.run
    assert parts(loaded)["oldest_job_moves"].verdict is Verdict.FAIL
    tries = [each for each in run.attempts if each.job == 0]
    assert len(tries) > 3
    # By the table's own next due time it looks young: that is the trap.
    late = run.samples.dropna(subset=["table_oldest_due_seconds"]).iloc[-3:]
    assert (late["table_oldest_due_seconds"] < run.looks[-1].oldest_unfinished_age / 2).all()


@pytest.mark.slow
def test_the_database_is_stopped_and_nothing_is_lost(play):
    loaded = play(outage_of="database")
    assert parts(loaded)["nothing_lost"].verdict is Verdict.PASS
    assert loaded.run.produced.count == len(loaded.run.ended)
    down = loaded.run.samples[loaded.run.samples["phase"] == "outage"]
    assert not down["database_answers"].all()


@pytest.mark.slow
def test_the_sink_is_down_and_attempts_are_burnt(play, reference):
    loaded = play(outage_of="sink")
    assert parts(loaded)["nothing_lost"].verdict is Verdict.PASS
    assert parts(loaded)["drain_replayed"].verdict is Verdict.NOT_APPLICABLE
    run, states = loaded.run, [job.state for job in loaded.run.ended]
    aside = sum(state in ("dead", "paused", "reconcile") for state in states)
    if aside:  # given up without a call: no backlog, and told
        assert 0 < len(run.given_up) <= aside
        assert run.looks[-1].unstarted <= run.samples["table_due"].dropna().iloc[-1] + run.plan.slots
        document = load_document(RunFacts("a test", "now", 1.0, 7), load_subject(reference), loaded)
        assert any(f"{aside} of {len(states)} jobs were given up" in note for note in document.notes)
        assert not document.load.bottleneck.startswith("the 6 slots")
    assert any(state != "done" for state in states) or max(job.attempts for job in loaded.run.ended) > 1


def test_the_command_makes_a_report_and_the_quote_uses_it(tmp_path, reference):
    from typer.testing import CliRunner

    from harness.cli import app

    words = [
        "load",
        str(reference),
        "--arrival",
        "15/s",
        "--service",
        "80ms",
        "--slots",
        "6",
        "--outage",
        "2s",
        "--steady",
        "1s",
    ]
    words += ["--lease", "2s", "--poll", "100ms", "--no-durable", "--seed", "5", "--runs", str(tmp_path), "--json"]
    result = CliRunner().invoke(app, words, standalone_mode=False)
    assert result.exception is None, result.exception
    document = json.loads(result.stdout)
    assert document["load"]["estimates"][0]["name"] == "measured"
    run = tmp_path / ".queueproof" / "runs" / "latest"
    page = (run / "report.html").read_text()
    assert page.count('<figure class="plot">') >= 6
    quotes = tmp_path / "quotes.toml"
    line = 'price = "10"\nsource = "s"\ndate = 2026-11-01\nverified = true\n'
    quotes.write_text(
        '[[offer]]\nname = "A"\ncurrency = "EUR"\n[offer.measured]\n"completion rate" = 1000\n'
        + "".join(
            f'[[offer.line]]\npart = "{part}"\nitem = "x"\n{line}'
            for part in ("consumers", "database", "backup", "monitoring")
        )
    )
    quoted = CliRunner().invoke(
        app, ["quote", str(quotes), "--size", str(run), "--output", str(tmp_path / "out")], standalone_mode=False
    )
    assert quoted.return_value == 1  # nothing was shown for the other thresholds
    assert "No offer is advised: there is no passing gate" in quoted.stdout
    assert (tmp_path / "out" / "quotes.csv").read_text().count("\n") == 5
