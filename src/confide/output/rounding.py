"""Numbers in words that promise no more than the numbers do."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

LARGE = Decimal(10) ** 9  # from here on and below SMALL with a power of ten
SMALL = Decimal("0.001")
MINUTE = 60.0
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def rounded_up(value: float | str, digits: int = 4) -> str:
    """A number that is bad if large, with so many digits and never smaller; infinity is ∞."""
    number = float(value)
    if not math.isfinite(number):
        return "∞"
    if number == 0:
        return "0"
    rounded = ceiling(number, digits)
    return f"{rounded:e}" if rounded < SMALL or rounded >= LARGE else f"{rounded:,f}"


def ceiling(value: float, digits: int) -> Decimal:
    """The least number with so many digits, or the least integer below LARGE, that is no smaller.

    value: finite, and not 0
    """
    number = Decimal(repr(value))
    place = number.adjusted() - digits + 1
    if number < LARGE:
        place = min(0, place)
    return number.quantize(Decimal(1).scaleb(place), rounding=ROUND_CEILING).normalize()


def rounded_down(value: float) -> str:
    """A bound from below, with two digits after the point and never larger."""
    return f"{math.floor(100 * value) / 100:g}"


def percent(share: float) -> str:
    """A share of 1 as it is, without rounding: 95%, 99.6%."""
    return f"{(100 * Decimal(repr(float(share)))).normalize():f}%"


def percent_up(share: float) -> str:
    """A bound from above on a share of 1, with one digit after the point and never smaller."""
    tenths = (1000 * Decimal(repr(float(share)))).to_integral_value(ROUND_CEILING)
    return f"{tenths / 10:.1f}%"


def percent_down(share: float) -> str:
    """A bound from below on a share of 1, in whole per cent and never larger."""
    return f"{(100 * Decimal(repr(float(share)))).to_integral_value(ROUND_FLOOR)}%"


def duration(seconds: float) -> str:
    """Seconds as a person says them, with two digits."""
    for unit, name in ((DAY, "days"), (HOUR, "hours"), (MINUTE, "minutes")):
        if seconds >= 1.5 * unit:
            count = seconds / unit
            return f"{count:.1f} {name}" if count < 9.95 else f"{count:.0f} {name}"
    return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
