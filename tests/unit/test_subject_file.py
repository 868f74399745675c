"""Reading subject files: what a good one yields, how overlays combine, and that every mistake is told at once."""

import os
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.contracts.problem import BadInput
from harness.contracts.subject import plain
from harness.processes.placeholders import escape, fill
from harness.run.stage import with_lease
from harness.run.subject_file import find_file, load_subject, reference_queue_folder
from harness.run.subject_tables import seconds

GOOD = """
[subject]
name = "mine"
guarantee = "at-least-once"
lease = "2s"
heartbeat = "500ms"
poll = "100ms"
takeover_within = "1m"
max_attempts = 3
install.sql = ["schema.sql"]
enqueue.sql = "insert into jobs (payload) values (jsonb_build_object('key', %(key)s::text))"

[subject.worker]
command = ["{python}", "worker.py"]
env = { LEASE = "{lease}" }

[subject.jobs]
table = "jobs"
id = "id"
key = "payload->>'key'"
state = "status"
token = "version"
token_order = "increasing"
from = "jobs join payloads using (id)"
deleted = "done"
"""


def write(folder: Path, text: str = GOOD, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "subject.toml").write_text(text, encoding="utf-8")
    for name, content in {"schema_sql": "create table jobs ()", **files}.items():
        (folder / name.replace("_sql", ".sql").replace("_py", ".py")).write_text(content, encoding="utf-8")
    return folder


def mistakes(path: Path) -> list[str]:
    with pytest.raises(BadInput) as caught:
        load_subject(path)
    assert caught.value.exit_code == 2
    return list(caught.value.mistakes)


def test_a_good_file(tmp_path):
    subject = load_subject(write(tmp_path / "mine"))
    assert (subject.name, subject.folder, subject.layers) == ("mine", tmp_path / "mine", (tmp_path / "mine",))
    assert (subject.lease_seconds, subject.heartbeat_seconds, subject.poll_seconds) == (2.0, 0.5, 0.1)
    assert (subject.takeover_within_seconds, subject.max_attempts) == (60.0, 3)
    assert subject.install_sql == (tmp_path / "mine" / "schema.sql",)
    assert subject.worker_command == ("{python}", "worker.py")
    assert (subject.sink, subject.recovery, subject.clock, subject.restarts) == ("naive", "repeat", "database", "never")
    assert (subject.jobs.token, subject.jobs.token_increasing, subject.jobs.deleted) == ("version", True, "done")
    assert subject.jobs.reading_from == "jobs join payloads using (id)"
    assert load_subject(tmp_path / "mine" / "subject.toml") == subject


def test_effectively_once_is_made_for_a_keyed_sink(tmp_path):
    subject = load_subject(write(tmp_path, GOOD.replace("at-least-once", "effectively-once")))
    assert (subject.sink, subject.recovery) == ("keyed", "replay")


def test_never_is_a_bound(tmp_path):
    subject = load_subject(write(tmp_path, GOOD.replace('"1m"', '"never"')))
    assert subject.takeover_within_seconds is None


def test_five_mistakes_are_five_lines(tmp_path):
    text = (
        GOOD.replace('lease = "2s"', "lease = 2")
        .replace("max_attempts = 3", "max_attemps = 3")
        .replace('table = "jobs"\n', "")
        .replace("[subject.worker]", '[subject.worker]\nrestarts = "sometimes"')
        .replace('["schema.sql"]', '["schema.sql", "more.sql"]')
    )
    assert mistakes(write(tmp_path, text)) == [
        f"subject.install.sql: there is no file 'more.sql' in {tmp_path}",
        "subject.jobs.table: missing; the table that holds the jobs",
        'subject.lease: 2 has no unit; write "2s" or "2ms"',
        "subject.max_attemps: unknown; did you mean 'max_attempts'?",
        "subject.worker.restarts: 'sometimes' is not one of never, always",
    ]


def test_the_message_names_the_file_and_counts(tmp_path):
    with pytest.raises(BadInput, match=r"subject\.toml has 1 mistake:\n  subject\.order: 'fifo' is not one of none, "):
        load_subject(write(tmp_path, GOOD.replace("[subject.worker]", 'order = "fifo"\n[subject.worker]')))


