"""``size``: from an arrival rate, a service time, a busy ratio and an outage to every number an order needs, each with its meaning.

Slots are sized as people do it (mean service time, no failures); what retries, slow jobs, limits and the database make of
those slots is then shown term by term, next to the slots that would keep the busy ratio with all of it.
"""

from collections.abc import Iterator
from fractions import Fraction

from harness.capacity import quantities as q
from harness.capacity.ages import jobs_that_wait_longer, oldest_age_with_inflow, seconds_until_age
from harness.capacity.answer import NEVER, AgePoint, Figure, SizeAnswer, Term
from harness.capacity.band import Band, drain_band, jobs_for_precision, judging_window_seconds
from harness.capacity.database import duplicates_per_second, statements_per_second
from harness.capacity.drain import (
    Drain,
    Inflow,
    backlog_jobs,
    capacity_for_recovery,
    drain_with_inflow,
    rerun_jobs,
    slots_for_recovery,
    survivable_outage_seconds,
    wait_of_job_at_recovery,
)
from harness.capacity.limits import (
    Ceiling,
    backlog_after_burst,
    database_ceiling,
    limit_ceiling,
    lowest,
    slot_ceiling,
)
from harness.capacity.mix import Times, mix
from harness.capacity.prefetch import local_wait
from harness.capacity.question import SizeQuestion
from harness.capacity.retries import Retries
from harness.capacity.theory import (
    capacity_per_second,
    chance_to_wait_longer,
    erlang_c,
    estimated_wait_seconds,
    mean_wait_seconds,
    mean_waiting_jobs,
    offered_load,
    slots_for,
)

SHORT_SERVICE = Fraction(5, 1000)  # below it, claiming and completing a job weigh as much as the job
MOST_SLOTS_FOR_WAITS = 20_000  # Erlang's recursion takes one step per slot
SMALL_BACKLOG = 10  # jobs per slot; the fluid model and its band assume far more
AGE_POINTS = 4  # the age is told at 0, 1/4, 1/2, 3/4 and all of the drain

__all__ = ["SizeAnswer", "SizeQuestion", "size"]


def size(question: SizeQuestion) -> SizeAnswer:
    """Answer with theory alone: no run, no clock, no chance."""
    return _Sizing(question).answer()


def _per_second(rate: Fraction) -> str:
    return f"{q.say_number(rate)}/s"


