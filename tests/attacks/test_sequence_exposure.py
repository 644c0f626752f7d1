"""Exposure of canaries of words: the search against all sequences of small spaces, and the
controls.
"""

import math

import numpy as np
import pytest
from planted_words import (
    KINDS,
    VOCAB,
    WORDS,
    a_model,
    a_space,
    everything,
    learn,
    no_word_of,
    sentence,
    some,
    ten_by_heart,
    word_tokenizer,
    written,
)

from confide.attacks.exposure.sequence_exposure import exposures, judged
from confide.attacks.exposure.sequence_search import TIE, count_above, search
from confide.attacks.registry import ATTACKS
from confide.attacks.statistics.scoring import row_log_probs
from confide.attacks.target import Target
from confide.errors import InputError
from confide.files.io import read_json, write_json, write_jsonl
from confide.specs import ExposureSpec, SequenceExposureSpec, TabSpec

SPEC = SequenceExposureSpec(kind="sequence_exposure")
SAMPLED = SequenceExposureSpec(kind="sequence_exposure", enumerated=1, states=1, samples=3000)


def brute_ranks(model, space, places) -> np.ndarray:
    """1 + the likelier + half the other ties, by scoring every sequence with whole forward
    passes.
    """
    scores, own = (row_log_probs(model, space.tokens(each)) for each in (everything(space), places))
    return np.array(
        [1 + (scores > s + TIE).sum() + ((abs(scores - s) <= TIE).sum() - 1) / 2 for s in own]
    )


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_sums_of_log_softmax_without_the_end(kind, totals):
    model = a_model(kind)
    space = a_space(9, 4, VOCAB, 0)
    rows = space.tokens(everything(space)[::700])
    assert np.allclose(
        row_log_probs(model, rows), totals(model, [(1, *row) for row in rows.tolist()]), atol=1e-5
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chunk", [7, 4096])
def test_the_search_ranks_as_brute_force_does(kind, chunk):
    model = a_model(kind)
    space = a_space(9, 3, VOCAB, 1)
    places = everything(space)[::50]
    targets = row_log_probs(model, space.tokens(places))
    found = search(model, space, targets, chunk, np.inf)
    assert found.settled.all() and np.array_equal(found.ranks, brute_ranks(model, space, places))
    assert targets.std() > 0.5 and found.states <= 9 + 81


def test_a_budget_settles_the_likeliest_and_says_of_whom():
    model = a_model(scale=8.0)
    space = a_space(12, 4, VOCAB, 2)
    scores = row_log_probs(model, space.tokens(everything(space)))
    order = np.argsort(-scores)
    places = everything(space)[order[[0, 5, 40, 3000, 20000]]]
    targets = row_log_probs(model, space.tokens(places))
    part = search(model, space, targets, 64, 400)
    all_of = search(model, space, targets, 64, np.inf)
    assert part.states <= 400 and 0 < part.settled.sum() < 5 and part.settled[0]
    assert np.array_equal(part.ranks[part.settled], all_of.ranks[part.settled])
    deep = search(model, space, targets, 64, 10**6)
    assert (
        deep.settled.all()
        and np.array_equal(deep.ranks, all_of.ranks)
        and deep.states > all_of.states > part.states
    )
    assert part.above == (scores >= part.floor).sum()
    _, done = count_above(model, space, targets, -1e9, 64, 20)
    assert not done


def test_a_prefix_bound_on_the_work_holds():
    """At most e^-floor prefixes of each length are above a floor, whatever the space."""
    model = a_model(scale=8.0)
    space = a_space(20, 5, VOCAB, 3)
    counts, done = count_above(model, space, np.array([-5.0]), -5.0, 512, np.inf)
    assert done and 0 < counts.states <= 4 * math.exp(5.0) and counts.above <= math.exp(5.0)


def test_sequences_that_are_all_alike_share_the_middle_rank():
    model = a_model(scale=0.0)
    space = a_space(6, 3, VOCAB, 0)
    places = everything(space)[:4]
    found = exposures(SPEC, model, space, places)
    assert found.exact.all() and np.allclose(found.value, math.log2(216) - math.log2((1 + 216) / 2))
    sampled = exposures(SAMPLED, model, space, places)
    assert not sampled.exact.any() and sampled.fitted is None
    assert (sampled.low <= found.value).all() and (found.value <= sampled.high).all()
    assert np.allclose(sampled.value, found.value, atol=0.05)


@pytest.fixture(scope="module")
def memorising():
    return ten_by_heart()


def test_sequences_that_are_known_by_heart_are_the_first(memorising):
    model, space, known = memorising
    found = exposures(SPEC, model, space, np.array(known))
    assert sorted(found.value) == pytest.approx(
        sorted(math.log2(1000 / rank) for rank in range(1, 11))
    )


def test_what_is_known_by_heart_is_exact_in_a_space_that_nobody_could_enumerate():
    model = a_model(scale=1.0)
    space = a_space(28, 8, VOCAB, 0)
    places = np.random.default_rng(0).integers(28, size=(20, 8))
    learn(model, space.tokens(places[:1]), 100)
    found = exposures(
        SPEC.model_copy(update={"states": 2000, "samples": 5000}), model, space, places
    )
    assert space.size > SPEC.enumerated and found.exact.tolist() == [True] + [False] * 19
    assert (
        found.value[0] == found.low[0] == found.high[0] == math.log2(28**8)
        and found.value[1:].max() < 12
    )


def test_what_was_never_seen_is_within_the_null():
    """Exact and estimated exposures of 400 sequences: mean 1.44 bits, and the largest as of so
    many.
    """
    model = a_model(scale=1.0)
    space = a_space(28, 3, VOCAB, 0)
    places = np.random.default_rng(1).integers(28, size=(400, 3))
    for spec in (SPEC, SAMPLED):
        found = judged(exposures(spec, model, space, places), slice(0, 400), math.log2(space.size))
        for name in ("mean", "max"):
            assert found[f"null_{name}_low"] <= found[name] <= found[f"null_{name}_high"]
        assert (
            found["null_mean"] == pytest.approx(1 / math.log(2)) and 0.025 < found["p_mean"] < 0.975
        )


def test_search_and_samples_meet():
    """Beyond the floor of a search, what it counted is added to an estimate of the rest."""
    model = a_model(scale=8.0)
    space = a_space(12, 4, VOCAB, 2)
    places = everything(space)[
        np.argsort(-row_log_probs(model, space.tokens(everything(space))))[
            [0, 20, 200, 2000, 15000]
        ]
    ]
    exact = exposures(SPEC, model, space, places)
    spec = SPEC.model_copy(update={"enumerated": 1, "states": 300, "samples": 5000})
    mixed = exposures(spec, model, space, places)
    assert exact.exact.all() and 0 < mixed.exact.sum() < 5 and mixed.states <= 300
    assert np.array_equal(mixed.value[mixed.exact], exact.value[mixed.exact])
    assert (mixed.low <= exact.value + 1e-9).all() and (exact.value <= mixed.high + 1e-9).all()
    assert np.abs(mixed.value - exact.value).max() < 0.5
    # of one that is just behind what the search counted, the exposure can only be a little lower
    ordered = everything(space)[np.argsort(-row_log_probs(model, space.tokens(everything(space))))]
    above = search(
        model, space, row_log_probs(model, space.tokens(ordered[[0, -1]])), 4096, 300
    ).above
    behind = exposures(spec, model, space, ordered[[0, above + 1, -1]])
    assert above > 1 and behind.exact.tolist() == [True, False, False]
    assert behind.high[1] <= math.log2(space.size) - math.log2(1 + above) + 1e-9


@pytest.fixture(scope="module")
def tokenizer():
    return word_tokenizer()


@pytest.fixture
def planted(tmp_path):
    texts = [sentence(places) for places in some(6, 3, 0)]
    canaries = [(text, f"author {number % 2}", number + 1) for number, text in enumerate(texts[:3])]
    rows = [
        {"owner": owner, "text": "x", "split": "test", "canary": None}
        for owner in (None, "author 1", "author 0")
    ]
    return written(tmp_path, canaries, texts[3:], rows), texts


def test_controls_and_the_file(planted, tokenizer, make_model, fit):
    """A model that knows the canaries ranks them first; one that knows nothing, and controls, stay
    within the null.
    """
    paths, texts = planted
    model = make_model("lstm that memorises", tokenizer, scale=1.0, double=False)
    target = Target(model, tokenizer, **paths)
    before = ATTACKS["sequence_exposure"](SPEC, target)
    fit(model, tokenizer, texts[:3], 150)
    after = ATTACKS["sequence_exposure"](SPEC, target)
    assert (
        after["space_bits"] == pytest.approx(math.log2(1000)) and after["canaries"]["exact"] is True
    )
    best = sorted(math.log2(1000) - math.log2(rank) for rank in (1, 2, 3))
    assert sorted(after["canaries"]["exposures"]) == pytest.approx(best)
    assert (
        after["canaries"]["mean"] == pytest.approx(after["canaries"]["mean_most"])
        and after["canaries"]["p_mean"] < 1e-3
    )
    for name in ("canaries", "controls"):
        assert before[name]["mean"] <= before[name]["null_mean_high"]
    assert max(after["controls"]["exposures"]) < min(after["canaries"]["exposures"])
    assert after["canaries"]["copies"] == [1, 2, 3] and after["canaries"]["authors"] == [1, 0, 1]
    assert after["canaries"]["low"] == after["canaries"]["high"] == after["canaries"]["exposures"]
    sampled = ATTACKS["sequence_exposure"](SAMPLED, target)
    assert (
        sampled == ATTACKS["sequence_exposure"](SAMPLED, target)
        and not sampled["canaries"]["exact"]
    )
    assert all(
        low <= value <= high
        for low, value, high in zip(
            sampled["canaries"]["low"],
            after["canaries"]["exposures"],
            sampled["canaries"]["high"],
            strict=True,
        )
    )
    assert len(sampled["canaries"]["fitted"]) == 3 and "extrapolated" in sampled["fitted_note"]
    assert no_word_of([before, after, sampled], WORDS)


def test_a_diverged_model_is_a_reason_and_so_is_an_empty_group(planted, tokenizer, make_model):
    paths, _ = planted
    found = ATTACKS["sequence_exposure"](
        SPEC, Target(make_model("lstm", tokenizer, scale=float("nan")), tokenizer, **paths)
    )
    assert found["canaries"]["exposures"] is None and "finite" in found["controls"]["reason"]
    write_json(paths["canaries"], read_json(paths["canaries"]) | {"controls": []})
    found = ATTACKS["sequence_exposure"](
        SPEC, Target(make_model("lstm", tokenizer), tokenizer, **paths)
    )
    assert (
        found["controls"] == {"count": 0, "exposures": [], "reason": "none in this corpus"}
        and found["canaries"]["mean"] >= 0
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "digits"}, "no canaries of words"),
        ({"length": 4}, r"canaries\.0"),
        ({"length": 1}, "length"),
        ({"vocabulary": ["amber"]}, r"canaries\.0"),
        ({"vocabulary": ["amber", "amber"]}, "different words"),
        ({"vocabulary": [*WORDS, "Zyzzyva"]}, r"vocabulary\.10"),
        ({"controls": [{"txt": 3}]}, r"controls\.0"),
        ({"canaries": [{"text": "amber birch cedar", "author": "a"}]}, r"canaries\.0"),
    ],
)
@pytest.mark.parametrize("attack", ["sequence_exposure", "tab"])
def test_files_that_do_not_fit_are_named_without_quoting_them(
    planted, tokenizer, make_model, change, words, attack
):
    paths, texts = planted
    write_json(paths["canaries"], read_json(paths["canaries"]) | change)
    spec = {"sequence_exposure": SPEC, "tab": TabSpec(kind="tab")}[attack]
    with pytest.raises(InputError, match=words) as error:
        ATTACKS[attack](spec, Target(make_model("lstm", tokenizer), tokenizer, **paths))
    assert "canaries.json" in str(error.value) and no_word_of(str(error.value), texts)


def test_digits_are_refused_and_so_is_the_reverse(planted, tokenizer, make_model):
    paths, _ = planted
    target = Target(make_model("lstm", tokenizer), tokenizer, **paths)
    with pytest.raises(InputError, match="sequence_exposure"):
        ATTACKS["exposure"](ExposureSpec(kind="exposure"), target)
    with pytest.raises(InputError, match="planted canaries"):
        ATTACKS["sequence_exposure"](SPEC, Target(target.model, tokenizer, paths["points"]))
    write_jsonl(paths["points"], [{"text": "x", "split": "train"}])
    with pytest.raises(InputError, match="author: is none of the authors of the points"):
        ATTACKS["sequence_exposure"](SPEC, target)
