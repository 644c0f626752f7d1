"""Tests of whether texts know members from others, each with its distribution if they do not.

All take a score or a count for members and others, of whom by chance as many are drawn
(`sides.py`). A small p-value says that texts tell of their training text; a large one, that this
test did not see it: `detectable_auc` is what it would have missed no more than once in five times.
"""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from confide.attacks.statistics.metrics import at_least, auc, auc_interval, auc_null, ends
from confide.attacks.texts.sides import Sides
from confide.scan.search import Searcher
from confide.text.likeness import embedded

POWER = 0.8  # of `detectable_auc`
NUMBER = re.compile(r"\d+")
ROWS = 512  # similarities that are made at once, of so many texts with all others


def told_apart(members: np.ndarray, others: np.ndarray) -> dict[str, Any]:
    """AUC of scores (m,) and (n,) with interval, null band and one-sided p-value."""
    if not len(members) or not len(others):
        return {"auc": None, "reason": "there are no members, or no others"}
    from scipy.stats import mannwhitneyu, norm

    value = auc(members, others)
    deviation = math.sqrt((len(members) + len(others) + 1) / (12 * len(members) * len(others)))
    reach = deviation * (norm.ppf(0.95) + norm.ppf(POWER))
    return {
        "members": len(members),
        "others": len(others),
        "auc": value,
        **ends("auc", auc_interval(value, len(members), len(others))),
        **ends("auc_null", auc_null(len(members), len(others))),
        "p_value": float(mannwhitneyu(members, others, alternative="greater").pvalue),
        "detectable_auc": min(1.0, 0.5 + reach),
    }


def scored(sides: Sides, score: Callable[[str, int, int], float]) -> dict[str, Any]:
    """How a score of text[start:end] tells members from others."""
    members, others = (
        np.array([score(entry.text, entry.start, entry.end) for entry in side]) for side in sides
    )
    return told_apart(members, others)


def similarities(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The nearest of `second` (m, d) to each of `first` (n, d): similarity and place, (n,) each."""
    best = []
    places = []
    for start in range(0, len(first), ROWS):
        cosines = first[start : start + ROWS] @ second.T
        places.append(cosines.argmax(1))
        best.append(cosines.max(1))
    return np.concatenate(best), np.concatenate(places)


def densities(points: np.ndarray, texts: np.ndarray, temperature: float) -> np.ndarray:
    """log of the mean over texts (m, d) of exp(similarity / temperature), for points (n, d): (n,).

    Embeddings have length 1, so that this is a density of the texts at each point but for a
    constant, with a von Mises-Fisher kernel.
    """
    found = np.empty(len(points))
    for start in range(0, len(points), ROWS):
        cosines = points[start : start + ROWS].astype(float) @ texts.T.astype(float)
        exponents = cosines / temperature
        largest = exponents.max(1)
        means = np.exp(exponents - largest[:, None]).mean(1)
        found[start : start + ROWS] = largest + np.log(means)
    return found


def dense(sides: Sides, texts: np.ndarray, temperature: float) -> dict[str, Any]:
    """How the density of texts, by their embeddings (m, d), tells members' points from others'."""
    members, others = (
        densities(embedded([entry.text for entry in side]), texts, temperature) for side in sides
    )
    return told_apart(members, others)


def nearest(
    sides: Sides, texts: Sequence[str], permutations: int, rng: np.random.Generator
) -> dict[str, Any]:
    """How near texts are to members and to others, by hashed words.

    `near`: of scores, each the similarity to the nearest text. `closest_share`: of the texts, those
    whose nearest document is a member's, 1/2 by chance; its p-value is exact, from permutations of
    who is a member. Several texts may be near one document, so that texts are not counted as if
    they were drawn apart.
    """
    if not texts or not sides.members:
        return {"closest_share": None, "reason": "there are no texts, or no members"}
    size = len(sides.members)
    order = rng.permutation(2 * size)  # so that ties fall on either side by lot
    entries = [*sides.members, *sides.others]
    documents = embedded([entries[place].text for place in order])
    is_member = order < size
    written = embedded(texts)
    near, _ = similarities(documents, written)
    distances, closest = similarities(written, documents)
    weights = np.bincount(closest, minlength=2 * size)
    seen = int(weights[is_member].sum())
    hits = sum(weights[rng.permutation(2 * size)[:size]].sum() >= seen for _ in range(permutations))
    return {
        **{
            f"near_{key}": value
            for key, value in told_apart(near[is_member], near[~is_member]).items()
        },
        "near_members": float(np.median(near[is_member])),
        "near_others": float(np.median(near[~is_member])),
        "closest": float(np.median(distances)),
        "closest_share": seen / len(texts),
        "closest_p_value": (1 + int(hits)) / (1 + permutations),
    }


def found(sides: Sides, texts: Sequence[str]) -> dict[str, Any]:
    """Secrets of members and of others that stand in the texts, counted; no secret is named.

    The p-value is exact: of all secrets that are found, as many as there are of either side could
    be members'. It is None where nothing can be found.
    """
    entries = [*sides.members, *sides.others]
    searcher = Searcher({number: entry.part for number, entry in enumerate(entries)})
    hits = {hit.secret for hit in searcher.hits(text.encode() + b"\n" for text in texts)}
    size = len(sides.members)
    members = sum(number < size for number in hits)
    return {
        "members": size,
        "others": size,
        "found": members,
        "found_others": len(hits) - members,
        "p_value": at_least(members, population=2 * size, marked=size, drawn=len(hits))
        if size
        else None,
    }


def surfaced(
    texts: Sequence[str], secrets: Sequence[str], taken: Sequence[str], digits: int
) -> dict[str, Any]:
    """Planted numbers of so many digits among all such numbers in the texts.

    Planted ones were drawn evenly, without regard to anything in the corpus, from all numbers but
    those that are `taken`. So of the different numbers that a model writes which knows of none, the
    planted ones are hypergeometric: the p-value is exact, whatever the model prefers to write.
    """
    values = {
        number for text in texts for number in NUMBER.findall(text) if len(number) == digits
    } - set(taken)
    seen = len(values & set(secrets))
    total = 10**digits - len({value for value in taken if len(value) == digits})
    return {
        "texts": len(texts),
        "values": len(values),
        "planted": len(secrets),
        "surfaced": seen,
        "expected": len(values) * len(secrets) / total,
        "p_value": at_least(seen, population=total, marked=len(secrets), drawn=len(values)),
    }
