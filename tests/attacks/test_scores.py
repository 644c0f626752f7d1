"""Further scores of membership against loops over forward passes, and their controls."""

import random
import string
import zlib

import numpy as np
import pytest
import torch

from confide.attacks.membership.members import Candidate, tokens_of
from confide.attacks.membership.scores import SCORES, ScoreInputs, secret_log_probs
from confide.attacks.registry import ATTACKS
from confide.attacks.target import Target
from confide.errors import InputError
from confide.files.io import write_jsonl
from confide.specs import MembershipSpec

SPEC = MembershipSpec(kind="membership", label="name", limit=40, bootstrap=50, seed=3)
SECRETS = ["Ann O'Neil", "4821", "B7", "x", "İpek Straße 12", "no capitals at all in here"]


def in_text(secret: str, member: bool = True) -> Candidate:
    return Candidate(secret, f"This IS {secret}, now", 8, 8 + len(secret), member)


def ask(model, tokenizer, secrets: list[str], **changes) -> ScoreInputs:
    candidates = [in_text(secret) for secret in secrets]
    view = tokens_of(candidates, tokenizer)
    total, count = secret_log_probs(model, view)
    spec = SPEC.model_copy(
        update={key: value for key, value in changes.items() if key != "reference"}
    )
    return ScoreInputs(
        spec,
        Target(model, tokenizer, None, reference=changes.get("reference")),
        candidates,
        view,
        total / count,
    )


@torch.no_grad()
def one_by_one(model, tokenizer, text: str, start: int, end: int) -> list[tuple[int, np.ndarray]]:
    """Each token that overlaps characters start to end, with the log-probabilities of all tokens in
    its place.
    """
    ids = tokenizer.encode(text)
    edges = np.cumsum([0] + [tokenizer.lengths[i] for i in ids])  # in bytes
    first, last = (len(text[:place].encode()) for place in (start, end))
    logs = model(torch.tensor([[tokenizer.bos_id, *ids]]))[0].log_softmax(-1).numpy()
    return [(ids[i], logs[i]) for i in range(len(ids)) if edges[i] < last and edges[i + 1] > first]


@pytest.mark.parametrize(
    ("kind", "name"), [("lstm", "digit_tokenizer"), ("gpt2", "merging_tokenizer")]
)
@pytest.mark.parametrize("k", [20.0, 50.0, 100.0])
def test_min_k_standardises_each_token_under_the_models_own_distribution(
    request, make_model, kind, name, k
):
    tokenizer = request.getfixturevalue(name)
    model = make_model(kind, tokenizer)
    asked = ask(model, tokenizer, SECRETS, min_k=k)
    for candidate, found in zip(asked.candidates, SCORES["min_k"](asked), strict=True):
        values = []
        for token, logs in one_by_one(
            model, tokenizer, candidate.text, candidate.start, candidate.end
        ):
            mean = sum(np.exp(log) * log for log in logs)
            variance = sum(np.exp(log) * log**2 for log in logs) - mean**2
            values.append((logs[token] - mean) / variance**0.5)
        lowest = sorted(values)[: max(1, int(len(values) * k / 100))]
        assert found == pytest.approx(sum(lowest) / len(lowest), abs=1e-7)


def test_min_k_of_a_model_that_knows_nothing_is_zero(digit_tokenizer, make_model):
    model = make_model("lstm", digit_tokenizer, double=False)
    with torch.no_grad():
        model.head.weight.zero_()
        model.head.bias.zero_()
    np.testing.assert_allclose(SCORES["min_k"](ask(model, digit_tokenizer, SECRETS)), 0, atol=1e-6)


@pytest.mark.parametrize("name", ["digit_tokenizer", "merging_tokenizer"])
def test_lowercase_compares_with_the_secret_alone_in_lower_case(request, make_model, name):
    """The text keeps its capitals; where nothing changes the score is 0, not nearly 0."""
    tokenizer = request.getfixturevalue(name)
    model = make_model("lstm", tokenizer)

    def mean(text: str, length: int) -> float:
        return np.mean(
            [logs[token] for token, logs in one_by_one(model, tokenizer, text, 8, 8 + length)]
        )

    for secret, found in zip(
        SECRETS, SCORES["lowercase"](ask(model, tokenizer, SECRETS)), strict=True
    ):
        lower = secret.lower()  # may be longer
        expected = mean(f"This IS {secret}, now", len(secret)) - mean(
            f"This IS {lower}, now", len(lower)
        )
        assert found == (0.0 if secret == lower else pytest.approx(expected, abs=1e-9))


def test_zlib_divides_by_compressed_bytes(digit_tokenizer, make_model):
    asked = ask(make_model("lstm", digit_tokenizer), digit_tokenizer, [*SECRETS, "ab" * 40])
    sizes = [len(zlib.compress(candidate.secret.encode())) for candidate in asked.candidates]
    np.testing.assert_allclose(SCORES["zlib"](asked) * sizes, asked.per_token)
    assert sizes[-1] < 20


