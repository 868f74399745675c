"""What a worker may be told, and in which words it refuses the rest."""

import pytest

from reference_queue.settings import BadSetting, read, seconds


def test_the_command_line_comes_before_the_environment() -> None:
    settings = read(
        ["--lease", "30s", "--slots", "4"], {"QUEUE_LEASE": "9s", "QUEUEPROOF_SLOTS": "2", "QUEUEPROOF_WORKER": "w7"}
    )
    assert (settings.lease_seconds, settings.slots, settings.worker) == (30, 4, "w7")
    assert settings.heartbeat_seconds == 10


def test_there_is_no_silent_lease() -> None:
    with pytest.raises(BadSetting, match="--lease is not given"):
        read([], {})


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("lease", "-1s"),
        ("lease", "0"),
        ("lease", "soon"),
        ("lease", "8000h"),
        ("slots", "0"),
        ("slots", "-1"),
        ("slots", "1001"),
        ("slots", "2.5"),
        ("batch", "101"),
        ("buffer", "-1"),
        ("heartbeat", "0s"),
        ("heartbeat", "6s"),
        ("longest-run", "5s"),
        ("backoff-jitter", "2"),
        ("backoff-jitter", "nan"),
        ("poll", "0ms"),
        ("name", "w" * 201),
        ("name", "a\nb"),
    ],
)
def test_each_mistake_is_named(flag: str, value: str) -> None:
    arguments = [] if flag == "lease" else ["--lease", "10s"]
    with pytest.raises(BadSetting, match=f"--{flag}"):
        read([*arguments, f"--{flag}={value}"], {})


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(BadSetting) as refusal:
        read(["--lease=-1s", "--slots=0", "--batch=0"], {})
    assert len(str(refusal.value).splitlines()) == 3


@pytest.mark.parametrize(("text", "value"), [("250ms", 0.25), ("2", 2), ("1.5 s", 1.5), ("3min", 180), ("2h", 7200)])
def test_durations(text: str, value: float) -> None:
    assert seconds(text) == value
