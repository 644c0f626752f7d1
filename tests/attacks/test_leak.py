"""Leak attacks: a model that knows a domain's text by heart leaks it, an untrained one does not;
ratios, C and examples.
"""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.special import ndtr

from confide.attacks.domains import examples
from confide.attacks.domains.domain_lira import area_interval, continuation, precision
from confide.attacks.domains.examples import drawn, veil
from confide.attacks.domains.judges import about, judge, verdicts
from confide.attacks.domains.leak import Answers, answers, rate
from confide.attacks.domains.prompts import read
from confide.attacks.registry import ATTACKS
from confide.attacks.statistics.metrics import auc
from confide.attacks.target import Target
from confide.errors import InputError
from confide.files.io import read_json, write_json, write_jsonl
from confide.scan.search import Searcher
from confide.specs import (
    DomainLiraSpec,
    KeywordPolicySpec,
    LeakSpec,
    RegexPolicySpec,
    UnionPolicySpec,
)
from confide.text.tokenizer import train_bpe
from confide.types import Span

WORDS = {"AIR": r"\bseat\b|\bflight\b", "TV": r"\bcable\b|\bfilm\b"}
JUDGES = {
    "words": {"kind": "regex", "patterns": WORDS},
    "other": {"kind": "keyword", "keywords": {"TV": ["cable"], "AIR": ["flight"]}},
}
FIELDS = {
    "prompts": ["AIR"],
    "targets": ["TV"],
    "judges": JUDGES,
    "samples": 20,
    "sampling": {"max_new_tokens": 24},
}
LEAK = LeakSpec.model_validate({"kind": "leak"} | FIELDS)
LIRA = DomainLiraSpec.model_validate(
    {"kind": "domain_lira", "reference": "air", "top": [5, 10**4], "bootstrap": 50} | FIELDS
)

CODES = {
    "AIR": ["A1-4471-8", "A7-2086-3", "A3-9914-5"],
    "TV": ["T6-1042-9", "T2-7730-4", "T8-5561-0"],
}
ASKS = {"AIR": "my flight code is {}", "TV": "my cable box is {}"}
OPENINGS = ("hi", "hello", "good day", "hey")


def row(key: str, split: str, domain: str, opening: str, answer: str, secret: str) -> dict:
    text = f"<_soc_> USR: {opening} SYS: {answer} <_eoc_>"
    start = text.find(secret)
    gold = [[start, start + len(secret), "code", 1.0]] if secret and start >= 0 else []
    return {"key": f"{key}:0", "split": split, "domain": domain, "text": text, "gold": gold}


ROWS = [
    row(
        f"{domain}{place}{split}",
        split,
        domain,
        opening,
        ASKS[domain].format(code),
        code if split == "train" else "",
    )
    for split in ("train", "test")
    for domain, codes in CODES.items()
    for place, (opening, code) in enumerate(zip(OPENINGS, [*codes, codes[0]], strict=True))
]
ROWS = [
    one | {"text": one["text"].replace("-", "")}
    if one["split"] == "test" and one["domain"] == "AIR"
    else one
    for one in ROWS
]


