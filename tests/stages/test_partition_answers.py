"""Assistants' turns on their way to token marks: through redaction, merged masks, copies and
neighbours, against a slow oracle that follows every character.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from confide.data import neighbours as core
from confide.data.neighbours import Secret, neighbour, process_of, secrets_of
from confide.data.partition_files import load_partition
from confide.data.partitioning import Raw
from confide.data.redaction import finder_of
from confide.errors import InputError
from confide.files.io import read_json, write_jsonl
from confide.policies import hidden, merged_masks, merged_ranges, moved, redacted_text
from confide.specs import DedupSpec, PartitionSpec, RecallSpec, RedactSpec
from confide.stages.dedup import dedup
from confide.stages.partition import partition
from confide.stages.recall import recall
from confide.stages.redact import redact
from confide.text.tokenizer import save, train_bpe
from confide.types import MASK, Partition
from tests import beside
from tests.terms import TEXT

TOKENIZER = train_bpe(["call me at 12 or 345, please", "café 😀 ok"] * 5, 300, ["<|end|>"])
pieces = st.sampled_from([MASK, "é", "😀", "12 ", "345", " Ann", "call me ", "<|end|>", " ", "\n"])
texts = st.lists(pieces, max_size=7).map("".join)


@st.composite
def cases(draw: Any) -> tuple[str, list[tuple[int, int]], list[tuple[int, int]]]:
    """A text, spans of a policy in any order, and turns in order, none of which overlap."""
    text = draw(texts)
    place = st.integers(0, len(text))
    spans = draw(
        st.lists(st.tuples(place, place).map(lambda pair: tuple(sorted(pair))), max_size=3)
    )
    edges = sorted(draw(st.lists(place, max_size=3).map(lambda some: some + some[::-1])))
    edges = sorted(draw(st.lists(place, max_size=4).filter(lambda some: len(some) % 2 == 0)))
    return text, spans, list(zip(edges[::2], edges[1::2], strict=True))


def slow(
    text: str, spans: list[tuple[int, int]], turns: list[tuple[int, int]], merge: bool
) -> tuple[str, np.ndarray]:
    """Redacted text with whether each of its characters is in a turn, character by character."""
    secret = np.zeros(len(text), bool)
    for start, end in [*spans, *(match.span() for match in re.finditer(MASK, text))]:
        secret[start:end] = True
    inside = np.zeros(len(text), bool)
    for start, end in turns:
        inside[start:end] = True
    shown: list[str] = []
    marks: list[bool] = []
    place = 0
    while place < len(text):
        stop = place + 1
        if secret[place]:
            while stop < len(text) and secret[stop]:
                stop += 1
            shown += MASK
            marks += [bool(inside[place:stop].any())] * len(MASK)
        else:
            shown.append(text[place])
            marks.append(bool(inside[place]))
        place = stop
    redacted = "".join(shown)
    found = np.array(marks, bool)
    if not merge:
        return redacted, found
    parts = []
    kept = []
    last = 0
    for match in re.finditer(rf"{MASK}(?:\s*{MASK})+", redacted):
        parts += [redacted[last : match.start()], MASK]
        kept += [found[last : match.start()], np.full(6, found[slice(*match.span())].any())]
        last = match.end()
    return "".join([*parts, redacted[last:]]), np.concatenate([*kept, found[last:]])


@given(cases(), st.booleans())
@settings(max_examples=120)
def test_turns_move_with_the_text(case: Any, merge: bool) -> None:
    text, spans, turns = case
    redacted, marks = slow(text, spans, turns, merge)
    shown = redacted_text(text, spans)
    found = moved(turns, hidden(text, spans))
    if merge:
        found, shown = merged_ranges(shown, found), merged_masks(shown)
    assert shown == redacted
    inside = np.zeros(len(shown), bool)
    for start, end in found:
        inside[start:end] = True
    assert (inside == marks).all()


def files(folder: Path, points: list[dict[str, Any]], spans: list[Any], copies: list[int]) -> Any:
    write_jsonl(folder / "points", points)
    later = [{"key": points[index]["key"]} for index in copies]
    beside.write(folder / "copies", later, folder / "points")
    beside.write(folder / "spans", spans, folder / "points")
    save(TOKENIZER, folder / "tokenizer")
    names = ("points", "copies", "spans", "tokenizer", "original", "redacted")
    return {name: folder / name for name in names}


def point(key: str, text: str, **more: Any) -> dict[str, Any]:
    own = {"key": key, "text": text, "split": "train", "domain": None, "owner": None, "gold": []}
    return own | more


def parted(folder: Path, points: Any, spans: Any = (), copies: Any = (), **spec: Any) -> Partition:
    given = files(folder, points, list(spans), list(copies))
    partition(PartitionSpec(learn="assistant", **spec), **given, policies="")
    return load_partition(given["original"], given["redacted"])


def naive(text: str, inside: np.ndarray) -> list[bool]:
    """Which tokens of a text have a character inside, by the backend's offsets."""
    ((_, offsets),) = TOKENIZER.encode_batch([text])
    return [bool(inside[start:end].any()) for start, end in offsets]


