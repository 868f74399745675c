"""What a scenario needs of a subject, and the sentence that a user reads when it is missing."""

import dataclasses

from harness.lab.needs import TAKES_ITS_LEASE
from harness.run.subject_file import load_subject, reference_queue_folder


def test_a_worker_that_is_not_told_its_lease_is_given_none_of_minutes():
    subject = load_subject(reference_queue_folder())
    assert TAKES_ITS_LEASE.missing(subject, frozenset()) is None
    deaf = dataclasses.replace(subject, worker_env={}, worker_command=("./worker",))
    assert 'LEASE = "{lease}"' in TAKES_ITS_LEASE.missing(deaf, frozenset())
    by_argument = dataclasses.replace(deaf, worker_command=("./worker", "--lease={lease}"))
    assert TAKES_ITS_LEASE.missing(by_argument, frozenset()) is None
