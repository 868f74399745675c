"""Wrong words on the command line: exit 2, a sentence that names the word, nothing on standard output."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.faults import discover
from tests.integration.cli.conftest import COMMAND, CommandLine

COMMANDS = ("gate", "probe", "check", "report", "size", "list", "explain", "init", "doctor", "bench")
HISTORIES = Path(__file__).parents[2] / "golden" / "histories"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_tells_of_itself(queueproof: CommandLine, command: str) -> None:
    said = queueproof(command, "--help")
    assert said.code == 0
    assert said.out.startswith("Usage: queueproof ")
    assert said.err == ""


def test_the_version_is_all_that_is_said(queueproof: CommandLine) -> None:
    said = queueproof("--version")
    assert (said.code, said.err) == (0, "")
    assert len(said.out.split()) == 1


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["nope"], "No such command 'nope'; see: queueproof --help"),
        (["gate", "--nope"], "No such option: --nope"),
        (["gate", "--repeat", "0"], "'--repeat'"),
        (["gate", "--repeat", "1001"], "'--repeat'"),
        (["gate", "--seed", "x"], "see: queueproof gate --help"),
        (["gate", "--side-by-side", "0"], "'--side-by-side'"),
        (["gate", "--only", "zzzz"], "--only 'zzzz'"),
        (["gate", "--skip", "zzzz", "--only", "yyyy"], "--skip 'zzzz'"),
        (["gate", "--only", "late", "--skip", "late"], "leave no scenario"),
        (["gate", "--only", "late,zzzz"], "--only 'zzzz'"),
        (["gate", "--only", ""], "--only '': names no scenario"),
        (["gate", "/nonexistent"], "/nonexistent"),
        (["gate", "a", "b"], "extra argument"),
        (["gate", "--server", "bogus"], "'bogus'"),
        (["gate", "--server", "local:/nonexistent"], "/nonexistent"),
        (["gate", "--pg", "12"], "'12'"),
        (["gate", "--known", "/nonexistent"], "--known /nonexistent"),
        (["probe", "/nonexistent"], "/nonexistent"),
        (["check"], "RUN"),
        (["check", "/nonexistent"], "/nonexistent"),
        (["report", ".", "--as", "pdf"], "'pdf'"),
        (["explain", "on_owner"], "did you mean one_owner"),
        (["explain", "one owners"], "did you mean one_owner"),
        (["explain", "late"], "NAME 'late': a part of several names: "),
        (["explain", "worker_"], " more"),
        (["explain", "command"], "several names: subject.install.command, subject.enqueue.command, "),
        (["explain", "jobs.run_ta"], "did you mean jobs.run_at"),
        (["explain", "takover_within"], "did you mean takeover_within"),
        (["explain", ""], "NAME ''"),
        (["init", "x", "--kind", "perl"], "'perl'"),
        (
            ["drill", "worker_pause", "/"],
            "NAME 'worker_pause': neither a fault nor a subject; did you mean worker_paused",
        ),
        (["drill", "/"], "NAME: '/' is a subject; name at least one fault"),
        (["drill", "/", "worker_paused"], "NAME '/': no fault; a subject stands last"),
        (["drill", "worker_paused", "/nonexistent"], "NAME '/nonexistent': neither a fault nor a subject"),
        (["bench", "nope"], "'nope'"),
        (["size", "--arrival", "x", "--service", "y"], "arrival"),
        (["doctor", "--clean", "nope"], "--clean nope"),
        (["doctor", "--clean", "embedded"], "--clean embedded"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)
def test_a_wrong_word_is_named(queueproof: CommandLine, words: list[str], named: str) -> None:
    said = queueproof(*words)
    assert said.code == 2, said
    assert said.out == ""
    assert named in said.err, said
    assert not (queueproof.folder / ".queueproof").exists(), "nothing was run, so no run may be kept"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("known = 3", "known is no list"),
        ("[[known]]\nscenario = 'x'", "entry 1 needs exactly"),
        ("known = [3]", "entry 1 needs exactly"),
        ("other = 1", "unknown key 'other'"),
        ("[[known", "not TOML"),
        ("[[known]]\nscenario = 'nope'\ninvariant = 'one_owner'\nreason = 'x'", "no scenario is called 'nope'"),
        (
            "[[known]]\nscenario = 'workers_ten_claim_at_one_barrier'\ninvariant = 'oneowner'\nreason = 'x'",
            "no invariant is called 'oneowner'; did you mean one_owner",
        ),
    ],
)
def test_an_accepted_finding_that_names_nothing_is_refused(queueproof: CommandLine, text: str, named: str) -> None:
    (queueproof.folder / "known.toml").write_text(text)
    said = queueproof("gate", "--known", "known.toml")
    assert said.code == 2, said
    assert named in said.err
    assert said.out == ""


def test_five_mistakes_are_named_at_once(queueproof: CommandLine) -> None:
    folder = queueproof.folder / "five"
    folder.mkdir()
    (folder / "subject.toml").write_text(
        '[subject]\nname = "five"\nguarantee = "exactly-once"\norder = "random"\nlease = "two seconds"\ntakeover_within = "4s"\ncolour = "red"\n'
        'install.sql = ["missing.sql"]\nenqueue.sql = "insert into jobs (key) values (%(key)s)"\n'
        '[subject.worker]\ncommand = ["./worker"]\n[subject.jobs]\ntable = "jobs"\nid = "id"\nkey = "key"\nstate = "state"\n'
    )
    said = queueproof("gate", "five")
    assert said.code == 2
    for field in ("subject.guarantee", "subject.order", "subject.lease", "subject.colour", "subject.install.sql"):
        assert field in said.err
    assert "five/subject.toml has 5 mistakes" in said.err


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"\xff\xfe\x00", "not TOML"),
        (b"[subject", "not TOML"),
        (b"", "subject: missing"),
        (b"subject = 3", "not a table"),
    ],
)
def test_a_file_that_is_no_declaration(queueproof: CommandLine, content: bytes, named: str) -> None:
    (queueproof.folder / "subject.toml").write_bytes(content)
    said = queueproof("probe", ".")
    assert said.code == 2
    assert named in said.err


@pytest.mark.parametrize(
    "words",
    [["list"], ["list", "--requirements"], ["explain", "V1"], ["explain", "one_owner"], ["bench"]],
    ids=" ".join,
)
def test_json_stands_alone_on_standard_output(queueproof: CommandLine, words: list[str]) -> None:
    said = queueproof(*words, "--json")
    assert said.code == 0
    assert json.loads(said.out)
    assert said.err == ""


def test_a_reader_that_goes_away_is_no_trouble(queueproof: CommandLine) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{COMMAND} list | true"],
        capture_output=True,
        cwd=queueproof.folder,
        env=queueproof.env,
        check=True,
    )
    assert done.stderr == b""


def test_a_terminal_that_knows_only_ascii(queueproof: CommandLine) -> None:
    queueproof.env["PYTHONIOENCODING"] = "ascii"
    assert queueproof("explain", "one_owner").code == 0
    assert queueproof("list").code == 0


def test_init_overwrites_nothing(queueproof: CommandLine, tmp_path: Path) -> None:
    first = queueproof("init", "mine", "--kind", "shell", "--json")
    assert first.code == 0
    assert all((tmp_path / name).is_file() for name in json.loads(first.out))
    (tmp_path / "mine" / "subject.toml").write_text("precious")
    again = queueproof("init", "mine", "--kind", "shell")
    assert again.code == 2
    assert "overwrites nothing" in again.err
    assert (tmp_path / "mine" / "subject.toml").read_text() == "precious"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["worker late complete after takeover"], "worker_late_complete_after_takeover"),
        (["worker", "late", "complete", "after", "takeover"], "worker_late_complete_after_takeover"),
        (["late complete"], "worker_late_complete_after_takeover"),
        (["one owner"], "one_owner"),
        (["attempts bound"], "attempts_bounded"),
        (["v1"], "V1"),
        (["consistent"], "consistent"),  # an invariant's whole name, and a key's
        (["subject.consistent"], "subject.consistent"),
        (["jobs.run_at"], "subject.jobs.run_at"),
        (["subject.jobs.run_at"], "subject.jobs.run_at"),
        (["takeover within"], "subject.takeover_within"),
        (["lease"], "subject.lease"),  # a key's whole name, and a part of others
        (["attempts"], "subject.jobs.attempts"),
        (["sink_down"], "sink_down"),
        (["Sink down"], "sink_down"),
        (["network_cut"], "network_cut"),  # a fault's whole name, and a part of others
        (["killed"], "worker_killed"),  # a fault's whole title, and a part of others
        (["network"], "network_cut"),
    ],
)
def test_a_name_is_understood_as_reports_print_it_and_by_a_part(
    queueproof: CommandLine, words: list[str], named: str
) -> None:
    said = queueproof("explain", *words)
    assert (said.code, said.err) == (0, "")
    assert said.out.split()[0].rstrip(":") == named


def test_an_invariant_tells_its_rule_too(queueproof: CommandLine) -> None:
    said = queueproof("explain", "attempts_bounded")
    assert "No job is started more often than max_attempts." in said.out
    assert "A start is a grant under which a call was made" in said.out
    assert "Source:" not in said.out
    assert "Usually mended by: Count the attempt in the statement that grants the job" in said.out
    told = json.loads(queueproof("explain", "attempts_bounded", "--json").out)
    assert told["mend"].startswith("Count the attempt in the statement that grants the job")


def test_a_key_of_a_subject_file_is_told_with_an_example_and_what_else_has_its_name(queueproof: CommandLine) -> None:
    said = queueproof("explain", "lease")
    assert "a duration such as" in said.out
    assert 'lease = "2s"   (in [subject])' in said.out
    assert "The same word is in: " in said.out
    assert "lease_by_database_clock" in said.out
    told = json.loads(queueproof("explain", "attempts", "--json").out)
    assert (told["key"], told["required"], told["table"]) == ("subject.jobs.attempts", False, "subject.jobs")
    assert told["also"] == ["attempts_bounded"]
    assert "also" not in json.loads(queueproof("explain", "attempts_bounded", "--json").out)
    table = json.loads(queueproof("explain", "subject.sql", "--json").out)
    assert {"claim", "complete", "renew"} <= set(table["keys"])


@pytest.mark.parametrize("name", discover())
def test_every_fault_says_what_it_needs(name: str) -> None:
    assert all((need.__doc__ or "").startswith("Needs ") for need in discover()[name].needs)


def test_a_fault_is_told_and_listed(queueproof: CommandLine) -> None:
    fault = discover()["server_slow_start"]
    said = queueproof("explain", "server_slow_start")
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("server_slow_start: server slow to start\n")
    assert fault.docstring in said.out
    assert "strikes   the server\n" in said.out
    assert "needs     a server of our own, that no other play uses; a server whose start can be held up\n" in said.out
    assert f"held up   for {fault.holds_seconds:g} s" in said.out
    assert "not at all: it is over at once" in queueproof("explain", "backend_terminated").out
    told = json.loads(queueproof("explain", "server_slow_start", "--json").out)
    assert (told["fault"], told["strikes"], told["holds_seconds"]) == (fault.name, "server", fault.holds_seconds)
    assert told["needs"][1] == "a server whose start can be held up"
    listed = queueproof("list").out.partition("\nFaults")[2]
    assert [line.split()[0] for line in listed.splitlines()[1:]] == [*discover()]
    assert [each["name"] for each in json.loads(queueproof("list", "--json").out)["faults"]] == [*discover()]


def test_a_stored_run_judged_again_says_once_how_each_kind_of_finding_is_mended(queueproof: CommandLine) -> None:
    shutil.copy(HISTORIES / "finished_stays_finished.bad.jsonl", queueproof.folder / "history.jsonl")
    said = queueproof("check", queueproof.folder)
    assert said.code == 1
    mended = [line.split()[0] for line in said.out.splitlines() if " is usually mended by: " in line]
    assert sorted(mended) == ["finished_stays_finished", "no_lost_job", "no_stale_write"]
    (play,) = json.loads(queueproof("check", queueproof.folder, "--json").out)["plays"]
    assert all(len(finding["mend"]) > 60 for finding in play["findings"])


def test_a_wrong_file_of_accepted_findings_is_shown_a_right_one(queueproof: CommandLine) -> None:
    said = queueproof("gate", "/nonexistent", "--known", "nowhere.toml")
    assert said.code == 2
    assert "--known nowhere.toml: cannot be read" in said.err
    _, table, example = said.err.partition("[[known]]")
    assert table
    (queueproof.folder / "known.toml").write_text(table + example)
    again = queueproof("gate", "/nonexistent", "--known", "known.toml")
    assert again.code == 2
    assert "known.toml" not in again.err
    assert "/nonexistent" in again.err, "the accepted findings are read before the subject"


@pytest.mark.parametrize("text", [None, "[[offer", "other = 1"])
def test_a_wrong_file_of_offers_is_shown_how_to_get_a_right_one(queueproof: CommandLine, text: str | None) -> None:
    if text is not None:
        (queueproof.folder / "offers.toml").write_text(text)
    said = queueproof("quote", "offers.toml", "--size", ".")
    assert said.code == 2
    assert said.err.rstrip().endswith("queueproof quote --example")
    example = queueproof("quote", "--example")
    assert (example.code, example.err) == (0, "")
    (queueproof.folder / "offers.toml").write_text(example.out)
    again = queueproof("quote", "offers.toml", "--size", ".")
    assert again.code == 2, "there is no run yet"
    assert "offers.toml" not in again.err