ONE_MISTAKE = {
    "misplaced": ('lease = "2s"', 'lease = "2s"\nrestarts = "always"', "subject.restarts: unknown here; it belongs in [subject.worker]"),
    "unknown": ('lease = "2s"', 'lease = "2s"\ncolour = "red"', "subject.colour: unknown; known here: name, extends, "),
    "unit": ('"2s"', '"2 parsecs"', 'subject.lease: \'2 parsecs\' is not a duration such as "2s"'),
    "zero": ('"2s"', '"0s"', "subject.lease: '0s' is no time at all"),
    "ever": ('"1m"', '"ever"', 'subject.takeover_within: \'ever\' is neither a duration such as "4s" nor "never"'),
    "number": ("max_attempts = 3", 'max_attempts = "3"', "subject.max_attempts: '3' is not a whole number"),
    "fraction": ("max_attempts = 3", "max_attempts = 2.5", "subject.max_attempts: 2.5 is not a whole number"),
    "too few": ("max_attempts = 3", "max_attempts = 0", "subject.max_attempts: 0 is less than 1"),
    "text": ('name = "mine"', "name = 7", "subject.name: 7 is not a text; write it in quotes"),
    "empty": ('name = "mine"', 'name = ""', "subject.name: is empty"),
    "list": ('["{python}", "worker.py"]', '"worker.py"', "subject.worker.command: 'worker.py' is not a list of texts"),
    "empty list": ('["{python}", "worker.py"]', "[]", "subject.worker.command: is an empty list"),
    "in a list": ('"worker.py"]', "7]", "subject.worker.command[1]: 7 is not a text"),
    "table": ('env = { LEASE = "{lease}" }', "env = 7", "subject.worker.env: 7 is not a table"),
    "env": ('"{lease}"', "2", "subject.worker.env.LEASE: 2 is not a text"),
    "no key": ("%(key)s", "'x'", "subject.enqueue.sql: does not use %(key)s, without which"),
    "parameter": ("%(key)s", "%(kye)s", "subject.enqueue.sql: %(kye)s is filled by nobody; known here: %(key)s"),
    "percent": ("'key'", "'50%'", "subject.enqueue.sql: \"%'\" is no parameter; write %% for a percent sign"),
    "no enqueue": ("enqueue.sql = \"insert into jobs (payload) values (jsonb_build_object('key', %(key)s::text))\"", "", "subject.enqueue: missing; how a job is put in"),
    "both": ('heartbeat = "500ms"', 'heartbeat = "500ms"\nenqueue.command = ["x"]', "subject.enqueue: has both sql and command"),
    "placeholder": ('"{lease}"', '"{leese}"', "subject.worker.env.LEASE: {leese} is unknown; did you mean {lease}?"),
    "no value": ("max_attempts = 3", "", "subject.worker.env.X: {max_attempts} has no value"),
    "no lease": ('lease = "2s"', "", "subject.lease: missing; a heartbeat renews a lease"),
    "no token": ('token = "version"', "", "subject.jobs.token_order: promises an order, but subject.jobs.token is not given"),
    "no order": ('lease = "2s"', 'lease = "2s"\norder = "run_at"', "subject.order: 'run_at' promises an order that nobody can see"),
    "no worker": ('command = ["{python}", "worker.py"]', "", "subject.worker.command: missing; such as"),
    "install": ('["schema.sql"]', '["create table x ()"]', "subject.install.sql: 'create table x ()' is not the name of a .sql file"),
    "deleted": ('deleted = "done"', 'deleted = "finished"', "subject.jobs.deleted: 'finished' is not one of pending, "),
    "boolean": ("install.sql", 'install.after_start = "yes"\ninstall.sql', "subject.install.after_start: 'yes' is neither true nor false"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "told"), ONE_MISTAKE.values(), ids=ONE_MISTAKE.keys())
def test_each_kind_of_mistake_has_its_sentence(tmp_path, old, new, told):
    text = GOOD.replace("env = { ", 'env = { X = "{max_attempts}", ') if "X:" in told else GOOD
    assert old in text
    lines = mistakes(write(tmp_path, text.replace(old, new, 1)))
    assert told in "\n".join(lines)
    if told.startswith("subject.") and "{lease}" not in old and old != 'lease = "2s"':
        assert len(lines) == 1


def test_no_subject_table(tmp_path):
    assert mistakes(write(tmp_path, '[subjekt]\nname = "x"\n')) == [
        "subject: missing; the table that everything else stands in",
        "subjekt: unknown; did you mean 'subject'?",
    ]
    assert "subject: 7 is not a table; write [subject]" in mistakes(write(tmp_path, "subject = 7"))


@pytest.mark.parametrize(
    ("content", "told"),
    [(b"[subject\n", "is not TOML: expected ']'"), (b'x = "\xff"', "is not TOML: byte 5 is no UTF-8 text")],
)
def test_what_is_no_toml(tmp_path, content, told):
    (tmp_path / "subject.toml").write_bytes(content)
    (line,) = mistakes(tmp_path)
    assert told in line


def test_what_is_not_there(tmp_path):
    assert "there is no subject.toml in this folder; `queueproof init`" in mistakes(tmp_path)[0]
    assert "there is no such file or folder" in mistakes(tmp_path / "nowhere")[0]


# -- overlays


