"""Sees a transaction that is kept open across a call: open on the wire as the call comes, and still the same one at its end.

The wire tells which transaction it is, on the clock that orders the calls; the server tells what it holds.
"""

from typing import TYPE_CHECKING

from harness.history.events import Called, Entry, OpenTransaction
from harness.sink.hold import HeldCall

if TYPE_CHECKING:
    from harness.lab.lab import Lab
    from harness.wire.session import Session


class TransactionWatch:
    """Looks at the caller's sessions at both ends of each call."""

    def __init__(self, lab: "Lab") -> None:
        self._lab = lab
        self._open: dict[int, list[tuple[Session, int]]] = {}

    def start(self) -> None:
        """Begin to look."""
        self._lab.recorder.subscribe(self._note)
        self._lab.sink.before_reply = self._look

    def _note(self, entry: Entry) -> None:
        """As a call arrives: the caller's open transactions, at that very moment."""
        event = entry.what
        if not isinstance(event, Called):
            return
        sessions = [s for worker in self._lab.workers if worker.number == event.worker for s in worker.sessions]
        found = [(session, number) for session in sessions if (number := session.open_transaction) is not None]
        if found:
            self._open[event.call] = found

    async def _look(self, call: HeldCall) -> None:
        """Before the reply leaves: those that are still open, and what the server says of them."""
        for session, number in self._open.pop(call.call, ()):
            if session.open_transaction != number:
                continue
            backend = await self._lab.view.backend(session.pid)
            if backend is None or session.open_transaction != number:
                continue
            rows = await self._lab.view.rows_held_by(backend.xid)
            on_row = any(row.key == call.key for row in rows)
            self._lab.recorder.record(
                OpenTransaction(
                    call=call.call,
                    worker=call.worker,
                    pid=session.pid,
                    key=call.key,
                    on_row=on_row,
                    older_than_call=True,
                    at_end=True,
                    state=backend.state or "",
                )
            )
