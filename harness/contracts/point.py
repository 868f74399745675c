"""The named instants of the claim protocol at which a worker can be stopped."""

import enum


class Point(enum.StrEnum):
    """Where a worker stands when the harness holds it. What the *server* shows names the point, never a flag of ours.

    For a claim that is one autocommit statement, ``CLAIMED`` and ``COMMITTING`` are the same instant.
    """

    CLAIM_SENT = "claim_sent"  # held on the wire before the server sees the claim
    SNAPSHOT = "snapshot"  # in the server: the claim, or whatever was chosen, has its snapshot and no row locked
    CLAIMED = "claimed"  # rows locked or changed, transaction open
    COMMITTING = "committing"  # inside COMMIT, not durable
    COMMIT_LOST = "commit_lost"  # claim durable, its reply withheld from the worker
    CALLING = "calling"  # the sink has the call, no effect yet
    CALLED = "called"  # the sink has applied the effect, no reply yet
    RESULT_SENT = "result_sent"  # complete, fail or release held on the wire
    RESULT_LOST = "result_lost"  # complete, fail or release durable, its reply withheld
    RENEWING = "renewing"  # a heartbeat held on the wire
