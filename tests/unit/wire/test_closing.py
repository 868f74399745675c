"""A wire that is closed while its clients connect leaves no session that nobody can end."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from harness.event_loop import new_event_loop
from harness.wire.known_jobs import KnownJobs
from harness.wire.proxy import Proxy
from harness.wire.statements import StatementBook
from tests.unit.wire.conftest import STARTUP, Recorder

CLIENTS = 5
STEPS = 6  # of the loop, within which a connection to the server is made
ROUNDS = 10


@pytest.mark.parametrize("loop", [new_event_loop, asyncio.new_event_loop], ids=["ours", "standard"])
def test_a_wire_closes_at_any_step_of_a_connection_that_is_being_made(
    loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def closed_after(steps: int, server: int) -> None:
        proxy = Proxy(1, "127.0.0.1", server, Recorder([]), StatementBook(), KnownJobs())  # type: ignore[arg-type]
        await proxy.start()
        clients: list[Any] = []
        for _ in range(CLIENTS):
            client, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, "127.0.0.1", proxy.port)
            client.write(STARTUP)
            clients.append(client)
        for _ in range(steps):
            await asyncio.sleep(0)
        try:
            async with asyncio.timeout(1):  # what is left after that is left for good
                await proxy.close()
        finally:
            for client in clients:
                client.abort()

    async def play() -> None:
        server = await asyncio.get_running_loop().create_server(asyncio.Protocol, "127.0.0.1", 0)
        async with server:
            for _ in range(ROUNDS):
                for steps in range(STEPS):
                    await closed_after(steps, server.sockets[0].getsockname()[1])

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(play())