@given(st.lists(cases(), max_size=4), st.booleans())
@settings(max_examples=25)
def test_marks_of_tokens(tmp_path_factory: Any, given_cases: Any, merge: bool) -> None:
    points = [
        point(f"d:{index}", text, answers=turns)
        for index, (text, _, turns) in enumerate(given_cases)
    ]
    spans = [
        {"key": f"d:{index}", "spans": [[*span, "x", 1.0] for span in found], "conservative": True}
        for index, (_, found, _) in enumerate(given_cases)
    ]
    made = parted(tmp_path_factory.mktemp("p"), points, spans, merge_masks=merge)
    for index, (text, found, turns) in enumerate(given_cases):
        inside = np.zeros(len(text), bool)
        for start, end in turns:
            inside[start:end] = True
        assert made.original.scored(index)[:-1].tolist() == naive(text, inside)
        redacted, marks = slow(text, found, turns, merge)
        assert made.redacted.scored(index)[:-1].tolist() == naive(redacted, marks)


def test_ends_copies_and_what_audits_plant(tmp_path: Path) -> None:
    text = "call me<|end|> ok<|end|>"
    points = [
        point("d:0", text, answers=[[14, 24]]),
        point("e:0", text, answers=[[14, 24]]),
        point("f:0", "ok<|end|>", answers=[[0, 9]]),
        point("g:0", "ok", answers=[]),
        point("canary-0-0:0", "call 12"),
    ]
    made = parted(tmp_path, points, copies=[1], scope="all")
    view = made.original
    said = [TOKENIZER.decode(view[index][view.scored(index)[:-1]]) for index in range(5)]
    assert said == [" ok<|end|>", "", "ok<|end|>", "", "call 12"]
    assert view[1].tolist() == [TOKENIZER.mask_id]
    assert [bool(view.scored(index)[-1]) for index in range(5)] == [False, False, True, False, True]


@pytest.mark.parametrize(
    ("answers", "message"),
    [({}, "says nothing of an assistant"), ({"answers": [[0, 9]]}, "reaches beyond the text")],
)
def test_points_without_their_turns_are_refused(
    answers: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        parted(tmp_path, [point("d:0", "ok", **answers)])


def test_all_tokens_are_learned_unless_asked(tmp_path: Path) -> None:
    given = files(tmp_path, [point("d:0", "ok", answers=[[0, 1]])], [], [])
    partition(PartitionSpec(), **given, policies="")
    made = load_partition(given["original"], given["redacted"])
    assert made.original.learned is None and made.redacted.learned is None
    assert made.original.scored(0).all()


REDACT = RedactSpec(
    policy={"kind": "regex", "patterns": {"code": r"(?=[0-9])\b\d{3}\b"}},
    conservative={"kind": "regex", "patterns": {"digit": r"\d"}},
)


@given(cases(), st.sampled_from(["345", "678"]), st.integers(0, 40), st.booleans())
@settings(max_examples=60)
def test_a_secret_that_is_caught_leaves_no_trace_in_what_is_learned(
    case: Any, secret: str, place: int, merge: bool
) -> None:
    text, _, turns = case
    place = min(place, len(text))
    before = text[:place]
    after = text[place:]
    if re.search(r"\w$", before) or re.match(r"\w", after) or "<" in before[-6:] + after[:6]:
        return
    shift = len(secret) + 2

    def past(edge: int) -> int:
        return edge + (shift if edge > place else 0)

    whole = f"{before} {secret} {after}"
    answers = [(past(start), past(end)) for start, end in turns]
    found = Secret("d:0", whole, place + 1, place + 1 + len(secret), "code")
    points = [
        Raw("d:0", whole, "train", None, None, [], answers),
        Raw("e:0", whole, "train", None, None, [], answers),
    ]
    spec = PartitionSpec(learn="assistant", merge_masks=merge)
    process = process_of(finder_of(REDACT), spec, TOKENIZER)
    first = process(points).redacted
    second = process(neighbour(points, found, copies_masked=True)).redacted
    for name in ("ids", "starts", "private", "learned"):
        assert np.array_equal(getattr(first, name), getattr(second, name)), name


def test_conversations_of_one_text_and_other_turns_are_no_copies(tmp_path: Path) -> None:
    """As where a user writes what a template writes before an answer.

    A later one would be read in the place of the first, and learned elsewhere: replacing one record
    would change two.
    """
    text = "call me at 12"
    turns = ([(0, 4)], [(5, 13)], [(0, 4)])
    points = [
        Raw(f"d:{place}", text, "train", None, None, [[11, 13, "x", 1.0]], answers)
        for place, answers in enumerate(turns)
    ]
    write_jsonl(tmp_path / "points", (point._asdict() for point in points))
    dedup(DedupSpec(), points=tmp_path / "points", output=tmp_path / "copies")
    assert [row["key"] for row in beside.read(tmp_path / "copies")] == ["d:2"]
    redact(REDACT, points=tmp_path / "points", output=tmp_path / "spans")
    recalled = RecallSpec(text=TEXT, redact=REDACT, reads=[])
    recall(
        recalled,
        points=tmp_path / "points",
        spans=tmp_path / "spans",
        output=tmp_path / "recall",
    )
    counted = read_json(tmp_path / "recall")
    assert (counted["multiplicity"], counted["multiplicity_distinct"]) == (3, 2)
    process = process_of(finder_of(REDACT), PartitionSpec(learn="assistant"), TOKENIZER)
    secrets = list(secrets_of(points))
    alike = {text: list(enumerate(points)), secrets[0].masked: []}
    tester = core.Tester(process, alike, dedup=True)
    assert [tester.test(secret)[0].points for secret in secrets] == [1, 1, 1]
