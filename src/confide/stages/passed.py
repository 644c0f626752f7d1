"""Fail where a certificate of a study does not stand against an audit of its model.

The gate's tables are made first and by another job: they stay where this one fails, as do the
search for secrets and the pages, so that a model that is refuted holds up no other.
"""

from pathlib import Path

from confide.certify.gate import FAILURES, rows_of
from confide.errors import Failure
from confide.files.io import write_text

ADVICE = (
    "a true certificate is refuted in one training of twenty; what to do is in docs/audits.md, "
    "When an audit refutes"
)


def passed(*, gate: Path, output: Path) -> None:
    """Write how many comparisons there were, if none of them failed.

    gate: gate.csv. Failure names what was refuted, or could not have been.
    """
    rows = rows_of(gate)
    failed = [row for row in rows if row["outcome"] in FAILURES]
    if failed:
        lines = [f"{row['run']} {row['audit']} {row['outcome']}: {row['says']}" for row in failed]
        raise Failure(*lines, ADVICE)
    write_text(output, f"{len(rows)} comparisons, none of which speaks against a certificate\n")
