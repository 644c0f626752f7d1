"""List later copies of training texts (CRT Algorithm 1, deduplication): the first occurrence stays, the rest are named.

Only keys of points are written.
"""

import sys
from pathlib import Path

from confide.data import read_rows
from confide.deduplication import copies, digest
from confide.io import write_jsonl
from confide.specs import DedupSpec

WARNING = "dedup: warning: plain SHA-1 digests of short secrets can be guessed by enumeration; hmac-sha1 is the safe choice"


def dedup(spec: DedupSpec, *, points: Path, output: Path) -> None:
    """Write one line {"key"} per later copy in the train split, in file order.

    Guarantees: the key of the digests exists only in memory; no digest and no text is written.
    """
    if spec.digest == "sha1":
        print(WARNING, file=sys.stderr)
    rows = read_rows(points, "key", "text", "split")
    write_jsonl(output, ({"key": key} for key in copies(rows, digest(spec.digest))))
