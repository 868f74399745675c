"""``size``: the worked example, its variants, and every number with its meaning."""

import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.capacity.drain import Inflow
from harness.capacity.mix import SlowClass
from harness.capacity.sizing import SizeAnswer, SizeQuestion, size
from harness.contracts.problem import BadInput

EXAMPLE = {"arrival": "12/s", "service": "0.8s", "busy": "0.6", "outage": "300s"}


def asked(**options: str) -> SizeAnswer:
    return size(SizeQuestion.from_text(**{**EXAMPLE, **options}))


def told(answer: SizeAnswer) -> dict[str, Any]:
    """As JSON carries it: strict, so neither infinity nor NaN gets through."""
    read: dict[str, Any] = json.loads(json.dumps(answer.as_dict(), allow_nan=False))
    return read


def values(answer: SizeAnswer) -> dict[str, Any]:
    return {name: figure["value"] for name, figure in told(answer)["figures"].items()}


def test_the_worked_example() -> None:
    answer = asked()
    numbers = values(answer)
    assert numbers["slots"] == 16
    assert numbers["capacity_per_second"] == 20
    assert numbers["backlog_jobs"] == 3600
    assert numbers["net_drain_per_second"] == 8
    assert numbers["drain_seconds"] == 450
    assert numbers["drain_band_low_seconds"] == pytest.approx(417.1, abs=0.05)
    assert numbers["drain_band_high_seconds"] == pytest.approx(482.9, abs=0.05)
    assert numbers["wait_of_job_at_recovery_seconds"] == 180
    assert numbers["drain_with_reruns_seconds"] == 451.2
    assert numbers["chance_to_wait"] == pytest.approx(0.0418671, rel=1e-5)
    assert numbers["mean_wait_seconds"] == pytest.approx(0.00523339, rel=1e-5)
    assert [point["oldest_age_seconds"] for point in told(answer)["oldest_age"]] == [300, 225, 150, 75, 0]
    assert told(answer)["drains"] is True


def test_the_mistake_is_named_and_slots_are_not_cores() -> None:
    answer = told(asked())
    assert "3600 ÷ 20 = 180 s (3 min), is not the drain time" in answer["mistake"]
    assert "450 s" in answer["mistake"]
    assert "not the drain time" in answer["figures"]["wait_of_job_at_recovery_seconds"]["meaning"]
    assert "not CPU cores" in answer["figures"]["slots"]["meaning"]
    assert any("not CPU cores" in note for note in answer["notes"])


@pytest.mark.parametrize(
    ("options", "seconds"),
    [
        ({"retry": "10%"}, 600),
        ({"retry": "10%", "max_attempts": "25"}, 600),
        ({"retry": "30%", "max_attempts": "5"}, 1769.8),
        ({"retry": "10%", "failure": "2s"}, 985.7),
        ({"slow": "5%:8s"}, 2007.7),
        ({"limit": "15/s"}, 1200),
        ({"limit": "25/s"}, 450),
        ({"limit": "15/s", "burst": "60"}, 1180),
        ({"limit": "30/s", "calls": "2"}, 1200),
        ({"database": "15/s"}, 1200),
        ({"overhead": "20ms"}, 479.2),
        ({"inflow": "12/s:150s,18/s"}, 1350),
        ({"slots": "26"}, 175.6),
        ({"arrival": "720/min", "service": "800ms", "busy": "60%", "outage": "5m"}, 450),
    ],
)
def test_variants_of_the_drain(options: dict[str, str], seconds: float) -> None:
    answer = asked(**options)
    assert values(answer)["drain_seconds"] == pytest.approx(seconds, abs=0.06)
    assert told(answer)["terms"][-1]["drain_seconds"] == values(answer)["drain_seconds"]
    assert told(answer)["oldest_age"][-1]["oldest_age_seconds"] == 0


