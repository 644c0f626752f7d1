"""List what a policy finds in a public text, as values in place of another text's masks.

The list IS text of the corpus, which must be public.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from confide.errors import InputError
from confide.files.io import write_json
from confide.files.rows import Found, Join, read_rows
from confide.files.shards import shards
from confide.files.stretches import Beside
from confide.policies.spans import adjoined, hidden
from confide.specs import FoundValuesSpec
from confide.text.found_values import FoundValue, found_in
from confide.text.planted import is_planted_key

MOST = 200_000  # values, the first ones


def found_values(
    spec: FoundValuesSpec, *, points: Path, spans: Path, policies: str, output: Path
) -> None:
    """Write [word before, value, word behind] of each value that the policy hides in the train
    split of `points`, in order.

    policies: whose findings the spans are, `confide.provenance.terms.findings_by`

    InputError where there is none.
    """
    found = islice(values_in(points, Beside(spans, policies), merge=spec.merge_masks), MOST)
    values = [list(value) for value in found]
    if not values:
        raise InputError("the policy finds nothing in the train split", file=points)
    write_json(output, values)


def values_in(points: Path, spans: Beside, *, merge: bool) -> Iterator[FoundValue]:
    """Values of all points but planted ones; of a text on which the policy failed none."""
    for shard in shards(points):
        findings = Join(Found, spans.of(shard))
        for key, text, split in read_rows(shard, "key", "text", "split"):
            finding = findings.take(key)
            if finding is None or finding.failed or split != "train" or is_planted_key(key):
                continue
            ranges = hidden(text, finding.spans)
            yield from found_in(text, adjoined(text, ranges) if merge else ranges)
        findings.finish()
