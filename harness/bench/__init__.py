"""Ratios measured in one run, side by side on this machine. Figures, not tests: machines are shared and noisy."""

import asyncio
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.event_loop import new_event_loop


@dataclass(frozen=True)
class Bench:
    """One benchmark: a module here with a function ``run`` that returns names and numbers, and ``as_text`` if it has a say in
    how they are shown.
    """

    title: str
    run: Callable[[], Any]
    as_text: Callable[[Mapping[str, Any]], str]

    def measure(self) -> Mapping[str, Any]:
        """Run it to its end."""
        result = self.run()
        if inspect.iscoroutine(result):
            with asyncio.Runner(loop_factory=new_event_loop) as runner:
                result = runner.run(result)
        assert isinstance(result, Mapping)
        return result


def discover() -> dict[str, Bench]:
    """Every benchmark by name. A module without ``run`` helps another one and is none itself."""
    found: dict[str, Bench] = {}
    for module_info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{module_info.name}")
        if hasattr(module, "run"):
            title = (module.__doc__ or "").strip().splitlines()[0]
            found[module_info.name] = Bench(title, module.run, getattr(module, "as_text", _as_text))
    return found


def _as_text(result: Mapping[str, Any]) -> str:
    return "\n".join(f"{key:40} {value}" for key, value in result.items())
