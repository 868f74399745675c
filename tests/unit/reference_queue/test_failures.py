"""Every failure gets a class, and none lets a payload or a password through."""

import dataclasses

import aiohttp
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_queue.failures import BY_EXCEPTION, BY_SQLSTATE, BY_STATUS, Failure, classify, from_sqlstate, from_status
from reference_queue.handlers import ContentFailure, SystemFailure

REASONS = {"no_recipient": "The message has no recipient."}
SENTENCES = {row[2] for table in (BY_SQLSTATE, BY_STATUS, BY_EXCEPTION) for row in table.values()}
SENTENCES |= set(REASONS.values()) | {"The handler gave a reason that it does not declare."}
SECRETS = st.text(min_size=1) | st.sampled_from(
    ["postgresql://u:hunter2@h/db", "Bearer abc.def", '{"card": "4111 1111"}']
)


@pytest.mark.parametrize(
    ("error", "outcome", "error_class"),
    [
        (psycopg.errors.SerializationFailure(), "retry", "serialization"),
        (psycopg.errors.DeadlockDetected(), "retry", "deadlock"),
        (psycopg.errors.AdminShutdown(), "retry", "disconnect"),
        (psycopg.OperationalError("the connection is closed"), "retry", "disconnect"),
        (psycopg.errors.LockNotAvailable(), "retry", "lock_timeout"),
        (psycopg.errors.DiskFull(), "retry", "resources"),
        (psycopg.errors.UniqueViolation(), "dead", "content"),
        (psycopg.errors.InvalidTextRepresentation(), "dead", "content"),
        (psycopg.errors.UndefinedTable(), "dead", "content"),
        (TimeoutError(), "retry", "timeout"),
        (ConnectionResetError(), "retry", "disconnect"),
        (aiohttp.ServerDisconnectedError(), "retry", "disconnect"),
        (aiohttp.ClientPayloadError(), "retry", "transport"),
        (OSError(28, "No space left"), "retry", "system"),
        (KeyError("k"), "retry", "unexpected"),
        (ContentFailure("no_recipient"), "dead", "content"),
        (ContentFailure("no_recipient", pause=True), "paused", "content"),
        (SystemFailure("no_recipient"), "retry", "system"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_the_table(error: Exception, outcome: str, error_class: str) -> None:
    failure = classify(error, REASONS)
    assert (failure.outcome, failure.error_class) == (outcome, error_class)


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (301, "dead"),
        (400, "dead"),
        (404, "dead"),
        (422, "dead"),
        (408, "retry"),
        (425, "retry"),
        (429, "retry"),
        (500, "retry"),
        (503, "retry"),
        (599, "retry"),
        (700, "retry"),
    ],
)
def test_statuses(status: int, outcome: str) -> None:
    failure = from_status(status)
    assert (failure.outcome, failure.code) == (outcome, f"http_{status}")


@given(st.text(alphabet="0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", min_size=5, max_size=5))
def test_every_sqlstate_has_a_class(sqlstate: str) -> None:
    assert from_sqlstate(sqlstate).outcome in {"retry", "dead"}


def exceptions(secret: str) -> list[Exception]:
    return [
        ValueError(secret),
        OSError(5, secret, secret),
        psycopg.OperationalError(secret),
        psycopg.errors.UniqueViolation(secret),
        aiohttp.ClientError(secret),
        ContentFailure(secret, code=f"{secret} ", response_id=f"{secret}\n"),
        SystemFailure(secret, code=f" {secret}", response_id=f"({secret})"),
        type("Odd", (Exception,), {})(secret),
    ]


@given(SECRETS)
def test_nothing_of_an_exceptions_own_words_is_stored(secret: str) -> None:
    for error in exceptions(secret):
        failure = classify(error, REASONS)
        assert failure.reason in SENTENCES
        assert failure.code in {None, type(error).__name__, getattr(error, "sqlstate", None), "08000"}
        assert failure.response_id is None
        assert isinstance(failure, Failure)
        assert all(value is None or isinstance(value, str) for value in dataclasses.astuple(failure))
