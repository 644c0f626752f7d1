"""Exposure of planted canaries: log2 |R| - log2 rank of the secret.

It is ranked among all |R| = 10^n values that it could have had. Values are ranked by total
log-probability in the canary's sentence (not per token: values differ in their number of tokens),
ties at mid-rank. Ranks are exact unless a budget of `evaluations` does not reach; then each has an
interval (budget.py). The null is exact, too (null.py). The interval of a mean that is not the
null's is a bootstrap over canaries, and with as few as ten somewhat too short.

`published`: beside it the exposure as Selective-DP ranks it (published.py).
"""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from confide.attacks.exposure.budget import Ranking, Space, ranking
from confide.attacks.exposure.candidates import Sentence
from confide.attacks.exposure.published import published_ranks, published_summary
from confide.attacks.exposure.ranking import Sizes
from confide.attacks.exposure.shares import counted, joined
from confide.attacks.exposure.summary import STATISTICS, summary
from confide.attacks.statistics.metrics import ends
from confide.attacks.statistics.scoring import NOT_FINITE
from confide.attacks.target import Target
from confide.errors import InputError
from confide.files.io import read_file, read_json
from confide.specs import ExposureSpec, GameSpec
from confide.specs.files import CanariesFile

# 10^8 candidates of single digits are minutes; where digits merge, encoding them takes half an hour
MOST_DIGITS = 8
GROUPS = {"": "secrets", "control_": "controls"}
BUDGETED = "ranks were estimated within the budget of evaluations"


def exposure(spec: ExposureSpec, target: Target) -> dict[str, Any]:
    """Exposure of every canary and every control, by number; secrets themselves are never written.

    InputError where the corpus has no canaries.
    """
    planted = planted_in(target)
    secrets = all_of(planted)
    if target.counts:
        secret_ranks, sizes = of_shares(spec, target, planted, secrets)
    else:
        secret_ranks, sizes = ranked(spec, target, planted, secrets)
    published = None
    reason = ""
    if spec.published and secret_ranks is not None and not secret_ranks.exact.all():
        reason = BUDGETED
    elif spec.published:
        published, reason = published_ranks(
            target,
            sentence=sentence_of(planted),
            values=np.array(secrets, dtype=np.int64),
            honest=None if secret_ranks is None else secret_ranks.rank,
            sizes=sizes,
            chunk=spec.chunk,
        )
    metrics: dict[str, Any] = sizes | {"copies": planted["copies"]}
    start = 0
    for prefix, key in GROUPS.items():
        count = len(planted[key])
        group = slice(start, start + count)
        start = group.stop
        candidates = sizes["candidates"]
        numbers = judged(
            None if secret_ranks is None else secret_ranks.part(group), count, candidates
        )
        if spec.published:
            of_group = None if published is None else published[group]
            numbers |= published_summary(of_group, reason, candidates)
        metrics |= {f"{prefix}{name}": value for name, value in numbers.items()}
    return metrics


def ranked(
    spec: ExposureSpec | GameSpec, target: Target, template: dict[str, Any], secrets: list[str]
) -> tuple[Ranking | None, Sizes]:
    """Ranks of S secrets among all values in a template's sentence, and sizes of the search.

    There are no ranks where probabilities are not finite.
    """
    space = space_of(spec, target, template)
    secret_ranks, sizes = ranking(space, np.array(secrets, dtype=np.int64), spec.seed)
    return secret_ranks, sizes | {"evaluations": space.evaluations.count}


def of_shares(
    spec: ExposureSpec, target: Target, planted: dict[str, Any], secrets: list[str]
) -> tuple[Ranking | None, Sizes]:
    """The same of S secrets from what several jobs have counted."""
    space = space_of(spec, target, planted)
    ranks, sizes = joined(space, np.array(secrets, dtype=np.int64), target.counts, target.weights)
    secret_ranks = None if ranks is None else Ranking.of(ranks)
    return secret_ranks, sizes | {"evaluations": space.evaluations.count}


