"""A sink that runs, a client to call it with, and its record to read."""

import contextlib
import functools
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import msgspec
import pytest

from harness.history.events import Answered, AnyEvent, Applied, Called
from harness.history.recorder import PlayRecorder, Recorder
from harness.sink import Sink
from harness.sink.ledger import Kind


@dataclass
class Bench:
    sink: Sink
    record: PlayRecorder
    http: aiohttp.ClientSession

    @property
    def events(self) -> list[AnyEvent]:
        return [entry.what for entry in self.record.entries]

    @property
    def tale(self) -> list[tuple[str, str | int | None]]:
        """The calls' events as (what, its point)."""
        told: list[tuple[str, str | int | None]] = []
        for event in self.events:
            match event:
                case Called():
                    told.append(("called", event.key))
                case Applied():
                    told.append(("applied", event.outcome))
                case Answered():
                    told.append(("answered", event.status))
        return told

    async def call(self, key: str, worker: int = 1, **headers: str) -> int:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.http.post(f"{self.sink.url(worker)}/{key}", headers=named) as answer:
            return answer.status

    async def ask(self, key: str, worker: int = 1, **headers: str) -> int:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.http.get(f"{self.sink.url(worker)}/{key}", headers=named) as answer:
            return answer.status

    async def until(self, kind: type, count: int = 1) -> None:
        await self.record.wait_for(
            lambda _: sum(isinstance(event, kind) for event in self.events) >= count,
            within_seconds=5,
            reason=f"{count} {kind.__name__}",
        )


@contextlib.asynccontextmanager
async def sink_bench(folder: Path, kind: Kind = "naive") -> AsyncIterator[Bench]:
    with Recorder(folder / "history.jsonl") as recorder:
        record = recorder.play("play")
        sink = Sink(kind, record)
        await sink.start()
        try:
            async with aiohttp.ClientSession() as http:
                yield Bench(sink, record, http)
        finally:
            await sink.close()
    for line in (folder / "history.jsonl").read_bytes().splitlines():
        msgspec.json.decode(line)  # whatever was said, the record stays readable


@pytest.fixture
def bench(tmp_path: Path) -> Callable[..., contextlib.AbstractAsyncContextManager[Bench]]:
    """``async with bench(kind) as b``: a running sink of that kind."""
    return functools.partial(sink_bench, tmp_path)
