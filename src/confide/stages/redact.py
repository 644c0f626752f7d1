"""Find the spans of every point: the policy pi and whether the conservative policy pi_c fires (CRT section 3.2).

Spans are stored beside the text, which stays as it is. A policy that fails on a text makes the text private: its line
says conservative and failed, and the number of failures goes to stderr.
"""

import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

from confide.data import read_rows
from confide.io import write_jsonl
from confide.redaction import Finding, finder_of
from confide.specs import RedactSpec

CACHE_TEXTS = 1 << 16  # dialogue repeats itself: most turns of a support corpus stand there more than once
CACHE_LENGTH = 256  # characters; longer texts seldom repeat and would fill the memory


def redact(spec: RedactSpec, *, points: Path, output: Path) -> None:
    """Write {"key", "spans", "conservative"} for each point that has a span or a conservative hit, in file order.

    Guarantees: fails closed; a text on which a policy raises counts as a conservative hit.
    """
    failures: list[None] = []
    write_jsonl(output, findings(points, finder_of(spec), failures))
    if failures:
        print(f"redact: warning: a policy failed on {len(failures)} points; they are private", file=sys.stderr)


def findings(points: Path, find: Callable[[str], Finding], failures: list[None]) -> Iterator[Finding]:
    """Lines of the output; one entry per failed text is added to `failures`."""
    cached = lru_cache(maxsize=CACHE_TEXTS)(find)
    for key, text in read_rows(points, "key", "text"):
        found = cached(text) if len(text) <= CACHE_LENGTH else find(text)
        if found:
            if "failed" in found:
                failures.append(None)
            yield {"key": key, **found}
