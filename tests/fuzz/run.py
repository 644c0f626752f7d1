"""Read mutated files, up to thousands per target, and print what came of them.

python tests/fuzz/run.py --cases 10000 [--only NAME ...] [--seconds 600] [--seed 0] [--write
docs/hostile_input.md]

Case `n` of a target is the same in every run with one seed. A target stops early when its seconds
are over.
"""

import argparse
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from hostile_cases import Case
from hostile_corpora import CORPORA
from hostile_targets import TARGETS, built

MEMORY = 16 << 30  # bytes of this process: what asks for more is a fault
BAD = ("fault", "hang", "leak")
COLUMNS = ("target", "cases", "accepted", "refused", "stopped", "bad", "slowest")
SUMMED = ("cases", "bad")  # on the page
FAMILIES = {  # a row of the page: names of the targets that it adds up begin with one of these
    "corpora and archives": (*CORPORA,),
    "parameters, read by us": ("params.yaml", "specification"),
    "parameters, through `snakemake -n`": ("params.yaml: snakemake", "configfile", "layers"),
    "policies and tokenizers": ("policy", "vocab.json", "merges.txt", "tokenizer.json"),
    "prepared text": ("points", "copies", "spans", "original", "redacted"),
    "weights, checkpoints, ledgers": (
        "checkpoint",
        "model",
        "config.json",
        "epochs",
        "ledger",
        "shadows",
    ),
    "canaries, measurements, certificates": (
        "recall",
        "neighbours",
        "certificate",
        "game",
        "canaries",
        "figure",
    ),
    "attestations and keys": ("attestation", "public key"),
    "results, for a report": (
        "metrics",
        "certificate.json: report",
        "evaluate",
        "exposure",
        "membership",
    ),
}
BEGIN = "<!-- table -->"
END = "<!-- end of table -->"


def row(name: str, folder: Path, cases: int, seconds: float, seed: int) -> tuple[str, ...]:
    """What came of a target's cases; bad ones go to stderr."""
    target = TARGETS[name]
    counts = Counter()
    slowest = 0.0
    here = folder / target.group
    if not here.exists():
        here.mkdir()
        built(target.group, here)
    case = Case(target, here)
    begun = time.monotonic()
    for number in range(cases):
        outcome = case.run(random.Random(f"{seed}:{name}:{number}"))
        counts[outcome.kind] += 1
        slowest = max(slowest, outcome.seconds)
        if outcome.kind in BAD:
            print(
                f"{name}: case {number}: {outcome.kind}\n{outcome.says}",
                file=sys.stderr,
                flush=True,
            )
        if time.monotonic() - begun > seconds:
            break
    bad = sum(counts[kind] for kind in BAD)
    numbers = (counts.total(), counts["accepted"], counts["refused"], counts["stopped"], bad)
    return (name, *map(str, numbers), f"{slowest:.1f} s")


def family(target: str) -> str:
    """The row of the page that a target belongs to: of all beginnings of its name, the longest
    decides.
    """
    beginnings = [
        (len(start), name)
        for name, starts in FAMILIES.items()
        for start in starts
        if target.startswith(start)
    ]
    return max(beginnings)[1]


def added_up(rows: list[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """One row for each family: its name and sums of the counts."""
    for name in FAMILIES:
        same = [row for row in rows if family(row[0]) == name]
        if same:
            counts = [sum(int(row[COLUMNS.index(column)]) for row in same) for column in SUMMED]
            yield (name, *(f"{count:,}" for count in counts))


def write(path: Path, rows: list[tuple[str, ...]]) -> None:
    """Put the table between its marks."""
    head = ("files", *SUMMED)
    lines = [f"| {' | '.join(one)} |" for one in (head, ("---",) * len(head), *added_up(rows))]
    before, rest = path.read_text().split(BEGIN)
    path.write_text("\n".join([before + BEGIN, "", *lines, "", END + rest.split(END)[1]]))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--only", nargs="*", default=list(TARGETS))
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in given.only:
            rows.append(row(name, Path(folder), given.cases, given.seconds, given.seed))
            print("  ".join(rows[-1]), flush=True)
    if given.write is not None:
        write(given.write, rows)
    return int(any(one[COLUMNS.index("bad")] != "0" for one in rows))


if __name__ == "__main__":
    sys.exit(main())
