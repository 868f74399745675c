"""``queueproof size``: the worked example and its variants as they are printed, and every refused input by name."""

import json

import pytest
from typer.testing import CliRunner

from harness.cli import app
from harness.contracts.problem import BadInput

EXAMPLE = ["size", "--arrival", "12/s", "--service", "0.8s", "--busy", "0.6", "--outage", "300s"]


def figures(*more):
    result = CliRunner().invoke(app, [*EXAMPLE, *more, "--json"], standalone_mode=False)
    assert result.exception is None, result.output
    said = json.loads(result.stdout)
    return said, {name: figure["value"] for name, figure in said["figures"].items()}


def test_the_worked_example():
    said, values = figures()
    assert values["slots"] == 16
    assert values["capacity_per_second"] == 20
    assert values["backlog_jobs"] == 3600
    assert values["net_drain_per_second"] == 8
    assert values["drain_seconds"] == 450
    assert (round(values["drain_band_low_seconds"]), round(values["drain_band_high_seconds"])) == (417, 483)
    assert values["wait_of_job_at_recovery_seconds"] == 180
    assert [point["oldest_age_seconds"] for point in said["oldest_age"]] == [300, 225, 150, 75, 0]


@pytest.mark.parametrize(
    ("more", "drain"),
    [
        (["--retry", "10%"], 600),
        (["--retry", "40%"], None),
        (["--slow", "5%:8s", "--slots", "16"], pytest.approx(2007.7, abs=0.05)),
        (["--limit", "15/s"], 1200),
        (["--arrival", "720/min"], 450),
    ],
)
def test_its_variants(more, drain):
    assert figures(*more)[1]["drain_seconds"] == drain


def test_a_person_reads_both_times_with_their_meanings():
    text = CliRunner().invoke(app, EXAMPLE, standalone_mode=False).stdout
    assert "drains in 450 s" in text
    assert "180 s (3 min) is how long the job waits that arrives at the instant of recovery" in text


def test_never_is_exit_code_1_and_so_is_a_missed_recovery_time():
    never = CliRunner().invoke(app, [*EXAMPLE, "--retry", "40%"], standalone_mode=False)
    late = CliRunner().invoke(app, [*EXAMPLE, "--rto", "180s"], standalone_mode=False)
    assert (never.return_value, late.return_value) == (1, 1)
    assert "never drains" in never.stdout


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--arrival", "12"),
        ("--arrival", "0/s"),
        ("--arrival", "-1/s"),
        ("--service", "0s"),
        ("--service", "12/min"),
        ("--service", "0.8parsec"),
        ("--busy", "1"),
        ("--busy", "1.5"),
        ("--outage", "300"),
    ],
)
def test_bad_input_names_the_field_and_the_value(option, value):
    result = CliRunner().invoke(app, [*EXAMPLE, option, value], standalone_mode=False)
    assert isinstance(result.exception, BadInput)
    assert result.exception.exit_code == 2
    assert f'{option.removeprefix("--")}: "{value}"' in str(result.exception)


def test_one_slot_is_one():
    result = CliRunner().invoke(app, ["size", "--arrival", "12/min", "--service", "0.8s", "--busy", "0.6", "--outage", "5m"], standalone_mode=False)  # fmt: skip
    assert result.stdout.startswith("1 slot: ")
