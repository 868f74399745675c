"""Workers on other machines: who has joined, who has left, and the command that is printed for them."""

import dataclasses
import shlex
from pathlib import Path

import pytest

from harness.contracts.problem import BadInput
from harness.load.plan import read_plan
from harness.load.workers import Joined, Place, Workers
from harness.postgres.address import Address
from harness.processes.watchdog import Watchdog
from harness.run.subject_file import load_subject, reference_queue_folder

WORDS = {
    "arrival": "12/s",
    "service": "0.8s",
    "slots": "16",
    "outage": "300s",
    "workers": "external:2",
    "outage_of": "sink",
}


@pytest.fixture
def joined():
    two = Joined(2)
    two.settle(4)
    return two


def test_each_is_there_once_it_has_called_at_its_own_address():
    assert Joined(3).missing({2: 9}) == [1, 3]
    assert Joined(3).missing({1, 2, 3}) == []


def test_a_worker_with_several_sessions_is_missed_although_as_many_as_workers_are_left(joined):
    assert joined.saw_sessions(2, 10.0) is None
    assert joined.saw_sessions(2, 11.0) is None
    told = joined.saw_sessions(2, 12.5)
    assert told == "of 4 worker sessions 2 were left, for 2 s"
    assert joined.left == [told]
    assert joined.saw_sessions(2, 14.0) is None, "told once"


def test_one_connection_that_is_made_anew_is_nobody_who_leaves(joined):
    for at, sessions in enumerate((3, 3, 3, 3, 2, 4, 2, 4)):
        joined.saw_sessions(sessions, float(at))
    assert joined.left == []


def test_the_same_sample_seen_again_and_again_is_one_sample(joined):
    for _ in range(100):
        joined.saw_sessions(0, 5.0)
    assert joined.left == []


def test_after_a_stopped_server_fewer_sessions_say_nothing_until_they_are_back(joined):
    joined.reconnecting()
    for at in range(20):
        joined.saw_sessions(0, float(at))
    assert joined.left == []
    joined.saw_sessions(4, 20.0)
    for at in (21.0, 22.0, 23.5):
        joined.saw_sessions(2, at)
    assert len(joined.left) == 1


def test_the_silent_one_is_named_and_a_silence_of_all_says_nothing_of_one(joined):
    joined.judge_silence(set())
    assert joined.left == []
    joined.judge_silence({1})
    assert joined.left == ["worker 2 made no call after recovery began"]


def printed(words, **changes):
    plan = dataclasses.replace(read_plan(**(WORDS | words)), **changes)
    address = Address("db.example", 5432, "worker", "load", "secret")
    place = Place(load_subject(reference_queue_folder()), address, ("http://127.0.0.2:1/s/1", "http://127.0.0.2:1/s/2"), Path(), Watchdog(), "/bin")  # fmt: skip
    words = shlex.split(Workers(place, plan.scaled()).command_to_copy(1))
    command = words[words.index("python3") :]
    return dict(word.split("=", 1) for word in words[: -len(command)]), command


def test_the_printed_command_has_the_three_variables_and_what_the_plan_sets():
    variables, command = printed({"batch": "7", "prefetch": "3", "time_scale": "10"}, worker_env={"QUEUE_POLL": "9s"})
    assert variables["DATABASE_URL"].endswith("@db.example:5432/load")
    assert variables["QUEUEPROOF_SINK"] == "http://127.0.0.2:1/s/2"
    assert variables["QUEUEPROOF_SLOTS"] == "8"
    assert (variables["QUEUEPROOF_BATCH"], variables["QUEUEPROOF_PREFETCH"]) == ("7", "3")
    assert variables["QUEUEPROOF_BACKOFF"] == "0.1s", "compressed as the rest is"
    assert variables["QUEUE_LEASE"] == "3s"
    assert variables["QUEUE_POLL"] == "9s", "what the user sets goes last"
    assert command == ["python3", "-m", "reference_queue.worker"]


def test_the_printed_command_names_no_place_of_this_machine():
    variables, command = printed({})
    assert str(reference_queue_folder()) not in " ".join([*variables.values(), *command])
    assert variables["PYTHONPATH"] == "./.."


def test_workers_elsewhere_cannot_be_killed_by_us():
    with pytest.raises(BadInput, match="outage-of"):
        read_plan(**(WORDS | {"outage_of": "workers"}))
