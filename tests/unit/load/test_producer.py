"""The producer on a sender of ours: nothing is lost or sent twice when a connection breaks over a batch, and lag is told."""

import json
import sys
import time

import numpy as np
import psycopg
import pytest

from harness.load.producer import ByCommand, Orders, Producer
from harness.load.producing import Produced
from harness.load.samplers import family


class Shelf:
    """Keeps keys; breaks when told, after having kept part of the batch."""

    def __init__(self, breaks=0, kept_before=0):
        self.keys, self.breaks, self.kept_before, self.asked = [], breaks, kept_before, 0

    def send(self, keys):
        if self.breaks:
            self.breaks -= 1
            self.keys += keys[: self.kept_before]
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        self.keys += keys

    def lost(self, keys):
        self.asked += 1
        if self.asked == 1:
            raise psycopg.OperationalError("connection refused")
        return [key for key in keys if key not in self.keys]


def producer(sender, dues, stop_at):
    orders = Orders(time.monotonic(), "", "", ("job-", 4), "", (), "", "")
    made = Producer(orders, sender, np.array(dues))
    made._stop_at = stop_at
    made._tell = lambda: None
    return made


def test_each_job_is_sent_once_when_it_is_due_and_none_after_the_stop():
    shelf = Shelf()
    made = producer(shelf, [0.0, 0.01, 0.02, 0.1, 5.0], 0.15)
    made.run()
    assert shelf.keys == ["job-0000", "job-0001", "job-0002", "job-0003"]
    assert np.all(made.sent[:4] >= made._dues[:4])
    assert np.isnan(made.sent[4])


@pytest.mark.parametrize("kept", [0, 1, 3])
def test_a_batch_whose_commit_is_unknown_is_asked_after_and_completed(kept):
    shelf = Shelf(breaks=1, kept_before=kept)
    made = producer(shelf, [0.0, 0.0, 0.0], 0.01)
    made.run()
    assert sorted(shelf.keys) == ["job-0000", "job-0001", "job-0002"]
    assert made.trouble == 1
    assert not np.isnan(made.acknowledged).any()


def test_lag_leaves_out_what_is_excused():
    due = np.array([0.0, 1.0, 2.0, 3.0])
    produced = Produced(np.arange(4), due, due + np.array([0.001, 0.9, 0.8, 0.002]), due)
    assert produced.lag_seconds(1.0) == pytest.approx(0.9)
    assert produced.lag_seconds(1.0, outside=(0.5, 2.5)) == pytest.approx(0.002)


def test_a_subjects_own_command_is_kept_running_and_acknowledges_line_by_line(tmp_path):
    program = tmp_path / "enqueue.py"
    program.write_text(
        "import sys\nfor line in sys.stdin:\n    open('seen', 'a').write(line)\n    print('ok', flush=True)\n"
    )
    sender = ByCommand([sys.executable, str(program)], str(tmp_path), {}, None)
    try:
        sender.send(["a", "b"])
        sender.send(["c"])
        seen = [json.loads(line)["key"] for line in (tmp_path / "seen").read_text().splitlines()]
        assert seen == ["a", "b", "c"]
    finally:
        sender._process.kill()
        sender._process.wait()
        sender._process.stdin.close()
        sender._process.stdout.close()


def test_a_command_that_ends_without_a_word_is_trouble_not_success(tmp_path):
    sender = ByCommand([sys.executable, "-c", "pass"], str(tmp_path), {}, None)
    with pytest.raises((ConnectionError, BrokenPipeError)):
        sender.send(["a"])
    sender._process.wait()
    sender._process.stdin.close()
    sender._process.stdout.close()


def test_a_family_is_a_process_and_its_children():
    import os
    import subprocess

    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert {os.getpid(), child.pid} <= set(family(os.getpid()))
    finally:
        child.communicate(b"\n")
    assert family(child.pid) in ([child.pid], [])
