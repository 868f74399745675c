"""What a worker is told: by its command line, else by its environment. There is no silent lease: it must be given."""

import argparse
import math
import os
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

MOST_SLOTS = 1000
MOST_BATCH = 100
LONGEST_LEASE_SECONDS = 7 * 24 * 3600.0
BEATS_PER_LEASE = 3.0

_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min|m|h)?\s*")
_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


class BadSetting(ValueError):
    """A setting is wrong. The message names it, and what it may be."""


@dataclass(frozen=True)
class Settings:
    """One worker's settings, already checked. Durations in seconds."""

    conninfo: str
    worker: str
    slots: int
    batch: int
    buffer: int
    lease_seconds: float
    heartbeat_seconds: float
    poll_seconds: float
    longest_run_seconds: float
    overdue_seconds: float
    deadline_seconds: float
    backoff_base_seconds: float
    backoff_cap_seconds: float
    backoff_jitter: float
    handlers: str
    metrics_port: int | None

    @property
    def lease(self) -> timedelta:
        return timedelta(seconds=self.lease_seconds)

    @property
    def overdue(self) -> timedelta:
        return timedelta(seconds=self.overdue_seconds)

    @property
    def longest_run(self) -> timedelta:
        return timedelta(seconds=self.longest_run_seconds)


@dataclass(frozen=True)
class Option:
    """One setting: its flag, the variables it may come from, and what it means."""

    flag: str
    variables: tuple[str, ...]
    default: str | None
    meaning: str


