"""Plans: what is read, what is refused by name, and what a time scale compresses."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.contracts.problem import BadInput
from harness.load.plan import read_plan
from harness.load.sweep import settings

WORDS = {"arrival": "12/s", "service": "0.8s", "slots": "16", "outage": "300s"}


def test_a_scale_compresses_times_and_densifies_arrivals_and_leaves_the_load_alone():
    scaled = read_plan(**WORDS, time_scale="10").scaled()
    assert scaled.arrival_per_second == 120
    assert scaled.service_seconds == 0.08
    assert scaled.outage_seconds == 30
    assert (scaled.lease_seconds, scaled.heartbeat_seconds, scaled.poll_seconds) == (3, 0.6, 0.1)
    question = scaled.question()
    assert question.arrival_per_second * question.service_seconds == Fraction("9.6")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"arrival": "12"}, 'arrival: "12"'),
        ({"arrival": "0/s"}, 'arrival: "0/s"'),
        ({"service": "0s"}, 'service: "0s"'),
        ({"service": "0.8"}, 'service: "0.8"'),
        ({"slots": "0"}, 'slots: "0"'),
        ({"outage_of": "disk"}, 'outage-of: "disk"'),
        ({"time_scale": "0.5"}, 'time-scale: "0.5"'),
        ({"arrivals": "burst"}, 'arrivals: "burst"'),
        ({"arrivals": "trace:/nowhere"}, "arrivals"),
        ({"arrivals": "ramp:5/s:20/s:600s"}, 'arrival: "12/s" is not the rate at which ramp:5/s:20/s:600s ends'),
        ({"shape": "normal"}, 'shape: "normal"'),
        ({"at_most": "200s"}, "outage: 300 s (5 min) is longer than the run"),
        ({"workers": "17"}, "workers: 17"),
        ({"workers": "external:2"}, "outage-of"),
        ({"lease": "1s", "heartbeat": "0.9s"}, "heartbeat"),
    ],
)
def test_bad_input_names_the_field_and_the_value(change, named):
    with pytest.raises(BadInput) as bad:
        read_plan(**(WORDS | change))
    assert named in str(bad.value)


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("0 1 2 3", 'arrival: "12/s" is not the rate of'),
        ("0 x", "not one time in seconds per line"),
        ("0 nan", "two different, finite times"),
        ("7", "two different, finite times"),
    ],
)
def test_a_trace_that_says_otherwise_is_refused_before_anything_runs(tmp_path, lines, told):
    file = tmp_path / "trace.txt"
    file.write_text(lines.replace(" ", "\n"))
    with pytest.raises(BadInput) as bad:
        read_plan(**WORDS, arrivals=f"trace:{file}")
    assert told in str(bad.value)


def test_a_trace_of_the_typed_rate_is_taken(tmp_path):
    file = tmp_path / "trace.txt"
    file.write_text("\n".join(str(n / 12) for n in range(100)))
    assert read_plan(**WORDS, arrivals=f"trace:{file}").trace_file == file


def test_every_mistake_is_named_at_once():
    with pytest.raises(BadInput) as bad:
        read_plan(arrival="12", service="0.8", slots="x", outage="300s")
    assert len(bad.value.mistakes) == 3


def test_a_ramp_lasts_at_its_last_rate():
    plan = read_plan(**(WORDS | {"arrival": "20/s"}), arrivals="ramp:5/s:20/s:600s")
    assert (plan.arrival_per_second, plan.lasting_per_second) == (5, 20)


@given(scale=st.integers(1, 100))
def test_theory_takes_a_scale_times_less_time(scale):
    from harness.capacity.sizing import size

    plan = read_plan(**WORDS, time_scale=str(scale))
    assert size(plan.scaled().question()).drain.seconds * scale == 450


def test_a_sweep_is_every_combination():
    shown = [setting.shown for setting in settings(["batch=1,10", "slots=16,8"])]
    assert shown == ["batch 1, slots 8", "batch 1, slots 16", "batch 10, slots 8", "batch 10, slots 16"]


@pytest.mark.parametrize("text", ["batch", "batch=", "batch=0", "batch=1.5", "colour=1", "slots=-1"])
def test_a_sweep_that_cannot_be_read_is_named(text):
    with pytest.raises(BadInput, match="sweep"):
        settings([text])


def test_a_fewer_slots_setting_is_cheaper_than_a_smaller_batch():
    many, few = settings(["slots=16"])[0], settings(["slots=8"])[0]
    assert few.cost < many.cost
