"""Likelihood ratios of what a model writes when prompted with another domain, and its C.

The ratio is of the continuation alone: a continuation's score is log p(text | prompt) per token
under the target, minus the same under a reference that never saw the target domains; higher means
that it stems from them. (The code of Domain Private Transformers divides the perplexity of prompt
and text by that of the prompt, which is no conditional perplexity, and sorts its examples by it.)
C is that of domain privacy, definition 4.1, for a prompt domain i and a target domain j:

    Pr[M_D(c_i) in d_j] <= C Pr[M_{D without d_j}(c_i) in d_j],

estimated by the shares of all continuations, the empty ones too, that a judge finds to be of d_j,
with Koopman's interval. That interval is over dialogues and samples, for these two models; how much
two trainings of one model differ is not in it.
"""

from typing import Any

import numpy as np

from confide.attacks.domains.examples import veil, written
from confide.attacks.domains.judges import GOLD, Verdicts, policies_of
from confide.attacks.domains.leak import (
    Answers,
    answers,
    described,
    judged,
    leaks,
    pairs,
    rate,
)
from confide.attacks.domains.prompts import read
from confide.attacks.domains.proportions import ratio
from confide.attacks.membership.lira import roc
from confide.attacks.membership.scores import secret_log_probs
from confide.attacks.statistics.metrics import TAILS, auc, auc_interval, auc_null, ends, hull
from confide.attacks.statistics.scoring import view_of
from confide.attacks.target import Target
from confide.errors import InputError
from confide.files.io import number
from confide.models import LanguageModel
from confide.specs import DomainLiraSpec


