"""The quote of a load run: what must be there before machines are advised, and which offer is named."""

import msgspec
import pytest

from harness.contracts.problem import BadInput
from harness.document import PlayDoc
from harness.load.compose import conclude_run, load_document
from harness.load.quoting import quote
from harness.run.compose import RunFacts
from harness.run.records import PROTOCOL_RECORDS, records
from harness.run.subject_file import load_subject, reference_queue_folder

PARTS = ("consumers", "database", "backup", "monitoring")
GOOD = {
    "completion rate": 1000, "time until current again": 1, "oldest runnable age": 0, "claim latency, 95 %": 0,
    "database CPU": 0, "disk wait per commit, 95 %": 0,
}  # fmt: skip


def offer(name, price, currency="EUR", more="", *, verified=True, **measured):
    shown = "".join(f'"{key}" = {value}\n' for key, value in (GOOD | measured).items())
    tail = f'source = "s"\ndate = 2026-11-01\nverified = {str(verified).lower()}\n'
    lines = "".join(f'[[offer.line]]\npart = "{part}"\nitem = "x"\nprice = "{price}"\n{tail}' for part in PARTS)
    return f'[[offer]]\nname = "{name}"\ncurrency = "{currency}"\n[offer.measured]\n{shown}{lines}{more}'


@pytest.fixture
def load_run(imagine):
    subject = load_subject(reference_queue_folder())
    document = load_document(RunFacts("queueproof load", "now", 60.0, 7), subject, conclude_run(imagine()))
    return msgspec.structs.replace(document, load=msgspec.structs.replace(document.load, bottleneck="the 16 slots"))


@pytest.fixture
def quoted(tmp_path, load_run):
    def kept(name, document):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "report.json").write_bytes(msgspec.json.encode(document))
        return tmp_path / name

    def run(*offers, gate="pass", load=load_run, **of_gate):
        (tmp_path / "quotes.toml").write_text("".join(offers))
        sized, gated = kept("load", load), None
        if gate is not None:
            plays = tuple(
                PlayDoc(f"story_{record}", f"story of {record}", gate, "it was so", ("V3",), record=record)
                for record in PROTOCOL_RECORDS
            )
            gated = kept(
                "gate",
                msgspec.structs.replace(load, **({"plays": plays, "load": None, "records": records(plays)} | of_gate)),
            )
        return quote(tmp_path / "quotes.toml", sized, gated)

    return run


def advice(result):
    return " ".join(one.text for one in result.document.load.advice if one.topic in ("which offer", "more machines"))


def test_the_cheapest_that_meets_every_threshold_is_named_with_what_limits(quoted):
    result = quoted(offer("A", 9), offer("B", 5, verified=False), offer("C", 1, **{"completion rate": 1}))
    assert advice(result) == (
        "B is the cheapest that has shown it meets every threshold. 4 of its prices are not verified. What limits: the 16 slots."
    )
    assert result.any_meets
    compared = result.document.tables[0]
    rows = {row[0]: dict(zip(compared.columns, row, strict=True)) for row in compared.rows}
    assert rows["C"]["thresholds"] == "misses completion rate"
    assert rows["A"]["a month"] == "36.00 EUR"
    jobs = 12 * 730 * 3600
    assert rows["A"]["per million jobs"] == f"{36 / (jobs / 1e6):.2f} EUR"


def test_a_part_of_a_gate_is_no_gate(quoted, load_run):
    of_one = (PlayDoc("story", "story", "pass", "it was so", ("V3",), record="skip"),)
    assert "there is no passing gate" in advice(quoted(offer("A", 9), plays=of_one))


def test_there_is_a_cheapest_one_for_each_currency(quoted):
    said = advice(quoted(offer("A", 9), offer("B", 5, "USD"), offer("C", 7, "USD")))
    assert "A is the cheapest among the offers in EUR" in said
    assert "B is the cheapest among the offers in USD" in said
    assert "C" not in said


@pytest.mark.parametrize(
    ("gate", "told"), [(None, "no passing gate"), ("fail", "no passing gate"), ("inconclusive", "no passing gate")]
)
def test_no_offer_is_advised_without_a_passing_gate(quoted, gate, told):
    said = advice(quoted(offer("A", 9), gate=gate))
    assert told in said
    assert "cheapest" not in said


def test_a_gate_of_another_subject_is_refused(quoted, load_run):
    other = msgspec.structs.replace(load_run.subject, name="other")
    with pytest.raises(BadInput, match='gate: that run is of "other"'):
        quoted(offer("A", 9), subject=other)


def test_a_gate_of_another_declaration_is_refused(quoted, load_run):
    before = msgspec.structs.replace(load_run.subject, declared=load_run.subject.declared | {"token": "none"})
    with pytest.raises(BadInput, match="declared otherwise: token none there, version here"):
        quoted(offer("A", 9), subject=before)


def test_no_offer_is_advised_when_nothing_limits(quoted, load_run):
    idle = msgspec.structs.replace(load_run, load=msgspec.structs.replace(load_run.load, bottleneck=""))
    assert "no bottleneck" in advice(quoted(offer("A", 9), load=idle))


def test_no_offer_is_advised_that_has_not_shown_everything(quoted):
    result = quoted(offer("A", 9, **{"completion rate": 0.1}))
    assert "No offer has shown that it meets every threshold" in advice(result)
    assert not result.any_meets


def test_an_offer_that_leaves_out_what_others_price_is_named(quoted):
    line = '[[offer.line]]\npart = "egress"\nitem = "out"\nprice = "0.05"\nper = "GB"\nsource = "s"\ndate = 2026-11-01\nverified = true\n'
    told = quoted(offer("A", 9, more=line), offer("B", 5)).document.tables[0].told
    assert "B prices no egress, and others do" in told
    assert "A prices no" not in told
