"""Canaries: as many as asked, where asked, and never the controls."""

from collections import Counter

import numpy as np
import pytest
from scipy.stats import kstest

from confide.errors import InputError
from confide.io import read_json, read_jsonl, write_jsonl
from confide.specs import CanarySpec
from confide.stages.plant import draw_secrets, parse_template, plant


def write_points(folder, splits):
    rows = [
        {"key": f"d{n}:0", "text": f"text é {n}", "doc": f"d{n}", "split": name, "domain": None, "owner": "o",
         "gold": [[0, 4, "x", 1.0]], "canary": None}
        for n, name in enumerate(splits)
    ]  # fmt: skip
    write_jsonl(folder / "points.jsonl", rows)
    return rows


def run(folder, **options):
    plant(
        CanarySpec(**options),
        points=folder / "points.jsonl",
        output=folder / "planted.jsonl",
        canaries=folder / "canaries.json",
    )
    return list(read_jsonl(folder / "planted.jsonl")), read_json(folder / "canaries.json")


def test_counts_text_spans_and_keys(tmp_path):
    rows = write_points(tmp_path, ["train"] * 30 + ["valid"] * 5 + ["test"] * 5)
    found, facts = run(tmp_path, template="The PIN {4} is mine.", count=3, copies=7, controls=4, label="pin")
    planted = [row for row in found if row["canary"] is not None]
    assert Counter(row["canary"] for row in planted) == {0: 7, 1: 7, 2: 7}
    assert len({row["key"] for row in found}) == len(found) == 40 + 21
    assert "canary-2-6:0" in {row["key"] for row in planted}
    for row in planted:
        ((start, end, label, score),) = row["gold"]
        assert row["text"][start:end] == facts["secrets"][row["canary"]] and (label, score) == ("pin", 1.0)
        assert row["text"] == f"The PIN {row['text'][start:end]} is mine." and row["split"] == "train"
        assert set(row) == set(rows[0])
    assert [row for row in found if row["canary"] is None] == rows
    assert facts == {"prefix": "The PIN ", "suffix": " is mine.", "digits": 4, "copies": 7, "label": "pin"} | {
        key: facts[key] for key in ("secrets", "controls")
    }
    numbers = facts["secrets"] + facts["controls"]
    assert len(set(numbers)) == len(numbers) == 7 and all(len(n) == 4 and n.isdigit() for n in numbers)
    assert not any(control in row["text"] for control in facts["controls"] for row in found)


def test_default_spec_is_the_papers(tmp_path):
    write_points(tmp_path, ["train"])
    found, facts = run(tmp_path)
    assert len(found) == 201 and facts["prefix"] == "My ID is: " and facts["suffix"] == "" and facts["digits"] == 6


def test_canaries_stay_within_the_training_points_of_any_order(tmp_path):
    rows = write_points(tmp_path, ["valid", "train", "test", "train", "valid", "test"])
    found, _ = run(tmp_path, count=4, copies=5)
    assert [row for row in found if row["canary"] is None] == rows
    position = [n for n, row in enumerate(found) if row["canary"] is not None]
    assert len(position) == 20 and position[0] >= 1
    assert [row["key"] for row in found][-2:] == ["d4:0", "d5:0"]


def test_places_are_uniform_and_seeded(tmp_path):
    write_points(tmp_path, ["train"] * 2000)
    found, _ = run(tmp_path, count=5, copies=60)
    places = {index: [n / len(found) for n, row in enumerate(found) if row["canary"] == index] for index in range(5)}
    assert all(kstest(place, "uniform").pvalue > 1e-3 for place in places.values())
    assert run(tmp_path, count=5, copies=60)[0] == found
    assert run(tmp_path, count=5, copies=60, seed=1)[0] != found


def test_no_canaries_leaves_the_points_as_they_are(tmp_path):
    write_points(tmp_path, ["train", "valid"])
    _, facts = run(tmp_path, count=0, controls=2)
    assert (tmp_path / "planted.jsonl").read_bytes() == (tmp_path / "points.jsonl").read_bytes()
    assert facts["secrets"] == [] and len(facts["controls"]) == 2


@pytest.mark.parametrize("template", ["My ID is", "{6} and {6}", "{}", "{six}", "{0}", "{19}", "{-3}"])
def test_bad_template_names_its_key(template):
    with pytest.raises(InputError, match="template = "):
        parse_template(template)


def test_template_may_hold_other_braces():
    assert parse_template("{a} {2}}") == ("{a} ", 2, "}")


def test_secrets_may_use_up_the_space_but_not_more():
    rng = np.random.default_rng(0)
    assert sorted(draw_secrets(rng, 2, 100)) == [f"{n:02d}" for n in range(100)]
    with pytest.raises(InputError, match=r"count \+ controls = 101"):
        draw_secrets(rng, 2, 101)
    assert len(set(draw_secrets(rng, 18, 50))) == 50


def test_second_planting_and_clashing_names_are_refused(tmp_path):
    write_points(tmp_path, ["train"])
    run(tmp_path)
    (tmp_path / "planted.jsonl").rename(tmp_path / "points.jsonl")
    with pytest.raises(InputError, match="planted canary"):
        run(tmp_path)
    assert not (tmp_path / "planted.jsonl").exists()


def test_without_training_points_nothing_is_written(tmp_path):
    write_points(tmp_path, ["valid", "test"])
    with pytest.raises(InputError, match="no training points"):
        run(tmp_path)
    assert not (tmp_path / "planted.jsonl").exists() and not (tmp_path / "canaries.json").exists()


def test_wrong_points_file_is_refused(tmp_path):
    write_jsonl(tmp_path / "points.jsonl", [{"path": "x"}])
    with pytest.raises(InputError, match="missing field"):
        run(tmp_path)
