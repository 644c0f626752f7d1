"""Write what a person marked in a review as points with gold spans, for whatever looks for secrets.

No gold span of the corpus knows of it, and the policy has missed it.
"""

from pathlib import Path

from confide.files.io import write_jsonl
from confide.reviews.marks import reviewed
from confide.specs import MarkedSpec

SURE = 1.0  # score of a gold span


def marked(
    spec: MarkedSpec, *, review: Path, points: Path, spans: Path, copies: Path, output: Path
) -> None:
    """Write the key, the text and the marks of each text in which the person marked anything.

    InputError unless the review is of these points and these findings.
    """
    files = {"points": points, "spans": spans, "copies": copies}
    begun, sample = reviewed(spec.text, spec.redact, review, **files)
    said = zip(sample.texts, begun.marks, strict=True)
    rows = (
        {"key": text.key, "text": text.text, "gold": [(*mark, SURE) for mark in marks.missed]}
        for text, marks in said
        if marks is not None and marks.missed
    )
    write_jsonl(output, rows)
