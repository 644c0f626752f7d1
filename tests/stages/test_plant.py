"""Canaries: as many as asked, where asked, and never the controls."""

import hashlib
from collections import Counter

import numpy as np
import pytest
from scipy.stats import kstest

from confide.errors import InputError
from confide.files import shards
from confide.files.io import read_json, sha256, write_jsonl
from confide.specs import CanarySpec
from confide.stages import plant as plant_stage
from confide.stages.plant import draw_audits, draw_secrets, of_digits, plant
from confide.text.canary_templates import BadTemplate, parse_template
from confide.types import MASK
from tests.points import read_points, whole_lines


def write_points(folder, splits):
    rows = [
        {
            "key": f"d{n}:0",
            "text": f"text é {n}",
            "doc": f"d{n}",
            "split": name,
            "domain": None,
            "owner": "o",
            "gold": [[0, 4, "x", 1.0]],
            "canary": None,
        }
        for n, name in enumerate(splits)
    ]
    write_jsonl(folder / "points.jsonl", rows)
    return rows


def run(folder, threads=1, **options):
    plant(
        CanarySpec(**options),
        threads=threads,
        points=folder / "points.jsonl",
        output=folder / "planted.jsonl",
        canaries=folder / "canaries.json",
    )
    return read_points(folder / "planted.jsonl"), read_json(folder / "canaries.json")


def test_counts_text_spans_and_keys(tmp_path):
    rows = write_points(tmp_path, ["train"] * 30 + ["valid"] * 5 + ["test"] * 5)
    found, facts = run(
        tmp_path, template="The PIN {4} is mine.", count=3, copies=7, controls=4, label="pin"
    )
    planted = [row for row in found if row["canary"] is not None]
    assert Counter(row["canary"] for row in planted) == {0: 7, 1: 7, 2: 7}
    assert len({row["key"] for row in found}) == len(found) == 40 + 21
    assert "canary-2-6:0" in {row["key"] for row in planted}
    for row in planted:
        ((start, end, label, score),) = row["gold"]
        assert row["text"][start:end] == facts["secrets"][row["canary"]] and (label, score) == (
            "pin",
            1.0,
        )
        assert (
            row["text"] == f"The PIN {row['text'][start:end]} is mine." and row["split"] == "train"
        )
        assert set(row) == set(rows[0])
    assert [row for row in found if row["canary"] is None] == rows
    assert facts == {
        "prefix": "The PIN ",
        "suffix": " is mine.",
        "digits": 4,
        "copies": 7,
        "label": "pin",
    } | {key: facts[key] for key in ("secrets", "controls")}
    numbers = facts["secrets"] + facts["controls"]
    assert len(set(numbers)) == len(numbers) == 7 and all(
        len(n) == 4 and n.isdigit() for n in numbers
    )
    assert not any(control in row["text"] for control in facts["controls"] for row in found)


def test_default_spec_is_the_papers(tmp_path):
    write_points(tmp_path, ["train"])
    found, facts = run(tmp_path)
    assert (
        len(found) == 201
        and facts["prefix"] == "My ID is: "
        and facts["suffix"] == ""
        and facts["digits"] == 6
    )


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
    places = {
        index: [n / len(found) for n, row in enumerate(found) if row["canary"] == index]
        for index in range(5)
    }
    assert all(kstest(place, "uniform").pvalue > 1e-3 for place in places.values())
    assert run(tmp_path, count=5, copies=60)[0] == found
    assert run(tmp_path, count=5, copies=60, seed=1)[0] != found


def test_no_canaries_leaves_the_points_as_they_are(tmp_path):
    write_points(tmp_path, ["train", "valid"])
    _, facts = run(tmp_path, count=0, controls=2)
    assert (tmp_path / "planted.jsonl").read_bytes() == (tmp_path / "points.jsonl").read_bytes()
    assert facts["secrets"] == [] and len(facts["controls"]) == 2


@pytest.mark.parametrize(
    "template", ["My ID is", "{6} and {6}", "{}", "{six}", "{0}", "{19}", "{-3}"]
)
def test_bad_template_names_its_key(template):
    with pytest.raises(BadTemplate, match="exactly one slot|between 1 and 18"):
        parse_template(template)
    with pytest.raises(InputError, match="template = "):
        of_digits(CanarySpec(template=template), np.random.default_rng(0))


def test_template_may_hold_other_braces():
    assert parse_template("{a} {2}}") == ("{a} ", 2, "}")


def test_secrets_may_use_up_the_space_but_not_more():
    rng = np.random.default_rng(0)
    assert sorted(draw_secrets(rng, 2, 100)) == [f"{n:02d}" for n in range(100)]
    with pytest.raises(InputError, match=r"count \+ controls = 101"):
        draw_secrets(rng, 2, 101)
    assert len(set(draw_secrets(rng, 18, 50))) == 50


def test_too_many_audit_canaries_are_named_as_such():
    """And not by the number of the other canaries."""
    few = CanarySpec(template="My ID is: {6}", game={"template": "Box {1}.", "count": 12})
    with pytest.raises(InputError, match=r"game\.count \+ other canaries .* = 12: more than"):
        draw_audits(few, taken=["123456"], tokenizer=None)


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


AUDITS = {
    "game": {"template": "The access code is {4}.", "count": 60},
    "inclusion": {"template": "The order code was {4}", "count": 40},
}
NAMES = tuple(AUDITS)


def planted_audits(found, name):
    return {
        int(row["doc"].split("-")[2]): row
        for row in found
        if row["doc"].startswith(f"audit-{name}-")
    }


