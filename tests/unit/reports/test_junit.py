"""JUnit as GitLab and others read it."""

from xml.etree import ElementTree as ET

import junitparser
import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.document import Document, PlayDoc
from reports import as_junit


def cases(document: Document) -> dict[str, ET.Element]:
    found = ET.fromstring(as_junit.render(document)).findall(".//testcase")
    assert len({(case.get("classname"), case.get("name")) for case in found}) == len(found) == len(document.plays)
    return {case.get("name", ""): case for case in found}


def test_each_verdict_has_its_element(broken: Document):
    children = {name: [child.tag for child in case] for name, case in cases(broken).items()}
    assert children == {
        "two_sessions_lock_skip_roll_back": [],
        "worker_paused_past_its_lease_completes_late": ["failure"],
        "worker_killed_after_commit_before_call": [],
        "network_cut_past_the_lease": ["error"],
        "renewal_held_past_the_lease": ["skipped"],
    }


def test_the_suite_counts_and_names_what_it_ran_on(broken: Document):
    (suite,) = junitparser.JUnitXml.fromstring(as_junit.render(broken))
    assert (suite.name, suite.tests, suite.failures, suite.errors, suite.skipped) == ("my_queue", 5, 1, 1, 1)
    properties = {one.name: one.value for one in suite.properties()}
    assert properties["seed"] == "42"
    assert properties["postgresql"] == "18.4"
    assert all(case.classname == "my_queue" for case in suite)


def test_a_failure_names_the_invariant_and_tells_the_story(broken: Document):
    failure = cases(broken)["worker_paused_past_its_lease_completes_late"].find("failure")
    assert failure is not None
    assert failure.get("type") == "stale_write"
    assert "because worker 2 had been granted the job" in (failure.text or "")
    assert (failure.text or "").endswith("--seed 42")


def test_names_are_stable_across_seeds_and_repetitions_are_numbered(held: Document):
    play = held.plays[0]
    twice = msgspec.structs.replace(held, plays=(play, msgspec.structs.replace(play, repeat=2)), seed=987654)
    assert list(cases(twice)) == [play.scenario, f"{play.scenario} (2)"]
    assert not any("987654" in name for name in cases(twice))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(text=st.text())
def test_any_text_is_legal_xml(held: Document, text: str):
    plays = tuple(
        PlayDoc("s", text, verdict, text, (), reproduce=text) for verdict in ("fail", "inconclusive", "not applicable")
    )
    document = msgspec.structs.replace(
        held,
        plays=tuple(msgspec.structs.replace(play, repeat=number) for number, play in enumerate(plays, 1)),
        summary=text,
        subject=msgspec.structs.replace(held.subject, name=text),
    )
    assert len(cases(document)) == 3
