"""Exact numbers with units: text such as ``12/s``, ``12/min``, ``0.8s``, ``5m``, ``10%`` or ``5%:8s`` to Fraction.

Exact, because a ceiling is taken of them: ``math.ceil(12 * 0.8 / 0.6)`` is 17 in floats, and 16 is right.
Rates are per second and durations are seconds. Whatever cannot be read is a BadInput that names the field and the value.
"""

import re
from decimal import Decimal
from fractions import Fraction

from harness.contracts.problem import BadInput

Exact = Fraction | Decimal | int

SECONDS_OF: dict[str, Fraction] = {
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "sec": Fraction(1),
    "m": Fraction(60),
    "min": Fraction(60),
    "h": Fraction(3600),
}
PERIOD_OF: dict[str, Fraction] = {
    "s": Fraction(1),
    "sec": Fraction(1),
    "second": Fraction(1),
    "m": Fraction(60),
    "min": Fraction(60),
    "minute": Fraction(60),
    "h": Fraction(3600),
    "hour": Fraction(3600),
}
RATE_UNITS = "per second, minute or hour, such as 12/s, 12/min or 12/h"
DURATION_UNITS = "in ms, s, m or h, such as 800ms, 0.8s, 5m or 1h"

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)", re.ASCII)
_LONGEST = 40  # characters; nobody means a longer number, and Fractions of one are slow


def exact(value: Exact, field: str) -> Fraction:
    """Any exact number as a Fraction; a float is refused, because its last digit is not what was typed."""
    if isinstance(value, bool) or not isinstance(value, Fraction | Decimal | int):
        raise BadInput(f"{field}: {value!r} is not exact; give a Fraction, a Decimal or an int, not a float")
    if isinstance(value, Decimal) and not value.is_finite():
        raise BadInput(f"{field}: {value} is not a number that can be counted with")
    return Fraction(value)


def parse_rate(text: str, field: str) -> Fraction:
    """``12/s``, ``12/min``, ``12/h`` as a positive rate per second."""
    number, rest = _split(text, field, RATE_UNITS)
    if not rest:
        raise BadInput(f'{field}: "{text}" has no unit; write a rate {RATE_UNITS}')
    if not rest.startswith("/"):
        raise BadInput(f'{field}: "{text}" is not a rate; write it {RATE_UNITS}')
    period = PERIOD_OF.get(rest[1:].strip())
    if period is None:
        raise BadInput(f'{field}: "{text}" has the unknown unit "{rest}"; write a rate {RATE_UNITS}')
    if number <= 0:
        raise BadInput(f'{field}: "{text}" must be above zero')
    return number / period


def parse_duration(text: str, field: str, *, zero: bool = False) -> Fraction:
    """``800ms``, ``0.8s``, ``5m``, ``1h`` in seconds: above zero, unless ``zero`` allows it."""
    number, rest = _split(text, field, DURATION_UNITS)
    if not rest:
        raise BadInput(f'{field}: "{text}" has no unit; write a duration {DURATION_UNITS}')
    if rest.startswith("/"):
        raise BadInput(f'{field}: "{text}" is a rate, not a duration; write it {DURATION_UNITS}')
    unit = SECONDS_OF.get(rest)
    if unit is None:
        raise BadInput(f'{field}: "{text}" has the unknown unit "{rest}"; write a duration {DURATION_UNITS}')
    if number < 0 or (number == 0 and not zero):
        raise BadInput(f'{field}: "{text}" must {"not be negative" if zero else "be above zero"}')
    return number * unit


def parse_ratio(text: str, field: str, *, zero: bool = False) -> Fraction:
    """``0.6`` or ``60%``: above 0 (or from 0 on, if ``zero``) and below 1."""
    number, rest = _split(text, field, "as a share of one, such as 0.6 or 60%")
    if rest not in ("", "%"):
        raise BadInput(f'{field}: "{text}" has the unknown unit "{rest}"; write a share such as 0.6 or 60%')
    share = number / 100 if rest else number
    return check_ratio(share, field, text, zero=zero)


