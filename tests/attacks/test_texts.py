"""What texts give away: counts against naive loops and exact enumerations, a generator that prints
its training text is caught by every test, and one that knows held-out text alone is accused no more
often than the level says.
"""

import math
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from confide.attacks.statistics.metrics import at_least
from confide.attacks.texts.audit import Written, audited
from confide.attacks.texts.ngrams import ALPHABET, END, Ngrams
from confide.attacks.texts.nulls import (
    ROWS,
    dense,
    densities,
    found,
    nearest,
    surfaced,
    told_apart,
)
from confide.attacks.texts.sides import Corpus, Entry, Sides, read
from confide.files.io import write_jsonl
from confide.specs import TextAuditSpec
from confide.text.likeness import embedded

SPEC = TextAuditSpec(permutations=100, order=5, limit=100)
WORDS = ["order", "parcel", "street", "late", "name", "phone", "where", "thanks", "box", "blue"]


def naive(texts: list[str], context: str, character: str, order: int) -> Fraction:
    """Witten and Bell's probability by its recursion, counting anew each time."""
    context = context[len(context) - min(len(context), order - 1) :]
    seen = [
        text[place]
        for text in (END + text for text in texts)
        for place in range(max(1, len(context)), len(text))
        if text[place - len(context) : place] == context
    ]
    below = naive(texts, context[1:], character, order) if context else Fraction(1, ALPHABET)
    if not seen:
        return below
    kinds = len(set(seen))
    return (seen.count(character) + kinds * below) / (len(seen) + kinds)


def test_the_model_of_characters_is_that_of_the_recursion() -> None:
    texts = ["abab", "abc", "", "cab"]
    for order in (1, 2, 4):
        fitted = Ngrams(texts, order)
        for context in ("", "a", "ab", "xab", END, f"{END}ab", "zz"):
            for character in "abcz":
                wanted = float(naive(texts, context, character, order))
                assert fitted.probability(context, character) == pytest.approx(wanted, rel=1e-12)
    fitted = Ngrams(texts, 3)
    parts = [fitted.probability(END + "ca", "b"), fitted.probability(END + "cab", "z")]
    assert fitted.score("cabz", 2, 4) == pytest.approx(sum(map(math.log, parts)) / 2)
    assert fitted.score("cab", 1, 1) == 0


def test_the_null_of_planted_numbers_is_an_enumeration() -> None:
    values = ["3", "7", "1", "4"]
    for secrets in (["3", "9"], ["3", "4", "0"], ["9"]):
        numbers = surfaced(["a 3 b 7", "1 and 1", "4", "12"], secrets, ["5"], 1)
        free = [str(digit) for digit in range(10) if digit != 5]
        draws = [set(draw) for draw in combinations(free, len(secrets))]
        seen = len(set(secrets) & set(values))
        wanted = sum(len(draw & set(values)) >= seen for draw in draws) / len(draws)
        assert (numbers["values"], numbers["surfaced"]) == (4, seen)
        assert numbers["p_value"] == pytest.approx(wanted)
        assert numbers["expected"] == pytest.approx(4 * len(secrets) / 9)
    assert at_least(0, population=10, marked=3, drawn=4) == 1


def test_densities_are_those_of_a_loop_over_texts() -> None:
    rng = np.random.default_rng(2)
    texts = [" ".join(rng.choice(WORDS, 5)) for _ in range(9)]
    points = [" ".join(rng.choice(WORDS, 5)) for _ in range(ROWS + 3)]
    for temperature in (0.02, 0.1, 1.0):
        dense_at = densities(embedded(points), embedded(texts), temperature)
        assert dense_at.dtype == np.float64 and dense_at.shape == (ROWS + 3,)
        for place in (0, 7, ROWS - 1, ROWS, ROWS + 2):
            (point,) = embedded([points[place]]).astype(float)
            similarities = [
                sum(a * b for a, b in zip(point, text.astype(float), strict=True))
                for text in embedded(texts)
            ]
            mean = sum(math.exp(value / temperature) for value in similarities) / len(texts)
            assert dense_at[place] == pytest.approx(math.log(mean), rel=1e-12)
    assert densities(embedded([]), embedded(texts), 0.1).shape == (0,)


def entries(count: int, rng: np.random.Generator) -> list[Entry]:
    """Texts with a secret of seven digits each, all different."""
    made = []
    for number in rng.choice(9 * 10**6, count, replace=False):
        head = " ".join(rng.choice(WORDS, 6))
        text = f"{head} {1000000 + number} {rng.choice(WORDS)}"
        made.append(Entry(text, len(head) + 1, len(head) + 8))
    return made


