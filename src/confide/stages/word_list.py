"""List the familiar words of a public text, for the policy `cover`: those that it has often enough.

The list IS text of the corpus, which must be public. Words are compared without regard to case and
to punctuation around them; those with a digit are left out. Words of everyday English may be added
from the vocabulary of GPT-2, which is published.
"""

from collections import Counter
from pathlib import Path

from confide.corpora.archives import read_members
from confide.errors import InputError
from confide.files.io import write_json
from confide.files.rows import read_rows
from confide.policies.cover import DIGIT, bare
from confide.specs import WordListSpec
from confide.text.tokenizer import numbered

TIMES_AS_LATE = 2  # may a word come in small letters: "Hey" mostly opens a sentence
SPACE = "Ġ"  # what GPT-2's vocabulary writes for the space before a word


def word_list(
    spec: WordListSpec, *, points: Path, output: Path, archive: Path | None = None
) -> None:
    """Write the words of the train split of `points` that occur `min_count` times, and those of
    `archive`, GPT-2's packed files, that are seldom names; in order.

    InputError where the corpus has none, or the archive has no vocabulary.
    """
    counts: Counter[str] = Counter()
    for text, split in read_rows(points, "text", "split"):
        if split == "train":
            counts.update(bare(word) for word in text.split() if not DIGIT.search(word))
    words = {word for word, count in counts.items() if word and count >= spec.min_count}
    if not words:
        raise InputError("no word occurs so often", key="min_count", value=spec.min_count)
    if archive is not None:
        words |= written_small(archive)
    write_json(output, sorted(words))


def written_small(archive: Path) -> set[str]:
    """Words of GPT-2's vocabulary that its text has about as often in small letters.

    Its tokens are numbered as they were merged, the most frequent first (Sennrich et al. 2016).
    """
    members = {Path(path).name: text for path, text in read_members(archive)}
    if "vocab.json" not in members:
        raise InputError("holds no vocab.json", file=archive)
    number_of = numbered(members["vocab.json"].encode(), source=archive)
    never = len(number_of)
    words = (token.removeprefix(SPACE) for token in number_of if token.startswith(SPACE))
    return {
        word
        for word in words
        if word.isalpha()
        and word.islower()
        and number_of[SPACE + word]
        < TIMES_AS_LATE * number_of.get(SPACE + word.capitalize(), never)
    }