@pytest.mark.parametrize("options", [{"retry": "40%"}, {"limit": "12/s"}, {"slots": "9"}, {"inflow": "12/s:10s,20/s"}])
def test_never_drains_is_an_answer(options: dict[str, str]) -> None:
    answer = told(asked(**options, rto="600s", age="60s"))
    assert answer["drains"] is False
    assert answer["meets_recovery"] is False
    assert answer["figures"]["drain_seconds"]["value"] is None
    assert answer["figures"]["drain_seconds"]["reads"] == "never drains"
    assert answer["terms"][-1]["reads"] == "never drains"
    assert "drain_band_low_seconds" not in answer["figures"]
    assert "inf" not in json.dumps(answer).replace("inflow", "")


def test_slots_that_keep_the_busy_ratio_with_everything() -> None:
    assert values(asked(slow="5%:8s"))["slots_with_everything"] == 24
    assert values(asked(retry="10%"))["slots_with_everything"] == 18
    assert values(asked(retry="10%"))["critical_retry_share"] == 0.4
    assert values(asked(retry="30%", max_attempts="5"))["dead_letter_share"] == pytest.approx(0.00243)


def test_terms_add_up_one_by_one() -> None:
    answer = told(asked(slow="1%:4s", retry="5%", overhead="5ms", limit="18/s"))
    seconds = [term["drain_seconds"] for term in answer["terms"]]
    assert seconds[0] == 450
    assert len(seconds) == 5
    assert seconds == sorted(seconds)


def test_recovery_time_to_slots_and_outage() -> None:
    numbers = values(asked(rto="180s"))
    assert numbers["slots_for_recovery"] == 26
    assert numbers["capacity_for_recovery_per_second"] == 32
    assert values(asked(rto="600s"))["survivable_outage_seconds"] == 400
    assert asked(rto="450s").meets_recovery is True
    assert asked(rto="449s").meets_recovery is False
    assert asked().meets_recovery is None


def test_no_number_of_slots_gets_past_a_limit() -> None:
    figure = told(asked(rto="180s", limit="15/s"))["figures"]["slots_for_recovery"]
    assert figure["value"] is None
    assert "external limit" in figure["meaning"]


def test_an_age_that_is_still_acceptable() -> None:
    numbers = values(asked(age="60s"))
    assert numbers["seconds_until_age"] == 360
    assert numbers["jobs_that_wait_longer"] == 7200


def test_batch_lease_and_heartbeat() -> None:
    numbers = values(asked(batch="10", lease="5s", heartbeat="5s"))
    assert numbers["local_wait_mean_seconds"] == 3.6
    assert numbers["local_wait_longest_seconds"] == 7.2
    assert numbers["shortest_lease_seconds"] == 8
    assert numbers["duplicates_without_renewal_per_second"] == pytest.approx(0.0232, abs=5e-5)
    assert numbers["statements_per_second_while_draining"] == 25.2


def test_fixed_times_with_a_slow_class_have_the_known_spread() -> None:
    answer = asked(slow="5%:8s", service_cv2="0")
    assert values(answer)["drain_sd_seconds"] == pytest.approx(156.1, abs=0.05)
    assert values(answer)["estimated_mean_wait_seconds"] > 0
    assert values(asked(limit="15/s", service_cv2="0"))["drain_sd_seconds"] == pytest.approx(44.7, abs=0.05)


def test_without_an_outage_nothing_is_said_about_a_backlog() -> None:
    answer = size(SizeQuestion.from_text(arrival="12/s", service="0.8s", busy="0.6", rto="600s"))
    assert answer.drains is None
    assert told(answer)["terms"] == []
    assert values(answer)["survivable_outage_seconds"] == 400
    assert any("No outage" in note for note in answer.notes)


def test_more_work_than_slots_has_no_mean_wait() -> None:
    figure = told(asked(slots="9"))["figures"]["mean_wait_seconds"]
    assert figure["value"] is None
    assert figure["reads"] == "grows for ever"


