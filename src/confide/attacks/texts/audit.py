"""All that texts give away, from the texts alone and, beside that, from more that are asked for.

Whoever is handed texts has no more than these. The owner can ask the model for further ones, hotter
and begun as a canary begins, and so learns sooner what a larger corpus would have told. Nothing
here reads a probability of the model.

Each test has a p-value that is small by chance no more often than it says; `p_value` is the
smallest times the number of tests (Bonferroni). Bounds on epsilon are those of the coin game, with
scores from a model of characters that was fitted to the texts: `texts_*` of the texts as they are,
`probed_*` with those that were asked for. Each bound holds by itself with the game's confidence.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from confide.attacks.audits.game import CLAIMS, against_coins
from confide.attacks.texts.ngrams import Ngrams
from confide.attacks.texts.nulls import dense, found, nearest, scored, surfaced
from confide.attacks.texts.sides import Corpus
from confide.specs import TextAuditSpec
from confide.text.likeness import embedded

ALARM = "p_value"  # how the names of all p-values end
Json = dict[str, Any]


class Written(NamedTuple):
    """What a model wrote: the texts that are handed out, and those that the audit asked for."""

    texts: Sequence[str]
    hot: Sequence[str] = ()
    prompted: Sequence[str] = ()


def audited(
    spec: TextAuditSpec,
    written: Written,
    corpus: Corpus,
    canaries: Json,
    audits: Mapping[str, Json],
) -> Json:
    """All numbers. canaries: what was planted for certain; audits: what coins decided.

    Guarantees: holds no text and no secret.
    """
    rng = np.random.default_rng(spec.seed)
    few = some(written.texts, spec.texts, rng)
    tests = on_canaries(written, canaries, audits)
    tests |= on_members(spec, few, corpus)
    tests |= on_densities(spec, few, corpus)
    tests |= prefixed("nearest", nearest(corpus.points, few, spec.permutations, rng))
    for name, texts in written._asdict().items():
        tests |= prefixed(f"scan_{name}", found(corpus.secrets, texts))
    alarms = [
        value
        for name, value in tests.items()
        if name.endswith(ALARM) and not name.startswith("blind") and value is not None
    ]
    metrics: Json = {
        "p_value": min(1.0, min(alarms) * len(alarms)) if alarms else None,
        "tests": len(alarms),
    }
    if spec.game is not None:
        metrics |= {"delta": spec.game.delta, "confidence": spec.game.confidence}
    fits = {"texts": few, "probed": [*few, *written.prompted]}
    for name, texts in fits.items():
        metrics |= prefixed(name, on_coins(spec, texts, audits))
    return metrics | tests


def prefixed(name: str, metrics: Json) -> Json:
    """The same numbers under longer names."""
    return {f"{name}_{key}": value for key, value in metrics.items()}


def some(texts: Sequence[str], limit: int, rng: np.random.Generator) -> list[str]:
    """At most so many of the texts, in their order."""
    size = min(limit, len(texts))
    return [texts[place] for place in np.sort(rng.choice(len(texts), size, replace=False))]


def on_canaries(written: Written, canaries: Json, audits: Mapping[str, Json]) -> Json:
    """Whether planted numbers surface in texts, hot texts, and texts that begin as theirs do."""
    digits = canaries.get("digits")
    if not digits or not canaries.get("secrets"):
        return {"canaries_reason": "no canaries of digits are planted"}
    taken = [secret for audit in audits.values() for secret in audit["secrets"]]
    tests: Json = {}
    for name, texts in written._asdict().items():
        numbers = surfaced(texts, canaries["secrets"], taken, digits)
        tests |= prefixed(f"canaries_{name}", numbers)
    return tests


def on_members(spec: TextAuditSpec, texts: Sequence[str], corpus: Corpus) -> Json:
    """Whether a model of the texts finds members more likely than others.

    A score is how much more likely a string is by the texts than by held-out text of neither side,
    where there is any. `blind` scores never see the texts: what they tell apart, the split does.
    """
    fitted = Ngrams(texts, spec.order)
    reference = Ngrams(corpus.reference[: spec.limit], spec.order) if corpus.reference else None

    def gain(text: str, start: int, end: int) -> float:
        known = 0.0 if reference is None else reference.score(text, start, end)
        return fitted.score(text, start, end) - known

    tests: Json = {}
    for name, sides in (("points", corpus.points), ("secrets", corpus.secrets)):
        tests |= prefixed(name, scored(sides, gain))
        if reference is not None:
            tests |= prefixed(f"blind_{name}", scored(sides, reference.score))
    return tests


def on_densities(spec: TextAuditSpec, texts: Sequence[str], corpus: Corpus) -> Json:
    """Whether texts lie denser about members' points than about others', by hashed words.

    `kernel_secrets`: about those points in which there is a secret.
    """
    written = embedded(texts)
    tests: Json = {}
    for name, sides in (("points", corpus.points), ("secrets", corpus.secrets)):
        tests |= prefixed(f"kernel_{name}", dense(sides, written, spec.kernel))
    return tests


def on_coins(spec: TextAuditSpec, texts: Sequence[str], audits: Mapping[str, Json]) -> Json:
    """Lower bounds on epsilon of each set of coins; a reason where a set tells nothing."""
    fitted = Ngrams(texts, spec.order)
    metrics: Json = {}
    for name, (relation, unit) in CLAIMS.items():
        numbers: Json = {"relation": relation, "unit": unit}
        audit = audits.get(name)
        if spec.game is None:
            numbers["reason"] = "coins are not guessed from texts of this run"
        elif audit is None or not audit["digits"]:
            numbers["reason"] = "no sentences of digits are planted in this corpus"
        else:
            start = len(audit["prefix"])
            scores = [
                fitted.score(audit["prefix"] + secret, start, start + len(secret))
                for secret in audit["secrets"]
            ]
            coins = np.array(audit["coins"], dtype=bool)
            numbers["coins"] = len(coins)
            numbers |= against_coins(spec.game, np.array(scores), coins)
        metrics |= prefixed(name, numbers)
    return metrics
