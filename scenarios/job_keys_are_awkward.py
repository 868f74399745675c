"""Keys that a careless statement, URL, log or page would stumble over."""

from harness.contracts.scenario import scenario
from harness.history.facts.outside import answered
from harness.invariants.calls_follow_grants import calls_follow_grants
from harness.invariants.effect_once import effect_once
from harness.invariants.no_double_execution import no_double_execution
from harness.invariants.no_lost_job import no_lost_job
from harness.invariants.no_phantom import no_phantom
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS

KEYS = (
    "<script>alert('job')</script>&amp;",
    " tab\tnew line\ncarriage return\r bell\x07 escape\x1b[31m delete\x7f ",
    'it\'s "quoted"; drop table jobs; --',
    "100% %s %(key)s %41 {key} ${key} \\1",
    "a/../b//c?d=e&f#g",
    "Straße ☃ 中文 \U0001f980 \u202eback e\u0301",
    "four kilobytes " + "0123456789abcdef" * 256,
)


@scenario(
    serves=["V8", "Q6"],
    must_hold=[calls_follow_grants, effect_once, no_double_execution, no_lost_job, no_phantom],
    must_happen=[answered("2xx")],
    needs=[GRANTS],
)
async def job_keys_are_awkward(lab: Lab) -> None:
    """Jobs are named with everything that text can hold.

    What happens
        Jobs are enqueued whose keys have quotes, percent signs, markup, slashes, control characters, letters from several
        scripts, and four kilobytes of text. Two workers do them.

    Why it matters
        A key ends up in a statement, in a URL, in a header, in a log and in a report. Where one of them takes it for
        something else than text, a job is lost, called under another name, or done again.

    What must hold
        Each job is called under exactly its own key, once, and ends.
    """
    await lab.enqueue(KEYS)
    for _ in range(2):
        await lab.worker().start()
    await lab.drained()