def share_of(spec: ExposureSpec, target: Target, share: str) -> dict[str, Any]:
    """What is counted of one share of the candidates, such as 2-of-8.

    InputError where the corpus has no canaries, or the attack has a budget, which no share knows
    how to divide.
    """
    if spec.evaluations is not None:
        message = "a budget is of one job: leave shares out"
        raise InputError(message, key="evaluations", value=spec.evaluations)
    planted = planted_in(target)
    secrets = np.array(all_of(planted), dtype=np.int64)
    return counted(space_of(spec, target, planted), secrets, share)


def space_of(spec: ExposureSpec | GameSpec, target: Target, template: dict[str, Any]) -> Space:
    """All values in a template's sentence, for the model that is attacked."""
    return Space(
        target.model,
        target.tokenizer,
        sentence_of(template),
        chunk=spec.chunk,
        most=np.inf if spec.evaluations is None else spec.evaluations,
    )


def sentence_of(template: dict[str, Any]) -> Sentence:
    """The sentence of planted canaries."""
    return Sentence(template["prefix"], template["suffix"], template["digits"])


def judged(ranks: Ranking | None, count: int, candidates: int) -> dict[str, Any]:
    """Exposures of `count` secrets and their summary.

    Without numbers, and with a reason, where there is nothing to rank. Where ranks are estimates,
    each statistic has the same of the exposures' low ends and of their high ends beside it, and its
    p-value is that of the low ends.
    """
    if not count:
        return {"count": 0, "exposures": [], "reason": "none in this corpus"}
    if ranks is None:
        return {"count": count, "exposures": None, "reason": NOT_FINITE}
    most = math.log2(candidates)
    # a high rank is a low exposure
    bits, low, high = (
        (most - np.log2(values)).tolist() for values in (ranks.rank, ranks.high, ranks.low)
    )
    metrics: dict[str, Any] = {
        "count": count,
        "exposures": bits,
        "exact": bool(ranks.exact.all()),
        "low": low,
        "high": high,
    }
    metrics |= summary(bits, STATISTICS, most)
    if metrics["exact"]:
        return metrics
    metrics["exact_each"] = ranks.exact.tolist()
    metrics["estimated_share"] = float((~ranks.exact).mean())
    return metrics | of_estimates(low, high, most)


def of_estimates(low: list[float], high: list[float], most: float) -> dict[str, Any]:
    """What the ends of exposures' intervals make of their summary."""
    lower = summary(low, STATISTICS, most)
    upper = summary(high, STATISTICS, most)
    metrics = ends("mean", (lower["mean_low"], upper["mean_high"]))
    for name in STATISTICS:
        metrics |= ends(f"{name}_estimated", (lower[name], upper[name]))
        metrics[f"p_{name}"] = lower[f"p_{name}"]
    return metrics


def planted_in(target: Target) -> dict[str, Any]:
    """The canaries of a target. InputError where it has none."""
    if target.canaries is None:
        raise InputError("needs a corpus with planted canaries", key="attack", value="exposure")
    return read_canaries(target.canaries)


def all_of(planted: dict[str, Any]) -> list[str]:
    """Canaries and controls, in the order in which they are ranked."""
    return [secret for key in GROUPS.values() for secret in planted[key]]


def read_canaries(path: Path) -> dict[str, Any]:
    """The planted canaries.

    InputError where a key is missing or a secret has another number of digits than stated.
    """
    planted = read_json(path)
    if isinstance(planted, dict) and planted.get("kind") == "words":
        message = "holds canaries of words, which sequence_exposure is for"
        raise InputError(message, file=path, key="kind", value="words")
    return checked(read_file(path, CanariesFile), path, ("secrets", "controls"))


def checked(
    planted: dict[str, Any], path: Path, lists: tuple[str, ...], where: str = ""
) -> dict[str, Any]:
    """A sentence with `lists` of secrets; `where` is what stands before its keys in an error."""
    digits = planted["digits"]
    if not 1 <= digits <= MOST_DIGITS:
        message = f"exact exposure wants 1 to {MOST_DIGITS} digits"
        raise InputError(message, file=path, key=f"{where}digits", value=digits)
    value = re.compile(rf"[0-9]{{{digits}}}")
    for key in lists:
        if not all(map(value.fullmatch, planted[key])):
            raise InputError(f"a value is not {digits} digits", file=path, key=where + key)
    return planted
