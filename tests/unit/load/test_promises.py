"""What --rto and --age hold a run to."""

import pytest

from harness.contracts.verdict import Verdict
from harness.load.compose import conclude_run

UNSCALED = {"arrival": "120/s", "service": "80ms", "outage": "12s", "time_scale": "1", "lease": "3s", "poll": "100ms"}


def part(loaded, name):
    return next((each for each in loaded.parts if each.name == name), None)


def test_what_was_not_asked_for_is_not_judged(imagine):
    loaded = conclude_run(imagine())
    assert part(loaded, "recovery_in_time") is None
    assert part(loaded, "steady_age") is None


@pytest.mark.parametrize(("rto", "verdict"), [("60s", Verdict.PASS), ("10s", Verdict.FAIL)])
def test_a_recovery_time_that_was_asked_for_decides(imagine, rto, verdict):
    loaded = conclude_run(imagine(UNSCALED | {"rto": rto}))
    assert loaded.verdict is verdict
    if verdict is Verdict.FAIL:
        assert "current again after" in loaded.reason
        assert "--rto asks for 10 s" in loaded.reason


def test_an_age_that_was_asked_for_decides(imagine):
    assert part(conclude_run(imagine(UNSCALED | {"age": "5s"})), "steady_age").verdict is Verdict.PASS
    loaded = conclude_run(imagine({**UNSCALED, "age": "1ms", "arrival": "190/s"}))
    assert part(loaded, "steady_age").verdict is Verdict.FAIL


def test_compressed_time_shows_that_a_promise_is_kept_and_not_that_it_is_broken(imagine):
    assert part(conclude_run(imagine({"rto": "600s"})), "recovery_in_time").verdict is Verdict.PASS
    missed = part(conclude_run(imagine({"rto": "100s"})), "recovery_in_time")
    assert missed.verdict is Verdict.INCONCLUSIVE
    assert "run it with --time-scale 1" in missed.reason
