"""Values of public text in place of masks: what is remembered of them, and which one is drawn."""

import inspect
import json
import re
from collections import Counter
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.errors import InputError
from confide.policies.spans import adjoined
from confide.provenance.terms import digest_of_specs
from confide.specs import FoundValuesSpec, RedactSpec
from confide.stages.found_values import found_values
from confide.stages.redact import redact
from confide.text.found_values import LEAST, FoundValue, FoundValues, around, found_in
from confide.types import MASK

REDACT = RedactSpec(
    policy={"kind": "regex", "patterns": {"number": r"\d+"}},
    conservative={"kind": "everything"},
)
YEARS = [FoundValue("in", str(year), ",") for year in range(1900, 1900 + LEAST)]
AGES = [FoundValue("in", str(age), "days") for age in range(LEAST)]
OTHERS = [FoundValue("at", "noon", ""), FoundValue("at", "nine", "")]
VALUES = FoundValues([*YEARS, *AGES, *OTHERS])


def test_a_value_is_remembered_with_the_words_around_it() -> None:
    text = "In 1912, at 9 10 o'clock: 7"
    ranges = [(3, 7), (12, 13), (14, 16), (26, 27)]
    assert [tuple(found) for found in found_in(text, ranges)] == [
        ("in", "1912", ","),
        ("at", "9", MASK),
        (MASK, "10", "o"),
        (":", "7", ""),
    ]
    assert list(found_in(f"at {MASK} 9", [(3, 9), (10, 11)])) == [FoundValue(MASK, "9", "")]


def test_a_mask_gets_a_value_from_between_the_same_words_or_behind_the_same_one_or_any() -> None:
    assert set(VALUES.like("in", ",")) == {found.value for found in YEARS}
    assert set(VALUES.like("in", "days")) == {found.value for found in AGES}
    assert set(VALUES.like("in", "years")) == {found.value for found in YEARS + AGES}
    # of "at" there are too few
    for words in (("at", ""), ("of", ",")):
        assert set(VALUES.like(*words)) == {found.value for found in YEARS + AGES + OTHERS}


def test_values_are_drawn_as_often_as_they_stand_there() -> None:
    values = FoundValues([*YEARS, *YEARS[:1] * LEAST])
    drawn = Counter(values.fill(f"In {MASK}, ok", 0, f"d:{number}") for number in range(4_000))
    shares = {text: count / drawn.total() for text, count in drawn.items()}
    assert len(shares) == LEAST
    assert shares.pop("In 1900, ok") == pytest.approx((1 + LEAST) / (2 * LEAST), abs=0.04)
    assert all(share == pytest.approx(1 / (2 * LEAST), abs=0.03) for share in shares.values())


@given(st.lists(st.sampled_from(["in ", "12", "at", ", ", MASK, " days"]), max_size=8))
def test_masks_alone_are_filled_and_nothing_else_is_asked(parts: list[str]) -> None:
    text = "".join(parts)
    any_value = "|".join(map(re.escape, VALUES.all))
    pattern = f"(?:{any_value})".join(map(re.escape, text.split(MASK)))
    assert re.fullmatch(pattern, VALUES.fill(text, 0, "d:1"))
    assert list(inspect.signature(VALUES.fill).parameters) == ["text", "seed", "named"]


def test_other_masks_texts_and_seeds_draw_for_themselves() -> None:
    text = f"in {MASK} or in {MASK}"
    filled = {VALUES.fill(text, seed, f"d:{number}") for seed in range(3) for number in range(20)}
    assert len(filled) > 20
    first = [words.split()[1] == words.split()[-1] for words in filled]
    assert not all(first) and any(first)


def test_words_around_gaps() -> None:
    assert list(around(["Call ", " and ", "", " ."])) == [
        ("call", "and"),
        ("and", MASK),
        (MASK, "."),
    ]
    assert list(around(["", ""])) == [("", "")]


def listed(folder: Path, rows: list[dict], *, merge_masks: bool = False) -> list[list[str]]:
    """What the stage writes of some points."""
    points, spans, output = (folder / name for name in ("points", "spans", "values"))
    points.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    redact(REDACT, points=points, output=spans)
    spec = FoundValuesSpec(merge_masks=merge_masks)
    files = {"points": points, "spans": spans, "output": output}
    found_values(spec, **files, policies=digest_of_specs(REDACT))
    return json.loads(output.read_text())


def point(key: str, text: str, split: str = "train") -> dict:
    fields = {"doc": "d", "domain": None, "owner": None, "gold": [], "canary": None}
    return {"key": key, "text": text, "split": split, **fields}


def test_the_stage_lists_what_the_policy_finds_in_the_train_split_and_nothing_planted(
    tmp_path: Path,
) -> None:
    rows = [
        point("d:0", "in 1912 3"),
        point("d:1", "in 1999", "test"),
        point("canary-0-0:0", "my code is 77"),
        point("d:2", "none"),
        point("d:3", "at 5"),
    ]
    apart = listed(tmp_path, rows)
    assert apart == [["in", "1912", MASK], [MASK, "3", ""], ["at", "5", ""]]
    assert listed(tmp_path, rows, merge_masks=True) == [["in", "1912 3", ""], ["at", "5", ""]]
    assert FoundValues.load(tmp_path / "values").all == ["1912 3", "5"]


def test_values_of_another_policy_or_none_at_all_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the policy finds nothing in the train split"):
        listed(tmp_path, [point("d:0", "none"), point("d:1", "5", "valid")])
    files = {"points": tmp_path / "points", "spans": tmp_path / "spans"}
    with pytest.raises(InputError, match="by other settings|spans"):
        found_values(FoundValuesSpec(), **files, policies="f" * 64, output=tmp_path / "values")
    assert not (tmp_path / "values").exists()


@pytest.mark.parametrize("text", ["{}", "[1]", '[["a", "b"]]', '[["a", 1, "b"]]', "[]"])
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "values").write_text(text)
    with pytest.raises(InputError, match=r"values: (expected a list|holds no value)"):
        FoundValues.load(tmp_path / "values")


def test_ranges_with_white_space_between_them_are_one() -> None:
    assert adjoined("1 2, 3\n4", [(0, 1), (2, 3), (5, 6), (7, 8)]) == [(0, 3), (5, 8)]
    assert adjoined("", []) == []
