"""Spans of time in words."""

MINUTE = 60.0
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def duration(seconds: float) -> str:
    """Seconds as a person says them, with two digits."""
    for unit, name in ((DAY, "days"), (HOUR, "hours"), (MINUTE, "minutes")):
        if seconds >= 1.5 * unit:
            count = seconds / unit
            return f"{count:.1f} {name}" if count < 9.95 else f"{count:.0f} {name}"
    return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
