"""How long a drain: by measurement."""

from pathlib import Path
from typing import Annotated

import typer

from harness.commands.ending import run_to_the_end, say, typed
from harness.commands.faces import keep_and_show
from harness.commands.options import AllowExisting, Json, Pg, Runs, Seed, Server, SubjectArgument, subject_at, word

EXAMPLE = "queueproof load my-queue/ --arrival 12/s --service 0.8s --slots 16 --outage 300s --time-scale 10"


def command(
    subject: SubjectArgument = None,
    *,
    arrival: Annotated[str, word("Jobs that arrive, such as 12/s; of a ramp its last rate.", "RATE")],
    service: Annotated[str, word("How long a call takes on average, such as 0.8s.", "TIME")],
    slots: Annotated[str, word("Jobs that may run at the same time.", "N")],
    outage: Annotated[str, word("How long nothing works.", "TIME")],
    outage_of: Annotated[str, word("workers (killed), sink (down) or database (stopped).", "WHAT")] = "workers",
    time_scale: Annotated[str, word("Compress time by this factor, 1 to 100.", "N")] = "1",
    workers: Annotated[str, word("Worker processes, or external:N on other machines.", "N")] = "1",
    arrivals: Annotated[str, word("poisson, even, ramp:FROM:TO:TIME or trace:FILE.", "KIND")] = "poisson",
    shape: Annotated[str, word("Of service times: exponential, fixed or lognormal:CV2.", "SHAPE")] = "exponential",
    slow: Annotated[str | None, word("A slow class of jobs, such as 5%:8s.", "SHARE:TIME")] = None,
    retry: Annotated[str | None, word("Share of calls that fail, such as 10%.", "SHARE")] = None,
    limit: Annotated[str | None, word("Calls that the sink lets through.", "RATE")] = None,
    burst: Annotated[str | None, word("Calls that the limit saves up.", "N")] = None,
    steady: Annotated[str | None, word("How long the steady phase lasts.", "TIME")] = None,
    rto: Annotated[str | None, word("Must be current again so long after recovery.", "TIME")] = None,
    age: Annotated[str | None, word("The oldest age that is acceptable.", "TIME")] = None,
    at_most: Annotated[str | None, word("The longest that the run may take.", "TIME")] = None,
    batch: Annotated[str | None, word("Jobs that a worker claims at once.", "N")] = None,
    prefetch: Annotated[str | None, word("Jobs that a worker claims ahead.", "N")] = None,
    lease: Annotated[str | None, word("The workers' lease; 30s if not said.", "TIME")] = None,
    heartbeat: Annotated[str | None, word("A fifth of the lease if not said.", "TIME")] = None,
    poll: Annotated[str | None, word("How often idle workers look; 1s if not said.", "TIME")] = None,
    backoff: Annotated[str | None, word("Before the second attempt; 1s if not said.", "TIME")] = None,
    backoff_cap: Annotated[str | None, word("The longest wait between attempts.", "TIME")] = None,
    stuck_head: Annotated[str | None, word("Make the first job failing or locked: must fail.", "HOW")] = None,
    worker_env: Annotated[list[str] | None, word("NAME=VALUE for the workers; may be repeated.", "PAIR")] = None,
    sweep: Annotated[list[str] | None, word("Compare settings: batch=1,5,10 or slots=8,16.", "NAME=…")] = None,
    front: Annotated[
        str, word("Who produces: own, locust, locust:PROCESSES, locust-web or locust-master:WORKERS.", "WHO")
    ] = "own",
    sink_host: Annotated[str, word("Where the sink listens; loopback if not said.", "ADDRESS")] = "127.0.0.1",
    sink_port: Annotated[int, typer.Option(min=0, max=65535, help="The sink's port; 0: a free one.")] = 0,
    host_metrics: Annotated[str | None, word("The database host's node exporter.", "URL")] = None,
    durable: Annotated[
        bool, typer.Option(help="Flush to disk, as in production. Without, nothing is said of disks.")
    ] = True,
    server: Server = "embedded",
    pg: Pg = None,
    seed: Seed = None,
    allow_existing: AllowExisting = False,
    runs: Runs = Path(),
    as_json: Json = False,
) -> int:
    """Load a queue until steady, make an outage, and measure how long until it is current again, inflow going on."""
    given = {name: value for name, value in locals().items() if value is None or isinstance(value, str)}
    from harness.load.command import Asked, carry_out
    from harness.postgres.options import parse_server
    from harness.run import keep as kept

    number = seed if seed is not None else kept.new_seed()
    asked = Asked(
        given, worker_env or [], sweep or [], front, sink_host, sink_port, host_metrics, durable, allow_existing,
        subject_at(subject), parse_server(server, pg), number, typed(),
    )  # fmt: skip
    asked.check()
    folder = kept.new_run(runs, number)
    document = run_to_the_end(carry_out(asked, folder, say))
    return keep_and_show(document, folder, as_json=as_json)
