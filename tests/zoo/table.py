"""Write docs/zoo.md: which check notices which fault, and what a check costs. `python
tests/zoo/table.py` (minutes).
"""

import contextlib
import io
import string
import time
from collections.abc import Callable
from pathlib import Path

from checks import CHECKS
from faults import FAULTS, KINDS
from mutation import Fault, noticed
from tqdm import tqdm

PAGE = Path(__file__).parents[2] / "docs" / "zoo.md"
NUMERALS = [*string.ascii_uppercase, *(f"A{letter}" for letter in string.ascii_uppercase)]
LETTERS = dict(zip(CHECKS, NUMERALS, strict=False))
HEAD = """# Bug zoo

Would the tests of this project notice if its privacy were broken? Here it is broken on purpose: {faults} times, one fault at
a time, each a small change of the real code. {checks} general checks, which pass on the project as it is, must notice every
one of them. `tests/zoo/test_zoo.py` holds each fault against one check in every run of the tests; `python tests/zoo/table.py`
holds all against all and writes this page. A fault is noticed where a check fails, or the project itself refuses to go on or
breaks down.

The audit ({audit}) notices gross faults only, as any attack does: most are found by checks that look at one mechanism each.
"""


def main() -> None:
    """Run everything, write the page."""
    for fault in FAULTS:  # one that is out of date shows at once
        with fault.inject():
            pass
    with contextlib.redirect_stderr(io.StringIO()):
        seconds = {name: clean(name) for name in CHECKS}
    found = {fault.name: kills(fault) for fault in tqdm(FAULTS, unit="fault")}
    PAGE.write_text("\n".join(page(seconds, found)) + "\n")


def clean(name: str) -> float:
    """Seconds that a check takes on the project as it is, the second time: the first loads
    libraries.
    """
    CHECKS[name]()
    started = time.perf_counter()
    CHECKS[name]()
    return time.perf_counter() - started


def kills(fault: Fault) -> list[str]:
    """Checks that notice a fault."""
    with contextlib.redirect_stderr(io.StringIO()), fault.inject():
        return [name for name, check in CHECKS.items() if stopped(check)]


def stopped(check: Callable[[], None]) -> bool:
    """Whether a check notices a fault, or breaks down over it, which nobody overlooks either."""
    try:
        return noticed(check)
    except Exception:
        return True


def page(seconds: dict[str, float], found: dict[str, list[str]]) -> list[str]:
    """Lines of the page."""
    audit = LETTERS["one_run_audit_stays_below_the_certificate"]
    lines = [HEAD.format(faults=len(FAULTS), checks=len(CHECKS), audit=audit)]
    lines += [
        "## Checks",
        "",
        "| | check | says | faults noticed | seconds |",
        "|---|---|---|---|---|",
    ]
    for name, check in CHECKS.items():
        noticed_by = sum(name in names for names in found.values())
        says = " ".join((check.__doc__ or "").split())
        lines.append(
            f"| {LETTERS[name]} | `{name}` | {says} | {noticed_by} | {seconds[name]:.2f} |"
        )
    for kind, faults in KINDS.items():
        lines += ["", f"## {kind}", "", "| fault | what is wrong | noticed by |", "|---|---|---|"]
        for fault in faults:
            by = " ".join(LETTERS[name] for name in found[fault.name]) or "**nothing**"
            says = fault.says.replace("<MASK>", "`<MASK>`")
            lines.append(f"| **{fault.name}** | {says} | {by} |")
    missed = [name for name, names in found.items() if not names]
    lines += [
        "",
        f"Not noticed: {', '.join(missed)}." if missed else f"All {len(found)} are noticed.",
    ]
    return lines


if __name__ == "__main__":
    main()