def corpus_of(count: int, rng: np.random.Generator) -> tuple[Corpus, list[str]]:
    """As many documents of each side, and texts of the same kind that nobody trained on."""
    made = entries(3 * count, rng)
    whole = [entry._replace(start=0, end=len(entry.text)) for entry in made]
    secrets = Sides(made[:count], made[count : 2 * count])
    points = Sides(whole[:count], whole[count : 2 * count])
    held_out = [entry.text for entry in made[2 * count :]]
    return Corpus(points, secrets, held_out[: count // 2]), held_out[count // 2 :]


def planted(rng: np.random.Generator) -> tuple[dict[str, Any], dict[str, Any]]:
    """Canaries, and a game with its coins."""
    values = [f"{value:06d}" for value in rng.choice(10**6, 70, replace=False)]
    game = {"prefix": "The code is ", "digits": 6, "suffix": "", "secrets": values[10:]}
    coins = (rng.random(60) < 0.5).tolist()
    canaries = {"prefix": "My ID is: ", "digits": 6, "suffix": "", "secrets": values[:5]}
    return canaries, {"game": game | {"coins": coins}}


def test_a_generator_that_prints_its_training_text_is_caught_by_every_test() -> None:
    rng = np.random.default_rng(1)
    corpus, _ = corpus_of(60, rng)
    canaries, audits = planted(rng)
    game = audits["game"]
    learnt = [
        game["prefix"] + s for s, coin in zip(game["secrets"], game["coins"], strict=True) if coin
    ]
    printed = [entry.text for entry in corpus.points.members] + learnt
    printed += [canaries["prefix"] + secret for secret in canaries["secrets"]]
    metrics = audited(SPEC, Written(printed, printed, printed), corpus, canaries, audits)
    alarms = {name: value for name, value in metrics.items() if name.endswith("_p_value")}
    of_texts = {name: p for name, p in alarms.items() if not name.startswith("blind")}
    names = {"canaries_texts", "points", "secrets", "nearest_near", "nearest_closest", "scan_texts"}
    names |= {"kernel_points", "kernel_secrets"}
    assert {f"{name}_p_value" for name in names} <= of_texts.keys()
    caught = {name: value for name, value in of_texts.items() if value < 0.02}
    assert caught.keys() == of_texts.keys()
    assert metrics["p_value"] < 1e-6
    assert metrics["canaries_texts_surfaced"] == 5
    assert metrics["scan_texts_found"] == 60 and metrics["scan_texts_found_others"] == 0
    assert metrics["texts_game_auc"] == 1 and metrics["texts_game_epsilon_lower"] > 1.5
    assert metrics["blind_points_p_value"] > 0.001
    written = str(metrics)
    assert not any(entry.part in written for entry in corpus.secrets.members)
    assert not any(secret in written for secret in (*canaries["secrets"], *game["secrets"]))


def test_a_generator_that_knows_held_out_text_alone_is_seldom_accused() -> None:
    """Of 60 such generators at most as many as a binomial of 5 % allows with 99.9 %, and each bound
    on epsilon is above 0 as seldom.
    """
    games = 60
    accused = 0
    refuted = 0
    for seed in range(games):
        rng = np.random.default_rng([seed, 7])
        corpus, others = corpus_of(30, rng)
        canaries, audits = planted(rng)
        made_up = [f"The code is {rng.integers(10**6):06d}" for _ in range(40)]
        written = Written(others, [*others, *made_up], made_up)
        spec = SPEC.model_copy(update={"seed": seed, "limit": 30, "permutations": 60})
        metrics = audited(spec, written, corpus, canaries, audits)
        accused += metrics["p_value"] < 0.05
        refuted += metrics["probed_game_epsilon_lower"] > 0
    most = binom.ppf(0.999, games, 0.05)
    assert accused <= most and refuted <= most


def test_p_values_of_each_test_alone_are_fair() -> None:
    """Of texts that know neither side, shares of small p-values are what they say."""
    games = 120
    small = dict.fromkeys(("closest_p_value", "near_p_value", "kernel_p_value"), 0)
    rng = np.random.default_rng(11)
    for _ in range(games):
        corpus, others = corpus_of(15, rng)
        metrics = nearest(corpus.points, others, 60, rng)
        metrics["kernel_p_value"] = dense(corpus.points, embedded(others), 0.1)["p_value"]
        for name in small:
            small[name] += metrics[name] <= 0.1
    for name, count in small.items():
        assert binom.sf(count - 1, games, 0.1) > 0.001, name


def test_nothing_to_compare_says_so() -> None:
    nobody = Sides([], [])
    rng = np.random.default_rng(0)
    assert told_apart(np.zeros(0), np.zeros(0))["auc"] is None
    assert nearest(nobody, ["a"], 10, rng)["closest_share"] is None
    assert found(nobody, ["a"])["p_value"] is None
    assert dense(nobody, embedded(["a"]), 0.1)["auc"] is None
    metrics = audited(SPEC, Written(["a"]), Corpus(nobody, nobody, []), {"digits": 0}, {})
    assert metrics["p_value"] is None and "reason" in str(metrics)


def test_documents_are_chosen_without_a_look_at_their_side(tmp_path: Any) -> None:
    def row(doc: str, text: str, split: str, gold: list[Any]) -> dict[str, Any]:
        return {"key": f"{doc}:0", "text": text, "split": split, "gold": gold}

    code = [(0, 4, "code", 1.0)]
    rows = [
        row("a", "1234 is longest of a", "train", code),
        row("a", "both have this very long sentence", "train", []),
        row("b", "both have this very long sentence", "test", []),
        row("b", "1234 b", "test", code),
        row("c", "5678 c", "test", code),
        row("d", "9012 d", "train", code),
        row("canary-0-0", "My ID is: 123456", "train", [(10, 16, "canary", 1.0)]),
        row("v", "valid", "valid", []),
    ]
    write_jsonl(tmp_path / "points", rows)
    corpus = read(tmp_path / "points", 10, np.random.default_rng(0))
    assert sorted(entry.part for entry in corpus.points.members) == [
        "1234 is longest of a",
        "9012 d",
    ]
    assert sorted(entry.part for entry in corpus.points.others) == ["1234 b", "5678 c"]
    # 1234 is of two documents
    assert [entry.part for entry in corpus.secrets.members] == ["9012"]
    assert [entry.part for entry in corpus.secrets.others] == ["5678"]
    assert corpus.reference == ["valid"]
    fewer = read(tmp_path / "points", 1, np.random.default_rng(0))
    assert len(fewer.points.members) == len(fewer.points.others) == 1
