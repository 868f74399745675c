"""What every face owes: the same bytes for the same document, whatever a key holds. A new face is tested by existing."""

import msgspec
import pytest

from harness.document import Document
from reports import Face, discover

FACES = discover()


@pytest.fixture(params=sorted(FACES))
def face(request: pytest.FixtureRequest) -> Face:
    return FACES[request.param]


def test_discovery_goes_by_file_name():
    assert {"text", "json"} <= set(FACES)
    assert all(name == face.NAME and face.SUFFIX.startswith(".") for name, face in FACES.items())
    assert len({face.FILENAME for face in FACES.values()}) == len(FACES)


def test_same_document_same_bytes(face: Face, sample: Document):
    again = msgspec.json.decode(FACES["json"].render(sample), type=Document)
    assert face.render(sample) == face.render(sample)
    assert again.verdict == sample.verdict


def test_shows_verdict_and_every_scenario(face: Face, sample: Document):
    shown = face.render(sample).decode()
    for play in sample.plays:
        assert play.scenario in shown or play.title in shown
        assert play.verdict in shown or face.NAME == "junit"  # JUnit has words of its own


def test_nothing_acts_on_the_reader(face: Face, broken: Document):
    """No escape sequence, no direction override, no lone surrogate, and no line break smuggled in by a key."""
    shown = face.render(broken).decode("utf-8", "strict")
    harmful = (
        {"\x1b", "\u202e", "\x00"} if face.NAME != "json" else {"\x1b", "\x00"}
    )  # JSON keeps printable data as it is
    assert not harmful & set(shown)


def test_renders_a_run_in_which_nothing_was_played(face: Face, held: Document):
    empty = msgspec.structs.replace(
        held, plays=(), records=(), requirements={}, verdict="not applicable", summary="nothing applies"
    )
    assert face.render(empty)


def test_a_mend_is_told_once_for_all_findings_of_its_invariant_in_a_play(face: Face, broken: Document):
    (stale,) = broken.plays[1].findings
    other = msgspec.structs.replace(stale, invariant="no_lost_job", mend="Take over what is expired.")
    play = msgspec.structs.replace(broken.plays[1], findings=(stale, stale, other, stale, other))
    document = msgspec.structs.replace(broken, plays=(play, msgspec.structs.replace(play, repeat=2)))
    shown = face.render(document).decode()
    times = {"json": (6, 4)}.get(face.NAME, (2, 2))  # JSON is the document: each finding has its own
    assert (shown.count("Let every write name its grant"), shown.count("Take over what is expired.")) == times


def test_a_finding_without_a_mend_tells_none(face: Face, broken: Document):
    finding = msgspec.structs.replace(broken.plays[1].findings[0], mend="")
    play = msgspec.structs.replace(broken.plays[1], findings=(finding,))
    assert "mend" not in face.render(msgspec.structs.replace(broken, plays=(play,))).decode()
