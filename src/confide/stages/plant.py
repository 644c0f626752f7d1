"""Plant canaries: random secrets in a fixed sentence, copied into the training points at random places (CRT section 5).

Secrets and controls are distinct and drawn from the spec's seed; controls are never planted and show what an attack scores
on text that was not trained on. Two passes over the points, neither of which holds them in memory.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from confide.data import read_rows
from confide.errors import InputError
from confide.io import read_jsonl, write_json, write_jsonl
from confide.specs import CanarySpec

SLOT = re.compile(r"\{(\d+)\}")
MAX_DIGITS = 18  # of a 64-bit integer
DOC = re.compile(r"canary-\d+-\d+")


class Template(NamedTuple):
    """A canary's sentence: prefix, so many digits, suffix."""

    prefix: str
    digits: int
    suffix: str


def parse_template(text: str) -> Template:
    """ "My ID is: {6}" -> ("My ID is: ", 6, ""). InputError unless there is exactly one slot."""
    slots = list(SLOT.finditer(text))
    if len(slots) != 1:
        raise InputError("expected exactly one slot such as {6}", key="template", value=text)
    digits = int(slots[0][1])
    if not 1 <= digits <= MAX_DIGITS:
        raise InputError(f"expected between 1 and {MAX_DIGITS} digits", key="template", value=text)
    return Template(text[: slots[0].start()], digits, text[slots[0].end() :])


def draw_secrets(rng: np.random.Generator, digits: int, count: int) -> list[str]:
    """`count` different strings of digits, uniform. InputError if there are not so many."""
    if count > 10**digits:
        raise InputError(f"more than the 10^{digits} strings of {digits} digits", key="count + controls", value=count)
    return [f"{number:0{digits}d}" for number in rng.choice(10**digits, count, replace=False).tolist()]


def _canary(spec: CanarySpec, template: Template, secrets: list[str], index: int, copy: int) -> dict[str, Any]:
    """Fields of one planted Point."""
    doc, start = f"canary-{index}-{copy}", len(template.prefix)
    return {
        "key": f"{doc}:0",
        "text": template.prefix + secrets[index] + template.suffix,
        "doc": doc,
        "split": "train",
        "domain": None,
        "owner": None,
        "gold": [(start, start + template.digits, spec.label, 1.0)],
        "canary": index,
    }


def _count_train(points: Path) -> int:
    """Training points. InputError if canaries were planted before."""
    train = 0
    for key, doc, split, canary in read_rows(points, "key", "doc", "split", "canary"):
        if canary is not None or (doc.startswith("canary-") and DOC.fullmatch(doc)):
            raise InputError("has the name of a planted canary", file=points, key=key)
        train += split == "train"
    return train


def _interleave(points: Path, train: int, places: list[int], canaries: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Points in order, with canaries at the given places (ascending) of the training sequence that results."""
    place, pending, seen = 0, iter(places), 0
    following = next(pending, -1)
    for row in read_jsonl(points):
        if row["split"] != "train":
            yield row
            continue
        while following == place:
            yield next(canaries)
            place, following = place + 1, next(pending, -1)
        yield row
        place, seen = place + 1, seen + 1
        if seen == train:
            yield from canaries


def plant(spec: CanarySpec, *, points: Path, output: Path, canaries: Path) -> None:
    """Write the points with `count` x `copies` canaries among the training ones, and canaries.json with the secrets.

    Guarantees: other points keep their order and content; canaries.json and `output` hold secrets and are work files.
    """
    template = parse_template(spec.template)
    rng = np.random.default_rng(spec.seed % 2**64)
    drawn = draw_secrets(rng, template.digits, spec.count + spec.controls)
    secrets, controls = drawn[: spec.count], drawn[spec.count :]
    train, total = _count_train(points), spec.count * spec.copies
    if total and not train:
        raise InputError("has no training points to plant canaries among", file=points)
    places = np.sort(rng.choice(train + total, total, replace=False, shuffle=False)).tolist()
    pairs = ((index, copy) for index, copy in (divmod(n, spec.copies) for n in rng.permutation(total).tolist()))
    rows = (_canary(spec, template, secrets, index, copy) for index, copy in pairs)
    write_jsonl(output, _interleave(points, train, places, rows))
    facts = {**template._asdict(), "secrets": secrets, "controls": controls, "copies": spec.copies, "label": spec.label}
    write_json(canaries, facts)
