"""What a producer makes of an enqueue that fails: an outage is counted, a mistake is told."""

import asyncio
from types import SimpleNamespace

import psycopg
import pytest

from harness.contracts.problem import SubjectFailed
from harness.history.events import Enqueued, Entry
from harness.lab.inflow import Inflow

ENOUGH_SECONDS = 10.0


class Lab:
    """Acknowledges the first enqueues, fails once, and acknowledges from then on."""

    def __init__(self, enqueue_sql, failure, good_before):
        self.subject = SimpleNamespace(enqueue_sql=enqueue_sql)
        self.recorder = SimpleNamespace(subscribe=self._subscribe)
        self.failed, self.again = asyncio.Event(), asyncio.Event()
        self._failure, self._fails_at = failure, good_before + 1
        self._count = 0

    def _subscribe(self, tell):
        self._tell = tell

    async def enqueue(self, jobs):
        self._count += 1
        if self._count == self._fails_at:
            self.failed.set()
            raise self._failure
        self._tell(Entry(self._count, 0, "play", Enqueued(f"job-{self._count}")))
        if self.failed.is_set():
            self.again.set()


def produce(enqueue_sql, failure, good_before, until):
    async def run():
        lab = Lab(enqueue_sql, failure, good_before)
        inflow = Inflow(lab, 1000)
        async with asyncio.timeout(ENOUGH_SECONDS), inflow.flowing():
            await getattr(lab, until).wait()
        return inflow

    return asyncio.run(run())


def failed(cause=None):
    error = SubjectFailed("enqueue failed")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("enqueue_sql", "failure"), [("insert", failed(psycopg.OperationalError("gone"))), (None, failed())]
)
def test_an_enqueue_that_meets_an_outage_is_refused_and_jobs_keep_coming(enqueue_sql, failure):
    inflow = produce(enqueue_sql, failure, good_before=2, until="again")
    assert inflow.refused == 1
    assert len(inflow.acknowledged) == 3


@pytest.mark.parametrize(
    ("enqueue_sql", "failure", "good_before"),
    [("insert", failed(psycopg.errors.UndefinedTable("task")), 2), (None, failed(), 0)],
)
def test_a_mistake_of_the_subject_is_told(enqueue_sql, failure, good_before):
    with pytest.raises(SubjectFailed, match="enqueue failed"):
        produce(enqueue_sql, failure, good_before, until="failed")
