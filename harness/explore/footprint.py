"""What a move read and wrote, as coarse resources, and from that which moves may change places.

Two moves are *independent* when neither writes what the other reads or writes, and they belong to different threads. A
footprint may claim too much, never too little; whoever does not know says ``EVERYTHING``.

Resources: ``row:K`` is all the database state of job K, ``story:K`` the order of what history tells of job K (judging looks at
that order, so a call and a write of one job never count as independent), ``sink:K`` what the outside knows of it, and
``budget:X`` a bound that moves share. ``row:*`` stands for every row, the whole queue; ``*`` for all there is.
"""

from collections.abc import Iterable
from dataclasses import dataclass

Resource = tuple[str, str]
ANY = "*"


@dataclass(frozen=True)
class Footprint:
    """Resources read and written. What is written counts as read."""

    reads: frozenset[Resource]
    writes: frozenset[Resource]

    def conflicts(self, other: "Footprint") -> bool:
        """Whether the order of the two could matter."""
        return (
            _overlap(self.writes, other.writes)
            or _overlap(self.writes, other.reads)
            or _overlap(self.reads, other.writes)
        )

    def __or__(self, other: "Footprint") -> "Footprint":
        return Footprint(self.reads | other.reads, self.writes | other.writes)


def footprint(reads: Iterable[str] = (), writes: Iterable[str] = ()) -> Footprint:
    """From words such as ``row:a`` or ``row:*``."""
    return Footprint(frozenset(map(_resource, reads)), frozenset(map(_resource, writes)))


def _resource(word: str) -> Resource:
    kind, _, name = word.partition(":")
    return kind, name or ANY


def _overlap(some: frozenset[Resource], others: frozenset[Resource]) -> bool:
    return any(
        (kind == other or ANY in (kind, other)) and (name == called or ANY in (name, called))
        for kind, name in some
        for other, called in others
    )


EVERYTHING = footprint(writes=["*"])
NOTHING = footprint()