def test_a_service_time_that_looks_like_a_wrong_unit_is_remarked_on() -> None:
    assert any("check the unit" in note for note in asked(service="0.8ms").notes)
    assert not any("check the unit" in note for note in asked().notes)


def test_a_backlog_that_the_slots_swallow_has_no_band() -> None:
    answer = asked(outage="1s")
    assert answer.band is None
    assert answer.drains is True
    assert any("rough" in note for note in answer.notes)
    assert asked(outage="2s").band is not None
    assert not any("rough" in note for note in asked().notes)


def test_millions_of_slots_are_answered_without_counting_them() -> None:
    answer = asked(arrival="1000000/s", service="10s")
    assert answer.slots == 16_666_667
    assert "chance_to_wait" not in values(answer)


def test_all_mistakes_are_told_at_once_with_field_and_value() -> None:
    with pytest.raises(BadInput) as refused:
        SizeQuestion.from_text(arrival="12", service="0s", busy="1.0", outage="300", slow="5%", limit="-1/s")
    lines = refused.value.mistakes
    assert [line.split(":")[0] for line in lines] == ["arrival", "service", "busy", "outage", "slow", "limit"]
    assert all('"' in line for line in lines)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("arrival_per_second", 12.0),
        ("arrival_per_second", 0),
        ("service_seconds", -1),
        ("busy_ratio", 1),
        ("busy_ratio", 0),
        ("retry_share", 1),
        ("retry_share", -1),
        ("slots", 0),
        ("overhead_seconds", -1),
        ("service_cv2", -1),
        ("limit_burst", -1),
        ("inflow", (Inflow(Fraction(12), Fraction(5)),)),
    ],
)
def test_a_question_asked_in_code_is_checked_too(field: str, value: Any) -> None:
    good: dict[str, Any] = {
        "arrival_per_second": 12,
        "service_seconds": Decimal("0.8"),
        "busy_ratio": Decimal("0.6"),
        "outage_seconds": 300,
    }
    assert size(SizeQuestion(**good)).slots == 16
    with pytest.raises(BadInput, match=field):
        SizeQuestion(**{**good, field: value})


def test_the_question_is_told_with_the_answer() -> None:
    question = told(asked(slow="5%:8s", inflow="12/s:150s,18/s"))["question"]
    assert question["slow"] == {"share": 0.05, "seconds": 8}
    assert question["inflow"] == [{"per_second": 12, "seconds": 150}, {"per_second": 18, "seconds": None}]
    assert asked().figure("slots").value == 16


POSITIVE = st.fractions(min_value="0.05", max_value=100, max_denominator=20)


@given(
    POSITIVE,
    POSITIVE,
    st.fractions(min_value="0.05", max_value="0.95", max_denominator=20),
    POSITIVE,
    st.fractions(min_value=0, max_value="0.9", max_denominator=10),
    st.none() | POSITIVE,
    st.none() | st.builds(SlowClass, st.just(Fraction(1, 20)), POSITIVE),
    st.none() | POSITIVE,
)
def test_any_question_gets_an_answer_that_json_can_carry(
    arrival: Fraction,
    service: Fraction,
    busy: Fraction,
    outage: Fraction,
    retry: Fraction,
    limit: Fraction | None,
    slow: SlowClass | None,
    rto: Fraction | None,
) -> None:
    question = SizeQuestion(
        arrival, service, busy, outage, retry_share=retry, limit_per_second=limit, slow=slow, recovery_seconds=rto
    )
    answer = size(question)
    known = told(answer)
    assert known["drains"] == (known["figures"]["net_drain_per_second"]["value"] > 0)
    assert all(figure["meaning"] and figure["reads"] for figure in known["figures"].values())
    if answer.drain is not None and answer.drain.seconds is not None:
        assert answer.ages[-1].age_seconds == 0
    if answer.band is not None:
        low, high = answer.band.limits
        assert 0 <= low < high
