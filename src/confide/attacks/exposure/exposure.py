"""Exact exposure of planted canaries: log2 |R| - log2 rank of the secret among all |R| = 10^n
values it could have had.

Values are ranked by total log-probability in the canary's sentence (not per token: values differ in
their number of tokens), ties at mid-rank. The null is exact, too (null_exposure.py). The interval
of a mean that is not the null's is a bootstrap over canaries, and with as few as ten somewhat too
short.

`published`: beside it the exposure as Selective-DP ranks it (published.py).
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from confide.attacks.exposure.candidates import candidate_blocks
from confide.attacks.exposure.null import null_band, null_tail
from confide.attacks.exposure.published import published_ranks, published_summary
from confide.attacks.exposure.ranking import log_probs_apart, ranks_among
from confide.attacks.target import Target
from confide.errors import InputError
from confide.files.io import read_file, read_json
from confide.specs import ExposureSpec
from confide.specs.files import CanariesFile

# 10^8 candidates of single digits are minutes; where digits merge, encoding them takes half an hour
MOST_DIGITS = 8
GROUPS = {"": "secrets", "control_": "controls"}
RESAMPLES = 2_000


def mean_interval(found: list[float], level: float = 0.95) -> tuple[float, float]:
    """Two-sided percentile bootstrap interval of the mean; the resamples are the same in every
    run.
    """
    picks = np.random.default_rng(0).integers(len(found), size=(RESAMPLES, len(found)))
    low, high = np.quantile(np.asarray(found)[picks].mean(1), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _summary(found: list[float], candidates: int) -> dict[str, Any]:
    """Mean (with its interval), median and max, each with its null mean, its band and a one-sided
    p-value.
    """
    metrics: dict[str, Any] = dict(
        zip(("mean_low", "mean_high"), mean_interval(found), strict=True)
    )
    for name, function in (("mean", np.mean), ("median", np.median), ("max", np.max)):
        value = float(function(found))
        mean, low, high = null_band(name, len(found), most=math.log2(candidates))
        metrics |= {
            name: value,
            f"null_{name}": mean,
            f"null_{name}_low": low,
            f"null_{name}_high": high,
        }
        metrics[f"p_{name}"] = null_tail(name, len(found), value)
    return metrics


def exposure(spec: ExposureSpec, target: Target) -> dict[str, Any]:
    """Exposure of every canary and every control, by number; secrets themselves are never
    written.
    """
    if target.canaries is None:
        raise InputError("needs a corpus with planted canaries", key="attack", value="exposure")
    planted = read_canaries(target.canaries)
    secrets = [secret for key in GROUPS.values() for secret in planted[key]]
    ranks, sizes = ranked(target, planted, secrets, spec.chunk)
    values = np.array([int(secret) for secret in secrets], dtype=np.int64)
    again, reason = (
        published_ranks(
            target, template=planted, values=values, honest=ranks, sizes=sizes, chunk=spec.chunk
        )
        if spec.published
        else (None, "")
    )
    metrics: dict[str, Any] = sizes | {"copies": planted["copies"]}
    start = 0
    for prefix, key in GROUPS.items():
        own = slice(start, start := start + len(planted[key]))
        found = judged(
            None if ranks is None else ranks[own], len(planted[key]), sizes["candidates"]
        )
        if spec.published:
            found |= published_summary(
                None if again is None else again[own], reason, sizes["candidates"]
            )
        metrics |= {f"{prefix}{name}": value for name, value in found.items()}
    return metrics


def ranked(
    target: Target, template: dict[str, Any], secrets: list[str], chunk: int
) -> tuple[np.ndarray | None, dict[str, float]]:
    """Ranks (S,) of secrets among all values in a template's sentence, None if they are not finite;
    sizes of the search.
    """
    sentence = template["prefix"], template["suffix"], template["digits"]
    values = np.array([int(secret) for secret in secrets], dtype=np.int64)
    apart = log_probs_apart(target.model, target.tokenizer, *sentence, values, chunk)
    blocks = candidate_blocks(target.tokenizer, *sentence)
    with tqdm(
        total=10 ** template["digits"],
        desc="exposure",
        unit="candidate",
        unit_scale=True,
        disable=None,
    ) as bar:
        return ranks_among(
            target.model, blocks=blocks, secrets=values, apart=apart, chunk=chunk, bar=bar
        )


def judged(ranks: np.ndarray | None, count: int, candidates: int) -> dict[str, Any]:
    """Exposures of `count` secrets and their summary; without numbers, and with a reason, where
    there is nothing to rank.
    """
    if not count:
        return {"count": 0, "exposures": [], "reason": "none in this corpus"}
    if ranks is None:
        return {
            "count": count,
            "exposures": None,
            "reason": "the model's probabilities are not finite",
        }
    found = (math.log2(candidates) - np.log2(ranks)).tolist()
    return {"count": count, "exposures": found} | _summary(found, candidates)


def read_canaries(path: Path) -> dict[str, Any]:
    """The planted canaries; InputError where a key is missing or a secret has another number of
    digits than stated.
    """
    planted = read_json(path)
    if isinstance(planted, dict) and planted.get("kind") == "words":
        raise InputError(
            "holds canaries of words, which sequence_exposure is for",
            file=path,
            key="kind",
            value="words",
        )
    return checked(read_file(path, CanariesFile), path, ("secrets", "controls"))


def checked(
    planted: dict[str, Any], path: Path, lists: tuple[str, ...], where: str = ""
) -> dict[str, Any]:
    """A sentence with `lists` of secrets; `where` is what stands before its keys in an error."""
    digits = planted["digits"]
    if not 1 <= digits <= MOST_DIGITS:
        raise InputError(
            f"exact exposure wants 1 to {MOST_DIGITS} digits",
            file=path,
            key=f"{where}digits",
            value=digits,
        )
    for key in lists:
        if any(
            len(secret) != digits or not (secret.isascii() and secret.isdigit())
            for secret in planted[key]
        ):
            raise InputError(f"a value is not {digits} digits", file=path, key=where + key)
    return planted