def check_ratio(share: Fraction, field: str, shown: str, *, zero: bool = False) -> Fraction:
    """A share that is 1 or more, or below zero, is no share anybody can run at."""
    if share < 0 or (share == 0 and not zero):
        raise BadInput(f'{field}: "{shown}" must {"not be negative" if zero else "be above zero"}')
    if share >= 1:
        raise BadInput(f'{field}: "{shown}" must be below 1 (100%)')
    return share


def parse_share_of_time(text: str, field: str) -> tuple[Fraction, Fraction]:
    """``5%:8s``: a share of the jobs, and how long each of them takes in seconds."""
    share, colon, seconds = text.partition(":")
    if not colon:
        raise BadInput(f'{field}: "{text}" must be a share and a duration, such as 5%:8s')
    return parse_ratio(share, field), parse_duration(seconds, field)


def parse_inflow(text: str, field: str) -> tuple[tuple[Fraction, Fraction | None], ...]:
    """``12/s:150s,18/s``: rates after recovery and how long each holds; the last one holds from then on (None)."""
    parts = text.split(",")
    steps: list[tuple[Fraction, Fraction | None]] = []
    for n, part in enumerate(parts, start=1):
        rate, colon, seconds = part.partition(":")
        last = n == len(parts)
        if last and colon:
            raise BadInput(f'{field}: "{text}" must end with a rate that holds from then on, such as 12/s:150s,18/s')
        if not last and not colon:
            raise BadInput(f'{field}: "{part.strip()}" needs how long it holds, such as 12/s:150s,18/s')
        steps.append((parse_rate(rate, field), None if last else parse_duration(seconds, field)))
    return tuple(steps)


def parse_count(text: str, field: str, *, most: int = 1_000_000) -> int:
    """A whole number from 1 to ``most``."""
    if not re.fullmatch(r"[0-9]{1,12}", text.strip(), re.ASCII) or not 1 <= int(text) <= most:
        raise BadInput(f'{field}: "{text}" must be a whole number from 1 to {most}')
    return int(text)


def parse_number(text: str, field: str) -> Fraction:
    """A plain number from zero on, without a unit."""
    number, rest = _split(text, field, "as a plain number, such as 1 or 0.5")
    if rest:
        raise BadInput(f'{field}: "{text}" must be a plain number, without "{rest}"')
    if number < 0:
        raise BadInput(f'{field}: "{text}" must not be negative')
    return number


def say_seconds(seconds: Fraction) -> str:
    """``450 s (7 min 30 s)``: the number that is compared, and the one that is understood."""
    plain = f"{say_number(seconds)} s"
    if seconds < 60:
        return plain if seconds >= 1 or seconds == 0 else f"{say_number(seconds * 1000)} ms"
    whole = round(seconds)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    words = [f"{n} {unit}" for n, unit in ((hours, "h"), (minutes, "min"), (rest, "s")) if n]
    return f"{plain} ({' '.join(words)})"


def say_about(seconds: float) -> str:
    """A time that is an estimate: four digits, in the same units as any other."""
    return say_seconds(Fraction(f"{seconds:.4g}"))


def say_chance(share: float) -> str:
    """``4.2 %``; a small one keeps two digits."""
    percent = 100 * share
    return f"{f'{percent:.1f}'.removesuffix('.0') if percent >= 1 else f'{percent:.2g}'} %"


def say_number(value: Fraction) -> str:
    """Up to four decimals, none that say nothing: ``450``, ``2007.6923``, ``0.2``; tiny ones keep three digits."""
    if value != 0 and abs(value) < Fraction(1, 1000):
        return f"{float(value):.3g}"
    shown = f"{Decimal(round(value * 10_000)) / 10_000:f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def plain(value: Fraction | float | None) -> float | int | None:
    """A JSON number: an int when it is whole, else a float."""
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else float(value)
    return value


def _split(text: str, field: str, expected: str) -> tuple[Fraction, str]:
    stripped = text.strip()
    if len(stripped) > _LONGEST:
        raise BadInput(f'{field}: "{stripped[:_LONGEST]}…" is longer than any number that is meant')
    match = _NUMBER.match(stripped)
    if match is None:
        raise BadInput(f'{field}: "{text}" does not start with a number; write it {expected}')
    return Fraction(match.group()), stripped[match.end() :].strip()
