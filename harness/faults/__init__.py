"""One injury per file. Each says how it landed, and heals on every way out. Found automatically."""

import importlib
import pkgutil
from functools import cache

from harness.contracts.fault import Fault
from harness.faults.target import Target

NOT_FAULTS = frozenset({"bystanders", "held_session", "injury", "target"})


@cache
def discover() -> dict[str, Fault[Target]]:
    """Every fault by name, in the order of their names. Raises TypeError when a file's fault is named otherwise."""
    found: dict[str, Fault[Target]] = {}
    for module_info in pkgutil.iter_modules(__path__):
        if module_info.name in NOT_FAULTS:
            continue
        module = importlib.import_module(f"{__name__}.{module_info.name}")
        faults = [value for value in vars(module).values() if isinstance(value, Fault)]
        if not faults or any(not each.name.startswith(module_info.name) for each in faults):
            raise TypeError(
                f"harness/faults/{module_info.name}.py must define a fault, and its name must begin with its own"
            )
        found |= {each.name: each for each in faults}
    return dict(sorted(found.items()))
