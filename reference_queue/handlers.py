"""What a user writes: how to do one kind of job, and how to find out afterwards whether it was done.

A handler is never inside a transaction. Its reasons for refusing a job are declared, so that an error row can only ever hold
a sentence that a programmer wrote: no payload and no credential can get there.
"""

import importlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, cast

from reference_queue.decisions import Answer, Recovery
from reference_queue.grants import Grant
from reference_queue.settings import BadSetting


class ContentFailure(Exception):
    """The job itself is wrong, and will be the next time, too. ``reason`` names one of the handler's declared reasons."""

    def __init__(
        self, reason: str, *, code: str | None = None, response_id: str | None = None, pause: bool = False
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code
        self.response_id = response_id
        self.pause = pause


class SystemFailure(Exception):
    """Something around the job failed: the same job may work later. ``reason`` names one of the declared reasons."""

    def __init__(self, reason: str, *, code: str | None = None, response_id: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code
        self.response_id = response_id


@dataclass(frozen=True)
class Done:
    """The outside did it. ``remote_id`` is its own number for what it made."""

    remote_id: str | None = None


@dataclass(frozen=True)
class Job:
    """What a handler is given. The payload is read only when asked for, so that buffered jobs hold none in memory."""

    grant: Grant
    payload: Callable[[], Awaitable[Any]]
    record: Callable[[str, str | None], Awaitable[None]]  # ("result_obtained" or "confirming", remote number)


@dataclass(frozen=True)
class Handler:
    """One kind of job. ``ask`` is required when ``recovery`` is ask."""

    call: Callable[[Job], Coroutine[Any, Any, Done]]
    recovery: Recovery
    ask: Callable[[Job], Coroutine[Any, Any, Answer]] | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.recovery is Recovery.ASK and self.ask is None:
            raise BadSetting("a handler whose recovery is 'ask' must have an ask function")


Handlers = Mapping[str, Handler]
Provider = Callable[[], AbstractAsyncContextManager[Handlers]]


def find(name: str) -> Provider:
    """The provider that ``module:function`` names: an async context manager that yields handlers by kind."""
    module_name, _, function_name = name.partition(":")
    try:
        provider = getattr(importlib.import_module(module_name), function_name)
    except (ImportError, AttributeError, ValueError) as error:
        raise BadSetting(f"--handlers is {name!r}, and it cannot be loaded: {error}") from error
    return cast("Provider", provider)
