"""For CI: JUnit XML. A fail is a failure, an inconclusive an error, a not applicable a skip with its reason.

Names are unique and free of the seed, because GitLab tells test cases apart by class and name and drops repeated ones.
"""

import io

import junitparser

from harness.contracts.verdict import Verdict
from harness.document import Document, PlayDoc
from reports import as_text, words

NAME = "junit"
SUFFIX = ".xml"
FILENAME = "junit.xml"


def render(document: Document) -> bytes:
    """One test suite, a test case per play."""
    subject = words.legible(document.subject.name)
    suite = junitparser.TestSuite(subject)
    suite.timestamp = words.legible(document.started_at)
    for name, value in _properties(document):
        suite.add_property(name, words.legible(value))
    suite.add_testcases([_case(play, subject) for play in document.plays])
    suite.time = document.seconds  # of the run: plays may have gone side by side
    whole = junitparser.JUnitXml("queueproof")
    whole.add_testsuite(suite)
    out = io.BytesIO()
    whole.write(out)
    return out.getvalue() + b"\n"


def _properties(document: Document) -> list[tuple[str, str]]:
    return [
        ("verdict", document.verdict),
        ("summary", document.summary),
        ("seed", str(document.seed)),
        ("command", document.command),
        ("queueproof", document.tool_version),
        ("postgresql", document.server.version),
        ("server", document.server.source),
        ("guarantee", document.subject.guarantee),
    ]


def _case(play: PlayDoc, subject: str) -> junitparser.TestCase:
    name = words.legible(play.scenario) + (f" ({play.repeat})" if play.repeat > 1 else "")
    case = junitparser.TestCase(name, subject, play.seconds)
    reason = words.told(play.reason)
    result: junitparser.Failure | junitparser.Error | junitparser.Skipped | None = None
    if play.verdict == Verdict.FAIL:
        broken = words.listing(dict.fromkeys(words.legible(finding.invariant) for finding in play.findings))
        result = junitparser.Failure(reason, broken or None)
    elif play.verdict == Verdict.INCONCLUSIVE:
        result = junitparser.Error(reason, "inconclusive")
    elif play.verdict == Verdict.NOT_APPLICABLE:
        result = junitparser.Skipped(reason)
    if result is not None:
        if play.verdict != Verdict.NOT_APPLICABLE:
            result.text = "\n".join(as_text.story(play))
        case.result = [result]
    return case
