"""Fronts by name, and what is printed for Locust workers on other machines."""

import asyncio

import pytest

from harness.contracts.problem import BadInput, EnvironmentFailed
from harness.load.front import front_named
from harness.load.locust_process import LocustProcess, _free_port, _without_password
from harness.load.producing import ProducerProcess


def test_each_name_starts_its_own_kind():
    assert front_named("own") is ProducerProcess
    for name in ("locust", "locust:4", "locust-web", "locust-master", "locust-master:3"):
        assert isinstance(front_named(name)(), LocustProcess)


@pytest.mark.parametrize("text", ["", "own:2", "locust:0", "locust:x", "locust:17", "locust-master:", "wrk"])
def test_another_name_is_refused_with_those_that_there_are(text):
    with pytest.raises(BadInput) as bad:
        front_named(text)
    assert f'front: "{text}" is not one of own, locust, locust-web, locust-master' in str(bad.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:s3c@ret@db:5432/load", "postgresql://me@db:5432/load"),
        ("postgresql://me:secret@db:5432/load?sslmode=require", "postgresql://me@db:5432/load?sslmode=require"),
        ("postgresql://me@db:5432/load", "postgresql://me@db:5432/load"),
    ],
)
def test_no_password_is_printed(url, shown):
    assert _without_password(url) == shown


def test_an_address_of_another_machine_is_named():
    with pytest.raises(EnvironmentFailed, match=r"sink-host: 192\.0\.2\.1 is no address of this machine"):
        _free_port("192.0.2.1")


def test_locust_that_needs_nobody_else_prepares_nothing():
    told = []
    asyncio.run(LocustProcess().prepare({}, None, None, told.append))
    assert told == []