def test_an_overlay_changes_what_it_names_and_keeps_the_rest(tmp_path):
    write(tmp_path / "base", worker_py="")
    write(
        tmp_path / "over",
        '[subject]\nname = "over"\nextends = "../base"\n[subject.worker]\nenv = { EXTRA = "1" }\n[subject.jobs]\ndeleted = "dead"',
        schema_sql="create table jobs (better int)",
    )
    subject = load_subject(tmp_path / "over")
    assert (subject.name, subject.layers) == ("over", (tmp_path / "base", tmp_path / "over"))
    assert subject.worker_env == {"LEASE": "{lease}", "EXTRA": "1"}
    assert (subject.jobs.table, subject.jobs.deleted) == ("jobs", "dead")
    assert subject.install_sql == (tmp_path / "over" / "schema.sql",)
    assert subject.worker_command == ("{python}", str(tmp_path / "base" / "worker.py"))  # only the base has it
    assert fill(subject, "{layers}") == os.pathsep.join([str(tmp_path / "over"), str(tmp_path / "base")])
    assert fill(subject, "{folder} {base}") == f"{tmp_path / 'over'} {tmp_path / 'base'}"
    assert find_file(subject.layers, "worker.py") == tmp_path / "base" / "worker.py"


def test_a_whole_script_in_a_command_is_no_file_name(tmp_path):
    write(tmp_path, GOOD.replace('"worker.py"]', f'"-c", "{"x" * 5000}"]'))
    assert load_subject(tmp_path).worker_command == ("{python}", "-c", "x" * 5000)


def test_an_overlay_replaces_sql_by_a_command(tmp_path):
    write(tmp_path / "base")
    write(tmp_path / "over", 'extends = "../base"\n[subject]\nenqueue.command = ["./put"]')
    subject = load_subject(tmp_path / "over")
    assert (subject.enqueue_sql, subject.enqueue_command) == (None, ("./put",))


def test_mistakes_in_a_lower_layer_say_where_they_are(tmp_path):
    write(tmp_path / "base", GOOD.replace('"2s"', '"soon"'))
    write(tmp_path / "over", '[subject]\nextends = "../base"\nnme = "x"')
    assert mistakes(tmp_path / "over") == [
        f'subject.lease: \'soon\' is not a duration such as "2s", "500ms" or "1m" (in {tmp_path}/base/subject.toml)',
        "subject.nme: unknown; did you mean 'name'?",
    ]


def test_a_circle_and_a_dead_end(tmp_path):
    write(tmp_path / "a", '[subject]\nextends = "../b"')
    write(tmp_path / "b", '[subject]\nextends = "../a"')
    assert any("leads in a circle back to" in line for line in mistakes(tmp_path / "a"))
    write(tmp_path / "c", '[subject]\nextends = "../gone"')
    assert any("'../gone' leads nowhere: " in line for line in mistakes(tmp_path / "c"))


