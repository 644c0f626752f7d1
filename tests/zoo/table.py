"""Write docs/zoo.md: the faults, by the check that must notice them. `python tests/zoo/table.py`
(minutes).
"""

import contextlib
import io
import time
from collections.abc import Callable
from pathlib import Path

from checks import CHECKS
from faults import FAULTS
from mutation import Fault, noticed
from tqdm import tqdm

PAGE = Path(__file__).parents[2] / "docs" / "zoo.md"
HEAD = """# Bug zoo

Read this if you wonder whether the tests would notice that privacy is broken. Here it is broken on
purpose, {faults} times: each fault is a small change of the real code, one at a time. {checks}
checks pass on the project as it is, in {seconds:.0f} s together. Every run of the tests holds each
fault against the check that must fail by it. `python tests/zoo/table.py` tries all faults against
all checks and writes this page.

Behind each check stands the number of its faults. No fault rests on `{audit}`:
like any attack it notices gross faults only.
"""
AUDIT = "one_run_audit_stays_below_the_certificate"
OF = {  # what the checks of a module are about
    "engine_checks": "A noised update",
    "job_checks": "A training job",
    "data_checks": "Redaction, and what it misses",
    "price_checks": "Prices and certificates",
    "scan_checks": "The scan",
    "vouch_checks": "Signatures, several models",
    "audit_checks": "Audits",
    "promise_checks": "What is said of a model",
    "outward_checks": "What comes from outside",
}


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
    """Lines of the page, from the seconds of each check and the checks that notice each fault."""
    total = sum(seconds.values())
    lines = [HEAD.format(faults=len(FAULTS), checks=len(CHECKS), seconds=total, audit=AUDIT)]
    for module, title in OF.items():
        own = [name for name, check in CHECKS.items() if check.__module__ == module]
        lines += [f"**{title}**", ""]
        lines += [f"- `{name}`: {sum(fault.by == name for fault in FAULTS)}" for name in own]
        lines.append("")
    missed = [name for name, names in found.items() if not names]
    lines.append(
        f"Not noticed: {', '.join(missed)}." if missed else f"All {len(found)} are noticed."
    )
    return lines


if __name__ == "__main__":
    main()