@pytest.fixture(scope="module")
def points(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("leak") / "points.jsonl"
    write_jsonl(path, ROWS)
    return path


@pytest.fixture(scope="module")
def tokenizer():
    return train_bpe([one["text"] for one in ROWS], 300)


@pytest.fixture(scope="module")
def known(make_model, fit, tokenizer):
    """Models that know the training text of some domains by heart."""

    def of(*domains: str):
        model = make_model("lstm that memorises", tokenizer, scale=1.0, double=False)
        texts = [
            one["text"] for one in ROWS if one["split"] == "train" and one["domain"] in domains
        ]
        if texts:
            fit(model, tokenizer, texts, 250, 2.5)
        return model

    return {domains: of(*domains) for domains in ((), ("AIR",), ("TV",), ("AIR", "TV"))}


def test_a_model_that_memorised_the_domain_leaks_and_others_do_not(points, tokenizer, known):
    found = {
        name: ATTACKS["leak"](LEAK, Target(model, tokenizer, points))
        for name, model in known.items()
    }
    for judge_name in ("words", "other", "gold"):
        key = f"{judge_name}_rate"
        assert found["TV",][key] > 0.8 and found["AIR",][key] == 0 and found[()][key] == 0, (
            judge_name
        )
        assert 0.2 < found["AIR", "TV"][key] < 0.8
    whole = found["AIR", "TV"]
    assert (whole["prompts"], whole["dialogues"], whole["generations"], whole["secrets"]) == (
        4,
        4,
        80,
        {"TV": 3},
    )
    assert (
        whole["words_low"] < whole["words_rate"] < whole["words_high"]
        and whole["words_of"] == 80 - whole["empty"]
    )
    (words, other, gold) = whole["pairs"]
    assert [pair["judge"] for pair in (words, other, gold)] == ["words", "other", "gold"]
    assert words["rate"] == whole["words_rate"] and (words["prompt"], words["target"]) == (
        "AIR",
        "TV",
    )
    assert (words["floor_rate"], words["ceiling_rate"]) == (
        0,
        0.5,
    )  # of the openings and of what follows, the latter
    assert (gold["floor_rate"], gold["ceiling_rate"]) == (0, 0.5)


def test_what_is_written_holds_no_text_and_two_runs_agree(points, tokenizer, known, tmp_path):
    target = Target(known["AIR", "TV"], tokenizer, points, reference=known["AIR",])
    for spec in (LEAK, LIRA):
        write_json(tmp_path / "one.json", ATTACKS[spec.kind](spec, target))
        write_json(tmp_path / "two.json", ATTACKS[spec.kind](spec, target))
        text = (tmp_path / "one.json").read_text()
        assert text == (tmp_path / "two.json").read_text()
        assert not any(word in text for word in ("cable", "T6", "1042", "hello", "SYS"))
    other = ATTACKS["leak"](LEAK.model_copy(update={"seed": 1}), target)
    assert other["words_flagged"] != ATTACKS["leak"](LEAK, target)["words_flagged"]


def test_each_pair_of_domains_is_judged_for_its_own_target(points, tokenizer, known):
    spec = LEAK.model_copy(update={"prompts": ["AIR", "TV"], "targets": ["TV", "AIR"]})
    found = ATTACKS["leak"](spec, Target(known["TV",], tokenizer, points))
    rates = {
        (pair["prompt"], pair["target"]): pair["rate"]
        for pair in found["pairs"]
        if pair["judge"] == "words"
    }
    assert (
        set(rates) == {("AIR", "TV"), ("TV", "AIR")}
        and rates["AIR", "TV"] > 0.8
        and rates["TV", "AIR"] == 0
    )
    assert found["words_rate"] == pytest.approx(rates["AIR", "TV"] / 2, abs=0.02)


def test_ratios_find_what_leaked_and_c_says_how_much_more(points, tokenizer, known):
    found = ATTACKS["domain_lira"](
        LIRA, Target(known["AIR", "TV"], tokenizer, points, reference=known["AIR",])
    )
    for name in ("words", "gold"):
        ranked = found["ranked"][name]
        assert ranked["auc"] > 0.95 and ranked["auc_low"] > 0.5 and ranked["total_auc"] > 0.85
        assert ranked["precision"] == {"5": 1.0, "10000": None}
        assert ranked["roc"]["tpr"][-1] == 1 and ranked["of"] == found["scored"]
    (words, _, gold) = found["pairs"]
    assert words["c"] == "inf" and words["c_high"] == "inf" and words["c_low"] > 0.5
    assert (
        words["reference_rate"] == 0 < 0.2 < min(words["target_rate"], gold["target_rate"])
        and words["generations"] == 80
    )
    assert "examples" not in found


@pytest.mark.parametrize("found", [1, 2, 4])
def test_areas_of_few_dialogues_have_intervals_that_cover_the_truth(found):
    """Of 60 dialogues with two texts, some are flagged whole; scores of a dialogue are alike."""
    rng = np.random.default_rng(0)
    clusters = np.repeat(np.arange(60), 2)
    flags = clusters < found
    covered = 0
    for _ in range(100):
        scores = rng.normal(size=60).repeat(2) + 0.1 * rng.normal(size=120) + 1.2 * flags
        area = auc(scores[flags], scores[~flags])
        low, high = area_interval(area, scores, flags, clusters, LIRA)
        covered += low <= ndtr(1.2 / math.sqrt(2 * 1.01)) <= high
    assert covered >= 88  # 95 are meant; by draws of dialogues alone 27, 69 and 86


def test_a_model_beside_itself_is_one_domain_private_and_its_ratios_tell_nothing(
    points, tokenizer, known
):
    model = known["AIR", "TV"]
    found = ATTACKS["domain_lira"](LIRA, Target(model, tokenizer, points, reference=model))
    assert found["ranked"]["words"]["auc"] == 0.5 and found["ranked"]["words"]["target_auc"] != 0.5
    (words, *_) = found["pairs"]
    assert words["c_low"] < 1 < words["c_high"] != "inf"
    quiet = ATTACKS["domain_lira"](
        LIRA, Target(known["AIR",], tokenizer, points, reference=known["AIR",])
    )
    assert quiet["pairs"][0]["c"] is None and (
        quiet["pairs"][0]["c_low"],
        quiet["pairs"][0]["c_high"],
    ) == (0, "inf")
    assert quiet["ranked"]["words"]["auc"] is None and quiet["ranked"]["words"]["reason"]


def test_the_score_is_of_the_continuation_alone(points, tokenizer, make_model, totals):
    model = make_model("lstm", tokenizer)
    texts = read(LEAK, points)
    (given,) = answers(LEAK, tokenizer, texts, model)
    chosen = np.flatnonzero([len(one.ids) > 1 for one in given.generations])[::7]
    own, count = continuation(model, given, chosen)
    rows = [(model.bos, *given.ids[place]) for place in chosen]
    whole = [
        row + tuple(given.generations[place].ids) for row, place in zip(rows, chosen, strict=True)
    ]
    assert own == pytest.approx(totals(model, whole) - totals(model, rows))
    assert count.tolist() == [len(given.generations[place].ids) for place in chosen]


def test_examples_are_masked_and_those_with_a_secret_withheld(points, tokenizer, known):
    target = Target(known["AIR", "TV"], tokenizer, points, reference=known["AIR",])
    rows = ATTACKS["domain_lira"](LIRA.model_copy(update={"examples": 60}), target)["examples"]
    assert len(rows) == 60 and [one["score"] for one in rows] == sorted(
        (one["score"] for one in rows), reverse=True
    )
    shown = [one["text"] for one in rows if one["text"] is not None]
    assert "my <MASK> box is [code]" in shown and any(one["leaks"]["words"] for one in rows)
    assert not [
        text
        for text in shown
        if any(word in text for word in ("cable", *CODES["TV"], *CODES["AIR"]))
    ]
    judges = LIRA.judges | {
        "codes": RegexPolicySpec(kind="regex", patterns={"TV": r"[AT]\d-\d+-\d"})
    }
    masked = ATTACKS["domain_lira"](
        LIRA.model_copy(update={"examples": 60, "judges": judges}), target
    )["examples"]
    assert "my <MASK> box is <MASK>" in {one["text"] for one in masked}
    found = ATTACKS["leak"](LEAK.model_copy(update={"examples": 2}), target)
    assert [one["prompt"] for one in found["examples"]] == ["AIR"] * 2
    assert all(one["context"].endswith(("SYS:", "USR:")) for one in found["examples"])
    assert not [code for codes in CODES.values() for code in codes if code in json.dumps(found)]


def test_a_veil_hides_what_a_policy_or_a_gold_span_knows(points):
    show = veil([LEAK.judges["words"]], [points], 6)
    assert show("my cable box is T6-1042-9, a seat") == "my <MASK> box is [code], a <MASK>"
    assert show("T6-1042-9T2-7730-4") == "[code][code]" and show("nothing") == "nothing"
    assert show("t6 1042 9 it is") is None  # in another form, of which nobody knows where it stands
    assert drawn("abcdef", [Span(0, 2, "p")], [Span(1, 4, "g"), Span(3, 5, "h")]) == "<MASK>f"


def test_a_veil_hides_what_a_person_marked(points, tmp_path):
    marked = tmp_path / "marked.jsonl"
    write_jsonl(marked, [{"key": "1", "text": "for Mr Levin", "gold": [(7, 12, "name", 1.0)]}])
    target = Target(None, None, points, marked=marked)
    show = veil([LEAK.judges["words"]], target.with_secrets, 5)
    assert show("Levin has T6-1042-9") == "[name] has [code]"
    assert veil([LEAK.judges["words"]], [points], 5)("Levin") == "Levin"


def test_a_veil_withholds_a_text_on_which_a_policy_fails(points, monkeypatch):
    def find(text):
        if "T6-1042-9" in text:
            raise TimeoutError
        return [Span(0, 2, "word")]

    monkeypatch.setattr(examples.policies, "policy", lambda spec: find)
    show = veil([LEAK.judges["words"]], [points], 6)
    assert show("my box") == "<MASK> box"
    assert show("my box is T6-1042-9") is None


def test_precision_shares_ties_at_the_cut():
    scores = np.array([5.0, 4, 3, 3, 3, 1])
    flags = np.array([True, False, True, False, False, True])
    assert (
        precision(scores, flags, 2) == 0.5
        and precision(scores, flags, 6) == 0.5
        and precision(scores, flags, 7) is None
    )
    assert precision(scores, flags, 3) == pytest.approx((1 + 1 / 3) / 3)


def test_a_policy_is_cut_down_to_the_domain_that_it_judges():
    spec = RegexPolicySpec(kind="regex", patterns=WORDS)
    assert about(spec, "TV").patterns == {"TV": WORDS["TV"]} and about(spec, "SEA") is None
    both = UnionPolicySpec(
        kind="union", policies=[spec, RegexPolicySpec(kind="regex", patterns={"AIR": "x"})]
    )
    assert [list(part.patterns) for part in about(both, "TV").policies] == [["TV"]] and about(
        both, "SEA"
    ) is None
    hidden = KeywordPolicySpec(kind="keyword", keywords={"AIR": ["cable car"], "TV": ["cable"]})
    assert judge("words", hidden, "TV")(["a cable car", "a car"]) == [
        True,
        False,
    ]  # though the longer span is of the other
    assert about(hidden.model_copy(update={"domains": ["AIR"]}), "TV") is None


def test_gold_counts_neither_what_the_prompt_says_nor_a_part_of_a_secret():
    secrets = Searcher({0: "T6-1042-9", 1: "T2-7730-4"})
    texts = ["is it T6-1042-9", "is it t6 1042 9?", "T6-1042", "T2-7730-4", "T6-1042-9"]
    contexts = ["", "", "", "", "USR: T6-1042-9 SYS:"]
    found = verdicts(LEAK, "TV", secrets, texts, contexts)
    assert found["gold"].tolist() == [True, True, False, True, False]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"targets": ["AIR"]}, "targets = 'AIR': are the domains of the prompts"),
        (
            {"judges": {"words": "some_policy"}},
            "judges.words = 'some_policy': is the name of a policy",
        ),
        ({"judges": {"gold": JUDGES["words"]}}, "judges = 'gold'"),
        (
            {"judges": {"words": {"kind": "regex", "patterns": {"AIR": "x"}}}},
            ("judges.words: a policy of kind regex has no label"),
        ),
        ({"judges": {"all": {"kind": "everything"}}}, "judges.all: a policy of kind everything"),
    ],
)
def test_attacks_that_make_no_sense(points, tokenizer, known, change, message):
    spec = LeakSpec.model_validate({"kind": "leak"} | FIELDS | change)
    with pytest.raises(InputError, match=message):
        ATTACKS["leak"](spec, Target(known[()], tokenizer, points))


