"""One story per file, named as a sentence, found automatically: whatever file defines a ``Scenario`` is one."""

import importlib
import pkgutil

from harness.contracts.scenario import Scenario


def discover() -> dict[str, Scenario]:
    """Every scenario by name, in the order of their names. Raises TypeError when a file's story is named otherwise."""
    found: dict[str, Scenario] = {}
    for module_info in pkgutil.iter_modules(__path__):
        if module_info.name == "__main__":
            continue
        module = importlib.import_module(f"{__name__}.{module_info.name}")
        stories = [value for value in vars(module).values() if isinstance(value, Scenario)]
        if len(stories) != 1 or stories[0].name != module_info.name:
            raise TypeError(f"scenarios/{module_info.name}.py must define one scenario, of the file's own name")
        found[stories[0].name] = stories[0]
    return dict(sorted(found.items()))
