"""``--server`` and ``--pg``: what is allowed, and what a mistake is answered with."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.contracts.problem import BadInput
from harness.postgres.options import ServerOption, parse_server, without_password


@pytest.mark.parametrize(
    ("text", "pg", "option"),
    [
        ("embedded", None, ServerOption("embedded", 18)),
        ("embedded", "16", ServerOption("embedded", 16)),
        ("embedded", 17, ServerOption("embedded", 17)),
        ("local", None, ServerOption("local")),
        ("local", "16", ServerOption("local", 16)),
        ("docker", None, ServerOption("docker", image="postgres:18")),
        ("docker", "16", ServerOption("docker", 16, image="postgres:16")),
        ("docker:our/postgres:15", None, ServerOption("docker", image="our/postgres:15")),
        ("postgresql://u:p@h/d", None, ServerOption("dsn", dsn="postgresql://u:p@h/d")),
        ("postgres://h", None, ServerOption("dsn", dsn="postgres://h")),
        ("host=h user=u", None, ServerOption("dsn", dsn="host=h user=u")),
    ],
)
def test_what_is_allowed(text: str, pg: str | int | None, option: ServerOption) -> None:
    assert parse_server(text, pg) == option


def test_a_bin_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "postgres").touch()

    option = parse_server(f"local:{tmp_path}")

    assert option.bin_dir == tmp_path
    assert option.shown() == f"local:{tmp_path}"


@pytest.mark.parametrize(
    ("text", "pg", "names"),
    [
        ("podman", None, ["'podman'", "embedded", "local:BINDIR", "docker:IMAGE", "postgresql://"]),
        ("Embedded", None, ["'Embedded'", "embedded"]),
        ("", None, ["''"]),
        ("embedded", "15", ["--pg '15'", "16, 17, 18"]),
        ("embedded", "new", ["--pg 'new'"]),
        ("local:/no/such/place", None, ["/no/such/place", "bin directory"]),
        ("postgresql://h/d", "18", ["--pg 18", "leave --pg out"]),
        ("postgresql://a,b/d", None, ["one host"]),
        ("host=/run/postgresql", None, ["TCP"]),
        ("postgresql://h:99999/d", None, ["99999", "65535"]),
        ("postgresql://h/d?nonsense=1", None, ["not a connection string"]),
    ],
)
def test_a_mistake_names_the_value_and_what_is_allowed(text: str, pg: str | None, names: list[str]) -> None:
    with pytest.raises(BadInput) as raised:
        parse_server(text, pg)

    assert len(raised.value.mistakes) == 1
    for name in names:
        assert name in str(raised.value)


def test_every_mistake_is_named_at_once() -> None:
    with pytest.raises(BadInput) as raised:
        parse_server("kubernetes", "9")

    assert len(raised.value.mistakes) == 2


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://u:s3cret@h:70000/d",
        "postgresql://u:s3@cret@h:x/d",
        "postgresql://u:s3/cret@h/d?nonsense=1",
        "postgresql://h/d?password=s3cret&nonsense=1",
        "password=s3cret nonsense=1",
        "host=h password='s3 cret' nonsense=1",
        "host=h password = 's3\\'cret' port=0",
        "user=u password=s3cret port=1x",
    ],
)
def test_no_mistake_shows_a_password(text: str) -> None:
    with pytest.raises(BadInput) as raised:
        parse_server(text)

    assert "s3" not in str(raised.value)
    assert "cret" not in str(raised.value)


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="@/:"), min_size=6))
def test_a_password_in_a_url_is_starred_out(password: str) -> None:
    shown = without_password(f"postgresql://u:{password}@h/d")

    assert shown == "postgresql://u:***@h/d"
    assert password not in repr(parse_option(password))


def parse_option(password: str) -> ServerOption:
    return ServerOption("dsn", dsn=f"postgresql://u:{password}@h/d")
