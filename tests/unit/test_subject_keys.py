"""What is said of each key of a subject.toml: of all that there are and no others, with an example that is right."""

import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from harness.run.subject_keys import KEYS, default, named, table_of, takes
from harness.run.subject_tables import SubjectFile, keys_of, model_at

LEAST = """
[subject]
name = "mine"
guarantee = "at-least-once"
takeover_within = "4s"
enqueue.sql = "insert into jobs (key) values (%(key)s)"
consistent.sql = "select 1 where false"

[subject.worker]
command = ["worker"]

[subject.jobs]
table = "jobs"
id = "id"
key = "key"
state = "state"

[subject.sql]
claim = "claim.sql"
complete = "complete.sql"

[subject.broken]
class = "A"
caught_by = "one_owner"
by = ["one"]
"""


def paths(at: tuple[str, ...] = ()) -> Iterator[str]:
    for name in keys_of(model_at(at)):
        yield ".".join((*at, name))
        yield from paths((*at, name))


def at(file: dict[str, Any], path: str) -> Any:
    here: Any = file
    for name in path.split("."):
        here = here[name]
    return here


def laid_over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    both = dict(below)
    for name, value in above.items():
        known = both.get(name)
        both[name] = laid_over(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return both


def test_every_key_of_the_models_is_told_and_no_other() -> None:
    assert sorted(KEYS) == sorted(paths())
    assert len(KEYS) > 50


@pytest.mark.parametrize("path", KEYS)
def test_its_example_is_one(path: str) -> None:
    key = KEYS[path]
    above = f"[{table_of(path)}]\n" if not key.example.startswith("[") else ""
    example = tomllib.loads(above + key.example)
    at(example, path)  # it gives this very key
    SubjectFile.model_validate(laid_over(tomllib.loads(LEAST), example))


@pytest.mark.parametrize("path", KEYS)
def test_a_meaning_reads_on_after_a_colon(path: str) -> None:
    for said in (KEYS[path].meaning, KEYS[path].left_out, takes(path)):
        assert said == said.strip()
        assert not said.endswith(".")
    assert len(KEYS[path].meaning) >= 10


@pytest.mark.parametrize("path", KEYS)
def test_what_leaving_it_out_means_is_said_once(path: str) -> None:
    """By the model where it has a default that says so, by us where it has none; never for a key that must be given."""
    *above, name = path.split(".")
    model = model_at(tuple(above))
    assert model is not None
    (field,) = [info for own, info in model.model_fields.items() if (info.alias or own) == name]
    ours = not field.is_required() and (field.default is None or model_at(tuple(path.split("."))) is not None)
    assert bool(KEYS[path].left_out) == ours
    assert (default(path) is None) == field.is_required()


@pytest.mark.parametrize(
    ("path", "taken", "left_out"),
    [
        ("subject.name", "a text", None),
        ("subject.order", '"none", "run_at", "priority", "per-key"', '"none"'),
        ("subject.poll", 'a duration such as "2s", "500ms" or "1m"', "not declared"),
        ("subject.takeover_within", 'a duration such as "2s", "500ms" or "1m", or "never"', None),
        ("subject.max_attempts", "a whole number, 1 or more", "not declared; bounds are not judged"),
        ("subject.install.sql", "a text or a list of texts", "no file is run"),
        ("subject.install.after_start", "true or false", "false"),
        ("subject.worker.env", "a table of texts", "empty"),
        (
            "subject.enqueue.sql",
            "a text of SQL, or the name of a .sql file; parameters: %(key)s (needed), %(priority)s, %(group)s",
            "enqueue.command puts jobs in",
        ),
        ("subject.broken", "a table of class, caught_by, by", "it is meant to be right"),
    ],
)
def test_what_it_takes_and_its_default_are_read_off_the_model(path: str, taken: str, left_out: str | None) -> None:
    assert (takes(path), default(path)) == (taken, left_out)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("lease", ["subject.lease"]),
        ("subject.lease", ["subject.lease"]),
        ("jobs.run_at", ["subject.jobs.run_at"]),
        ("subject.jobs.run_at", ["subject.jobs.run_at"]),
        ("run_at", ["subject.jobs.run_at"]),
        ("from", ["subject.jobs.from"]),
        ("sql", ["subject.sql"]),  # a whole path, although three others end so
        ("command", ["subject.install.command", "subject.enqueue.command", "subject.worker.command"]),
        ("run", []),
        ("", []),
    ],
)
def test_a_key_is_called_by_its_path_or_its_last_word(said: str, found: list[str]) -> None:
    assert named(said) == found