def test_reference_is_the_log_ratio_of_perplexities(digit_tokenizer, make_model):
    model = make_model("lstm", digit_tokenizer)
    other = make_model("gpt2", digit_tokenizer, seed=1)
    found = SCORES["reference"](ask(model, digit_tokenizer, SECRETS, reference=other))
    expected = (
        ask(model, digit_tokenizer, SECRETS).per_token
        - ask(other, digit_tokenizer, SECRETS).per_token
    )
    np.testing.assert_allclose(found, expected)
    assert (SCORES["reference"](ask(model, digit_tokenizer, SECRETS, reference=model)) == 0).all()


@pytest.fixture(scope="module")
def world(digit_tokenizer, make_model, fit, tmp_path_factory):
    """Names and numbers, 40 in train and 40 in test; a model that knows the former by heart, and
    one that was never trained.
    """
    source = random.Random(0)
    rows = []
    for split in ("train", "test"):
        for _ in range(40):
            for label, begin, alphabet in (
                ("name", "", string.ascii_uppercase),
                ("number", "19", string.digits),
            ):
                secret = begin + "".join(source.choice(alphabet) for _ in range(4))
                rows.append(
                    {
                        "key": f"d{len(rows)}:0",
                        "text": f"It IS {secret}",
                        "split": split,
                        "gold": [[6, 6 + len(secret), label, 1.0]],
                    }
                )
    path = tmp_path_factory.mktemp("world") / "points.jsonl"
    write_jsonl(path, rows)
    before = make_model("lstm that memorises", digit_tokenizer, scale=1.0, double=False)
    after = make_model("lstm that memorises", digit_tokenizer, scale=1.0, double=False)
    fit(after, digit_tokenizer, [row["text"] for row in rows if row["split"] == "train"], 250)
    return before, after, path


def run(world, tokenizer, model, other=None, **changes) -> dict:
    """Metrics of a model; `other` is the reference model."""
    return ATTACKS["membership"](
        SPEC.model_copy(update=changes), Target(model, tokenizer, world[2], reference=other)
    )


def test_controls(world, digit_tokenizer):
    """Every score catches a model that knows its names by heart, and none finds them in a model
    that was never trained.
    """
    before, after, _ = world
    caught = run(world, digit_tokenizer, after, before, reference="public")
    missed = run(world, digit_tokenizer, before, before, reference="public")
    for name in ("lowercase", "zlib", "min_k", "reference"):
        assert (
            caught[f"{name}_auc"] > 0.9
            and caught[f"{name}_auc_low"] > caught[f"{name}_auc_null_high"]
        )
        assert caught[f"{name}_acc_balanced"] > 0.8 and caught[f"{name}_acc_calibrated"] > 0.75
        assert missed[f"{name}_auc_low"] <= 0.5 <= missed[f"{name}_auc_high"]
    assert caught["acc_calibrated"] > 0.8 and abs(missed["acc_calibrated"] - 0.5) < 0.2
    assert (
        missed["reference_auc"]
        == missed["reference_acc_balanced"]
        == missed["reference_acc_calibrated"]
        == 0.5
    )
    assert not any(f"group_{name}_auc" in caught for name in SCORES)


def test_numbers_have_no_case(world, digit_tokenizer):
    """All tie: no accuracy from the order in which candidates are sorted, although the model knows
    them by heart.
    """
    found = run(world, digit_tokenizer, world[1], label="number")
    assert found["auc"] > 0.9
    for key in ("auc", "acc_balanced", "acc_calibrated"):
        assert found[f"lowercase_{key}"] == 0.5
    for key in ("auc", "acc_balanced"):
        assert found[f"lowercase_{key}_low"] <= 0.5 <= found[f"lowercase_{key}_high"]


def test_only_what_is_asked_for(world, digit_tokenizer):
    found = run(world, digit_tokenizer, world[0], world[1], scores=["zlib"])
    assert "zlib_auc" in found and not [
        key for key in found if key.startswith(("lowercase_", "min_k_", "reference_"))
    ]
    with pytest.raises(InputError, match="needs the reference model") as caught:
        run(world, digit_tokenizer, world[0], reference="public")
    assert "public" in str(caught.value)


def test_a_reference_that_diverged_is_a_reason(world, digit_tokenizer, make_model):
    broken = make_model("lstm", digit_tokenizer, scale=float("nan"))
    found = run(world, digit_tokenizer, world[1], broken, reference="public")
    assert (
        found["reference_auc"] is None
        and "finite" in found["reasons"]["reference_auc"]
        and found["zlib_auc"] is not None
    )


@pytest.mark.parametrize("context", ["text", "bare"])
def test_random_non_members_are_told_apart_by_form_alone(world, digit_tokenizer, context):
    """As published: baselines that see no model tell them from members, while held-out non-members
    give nothing away.
    """
    published = run(
        world, digit_tokenizer, world[0], label="number", non_members="random", context=context
    )
    honest = run(world, digit_tokenizer, world[0], label="number", context=context)
    assert published["blind_ngram_auc"] > 0.9
    assert honest["blind_ngram_auc_low"] <= 0.5 <= honest["blind_ngram_auc_high"]
    assert published["blind_length_auc"] == 0.5  # the lengths are the members'
    assert (published["non_members_from"], published["context"]) == ("random", context)
    assert (honest["non_members_from"], honest["context"]) == ("held_out", context)
    assert (published["members"], published["non_members"]) == (40, 40)
