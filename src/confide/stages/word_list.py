"""List the familiar words of a public text, for the policy `cover`: those that it has often enough.

The list IS text of the corpus, which must be public. Words are compared without regard to case and
to punctuation around them; those with a digit are left out.
"""

from collections import Counter
from pathlib import Path

from confide.errors import InputError
from confide.files.io import write_json
from confide.files.rows import read_rows
from confide.policies.cover import DIGIT, bare
from confide.specs import WordListSpec


def word_list(spec: WordListSpec, *, points: Path, output: Path) -> None:
    """Write the words of the train split of `points` that occur `min_count` times, in order.

    InputError where there is none.
    """
    counts: Counter[str] = Counter()
    for text, split in read_rows(points, "text", "split"):
        if split == "train":
            counts.update(bare(word) for word in text.split() if not DIGIT.search(word))
    words = sorted(word for word, count in counts.items() if word and count >= spec.min_count)
    if not words:
        raise InputError("no word occurs so often", key="min_count", value=spec.min_count)
    write_json(output, words)
