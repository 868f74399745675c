"""The same outage told to SimPy and to Ciw: independent oracles of our recursion, and what its speed is compared with.

Both are development dependencies, imported only when asked for.
"""

import importlib
from collections.abc import Generator, Sequence
from typing import Any

from harness.capacity.simulation import Outage
from harness.contracts.problem import EnvironmentFailed


def simpy_claims(dues: Sequence[float], durations: Sequence[float], slots: int, outage: Outage | None) -> list[float]:
    """When each job was (last) claimed: a process per slot, interrupted by the outage, its job put back in line."""
    simpy = _library("simpy")
    env = simpy.Environment()
    line = simpy.PriorityStore(env)
    claims = [float("nan")] * len(dues)

    def produce() -> Generator[Any, Any, None]:
        for n, due in enumerate(dues):
            yield env.timeout(due - env.now)
            line.put(n)

    def slot() -> Generator[Any, Any, None]:
        while True:
            request, job = line.get(), None
            try:
                job = yield request
                claims[job] = env.now
                yield env.timeout(durations[job])
            except simpy.Interrupt:
                if job is None and request.triggered:
                    job = request.value
                if job is None:
                    request.cancel()
                else:
                    line.put(job)
                yield env.timeout(outage.end_seconds - env.now if outage else 0)

    def stop(workers: list[Any]) -> Generator[Any, Any, None]:
        if outage is not None:
            yield env.timeout(outage.start_seconds)
            for worker in workers:
                worker.interrupt()

    env.process(produce())
    env.process(stop([env.process(slot()) for _ in range(slots)]))
    env.run()
    return claims


def ciw_claims(dues: Sequence[float], durations: Sequence[float], slots: int, outage: Outage | None) -> list[float]:
    """The same from Ciw's records: a schedule of servers, pre-empted with restart."""
    ciw = _library("ciw")
    gaps = [later - earlier for earlier, later in zip([0.0, *dues], dues, strict=False)]
    horizon = dues[-1] + sum(durations) + (outage.end_seconds if outage else 0.0)
    servers = (
        ciw.Schedule([slots, 0, slots], [outage.start_seconds, outage.end_seconds, 10 * horizon], preemption="restart")
        if outage
        else slots
    )
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Sequential([*gaps, 20 * horizon])],
        service_distributions=[ciw.dists.Sequential(list(durations))],
        number_of_servers=[servers],
    )
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_time(horizon)
    records = [record for record in simulation.get_all_records() if record.record_type == "service"]
    return [record.service_start_date for record in sorted(records, key=lambda record: record.id_number)]


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as missing:
        raise EnvironmentFailed(
            f"this benchmark compares with {name}, which is not installed: pip install {name}"
        ) from missing
