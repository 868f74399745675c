"""The geometry of a timeline: what a drawing claims must follow from the moments."""

from hypothesis import given
from hypothesis import strategies as st

from harness.document import Witness
from reports import charts


def move(n: int, t_ms: float, kind: str, worker: int, state: str, **more: object) -> Witness:
    return Witness(n, t_ms, f"worker {worker}" if worker else "database", kind, kind, worker, "k", state, **more)


def bars(drawing: charts.Timeline | None, *kinds: str) -> list[tuple[str, float, float]]:
    assert drawing is not None
    return [(bar.kind, bar.top, bar.bottom) for bar in drawing.bars if bar.kind in kinds]


def ys(drawing: charts.Timeline | None) -> list[float]:
    assert drawing is not None
    return [moment.y for moment in drawing.moments]


TAKEOVER = (
    move(1, 0, "enqueue", 0, "pending"),
    move(2, 10, "claim", 1, "running", token="1", lease_left_ms=1000.0),
    move(3, 1500, "claim", 2, "running", token="2", lease_left_ms=1000.0),
    Witness(4, 1900, "worker 1", "its complete is refused", "refused complete", 1, "k"),
    move(5, 2000, "complete", 2, "done"),
)


def test_belief_that_the_row_no_longer_shares_is_mistaken():
    drawing = charts.timeline(TAKEOVER)
    _, claimed, taken, refused, done = ys(drawing)
    assert bars(drawing, "belief", "mistaken") == [
        ("belief", claimed, taken),
        ("mistaken", taken, refused),
        ("belief", taken, done),
    ]


def test_the_row_changes_hands_at_each_transition():
    drawing = charts.timeline(TAKEOVER)
    first, claimed, taken, _, done = ys(drawing)
    assert drawing is not None
    rows = [bar for bar in drawing.bars if bar.kind in {"pending", "running", "done"}]
    assert [(bar.kind, bar.top, bar.hue) for bar in rows] == [
        ("pending", first, 0),
        ("running", claimed, 1),
        ("running", taken, 2),
        ("done", done, 0),
    ]
    assert [bar.label for bar in rows] == ["pending", "running · 1", "running · 2", "done"]


def test_a_lease_ends_between_the_rows_where_time_says():
    drawing = charts.timeline(TAKEOVER)
    _, claimed, taken, *_ = ys(drawing)
    assert drawing is not None
    first, second = [bar for bar in drawing.bars if bar.kind == "lease"]
    assert first.bottom == round(claimed + (1000 / 1490) * (taken - claimed), 2)
    assert first.label == "lease ends"
    assert second.open_ended  # the job was done before that lease's end


def test_a_worker_that_is_killed_believes_nothing_more():
    drawing = charts.timeline(
        (TAKEOVER[1], Witness(3, 20, "harness", "SIGKILL", "SIGKILL", 1), move(4, 900, "claim", 2, "running"))
    )
    claimed, killed, *_ = ys(drawing)
    assert bars(drawing, "belief", "mistaken")[0] == ("belief", claimed, killed)


def test_a_worker_that_never_learns_believes_to_the_end():
    drawing = charts.timeline(TAKEOVER[:3])
    assert drawing is not None
    assert [bar.kind for bar in drawing.bars if bar.open_ended and bar.kind != "lease"] == ["mistaken", "belief"]


def test_without_kinds_it_draws_moments_and_claims_nothing():
    drawing = charts.timeline([Witness(1, 0, "worker 1", "a"), Witness(2, 5, "sink", "b")])
    assert drawing is not None
    assert drawing.bars == ()
    assert [lane.name for lane in drawing.lanes] == ["worker 1", "sink"]


def test_nothing_to_draw():
    assert charts.timeline(()) is None


def test_a_refusal_is_a_cross_at_the_row():
    drawing = charts.timeline(TAKEOVER)
    assert drawing is not None
    refused = drawing.moments[3]
    row = next(lane for lane in drawing.lanes if lane.kind == "row")
    assert (refused.shape, refused.arrow_x) == ("cross", row.x)


def test_silence_and_what_is_left_out_are_said():
    many = [Witness(n, float(n), "worker 1", f"moment {n}") for n in range(1, 101)]
    proof = many[98]
    late = Witness(101, 5000.0, "sink", "late")
    drawing = charts.timeline([*many, late], proofs=[proof, late])
    assert drawing is not None
    assert len(drawing.moments) == 40
    assert [moment.lines[0] for moment in drawing.moments if moment.proof] == ["moment 99", "late"]
    assert [gap.text for gap in drawing.gaps] == ["60 more moments", "1 more moment, 4.9 s pass"]


def test_proof_is_drawn_even_when_the_timeline_lacks_it():
    drawing = charts.timeline((), proofs=TAKEOVER[:2])
    assert drawing is not None
    assert all(moment.proof for moment in drawing.moments)


def test_ten_workers_fit():
    drawing = charts.timeline([move(n, n, "claim", n, "running") for n in range(1, 11)])
    assert drawing is not None
    assert [lane.name for lane in drawing.lanes[:10]] == [f"w{n}" for n in range(1, 11)]
    assert charts.WIDTH - drawing.text_x > 300


KINDS = (
    "enqueue",
    "claim",
    "renew",
    "complete",
    "fail",
    "release",
    "refused complete",
    "called",
    "applied",
    "SIGKILL",
    "SIGSTOP",
    "",
)
MOMENTS = st.lists(
    st.builds(
        Witness,
        n=st.integers(1, 10_000),
        t_ms=st.floats(0, 20_000),
        who=st.sampled_from(["worker 1", "worker 2", "worker 12", "database", "sink", "harness", "?"]),
        text=st.text(max_size=300),
        kind=st.sampled_from(KINDS),
        worker=st.sampled_from([0, 1, 2, 12]),
        key=st.sampled_from([None, "k", "other"]),
        state=st.sampled_from(["", "pending", "running", "done"]),
        lease_left_ms=st.none() | st.floats(-10, 9000),
    ),
    max_size=60,
    unique_by=lambda moment: moment.n,
)


@given(MOMENTS)
def test_whatever_happened_time_flows_down_within_the_drawing(moments: list[Witness]):
    ordered = sorted(moments, key=lambda moment: moment.n)
    times = sorted(moment.t_ms for moment in moments)
    drawing = charts.timeline(
        [
            Witness(m.n, t, m.who, m.text, m.kind, m.worker, m.key, m.state, m.token, m.lease_left_ms)
            for m, t in zip(ordered, times, strict=True)
        ]
    )
    if drawing is None:
        assert not moments
        return
    heights = ys(drawing)
    assert heights == sorted(set(heights))
    assert heights[-1] < drawing.height
    for bar in drawing.bars:
        assert heights[0] <= bar.top <= bar.bottom <= drawing.height
