"""Laws of what a sink decides."""

from hypothesis import given
from hypothesis import strategies as st

from harness.sink.ledger import Ledger

calls = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from([None, "p", "q"]), st.sampled_from([None, "1", "2", "10", "u"]))
)


@given(calls)
def test_naive_applies_everything(made):
    ledger = Ledger("naive")
    assert [ledger.decide(n, 1, *call) for n, call in enumerate(made)] == ["effect"] * len(made)


@given(calls)
def test_keyed_applies_each_operation_once_and_can_say_so(made):
    ledger = Ledger("keyed")
    for n, (key, operation, token) in enumerate(made):
        asked = ledger.ask(key, operation or key)
        outcome = ledger.decide(n, 1, key, operation, token)
        assert outcome == ("known" if asked else "effect")
    operations = [effect.operation_key for effect in ledger.effects]
    assert len(operations) == len(set(operations)) == len({operation or key for key, operation, _ in made})


@given(st.lists(st.integers(0, 50)))
def test_fenced_never_goes_back(tokens):
    ledger, newest = Ledger("fenced"), -1
    for n, token in enumerate(tokens):
        outcome = ledger.decide(n, 1, "j", f"op{n}", str(token))
        assert (outcome == "stale") == (token < newest)
        newest = max(newest, token)


@given(st.lists(st.sampled_from("uvwx")))
def test_tokens_without_an_order_are_older_once_replaced(tokens):
    ledger, seen = Ledger("fenced"), []
    for n, token in enumerate(tokens):
        stale = token in seen and token != seen[-1]
        assert (ledger.decide(n, 1, "j", f"op{n}", token) == "stale") == stale
        if not stale and token not in seen:
            seen.append(token)


def test_no_token_after_a_token_is_older():
    ledger = Ledger("fenced")
    assert [ledger.decide(n, 1, "j", f"{n}", token) for n, token in enumerate([None, "1", None])] == [
        "effect",
        "effect",
        "stale",
    ]