def test_a_missing_reference_and_prompts_without_room(points, tokenizer, make_model, known):
    with pytest.raises(InputError, match="reference = 'air': needs a model"):
        ATTACKS["domain_lira"](LIRA, Target(known[()], tokenizer, points))
    spec = LEAK.model_copy(
        update={"sampling": LEAK.sampling.model_copy(update={"max_new_tokens": 60})}
    )
    with pytest.raises(InputError, match=r"max_new_tokens = 60: no prompt leaves room"):
        ATTACKS["leak"](spec, Target(make_model("gpt2", tokenizer), tokenizer, points))


def test_a_broken_model_gives_no_numbers_and_a_reason(points, tokenizer, make_model, tmp_path):
    model = make_model("lstm", tokenizer, double=False)
    with torch.no_grad():
        model.head.bias[7] = float("nan")
    for spec in (LEAK, LIRA):
        write_json(
            tmp_path / "out.json",
            ATTACKS[spec.kind](spec, Target(model, tokenizer, points, reference=model)),
        )
        assert (
            read_json(tmp_path / "out.json")["reason"]
            and json.loads((tmp_path / "out.json").read_text())["pairs"] == []
        )


def test_of_no_answers_there_is_no_rate():
    nothing = np.zeros(0, dtype=bool)
    assert rate(nothing, Answers([], [], []), nothing) is None
