"""Find the spans of every point: the policy pi and whether the conservative policy pi_c fires (CRT section 3.2).

Spans are stored beside the text, which stays as it is. A policy that fails on a text makes the text private: its line
says conservative and failed, and the number of failures goes to stderr.
"""

import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from confide.data import read_rows
from confide.io import write_jsonl
from confide.policies import Policy, policy, with_misses
from confide.specs import RedactSpec

CACHE_TEXTS = 1 << 16  # dialogue repeats itself: most turns of a support corpus stand there more than once
CACHE_LENGTH = 256  # characters; longer texts seldom repeat and would fill the memory

Finding = dict[str, Any]  # a line of the output without its key; empty if there is nothing to say


def redact(spec: RedactSpec, *, points: Path, output: Path) -> None:
    """Write {"key", "spans", "conservative"} for each point that has a span or a conservative hit, in file order.

    Guarantees: fails closed; a text on which a policy raises counts as a conservative hit.
    """
    find = finder(with_misses(policy(spec.policy), spec.miss_rate, spec.miss_seed), policy(spec.conservative))
    failures: list[None] = []
    write_jsonl(output, findings(points, find, failures))
    if failures:
        print(f"redact: warning: a policy failed on {len(failures)} points; they are private", file=sys.stderr)


def finder(approximate: Policy, conservative: Policy) -> Callable[[str], Finding]:
    """What both policies say of one text."""

    def find(text: str) -> Finding:
        try:
            spans = [list(span) for span in approximate(text)]
            fired = bool(conservative(text))
        except Exception:  # whatever went wrong in a policy, the text is private
            return {"spans": [], "conservative": True, "failed": True}
        return {"spans": spans, "conservative": fired} if spans or fired else {}

    return find


def findings(points: Path, find: Callable[[str], Finding], failures: list[None]) -> Iterator[Finding]:
    """Lines of the output; one entry per failed text is added to `failures`."""
    cached = lru_cache(maxsize=CACHE_TEXTS)(find)
    for key, text in read_rows(points, "key", "text"):
        found = cached(text) if len(text) <= CACHE_LENGTH else find(text)
        if found:
            if "failed" in found:
                failures.append(None)
            yield {"key": key, **found}
