"""The subject's own tables agree with each other at quiet moments.

Rule: V8, Q21: the subject may name a query that must return no row when nothing runs (audit rows against versions, counts
against states); each row that it returned is a finding. Without such a query nothing is recorded, and nothing is judged.
"""

from collections.abc import Iterator

from harness.contracts.invariant import Unknown, invariant
from harness.contracts.verdict import Finding
from harness.history.story import Story

NAME = "consistent"
MOST = 5


@invariant(
    serves=("Q21", "V8"),
    broken_queue="audit_forgotten",
    mend=(
        "Mend other findings first: a stale write shows here too. Otherwise write the audit row or counter in the "
        "statement that moves the job (`with moved as (update ... returning ...) insert into audit select ... "
        "from moved`), on every path."
    ),
)
def consistent(story: Story) -> Iterator[Finding | Unknown]:
    """The subject's own consistency query finds nothing."""
    for entry in story.inconsistencies[:MOST]:
        sentence = (
            "the subject's tables had to agree, because nothing was running and its own consistency query must return no row;"
            f" however, it returned {entry.what.row}"
        )
        yield Finding(NAME, sentence, (entry.n,))