class _Sizing:
    """One answer in the making: the quantities that several figures share."""

    def __init__(self, question: SizeQuestion) -> None:
        self.ask = question
        self.load = offered_load(question.arrival_per_second, question.service_seconds)
        self.sized = slots_for(self.load, question.busy_ratio)
        self.slots = question.slots or self.sized
        self.retries = Retries(question.retry_share, question.max_attempts, question.failure_seconds)
        self.attempt = mix(Times(question.service_seconds, question.service_cv2), question.slow)
        self.work = self.retries.work(self.attempt, question.overhead_seconds)
        self.ceilings = self._ceilings(self.retries, self.work)
        self.capacity = lowest(self.ceilings)
        self.inflow = question.inflow or (Inflow(question.arrival_per_second),)
        self.lasting = self.inflow[-1].per_second

    def answer(self) -> SizeAnswer:
        """Put the parts together, in the order in which they are read."""
        ask = self.ask
        result: Drain | None = None
        band: Band | None = None
        figures = [*self._steady()]
        terms: tuple[Term, ...] = ()
        ages: tuple[AgePoint, ...] = ()
        mistake = ""
        if ask.outage_seconds is not None:
            result = self._drain(self.capacity)
            band = self._band(result)
            terms = tuple(self._terms(ask.outage_seconds))
            ages = tuple(self._ages(ask.outage_seconds, result))
            mistake = self._mistake(ask.outage_seconds, result)
            figures += self._outage(ask.outage_seconds, result, band)
            figures += self._ageing(ask.outage_seconds)
        figures += self._recovery()
        figures += self._batch()
        notes = tuple(self._notes(result, band))
        return SizeAnswer(ask, self.slots, self.capacity, result, band, tuple(figures), terms, ages, mistake, notes)

    def _ceilings(self, retries: Retries, work: Times, *, outside: bool = True) -> list[Ceiling]:
        ceilings = [slot_ceiling(self.slots, work.mean_seconds)]
        attempts = retries.attempts_per_job
        if outside and self.ask.limit_per_second is not None:
            ceilings.append(limit_ceiling(self.ask.limit_per_second, attempts, self.ask.limit_calls))
        if outside and self.ask.database_per_second is not None:
            ceilings.append(database_ceiling(self.ask.database_per_second, attempts))
        return ceilings

    def _backlog(self, ceiling: Ceiling) -> Fraction:
        backlog = backlog_jobs(self.ask.arrival_per_second, self.ask.outage_seconds or Fraction(0))
        if ceiling.of == "external limit" and self.ask.limit_burst:
            per_job = self.ask.limit_calls * self.retries.attempts_per_job
            return backlog_after_burst(backlog, self.ask.limit_burst / per_job)
        return backlog

    def _drain(self, ceiling: Ceiling) -> Drain:
        return drain_with_inflow(self._backlog(ceiling), ceiling.per_second, self.inflow)

    def _band(self, result: Drain) -> Band | None:
        steady_limit = self.capacity.of == "external limit"
        jobs = backlog_jobs(self.ask.arrival_per_second, self.ask.outage_seconds or Fraction(0))
        if jobs < self.slots:  # the slots swallow it at once: no diffusion, and no band
            return None
        return drain_band(result, jobs, self.ask.arrival_cv2, Fraction(0) if steady_limit else self.work.cv2)

    def _steady(self) -> Iterator[Figure]:
        ask, load = self.ask, self.load
        rate = _per_second(ask.arrival_per_second)
        service = q.say_seconds(ask.service_seconds)
        yield Figure(
            "offered_load_erlang", load, "Erlang", q.say_number(load),
            f"mean number of busy slots: {rate} × {service}",
        )  # fmt: skip
        yield Figure(
            "slots", self.sized, "slots", str(self.sized),
            f"jobs that may run at the same time: {rate} × {service} ÷ {q.say_number(ask.busy_ratio)}, rounded up. "
            "Slots are not CPU cores: a slot that waits for an answer uses hardly any CPU; how many fit on a core is measured, "
            "not derived",
        )  # fmt: skip
        if self.slots != self.sized:
            yield Figure(
                "slots_given",
                self.slots,
                "slots",
                str(self.slots),
                "slots that were given; all that follows is about them",
            )
        busy = ask.arrival_per_second * self.work.mean_seconds / self.slots
        yield Figure(
            "busy_ratio", busy, "share of time", f"{q.say_number(busy * 100)} %",
            f"how busy {self.slots} slots are with everything counted; 100 % or more cannot last",
        )  # fmt: skip
        whole = slots_for(ask.arrival_per_second * self.work.mean_seconds, ask.busy_ratio)
        yield Figure(
            "slots_with_everything", whole, "slots", str(whole),
            "slots that keep the busy ratio with retries, slow jobs and overhead counted: "
            f"a job takes {q.say_seconds(self.work.mean_seconds)} of slot time in all",
        )  # fmt: skip
        nominal = capacity_per_second(self.slots, ask.service_seconds)
        yield Figure(
            "nominal_capacity_per_second", nominal, "jobs/s", _per_second(nominal),
            f"{self.slots} slots ÷ {service}: on paper, with nothing going wrong",
        )  # fmt: skip
        yield Figure(
            "capacity_per_second", self.capacity.per_second, "jobs/s", _per_second(self.capacity.per_second),
            f"what can be sustained with everything counted; limited by: {self.capacity.of}",
        )  # fmt: skip
        net = self.capacity.per_second - self.lasting
        yield Figure(
            "net_drain_per_second", net, "jobs/s", _per_second(net),
            f"capacity less the {_per_second(self.lasting)} that keep arriving: only this eats a backlog",
        )  # fmt: skip
        if self.retries.dead_share:
            yield Figure(
                "dead_letter_share", self.retries.dead_share, "share of jobs",
                f"{q.say_number(self.retries.dead_share * 100)} %",
                f"jobs that fail at all {self.retries.max_attempts} attempts",
            )  # fmt: skip
        if ask.retry_share and ask.max_attempts is None:
            critical = Retries.critical_share(self.lasting, self._without_retries().per_second)
            yield Figure(
                "critical_retry_share", critical, "share of attempts", f"{q.say_number(critical * 100)} %",
                "share of failing attempts from which on a backlog never drains",
            )  # fmt: skip
        yield from self._waits()
        if ask.heartbeat_seconds is not None:
            yield self._statements(ask.heartbeat_seconds)
        if ask.lease_seconds is not None:
            twice = duplicates_per_second(ask.arrival_per_second, self.attempt.mean_seconds, ask.lease_seconds)
            yield Figure(
                "duplicates_without_renewal_per_second", twice, "jobs/s", f"{twice:.3g}/s",
                "jobs started twice because they outlive a lease that nobody renews (exponential service times)",
            )  # fmt: skip

    def _without_retries(self) -> Ceiling:
        once = Retries()
        return lowest(self._ceilings(once, once.work(self.attempt, self.ask.overhead_seconds)))

    def _waits(self) -> Iterator[Figure]:
        load = self.ask.arrival_per_second * self.work.mean_seconds
        if load >= self.slots or self.capacity.per_second <= self.ask.arrival_per_second:
            yield Figure(
                "mean_wait_seconds", None, "s", "grows for ever",
                "even without an outage more arrives than completes, so there is no mean wait",
            )  # fmt: skip
            return
        if self.slots > MOST_SLOTS_FOR_WAITS:
            return
        floats, mean = float(load), float(self.work.mean_seconds)
        waiting = erlang_c(self.slots, floats)
        wait = mean_wait_seconds(self.slots, floats, mean) or 0.0
        line = mean_waiting_jobs(self.slots, floats) or 0.0
        half = chance_to_wait_longer(self.slots, load, self.work.mean_seconds, Fraction(1, 2))
        model = "Erlang C: Poisson arrivals, exponential work, slots the only limit"
        yield Figure(
            "chance_to_wait", waiting, "probability", q.say_chance(waiting), f"a job finds every slot busy ({model})"
        )
        yield Figure("mean_wait_seconds", wait, "s", q.say_about(wait), f"mean wait in steady state ({model})")
        yield Figure("mean_waiting_jobs", line, "jobs", f"{line:.4g}", f"mean number of waiting jobs ({model})")
        yield Figure(
            "chance_to_wait_half_a_second", half, "probability", q.say_chance(half), f"a wait above 0.5 s ({model})"
        )
        if self.work.cv2 != 1 or self.ask.arrival_cv2 != 1:
            guess = estimated_wait_seconds(wait, float(self.ask.arrival_cv2), float(self.work.cv2))
            yield Figure(
                "estimated_mean_wait_seconds", guess, "s", f"about {q.say_about(guess)}",
                "the same for the spread that was given (Allen-Cunneen): an estimate, good near saturation only",
            )  # fmt: skip

    def _statements(self, heartbeat: Fraction) -> Figure:
        draining = statements_per_second(
            self.capacity.per_second, self.ask.batch, busy_slots=Fraction(self.slots), heartbeat_seconds=heartbeat
        )
        return Figure(
            "statements_per_second_while_draining", draining, "statements/s", _per_second(draining),
            f"claims of {self.ask.batch}, a completion each, and a renewal per busy slot every {q.say_seconds(heartbeat)}",
        )  # fmt: skip

    def _outage(self, outage: Fraction, result: Drain, band: Band | None) -> Iterator[Figure]:
        ask = self.ask
        backlog = backlog_jobs(ask.arrival_per_second, outage)
        yield Figure(
            "backlog_jobs", backlog, "jobs", q.say_number(backlog),
            f"what has piled up: {_per_second(ask.arrival_per_second)} × {q.say_seconds(outage)} of outage",
        )  # fmt: skip
        if result.seconds is None:
            yield Figure(
                "drain_seconds", None, "s", NEVER,
                f"the sustained {_per_second(self.capacity.per_second)} ({self.capacity.of}) are not above the "
                f"{_per_second(self.lasting)} that arrive, so the backlog stays or grows",
            )  # fmt: skip
        else:
            yield Figure(
                "drain_seconds", result.seconds, "s", q.say_seconds(result.seconds),
                "from recovery until the backlog is gone, inflow going on: backlog ÷ net drain"
                + (", step by step as the inflow changes" if ask.inflow else ""),
            )  # fmt: skip
        if band is not None:
            low, high = band.limits
            kind = "inverse-Gaussian, as the spread is wide" if band.is_skewed else "normal"
            told = f"where {band.confidence:.0%} of such drains end by chance alone ({kind}; spread of arrivals and of work)"
            yield Figure("drain_band_low_seconds", low, "s", q.say_about(low), told)
            yield Figure("drain_band_high_seconds", high, "s", q.say_about(high), told)
            yield Figure(
                "drain_sd_seconds",
                band.sd_seconds,
                "s",
                q.say_about(band.sd_seconds),
                "standard deviation of the drain time",
            )
        wait = wait_of_job_at_recovery(self._backlog(self.capacity), self.capacity.per_second)
        yield Figure(
            "wait_of_job_at_recovery_seconds", wait, "s", q.say_seconds(wait),
            "wait of the job that arrives at the instant of recovery: backlog ÷ capacity. It is not the drain time: "
            "jobs that arrive later queue behind it",
        )  # fmt: skip
        load = ask.arrival_per_second * self.work.mean_seconds
        rerun = rerun_jobs(load, self.slots)
        yield Figure(
            "rerun_jobs",
            rerun,
            "jobs",
            q.say_number(rerun),
            "in flight when the workers die, on average: they run again",
        )
        if result.seconds is not None:
            again = drain_with_inflow(result.backlog_jobs + rerun, self.capacity.per_second, self.inflow)
            if again.seconds is not None:
                yield Figure(
                    "drain_with_reruns_seconds", again.seconds, "s", q.say_seconds(again.seconds),
                    "the drain with those re-runs counted",
                )  # fmt: skip

    def _ageing(self, outage: Fraction) -> Iterator[Figure]:
        limit = self.ask.age_seconds
        if limit is None or self.ask.inflow:
            return
        rates = (self.capacity.per_second, self.ask.arrival_per_second)
        until = seconds_until_age(outage, *rates, limit)
        late = jobs_that_wait_longer(outage, *rates, limit)
        yield Figure(
            "seconds_until_age", until, "s", "never" if until is None else q.say_seconds(until),
            f"from recovery until the oldest runnable job is younger than {q.say_seconds(limit)}",
        )  # fmt: skip
        yield Figure(
            "jobs_that_wait_longer", late, "jobs", "all from then on" if late is None else q.say_number(late),
            f"jobs that wait more than {q.say_seconds(limit)} because of the outage",
        )  # fmt: skip

    def _recovery(self) -> Iterator[Figure]:
        ask = self.ask
        recovery = ask.recovery_seconds
        if recovery is None:
            return
        longest = survivable_outage_seconds(self.capacity.per_second, ask.arrival_per_second, recovery)
        yield Figure(
            "survivable_outage_seconds", longest, "s", q.say_seconds(longest),
            f"longest outage after which {self.slots} slots are current again within {q.say_seconds(recovery)}",
        )  # fmt: skip
        if ask.outage_seconds is None:
            return
        needed = capacity_for_recovery(ask.arrival_per_second, ask.outage_seconds, recovery)
        yield Figure(
            "capacity_for_recovery_per_second", needed, "jobs/s", _per_second(needed),
            f"what must be sustained to be current again within {q.say_seconds(recovery)} of the end of the outage; "
            "order when the measured capacity's lower bound is below it",
        )  # fmt: skip
        slots = slots_for_recovery(ask.arrival_per_second, self.work.mean_seconds, ask.outage_seconds, recovery)
        short = [other for other in self.ceilings if other.of != "slots" and other.per_second < needed]
        if short:
            yield Figure(
                "slots_for_recovery", None, "slots", "no number of slots",
                f"the {short[0].of} allows {_per_second(short[0].per_second)}, less than is needed: raise it first",
            )  # fmt: skip
        else:
            yield Figure(
                "slots_for_recovery", slots, "slots", str(slots),
                f"slots for that recovery time: needed rate × {q.say_seconds(self.work.mean_seconds)} of slot time per job",
            )  # fmt: skip

    def _batch(self) -> Iterator[Figure]:
        if self.ask.batch == 1:
            return
        local = local_wait(self.ask.batch, self.attempt.mean_seconds)
        held = f"a worker that claims {self.ask.batch} at once and runs them one after another"
        yield Figure(
            "local_wait_mean_seconds", local.mean_seconds, "s", q.say_seconds(local.mean_seconds),
            f"mean wait of a claimed job in the memory of {held}",
        )  # fmt: skip
        yield Figure(
            "local_wait_longest_seconds", local.longest_seconds, "s", q.say_seconds(local.longest_seconds),
            "the last of the batch; by so much earlier the table looks empty than the work is started",
        )  # fmt: skip
        yield Figure(
            "shortest_lease_seconds", local.lease_seconds, "s", q.say_seconds(local.lease_seconds),
            "a lease that is not renewed must last longer than the whole batch takes on average",
        )  # fmt: skip

    def _terms(self, outage: Fraction) -> Iterator[Term]:
        """Nominal first, then each thing that was asked about added to those before it."""
        ask = self.ask
        service, overhead, retries = Times(ask.service_seconds, ask.service_cv2), Fraction(0), Retries()
        backlog = backlog_jobs(ask.arrival_per_second, outage)

        def term(name: str, *, outside: bool = False) -> Term:
            ceiling = lowest(self._ceilings(retries, retries.work(service, overhead), outside=outside))
            result = drain_with_inflow(self._backlog(ceiling) if outside else backlog, ceiling.per_second, self.inflow)
            return Term(name, ceiling, result.net_per_second, result.seconds)

        yield term("nominal: slots and mean service time")
        if ask.slow is not None:
            service = self.attempt
            share = q.say_number(ask.slow.share * 100)
            yield term(f"slow jobs: {share} % take {q.say_seconds(ask.slow.seconds)}")
        if ask.retry_share:
            retries = self.retries
            yield term(f"retries: {q.say_number(ask.retry_share * 100)} % of attempts fail")
        if ask.overhead_seconds:
            overhead = ask.overhead_seconds
            yield term(f"database overhead: {q.say_seconds(overhead)} per attempt")
        if ask.limit_per_second is not None or ask.database_per_second is not None:
            yield term("limits outside the slots", outside=True)

    def _ages(self, outage: Fraction, result: Drain) -> Iterator[AgePoint]:
        """At quarters of the drain; when it never drains, at quarters of an outage's length, to show that it grows."""
        span = outage if result.seconds is None else result.seconds
        for quarter in range(AGE_POINTS + 1):
            after = span * quarter / AGE_POINTS
            at_once = backlog_jobs(self.ask.arrival_per_second, outage) - self._backlog(self.capacity)
            age = oldest_age_with_inflow(
                outage, self.capacity.per_second, self.ask.arrival_per_second, self.inflow, after, at_once_jobs=at_once
            )
            yield AgePoint(after, age)

    def _mistake(self, outage: Fraction, result: Drain) -> str:
        backlog = backlog_jobs(self.ask.arrival_per_second, outage)
        rate = self.capacity.per_second
        wrong = wait_of_job_at_recovery(backlog, rate)
        wait = wait_of_job_at_recovery(self._backlog(self.capacity), rate)
        right = NEVER if result.seconds is None else f"takes {q.say_seconds(result.seconds)}"
        return (
            f"Dividing the backlog by the capacity, {q.say_number(backlog)} ÷ {q.say_number(rate)} = {q.say_seconds(wrong)}, is not "
            f"the drain time: work keeps arriving at {_per_second(self.lasting)} meanwhile, and the backlog "
            f"{right}. {q.say_seconds(wait)} is how long the job waits that arrives at the instant of recovery."
        )

    def _notes(self, result: Drain | None, band: Band | None) -> Iterator[str]:
        ask = self.ask
        yield "Slots are not CPU cores, and connections are neither: each is ordered by its own measurement."
        if ask.service_seconds < SHORT_SERVICE:
            yield (
                f"A service time of {q.say_seconds(ask.service_seconds)} is shorter than the database needs for a claim and a "
                "completion (1 to 3 ms): check the unit, and measure the overhead before trusting any number here."
            )
        if ask.outage_seconds is None:
            yield "No outage was given, so nothing is said about a backlog; add one, such as 300s."
            return
        if backlog_jobs(ask.arrival_per_second, ask.outage_seconds) < SMALL_BACKLOG * self.slots:
            yield (
                f"The backlog is less than {SMALL_BACKLOG} jobs per slot: drain and band are rough, single jobs and the state of the "
                "slots matter. Simulate, or take a longer outage."
            )
        if ask.inflow:
            yield "Inflow changes after recovery: age and drain follow its steps; survivable outage and slots for a recovery time take the arrival rate."
        if self.capacity.of == "external limit":
            yield (
                "The external limit binds: more slots drain nothing faster. Slots that wait for the limiter look 100 % busy; "
                "look at time blocked on it apart from time at work."
            )
        if band is None or result is None or result.net_per_second <= 0:
            return
        jobs = jobs_for_precision(self.capacity.per_second, result.net_per_second, Fraction(5, 100))
        yield f"One run tells its drain time to ± 5 % only with a backlog of {jobs} jobs or more (exponential work)."
        window = judging_window_seconds(
            self.capacity.per_second - result.net_per_second, self.capacity.per_second, ask.arrival_cv2, self.work.cv2
        )
        if window is not None:
            yield f"Whether the backlog falls at all must be watched for {window:.1f} s before it stands out from noise."
