"""Find the spans of every point: the policy pi and whether the conservative policy pi_c fires (CRT section 3.2).

Spans are stored beside the text, which stays as it is. A policy that fails on a text makes the text private: its line
says conservative and failed, and the number of failures goes to stderr.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path

from confide.data import read_rows
from confide.io import write_jsonl
from confide.redaction import Finding, batch_finder_of, finder_of
from confide.specs import RedactSpec

CACHE_TEXTS = 1 << 16  # dialogue repeats itself: most turns of a support corpus stand there more than once
CACHE_LENGTH = 256  # characters; longer texts seldom repeat and would fill the memory
BATCH = 512  # points that a batched policy sees at once


def redact(spec: RedactSpec, *, points: Path, output: Path) -> None:
    """Write {"key", "spans", "conservative"} for each point that has a span or a conservative hit, in file order.

    Guarantees: fails closed; a text on which a policy raises counts as a conservative hit.
    """
    failures: list[None] = []
    together = batch_finder_of(spec)
    found = findings(points, finder_of(spec), failures) if together is None else batches(points, together, failures)
    write_jsonl(output, found)
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


def batches(points: Path, find: Callable[[Sequence[str]], list[Finding]], failures: list[None]) -> Iterator[Finding]:
    """The same with a batched policy; within a batch a text is looked at once, and short ones are remembered."""
    known: dict[str, Finding] = {}
    rows = read_rows(points, "key", "text")
    while batch := list(islice(rows, BATCH)):
        texts = list(dict.fromkeys(text for _, text in batch if text not in known))
        fresh = dict(zip(texts, find(texts), strict=True))
        for key, text in batch:
            found = fresh[text] if text in fresh else known[text]
            if found:
                if "failed" in found:
                    failures.append(None)
                yield {"key": key, **found}
        known = {} if len(known) > CACHE_TEXTS else known
        known |= {text: found for text, found in fresh.items() if len(text) <= CACHE_LENGTH}
