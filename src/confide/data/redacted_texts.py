"""The redacted text of a partition as text again, to hand out."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from confide.data.partition_files import LEARNED, REDACTED
from confide.data.vectors import stored
from confide.errors import InputError
from confide.files.rows import read_rows
from confide.text.planted import is_planted
from confide.text.tokenizer import Tokenizer
from confide.types import SPLITS

POINTS = "points.jsonl"  # of a dataset, in the folder above that of a partition
TRAIN = SPLITS.index("train")


def redacted_texts(redacted: Path, tokenizer: Tokenizer) -> Iterator[dict[str, str]]:
    """The training points of a partition as the policy leaves them, in their order.

    Left out are later copies of a text, of which a mask alone is left, and sentences that were
    planted for attacks. InputError where the points beside the partition are others.
    """
    view = stored(redacted, REDACTED, LEARNED)
    ids = view.whole("ids")
    starts = view.whole("starts")
    is_read = (view.whole("split") == TRAIN) & ~view.whole("copy")
    points = redacted.resolve().parents[1] / POINTS
    planted = np.array([is_planted(doc) for doc in read_rows(points, "doc")], bool)
    if len(planted) != len(is_read):
        raise InputError(f"has other points than {redacted.name}", file=points)
    for number, point in enumerate(np.flatnonzero(is_read & ~planted).tolist(), 1):
        text = tokenizer.decode(ids[starts[point] : starts[point + 1]])
        yield {"doc": f"redacted-{number}", "text": text}