def test_the_reference_queue_can_be_extended_by_name(tmp_path, monkeypatch):
    package = write(tmp_path / "elsewhere" / "reference_queue")
    (package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.delitem(sys.modules, "reference_queue", raising=False)
    if reference_queue_folder() != package:
        pytest.skip("the real one was found first")
    write(tmp_path / "over", '[subject]\nextends = "reference_queue"\nname = "over"')
    assert load_subject(tmp_path / "over").layers == (package, tmp_path / "over")


# -- pasted statements

PASTED = (
    GOOD.replace('command = ["{python}", "worker.py"]\n', "")
    + """
[subject.sql]
claim = "update jobs set worker = %(worker)s where false returning id, key"
complete = "complete.sql"
renew = "update jobs set tags = '{lease}' where id = %(id)s"
"""
)


def test_pasted_statements_run_in_our_own_worker(tmp_path):
    subject = load_subject(write(tmp_path, PASTED, complete_sql="update jobs set done = true where id = %(id)s\n"))
    assert subject.worker_command[0] == sys.executable
    assert Path(subject.worker_command[-1]).name == "pasted_worker.py"
    assert Path(subject.worker_command[-1]).is_file()
    assert subject.pasted is not None
    assert subject.pasted.complete == "update jobs set done = true where id = %(id)s"
    assert subject.pasted.fail is None
    env = {name: fill(subject, value, lease=120) for name, value in subject.worker_env.items()}
    assert (env["QUEUEPROOF_LEASE"], env["QUEUEPROOF_HEARTBEAT"], env["QUEUEPROOF_POLL"]) == ("120", "0.5", "0.1")
    assert "'{lease}'" in env["QUEUEPROOF_STATEMENTS"]  # the user's own braces are no placeholders


def test_mistakes_in_pasted_statements(tmp_path):
    text = PASTED.replace("%(worker)s", "%(token)s").replace('heartbeat = "500ms"', "")
    lines = mistakes(write(tmp_path, text, complete_sql="delete from jobs"))
    assert [line.split(":")[0] for line in lines] == ["subject.heartbeat", "subject.sql.claim", "subject.sql.complete"]
    assert "%(token)s is filled by nobody" in lines[1]
    assert "complete.sql: does not use %(id)s" in lines[2]


def test_both_a_worker_and_pasted_statements(tmp_path):
    text = PASTED.replace("[subject.worker]", '[subject.worker]\ncommand = ["x"]')
    lines = mistakes(write(tmp_path, text, complete_sql="select %(id)s"))
    assert lines == [
        "subject.sql: our own worker runs pasted statements, but subject.worker.command names another; keep one"
    ]


# -- laws


@given(st.integers(1, 10**9), st.sampled_from([("ms", "0.001"), ("s", "1"), ("m", "60"), ("min", "60"), ("h", "3600")]))
def test_durations_are_exact(number, unit):
    assert seconds(f"{number}{unit[0]}") == Decimal(number) * Decimal(unit[1])


@given(st.text(alphabet="0123456789.smh -e+x", max_size=8))
def test_a_text_is_a_positive_duration_or_refused_by_name(text):
    try:
        known = seconds(text)
    except ValueError as error:
        told = str(error)
    else:
        told = repr(text) if known > 0 else ""
    assert repr(text) in told


@given(st.text(alphabet="{}$ab_ A\n") | st.text())
def test_an_escaped_text_comes_back(text):
    assert fill(SUBJECT, escape(text)) == text


@given(st.decimals(min_value="0.001", max_value="100000", places=3))
def test_numbers_are_written_plainly(number):
    shown = plain(float(number))
    assert Decimal(shown) == number
    assert "e" not in shown.lower()


def test_fill(tmp_path):
    subject = load_subject(write(tmp_path))
    assert fill(subject, "{lease} {heartbeat} {poll} {max_attempts} {slots}") == "2 0.5 0.1 3 1"
    assert fill(subject, "{lease}/{slots}", lease=120.0, slots=16) == "120/16"
    assert fill(subject, "${lease} {{lease}} {LEASE} {print $1}") == "${lease} {lease} {LEASE} {print $1}"
    assert fill(subject, "{python}|{folder}") == f"{sys.executable}|{tmp_path}"
    with pytest.raises(BadInput, match="none of python, folder"):
        fill(subject, "{nonsense}")


def test_the_interpreter_is_the_subjects_own_when_it_has_one(tmp_path):
    own = write(tmp_path) / ".venv" / "bin" / "python"
    own.parent.mkdir(parents=True)
    own.touch()
    assert fill(load_subject(tmp_path), "{python}") == str(own)


def _any_subject():
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return load_subject(write(Path(folder)))


SUBJECT = _any_subject()


def test_a_queue_that_is_broken_on_purpose_says_by_whom_it_must_be_caught(tmp_path):
    told = (
        '\n[subject.broken]\nclass = "C"\ncaught_by = "no_stale_write"\nby = ["worker_late_complete_after_takeover"]\n'
    )
    broken = load_subject(write(tmp_path, GOOD + told)).broken
    assert broken is not None
    assert (broken.letter, broken.caught_by, broken.by) == (
        "C",
        "no_stale_write",
        ("worker_late_complete_after_takeover",),
    )
    assert load_subject(write(tmp_path / "right")).broken is None


def test_a_class_of_faults_that_is_none_is_refused(tmp_path):
    told = '\n[subject.broken]\nclass = "Z"\ncaught_by = "no_stale_write"\n'
    found = mistakes(write(tmp_path, GOOD + told))
    assert any(line.startswith("subject.broken.class: 'Z' is not") for line in found)
    assert "subject.broken.by: missing; the scenarios in which it must be caught" in found


def test_a_timeout_counted_from_the_lock_follows_the_lease(tmp_path: Path) -> None:
    timed = GOOD.replace(
        'state = "status"', 'state = "status"\nlease_until = "locked_at + make_interval(secs => {lease})"'
    )
    subject = load_subject(write(tmp_path, timed))
    assert subject.jobs.lease_until == "locked_at + make_interval(secs => 2)"
    longer = with_lease(with_lease(subject, 120), 0.5)
    assert longer.jobs.lease_until == "locked_at + make_interval(secs => 0.5)"


def test_a_timeout_counted_from_the_lock_needs_a_lease(tmp_path: Path) -> None:
    timed = GOOD.replace(
        'state = "status"', 'state = "status"\nlease_until = "locked_at + make_interval(secs => {lease})"'
    )
    without = timed.replace('lease = "2s"\nheartbeat = "500ms"\n', "").replace('env = { LEASE = "{lease}" }\n', "")
    assert mistakes(write(tmp_path, without)) == [
        "subject.lease: missing; subject.jobs.lease_until uses {lease}, the seconds of one"
    ]
