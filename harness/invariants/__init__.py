"""One judgement per file, each a pure function of a story; a new file here is found by itself."""

import importlib
import pkgutil
from functools import cache

from harness.contracts.invariant import Invariant
from harness.history.story import Story


@cache
def discover() -> tuple[Invariant[Story], ...]:
    """Every invariant, by name. A module holds one; what has no invariant is no judgement and is refused."""
    found: list[Invariant[Story]] = []
    for module in pkgutil.iter_modules(__path__):
        loaded = importlib.import_module(f"{__name__}.{module.name}")
        judged = getattr(loaded, module.name, None)
        if not isinstance(judged, Invariant):
            raise TypeError(f"harness/invariants/{module.name}.py declares no invariant named {module.name}")
        found.append(judged)
    return tuple(sorted(found, key=lambda judged: judged.name))