def continuation(
    network: LanguageModel, replies: Answers, chosen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Total log-probability in nats (m,) of the chosen answers after their prompts.

    Beside it are their numbers of tokens (m,).
    """
    texts = [[*replies.ids[place], *replies.generations[place].ids] for place in chosen]
    marks = [
        np.arange(len(text)) >= len(replies.ids[place])
        for text, place in zip(texts, chosen, strict=True)
    ]
    return secret_log_probs(network, view_of(texts, marks))


def precision(scores: np.ndarray, flags: np.ndarray, top: int) -> float | None:
    """Share of flagged texts among the `top` highest scores, ties at the cut in expectation.

    None where there are fewer texts.
    """
    if len(scores) < top:
        return None
    cut = np.sort(scores)[-top]
    above = scores > cut
    tied = scores == cut
    return float((flags[above].sum() + (top - above.sum()) * flags[tied].mean()) / top)


def area_interval(
    area: float, scores: np.ndarray, flags: np.ndarray, clusters: np.ndarray, spec: DomainLiraSpec
) -> tuple[float, float]:
    """Percentile interval of the AUC over draws of whole dialogues.

    It is never narrower than what so few dialogues can tell: where one of them alone is flagged,
    it is the same one in every draw.
    """
    rng = np.random.default_rng(spec.seed)
    members = [np.flatnonzero(clusters == cluster) for cluster in np.unique(clusters)]
    values = [area]
    for _ in range(spec.bootstrap):
        picks = rng.integers(len(members), size=len(members))
        rows = np.concatenate([members[pick] for pick in picks])
        flagged = flags[rows]
        if 0 < flagged.sum() < len(rows):
            values.append(auc(scores[rows][flagged], scores[rows][~flagged]))
    drawn = np.quantile(values, TAILS).tolist()
    found, others = (len(np.unique(clusters[kind])) for kind in (flags, ~flags))
    return hull(drawn, auc_interval(area, found, others))


def told_apart(
    spec: DomainLiraSpec, scores: dict[str, np.ndarray], flags: np.ndarray, clusters: np.ndarray
) -> dict[str, Any]:
    """How well scores (m,) find the flagged texts (m,): AUC, curve and precision.

    None where all are flagged or none is.
    """
    metrics: dict[str, Any] = {"flagged": int(flags.sum()), "of": len(flags)}
    if not 0 < flags.sum() < len(flags):
        return metrics | {"auc": None, "reason": "a judge flags all of the texts, or none"}
    for prefix, values in scores.items():
        area = auc(values[flags], values[~flags])
        metrics[f"{prefix}auc"] = area
        metrics |= ends(f"{prefix}auc", area_interval(area, values, flags, clusters, spec))
    metrics |= ends("auc_null", auc_null(int(flags.sum()), int((~flags).sum())))
    ratios = scores[""]
    return metrics | {
        "roc": roc(ratios[flags], ratios[~flags]),
        "precision": {str(top): precision(ratios, flags, top) for top in spec.top},
    }


def domain_lira(spec: DomainLiraSpec, target: Target) -> dict[str, Any]:
    """Scores of the target's continuations by each judge (`ranked`), and C of all pairs (`pairs`).

    Guarantees: numbers only, unless the specification asks for examples: these are text of the
    model and of prompts, masked by `examples.veil`.
    """
    if target.reference is None:
        message = "needs a model trained without the target domains"
        raise InputError(message, key="reference", value=spec.reference)
    wanted = pairs(spec)
    texts = read(spec, target.points)
    try:
        replies, reference_replies = answers(
            spec, target.tokenizer, texts, target.model, target.reference
        )
    except FloatingPointError as error:
        return {"ranked": {}, "pairs": [], "reason": str(error)}
    verdicts = judged(spec, texts, replies)
    reference_verdicts = judged(spec, texts, reference_replies)
    metrics = described(texts, replies)
    metrics |= {
        "pairs": constants(
            spec, wanted, (replies, verdicts), (reference_replies, reference_verdicts)
        ),
        "ranked": {},
    }
    written_tokens = [bool(generation.ids) for generation in replies.generations]
    chosen = np.flatnonzero(replies.filled & written_tokens)
    metrics["scored"] = len(chosen)
    if not len(chosen):
        return metrics | {"reason": "the model wrote nothing"}
    alone, count = continuation(target.model, replies, chosen)
    total = alone - continuation(target.reference, replies, chosen)[0]
    if not np.isfinite(total).all():
        return metrics | {"reason": "the models' probabilities are not finite"}
    scores = {
        "": total / count,
        "total_": total,
        "target_": alone / count,
        "length_": count.astype(float),
    }
    clusters = np.array([replies.prompts[place].dialogue for place in chosen])
    leaking = leaks(spec, verdicts, replies)
    for name, flags in leaking.items():
        metrics["ranked"][name] = told_apart(spec, scores, flags[chosen], clusters)
    if spec.examples:
        best = np.argsort(-scores[""], kind="stable")[: spec.examples]
        show = veil(policies_of(spec).values(), target.with_secrets, spec.min_secret)
        rows = written(show, replies.prompts, replies.texts, leaking, chosen[best])
        metrics["examples"] = [
            {"score": score} | row
            for score, row in zip(scores[""][best].tolist(), rows, strict=True)
        ]
    return metrics


def constants(
    spec: DomainLiraSpec,
    wanted: list[tuple[str, str]],
    target: tuple[Answers, dict[str, Verdicts]],
    reference: tuple[Answers, dict[str, Verdicts]],
) -> list[dict[str, Any]]:
    """C of each pair of domains by each judge, with both shares.

    C is "inf" where the reference's share is 0, and None where both are.
    """
    rows = []
    for domain_i, domain_j in wanted:
        for name in [*spec.judges, GOLD]:
            ours, theirs = (
                rate(verdicts[domain_j][name], replies, replies.domains == domain_i)
                for replies, verdicts in (target, reference)
            )
            row: dict[str, Any] = {"prompt": domain_i, "target": domain_j, "judge": name}
            if ours is not None and theirs is not None:
                value, low, high = ratio(ours, theirs)
                row |= {
                    "target_rate": ours.rate,
                    "reference_rate": theirs.rate,
                    "generations": ours.n,
                    "c": None if np.isnan(value) else number(value),
                    "c_low": low,
                    "c_high": number(high),
                }
            rows.append(row)
    return rows