OPTIONS = (
    Option("database", ("DATABASE_URL",), "", "libpq connection string or URL; left out, the PG* variables decide"),
    Option(
        "name", ("QUEUEPROOF_WORKER", "QUEUE_WORKER"), None, "this worker's name; two live workers must not share one"
    ),
    Option("slots", ("QUEUEPROOF_SLOTS", "QUEUE_SLOTS"), "1", f"jobs executed at once, 1 to {MOST_SLOTS}"),
    Option(
        "batch", ("QUEUEPROOF_BATCH", "QUEUE_BATCH"), "10", f"most jobs claimed by one statement, 1 to {MOST_BATCH}"
    ),
    Option(
        "buffer",
        ("QUEUEPROOF_PREFETCH", "QUEUE_BUFFER"),
        "0",
        "jobs claimed ahead of free slots; their leases are renewed, too",
    ),
    Option(
        "lease", ("QUEUE_LEASE",), None, "how long a claim lasts without a heartbeat, such as 30s; there is no default"
    ),
    Option("heartbeat", ("QUEUE_HEARTBEAT",), None, "how often leases are renewed; left out, a third of the lease"),
    Option("poll", ("QUEUE_POLL",), "1s", "the longest an idle worker waits before it looks again"),
    Option("longest-run", ("QUEUE_LONGEST_RUN",), "1h", "no lease is renewed beyond this time after the claim"),
    Option("overdue", ("QUEUE_OVERDUE",), "5min", "a job due for this long is claimed by age, whatever its priority"),
    Option(
        "deadline",
        ("QUEUE_DEADLINE",),
        "30s",
        "a statement without an answer for this long: the connection is given up",
    ),
    Option(
        "backoff-base",
        ("QUEUEPROOF_BACKOFF", "QUEUE_BACKOFF_BASE"),
        "1s",
        "wait before the second attempt; doubles with each",
    ),
    Option(
        "backoff-cap", ("QUEUEPROOF_BACKOFF_CAP", "QUEUE_BACKOFF_CAP"), "10min", "the longest wait between attempts"
    ),
    Option("backoff-jitter", ("QUEUE_BACKOFF_JITTER",), "0.5", "the random part of a wait, 0 to 1"),
    Option("metrics-port", ("QUEUE_METRICS_PORT",), None, "Prometheus text on this port of the loopback; 0 picks one"),
    Option(
        "handlers",
        ("QUEUE_HANDLERS",),
        "reference_queue.sink_handler:handlers",
        "module:function that yields the handlers",
    ),
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The worker's flags. Their values stay text until ``read`` has seen the environment as well."""
    for option in OPTIONS:
        parser.add_argument(
            f"--{option.flag}", metavar="VALUE", help=f"{option.meaning} ({', '.join(option.variables)})"
        )


def read(arguments: Sequence[str], environment: Mapping[str, str]) -> Settings:
    """Settings from a command line and an environment. Raises BadSetting with one line per mistake."""
    parser = argparse.ArgumentParser(prog="reference_queue.worker", description="Work on the jobs of the queue.")
    add_options(parser)
    return from_options(vars(parser.parse_args(arguments)), environment)


def from_options(given: Mapping[str, str | None], environment: Mapping[str, str]) -> Settings:
    """Settings from parsed flags and an environment."""
    text = {option.flag: _chosen(option, given, environment) for option in OPTIONS}
    mistakes: list[str] = []

    def number(flag: str, least: int, most: int) -> int:
        value = text[flag] or ""
        if not re.fullmatch(r"\d{1,9}", value.strip()) or not least <= int(value) <= most:
            mistakes.append(f"--{flag} is {value!r}; it must be a whole number from {least} to {most}")
            return least
        return int(value)

    def duration(flag: str, most: float = LONGEST_LEASE_SECONDS, otherwise: float | None = None) -> float:
        value = text[flag]
        if value is None and otherwise is not None:
            return otherwise
        if value is None:
            mistakes.append(f"--{flag} is not given; say how long, for example --{flag} 30s")
            return 1.0
        found = seconds(value)
        if found is None or not 0 < found <= most:
            mistakes.append(f"--{flag} is {value!r}; it must be a time above 0, such as 500ms, 30s or 5min")
            return 1.0
        return found

    lease = duration("lease")
    heartbeat = duration("heartbeat", otherwise=lease / BEATS_PER_LEASE)
    # B32 of the bug zoo: with a beat about as long as the lease, one late beat loses the job.
    if not mistakes and heartbeat > lease / 2:
        mistakes.append(f"--heartbeat is {heartbeat:g}s; it must be at most half the lease of {lease:g}s")
    longest_run = duration("longest-run", most=math.inf)
    if not mistakes and longest_run < lease:
        mistakes.append(f"--longest-run is {longest_run:g}s, shorter than the lease of {lease:g}s")
    jitter = _share(text["backoff-jitter"] or "")
    if jitter is None:
        mistakes.append(f"--backoff-jitter is {text['backoff-jitter']!r}; it must be a number from 0 to 1")
    name = text["name"] or f"{socket.gethostname()}-{os.getpid()}"
    if len(name.encode()) > 200 or not name.isprintable():
        mistakes.append("--name must be printable and at most 200 bytes long")
    settings = Settings(
        conninfo=text["database"] or "",
        worker=name,
        slots=number("slots", 1, MOST_SLOTS),
        batch=number("batch", 1, MOST_BATCH),
        buffer=number("buffer", 0, MOST_SLOTS),
        lease_seconds=lease,
        heartbeat_seconds=heartbeat,
        poll_seconds=duration("poll"),
        longest_run_seconds=longest_run,
        overdue_seconds=duration("overdue"),
        deadline_seconds=duration("deadline"),
        backoff_base_seconds=duration("backoff-base"),
        backoff_cap_seconds=duration("backoff-cap"),
        backoff_jitter=jitter if jitter is not None else 0.0,
        handlers=text["handlers"] or "",
        metrics_port=number("metrics-port", 0, 65535) if text["metrics-port"] is not None else None,
    )
    if mistakes:
        raise BadSetting("\n".join(mistakes))
    return settings


def seconds(text: str) -> float | None:
    """``500ms``, ``30s``, ``5min``, or a bare number of seconds. None when it is no duration."""
    match = _DURATION.fullmatch(text)
    return float(match[1]) * _UNIT_SECONDS[match[2] or "s"] if match else None


def _share(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None


def _chosen(option: Option, given: Mapping[str, str | None], environment: Mapping[str, str]) -> str | None:
    value = given.get(option.flag.replace("-", "_"))
    if value is not None:
        return value
    for variable in option.variables:
        if environment.get(variable):
            return environment[variable]
    return option.default
