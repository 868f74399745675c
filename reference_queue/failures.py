"""Every failure has a class, and this table is the one place that gives it one.

What it lets through is fixed text from here or from a handler's declaration, a code of a known form, and nothing else: an
exception's own message may quote a payload or a password, so it is never stored nor logged.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import psycopg

from reference_queue.handlers import ContentFailure, SystemFailure

RETRY = "retry"
DEAD = "dead"
PAUSED = "paused"

_CODE = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_RESPONSE_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}")


@dataclass(frozen=True)
class Failure:
    """What is stored of a failed attempt."""

    outcome: str  # retry, dead or paused
    error_class: str
    reason: str
    code: str | None = None
    response_id: str | None = None


# By SQLSTATE, the longest matching prefix decides.
BY_SQLSTATE = {
    "40001": (RETRY, "serialization", "The handler's transaction met a concurrent one."),
    "40P01": (RETRY, "deadlock", "The handler's transaction was chosen as a deadlock's victim."),
    "55P03": (RETRY, "lock_timeout", "A lock that the handler needs was not free in time."),
    "57014": (RETRY, "timeout", "The handler's statement took too long."),
    "57P": (RETRY, "disconnect", "The handler's database went away."),
    "08": (RETRY, "disconnect", "The handler's database connection broke."),
    "53": (RETRY, "resources", "The handler's database is short of resources."),
    "58": (RETRY, "system", "The handler's database had a system error."),
    "22": (DEAD, "content", "The data has a form that the database refuses."),
    "23": (DEAD, "content", "The data breaks a rule of the database."),
    "42": (DEAD, "content", "The handler's statement is not valid here; its code or the schema must be corrected."),
    "": (RETRY, "system", "The handler's database refused its statement."),
}

# By HTTP status; None is the rest of its hundred.
BY_STATUS = {
    408: (RETRY, "timeout", "The other side says that the request took too long."),
    425: (RETRY, "throttled", "The other side asks to come later."),
    429: (RETRY, "throttled", "The other side asks to come less often."),
    503: (RETRY, "unavailable", "The other side is not available."),
    504: (RETRY, "timeout", "The other side's own dependency took too long."),
    500: (RETRY, "remote_error", "The other side had an error."),
    400: (DEAD, "content", "The other side refuses this job; look at what was asked of it."),
    300: (DEAD, "content", "The other side has moved; the address must be corrected."),
}

# By exception class, by name along the method resolution order: transports are not imported for this.
BY_EXCEPTION = {
    "TimeoutError": (RETRY, "timeout", "No answer came in time."),
    "ConnectionError": (RETRY, "disconnect", "The connection to the other side broke."),
    "ClientConnectionError": (RETRY, "disconnect", "The connection to the other side broke."),
    "ClientError": (RETRY, "transport", "The other side could not be talked to."),
    "OSError": (RETRY, "system", "The operating system refused what the handler needs."),
    "MemoryError": (RETRY, "resources", "The worker is short of memory."),
    "Exception": (RETRY, "unexpected", "The handler failed in a way that it does not declare; see its code."),
}


def from_status(status: int, response_id: str | None = None) -> Failure:
    """A reply that is not 2xx."""
    outcome, error_class, reason = BY_STATUS.get(status) or BY_STATUS.get(status // 100 * 100) or BY_STATUS[500]
    return Failure(outcome, error_class, reason, f"http_{status}", safe_response_id(response_id))


def from_sqlstate(sqlstate: str | None) -> Failure:
    """A database error of the handler."""
    state = sqlstate or ""
    prefix = next(prefix for prefix in sorted(BY_SQLSTATE, key=len, reverse=True) if state.startswith(prefix))
    outcome, error_class, reason = BY_SQLSTATE[prefix]
    return Failure(outcome, error_class, reason, safe_code(sqlstate))


def classify(error: BaseException, reasons: Mapping[str, str]) -> Failure:
    """The failure that an exception of a handler stands for."""
    if isinstance(error, Refused):
        return error.failure
    if isinstance(error, ContentFailure):
        outcome = PAUSED if error.pause else DEAD
        return _declared(outcome, "content", error, reasons)
    if isinstance(error, SystemFailure):
        return _declared(RETRY, "system", error, reasons)
    if isinstance(error, psycopg.OperationalError) and error.sqlstate is None:
        return from_sqlstate("08000")
    if isinstance(error, psycopg.Error):
        return from_sqlstate(error.sqlstate)
    for ancestor in type(error).__mro__:
        if ancestor.__name__ in BY_EXCEPTION:
            outcome, error_class, reason = BY_EXCEPTION[ancestor.__name__]
            return Failure(outcome, error_class, reason, safe_code(type(error).__name__))
    return Failure(RETRY, "unexpected", BY_EXCEPTION["Exception"][2], safe_code(type(error).__name__))


class Refused(Exception):
    """A handler's own classified failure."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.error_class)
        self.failure = failure


def _declared(
    outcome: str, error_class: str, error: ContentFailure | SystemFailure, reasons: Mapping[str, str]
) -> Failure:
    sentence = reasons.get(error.reason, "The handler gave a reason that it does not declare.")
    return Failure(outcome, error_class, sentence, safe_code(error.code), safe_response_id(error.response_id))


def safe_code(code: str | None) -> str | None:
    """A code of a known form, or nothing."""
    return code if code is not None and _CODE.fullmatch(code) else None


def safe_response_id(value: str | None) -> str | None:
    """The other side's own id of its answer, or nothing when it does not look like one."""
    return value if value is not None and _RESPONSE_ID.fullmatch(value) else None
