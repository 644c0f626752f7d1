"""Membership inference: candidate set, scores against whole forward passes, and the controls."""

import random
from collections import Counter

import numpy as np
import pytest
import torch

from confide.attacks.membership.members import (
    candidates_of,
    choose,
    first_occurrences,
    tokens_of,
)
from confide.attacks.membership.membership import grouped, within_kinds
from confide.attacks.membership.scores import secret_log_probs
from confide.attacks.registry import ATTACKS
from confide.attacks.statistics.blind import BASELINES
from confide.attacks.statistics.metrics import auc, auc_null
from confide.attacks.target import Target
from confide.errors import InputError
from confide.files.io import write_jsonl
from confide.specs import MembershipSpec

SPEC = MembershipSpec(kind="membership", label="order", limit=40, group=8, bootstrap=100, seed=3)


def point(key: str, split: str, secret: str, label: str = "order", name: str = "Ann") -> dict:
    text = f"{name} has {secret} now"
    start = len(name) + 5
    gold = [[0, len(name), "name", 1.0], [start, start + len(secret), label, 1.0]]
    return {"key": f"{key}:0", "text": text, "split": split, "gold": gold}


def corpus(
    path, train: int, held: int, make=lambda source, split: f"{source.randrange(10**4):04d}"
) -> list[dict]:
    """Points of which every secret is distinct, written to `path`."""
    source = random.Random(1)
    rows = []
    seen = set()
    for split, count in (("train", train), ("valid", held // 2), ("test", held - held // 2)):
        while sum(row["split"] == split for row in rows) < count:
            secret = make(source, split)
            if secret not in seen:
                seen.add(secret)
                rows.append(point(f"{split}/{len(rows)}", split, secret))
    write_jsonl(path, rows)
    return rows


def test_candidates_are_first_occurrences_on_one_side(tmp_path):
    rows = [
        point("a", "train", "11", name="Bo"),
        point("b", "train", "22"),
        point("c", "train", "11"),
        point("d", "train", "33"),
        point("e", "valid", "33"),  # on both sides: neither
        point("f", "test", "44"),
        point("g", "test", "55", label="phone"),
        point("h", "train", " "),  # nothing to score
        point("i", "train", "66", name="Bo"),
        point("i", "train", "66"),
    ]
    write_jsonl(tmp_path / "points.jsonl", rows)
    found = list(first_occurrences(tmp_path / "points.jsonl", ["order"]))
    # what stands in two documents of one side is neither: it is common, and train has more of that
    assert [(c.secret, c.member) for c in found] == [("22", True), ("44", False), ("66", True)]
    assert found[2].text.startswith("Bo") and all(
        c.text[c.start : c.end] == c.secret for c in found
    )


def test_what_stands_elsewhere_without_a_mark_is_no_candidate(tmp_path):
    rows = [
        point("a", "train", "#11"),
        point("b", "train", "22"),
        point("c", "test", "33 b"),
        point("d", "test", "44"),
        {**point("e", "train", "55"), "text": "#11, 33 bc and 44", "gold": []},
        {**point("f", "valid", "66"), "text": "33 and 222", "gold": []},
    ]
    write_jsonl(tmp_path / "points.jsonl", rows)
    found = first_occurrences(tmp_path / "points.jsonl", ["order"])
    assert [(one.secret, one.member) for one in found] == [("22", True), ("33 b", False)]


def test_the_lot_decides_who_is_a_member_and_not_how_common_a_secret_is(tmp_path):
    """A score that knows from elsewhere how common each secret is tells nothing."""
    rng = np.random.default_rng(0)
    secrets = rng.zipf(1.5, 3000) % 2000
    rows = [
        point(f"d{number}", "train" if rng.random() < 0.8 else "test", str(secret))
        for number, secret in enumerate(secrets)
    ]
    write_jsonl(tmp_path / "points.jsonl", rows)
    found = first_occurrences(tmp_path / "points.jsonl", ["order"])
    commoner = -np.array([int(one.secret) for one in found], dtype=float)
    member = np.array([one.member for one in found])
    low, high = auc_null(int(member.sum()), int((~member).sum()))
    assert low < auc(commoner[member], commoner[~member]) < high


def test_choice_is_balanced_and_depends_on_seed_alone(tmp_path):
    corpus(tmp_path / "points.jsonl", 100, 30)
    found = list(first_occurrences(tmp_path / "points.jsonl", ["order"]))
    one, again, other = (choose(found, 20, np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert one == again != other and len(set(one)) == 40
    assert [c.member for c in one] == [True] * 20 + [False] * 20
    assert sum(c.member for c in choose(found, 1000, np.random.default_rng(0))) == 30


@pytest.mark.parametrize("kind", ["lstm", "gpt2"])
@pytest.mark.parametrize("name", ["digit_tokenizer", "merging_tokenizer"])
def test_scores_are_those_of_a_forward_pass(request, make_model, tmp_path, kind, name):
    tokenizer = request.getfixturevalue(name)
    model = make_model(kind, tokenizer)
    secrets = ("7", "4821", "12 é 3")
    write_jsonl(
        tmp_path / "points.jsonl", [point(s, "train", s, name="A" * len(s)) for s in secrets]
    )
    candidates = list(first_occurrences(tmp_path / "points.jsonl", ["order"]))
    total, count = secret_log_probs(model, tokens_of(candidates, tokenizer))
    for candidate, fast, tokens in zip(candidates, total, count, strict=True):
        ids = tokenizer.encode(candidate.text)
        edges = np.cumsum([0] + [tokenizer.lengths[i] for i in ids])  # in bytes
        start, end = (
            len(candidate.text[:place].encode()) for place in (candidate.start, candidate.end)
        )
        scored = [i for i in range(len(ids)) if edges[i] < end and edges[i + 1] > start]
        with torch.no_grad():
            logs = model(torch.tensor([[tokenizer.bos_id, *ids]]))[0].log_softmax(-1)
        assert tokens == len(scored) > 0
        assert fast == pytest.approx(sum(logs[i, ids[i]].item() for i in scored), abs=1e-9)


def test_several_kinds_have_as_many_non_members_as_members_each(tmp_path):
    rows = []
    for label, train, held in (("order", 30, 12), ("phone", 5, 40)):
        for split, count in (("train", train), ("test", held)):
            rows += [
                point(f"{label}{split}{i}", split, f"{label} {split} {i}", label=label)
                for i in range(count)
            ]
    rows.append(point("both", "train", "phone test 3", label="order"))  # and outside, as a phone
    write_jsonl(tmp_path / "points.jsonl", rows)
    spec = SPEC.model_copy(update={"label": ["order", "phone"], "limit": 10})
    chosen = candidates_of(spec, tmp_path / "points.jsonl")
    counts = Counter((candidate.label, candidate.member) for candidate in chosen)
    assert counts == {
        ("order", True): 10,
        ("order", False): 10,
        ("phone", True): 5,
        ("phone", False): 5,
    }
    assert [candidate.member for candidate in chosen] == [True] * 15 + [False] * 15
    assert "phone test 3" not in {candidate.secret for candidate in chosen}


def test_scores_of_kinds_are_compared_within_them():
    labels = np.array(["a"] * 4 + ["b"] * 4 + ["c"] * 2)
    member = np.array([1, 1, 0, 0] * 2 + [1, 0], dtype=bool)
    scores = np.array([-1.0, -2, -3, -4, -100, -200, -300, -400, 7, 7])
    levelled = within_kinds(labels, scores)
    for kind in "ab":
        assert levelled[labels == kind].mean() == pytest.approx(0)
        assert levelled[labels == kind].std() == pytest.approx(1)
    assert levelled[labels == "c"].tolist() == [0, 0]
    assert auc(levelled[member], levelled[~member]) > auc(scores[member], scores[~member])
    assert within_kinds(labels[:4], scores[:4]).tolist() == scores[:4].tolist()


def test_groups_are_disjoint_sums():
    scores = 2.0 ** np.arange(21)
    member = np.arange(21) < 11
    sums, kinds = grouped(scores, member, 4, np.random.default_rng(0))
    assert kinds.tolist() == [True, True, False, False]
    used = [
        {i for i in range(21) if int(total) >> i & 1} for total in sums
    ]  # powers of two say who is in
    assert all(len(group) == 4 for group in used) and len(set.union(*used)) == 16
    assert all(member[i] == kind for group, kind in zip(used, kinds, strict=True) for i in group)


@pytest.mark.parametrize("kind", ["lstm that memorises", "gpt2"])
def test_controls(digit_tokenizer, make_model, fit, tmp_path, kind):
    """An overfit model is caught; an untrained one and the blind baselines are not better than
    chance.
    """
    path = tmp_path / "points.jsonl"
    rows = corpus(path, 40, 40)
    model = make_model(kind, digit_tokenizer, scale=1.0, double=False)
    before = ATTACKS["membership"](SPEC, Target(model, digit_tokenizer, path))
    fit(model, digit_tokenizer, [row["text"] for row in rows if row["split"] == "train"], 250)
    after = ATTACKS["membership"](SPEC, Target(model, digit_tokenizer, path))
    assert (before["members"], before["non_members"], before["groups"]) == (40, 40, 5)
    for found, prefixes in (
        (before, ("", "total_", "blind_ngram_")),
        (after, ("blind_ngram_", "blind_length_")),
    ):
        for prefix in prefixes:
            assert found[f"{prefix}auc_low"] <= 0.5 <= found[f"{prefix}auc_high"]
    assert (
        after["auc"] > 0.95
        and after["auc_low"] > after["auc_null_high"]
        and after["acc_balanced"] > 0.85
    )
    assert after["group_auc"] == 1.0 and after["group_acc_balanced"] == 1.0
    assert (
        before["acc_balanced_null_low"]
        <= before["acc_balanced"]
        <= before["acc_balanced_null_high"]
    )
    assert after["tpr_at_fpr_0.01"] is None and "non-members" in after["reasons"]["tpr_at_fpr_0.01"]
    # the candidates, and what can be told from them alone, are the same for every model
    assert all(before[key] == after[key] for key in before if "blind" in key)


def test_blind_baselines_catch_another_generator():
    """Had non-members another form, the attack would mean nothing: the baselines must show it."""
    source = random.Random(0)
    member = np.repeat([True, False], 40)
    secrets = [f"{source.randrange(10**4)} Oak Street" for _ in range(40)]
    secrets += [f"{source.randrange(10**6)} Elm Rd." for _ in range(40)]
    scores = BASELINES["ngram"](secrets, member, 0)
    assert (scores[:40, None] > scores[40:]).mean() > 0.95
    short = ["1" * 3] * 10
    long = ["1" * 9] * 10
    scores = BASELINES["length"](short + long, np.repeat([True, False], 10), 0)
    assert scores[:10].min() > scores[10:].max()


def test_too_few_secrets_are_a_reason_not_a_crash(digit_tokenizer, make_model, tmp_path):
    path = tmp_path / "points.jsonl"
    target = Target(make_model("lstm", digit_tokenizer), digit_tokenizer, path)
    corpus(path, 40, 9)
    found = ATTACKS["membership"](SPEC, target)
    assert (
        found["auc"] is None
        and found["acc_balanced"] is None
        and "fewer than 10" in found["reason"]
    )
    none = ATTACKS["membership"](SPEC.model_copy(update={"label": "address"}), target)
    assert (none["members"], none["auc"]) == (0, None)
    corpus(path, 12, 12)
    found = ATTACKS["membership"](SPEC, target)
    assert (
        found["auc"] is not None
        and found["group_auc"] is None
        and "2 groups" in found["reasons"]["group_auc"]
    )


def test_a_diverged_model_is_a_reason(digit_tokenizer, make_model, tmp_path):
    model = make_model("lstm", digit_tokenizer, scale=float("nan"))
    corpus(tmp_path / "points.jsonl", 12, 12)
    found = ATTACKS["membership"](SPEC, Target(model, digit_tokenizer, tmp_path / "points.jsonl"))
    assert found["auc"] is None and "finite" in found["reason"]


def test_a_point_without_its_fields_is_named(digit_tokenizer, tmp_path):
    write_jsonl(
        tmp_path / "points.jsonl", [{"key": "d:0", "text": "the secret is 4821", "gold": []}]
    )
    with pytest.raises(InputError, match="split") as caught:
        ATTACKS["membership"](SPEC, Target(None, digit_tokenizer, tmp_path / "points.jsonl"))
    assert "4821" not in str(caught.value)