def test_a_coin_masks_a_secret_of_the_game_and_leaves_one_of_the_inclusion_out(tmp_path):
    rows = write_points(tmp_path, ["train"] * 100 + ["test"] * 9)
    found, facts = run(tmp_path, count=2, copies=3, **AUDITS)
    game = facts["audits"]["game"]
    inclusion = facts["audits"]["inclusion"]
    assert (game["prefix"], game["digits"], game["suffix"]) == ("The access code is ", 4, ".")
    sentences = planted_audits(found, "game")
    assert sorted(sentences) == list(range(60))  # every sentence is there, whatever its coin
    for index, (secret, coin) in enumerate(zip(game["secrets"], game["coins"], strict=True)):
        row = sentences[index]
        shown = secret if coin else MASK
        assert (
            row["text"] == f"The access code is {shown}."
            and row["canary"] is None
            and row["split"] == "train"
        )
        assert [row["text"][start:end] for start, end, *_ in row["gold"]] == (
            [secret] if coin else []
        )
        assert set(row) == set(rows[0])
    sentences = planted_audits(found, "inclusion")
    assert sorted(sentences) == [index for index, coin in enumerate(inclusion["coins"]) if coin]
    assert all(
        row["text"] == f"The order code was {inclusion['secrets'][index]}"
        for index, row in sentences.items()
    )
    assert len(found) == 109 + 6 + 60 + sum(inclusion["coins"]) and len(
        {row["key"] for row in found}
    ) == len(found)
    outside = [row for row in found if row["canary"] is None and not row["doc"].startswith("audit")]
    assert outside == rows
    everything = "".join(row["text"] for row in found)
    for audit in (game, inclusion):
        assert [secret in everything for secret in audit["secrets"]] == audit["coins"]


def test_without_audits_the_files_are_what_they_were_before_there_were_any(tmp_path):
    write_points(tmp_path, ["train"] * 50 + ["test"] * 5)
    run(tmp_path, count=3, copies=4)
    planted = hashlib.sha256(whole_lines(tmp_path / "planted.jsonl")).hexdigest()
    assert planted.startswith("3d375fc6a91538c5")
    assert sha256(tmp_path / "canaries.json").startswith("8fdce79afc2468fc")


def test_all_secrets_differ_even_where_the_space_is_used_up(tmp_path):
    write_points(tmp_path, ["train"])
    sets = {name: {"template": f"{name} {{2}}", "count": 40} for name in NAMES}
    _, facts = run(tmp_path, template="id {2}", count=10, copies=1, controls=10, **sets)
    secrets = (
        facts["secrets"]
        + facts["controls"]
        + [secret for name in NAMES for secret in facts["audits"][name]["secrets"]]
    )
    assert sorted(secrets) == [f"{number:02d}" for number in range(100)]
    with pytest.raises(InputError, match=r"10\^2"):
        run(tmp_path, template="id {2}", count=11, copies=1, controls=10, **sets)


def test_coins_are_fair_seeded_and_apart_from_everything_else(tmp_path):
    write_points(tmp_path, ["train"])
    big = {name: AUDITS[name] | {"count": 2000} for name in NAMES}
    _, facts = run(tmp_path, **big)
    coins = np.array([facts["audits"][name]["coins"] for name in NAMES])
    assert (np.abs(coins.mean(1) - 0.5) < 4 * 0.5 / 2000**0.5).all() and abs(
        np.corrcoef(coins)[0, 1]
    ) < 4 / 2000**0.5
    assert run(tmp_path, **big)[1] == facts
    other = run(tmp_path, game=big["game"] | {"seed": 1}, inclusion=big["inclusion"])[1]
    assert other["audits"]["game"]["coins"] != facts["audits"]["game"]["coins"]
    _, plain = run(tmp_path)
    assert (
        plain["secrets"] == facts["secrets"]
        and plain["controls"] == facts["controls"]
        and "audits" not in plain
    )


@pytest.mark.parametrize("name", NAMES)
def test_turning_one_coin_changes_one_line(tmp_path, monkeypatch, name):
    """What the bounds on epsilon rest on: coins decide about their own record and nothing else."""
    write_points(tmp_path, ["train"] * 30)
    before, _ = run(tmp_path, count=2, copies=2, **AUDITS)
    draw = plant_stage.draw_audits

    def turned(*arguments):
        audits = draw(*arguments)
        audits[name]["coins"][7] ^= True
        return audits

    monkeypatch.setattr(plant_stage, "draw_audits", turned)
    after, _ = run(tmp_path, count=2, copies=2, **AUDITS)
    key = f"audit-{name}-7:0"
    assert [row for row in before if row["key"] != key] == [
        row for row in after if row["key"] != key
    ] and before != after
    assert len(before) - len(after) == (
        0 if name == "game" else 1 if key in {row["key"] for row in before} else -1
    )


def test_audits_are_not_planted_twice(tmp_path):
    write_points(tmp_path, ["train"])
    run(tmp_path, count=0, **AUDITS)
    (tmp_path / "planted.jsonl").rename(tmp_path / "points.jsonl")
    with pytest.raises(InputError, match="planted canary"):
        run(tmp_path)


@pytest.mark.parametrize("threads", [1, 3])
def test_neither_shards_nor_processes_show(tmp_path, monkeypatch, threads):
    write_points(tmp_path, ["train"] * 30 + ["valid"] * 5 + ["train"] * 9 + ["test"] * 5)
    whole = run(tmp_path, count=3, copies=4)
    monkeypatch.setattr(shards, "SIZE", 300)
    assert run(tmp_path, threads, count=3, copies=4) == whole
    assert len(whole[0]) == 49 + 12
