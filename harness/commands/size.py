"""How many slots, how long a drain: by formula."""

import sys
from typing import Annotated

from harness.commands.ending import BROKEN, HELD, terminal_width
from harness.commands.options import Json, word

EXAMPLE = "queueproof size --arrival 12/s --service 0.8s --busy 0.6 --outage 300s"


def command(
    arrival: Annotated[str, word("Jobs that arrive, such as 12/s, 12/min or 12/h.", "RATE")],
    service: Annotated[str, word("How long a job holds its slot, such as 0.8s.", "TIME")],
    busy: Annotated[str, word("Share of the time that a slot may be busy.", "SHARE")] = "0.6",
    outage: Annotated[str | None, word("How long nothing works.", "TIME")] = None,
    slots: Annotated[str | None, word("Slots that are there already; else the busy ratio says.", "N")] = None,
    rto: Annotated[str | None, word("Current again so long after recovery.", "TIME")] = None,
    retry: Annotated[str | None, word("Share of attempts that fail, such as 10%.", "SHARE")] = None,
    max_attempts: Annotated[str | None, word("Attempts that a job gets.", "N")] = None,
    failure: Annotated[str | None, word("How long a failed attempt holds its slot.", "TIME")] = None,
    slow: Annotated[str | None, word("A slow class of jobs, such as 5%:8s.", "SHARE:TIME")] = None,
    limit: Annotated[str | None, word("What the interface behind allows.", "RATE")] = None,
    calls: Annotated[str | None, word("Calls to it that an attempt makes.", "N")] = None,
    burst: Annotated[str | None, word("Calls that it saves up while nothing works.", "N")] = None,
    overhead: Annotated[str | None, word("The database's share of an attempt.", "TIME")] = None,
    database: Annotated[str | None, word("Claims with completions that the database sustains.", "RATE")] = None,
    inflow: Annotated[str | None, word("Arrivals after recovery, such as 12/s:150s,18/s.", "STEPS")] = None,
    batch: Annotated[str | None, word("Jobs that a serial worker claims at once.", "N")] = None,
    lease: Annotated[str | None, word("The lease, to see what outlives it unrenewed.", "TIME")] = None,
    heartbeat: Annotated[str | None, word("How often leases are renewed.", "TIME")] = None,
    age: Annotated[str | None, word("The oldest age that is still acceptable.", "TIME")] = None,
    arrival_cv2: Annotated[str | None, word("Spread of arrivals: 1 Poisson, 0 even.", "NUMBER")] = None,
    service_cv2: Annotated[str | None, word("Spread of service times: 1 exponential, 0 fixed.", "NUMBER")] = None,
    as_json: Json = False,
) -> int:
    """Slots, backlog, drain time and its band, from theory alone: each number beside what it means."""
    given = {name: value for name, value in locals().items() if name != "as_json"}
    import json

    from harness.capacity.question import SizeQuestion
    from harness.capacity.sizing import size as answer_size
    from harness.capacity.telling import tell

    answer = answer_size(SizeQuestion.from_text(**given))
    if as_json:
        print(json.dumps(answer.as_dict(), indent=2))
    else:
        sys.stdout.write(tell(answer, terminal_width()))
    held = answer.drains is not False and answer.meets_recovery is not False
    return HELD if held else BROKEN
