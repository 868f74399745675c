"""NOTIFY says nothing any more, and nobody is told."""

import asyncio
from collections.abc import AsyncIterator

import psycopg

from harness.contracts.fault import Landed, fault
from harness.faults.target import Target, comes_true, has_victim

CHANNEL = "queueproof_canary"


@fault("notifications lost", strikes="connection", needs=[has_victim], holds_seconds=4.0, is_borne=True)
async def notifications_lost(target: Target) -> AsyncIterator[Landed]:
    """Notifications do not reach the workers: a pooler in transaction mode, a listener that was moved to another backend.

    A queue that only listens waits for ever; one that polls as well is late by its poll time.
    """
    wires = [worker.wire for worker in target.everyone if worker.running]
    try:
        for wire in wires:
            wire.loses_notifications = True
        wire = target.victim.wire
        before = wire.notifications_lost
        address = target.worker.via("127.0.0.1", wire.port)
        async with asyncio.timeout(8):
            connection = await psycopg.AsyncConnection.connect(
                address.dsn(), autocommit=True, application_name="queueproof canary", connect_timeout=5
            )
            async with connection:
                await connection.execute(f"listen {CHANNEL}")
                await connection.execute(f"notify {CHANNEL}")
                await comes_true(
                    lambda: wire.notifications_lost > before, within_seconds=5, reason="a notification to be lost"
                )
        yield Landed(f"a notification to a session of worker {target.victim.number} did not arrive")
    finally:
        for wire in wires:
            wire.loses_notifications = False
