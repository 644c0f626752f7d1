"""Fit a policy of domains (Domain Private Transformers, section 5.1): keywords or a classifier.

Fits on the train split, tunes the threshold z of a classifier on the valid split, and scores the
product on the test split. Keywords, and the vocabulary of a classifier, ARE text of the corpus: it
must be public, or held out from training (the paper fits both to the text that it protects). The
same spec gives the same bytes on the same machine; the scores are numbers alone.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from confide.errors import InputError
from confide.files.io import write_json
from confide.files.jsons import JsonObject
from confide.files.rows import read_rows
from confide.policies.classifier_training import train
from confide.policies.domain_classifier import Classifier, Probabilities, probabilities, save
from confide.policies.domain_classifier import finder as windows_finder
from confide.policies.keyword import finder
from confide.policies.keyword_mining import mine
from confide.policies.spans import Policy
from confide.policies.utterances import Texts, spoken, utterances, windows
from confide.specs import ClassifierFitSpec, DomainPolicySpec, KeywordFitSpec
from confide.types import SPLITS, Span

Shares = dict[str, float | None]  # None: of nothing
Find = Callable[[Sequence[str]], list[list[Span]]]


def domain_policy(spec: DomainPolicySpec, *, points: Path, output: Path, scores: Path) -> None:
    """Write the keywords (JSON) or the classifier (safetensors), and the scores.

    `points` are those of a corpus of domains.

    Guarantees: fits on the train split, tunes z on the valid split; give it public or held-out
    text.
    """
    corpus: dict[str, Texts] = {split: read(spec, points, split) for split in SPLITS}
    if isinstance(spec.fit, KeywordFitSpec):
        policies, figures = fitted_keywords(spec.fit, corpus["train"], output)
    else:
        policies, figures = fitted_classifier(spec.fit, corpus, output)
    figures["kind"] = spec.fit.kind
    figures["documents"] = {
        split: {domain: len(documents) for domain, documents in texts.items()}
        for split, texts in corpus.items()
    }
    write_json(scores, figures | {"flagged": flagged(policies, corpus["test"])})


def fitted_keywords(
    fit: KeywordFitSpec, train_texts: Texts, output: Path
) -> tuple[dict[str, Find], JsonObject]:
    """Write the keywords; a policy for each domain, and how many keywords it has."""
    mined = mine(fit, train_texts)
    write_json(output, mined)
    policies = {domain: each(finder(mined, [domain])) for domain in train_texts}
    return policies, {"keywords": {domain: len(keywords) for domain, keywords in mined.items()}}


def fitted_classifier(
    fit: ClassifierFitSpec, corpus: dict[str, Texts], output: Path
) -> tuple[dict[str, Find], JsonObject]:
    """Write the classifier with its threshold z; a policy for each domain, and the scores."""
    domains = list(corpus["train"])
    model = train(fit, corpus["train"])
    ask = remembering(model)
    valid = judged(ask, corpus["valid"], fit.window)
    test = judged(ask, corpus["test"], fit.window)
    z = fit.threshold
    if fit.precision is not None or fit.recall is not None:
        z = tuned(*valid, precision=fit.precision, recall=fit.recall)
    if len(valid[1]) and not (valid[0].max(1) > z).any():
        message = (
            "nothing of the valid split is flagged at it: "
            "train longer (fit.epochs), or tune it (fit.precision)"
        )
        raise InputError(message, key="fit.threshold", value=z)
    save(model._replace(threshold=z), output)
    policies = {
        domain: windows_finder(ask, domains, [index], z, fit.window)
        for index, domain in enumerate(domains)
    }
    return policies, {
        "threshold": z,
        "seed": fit.seed,
        "accuracy": accuracy(*test, domains),
        "valid": at(*valid, z),
        "test": at(*test, z),
    }


def each(policy: Policy) -> Find:
    """A policy on many texts."""
    return lambda texts: [policy(text) for text in texts]


def read(spec: DomainPolicySpec, points: Path, split: str) -> Texts:
    """Points of a split by domain and document, domains in order.

    InputError where a domain has nothing to learn from.
    """
    texts: Texts = {}
    for text, domain, doc, theirs in read_rows(points, "text", "domain", "doc", "split"):
        if domain is None:
            raise InputError("has points without one", file=points, key="domain")
        documents = texts.setdefault(domain, {})
        if theirs == split and spoken(text):
            documents.setdefault(doc, []).append(text)
    for domain in spec.domains or ():
        if domain not in texts:
            message = f"unknown: one of {', '.join(sorted(texts))}"
            raise InputError(message, file=points, key="domains", value=domain)
    chosen = list(dict.fromkeys(spec.domains)) if spec.domains else sorted(texts)
    if len(chosen) < 2:
        raise InputError("there must be two at least", file=points, key="domains")
    for domain in chosen:
        if split == "train" and not texts[domain]:
            message = "has no text in the train split"
            raise InputError(message, file=points, key="domains", value=domain)
    return {domain: texts[domain] for domain in chosen}


def remembering(model: Classifier) -> Probabilities:
    """The model's probabilities, with each window computed once.

    Dialogue repeats itself, and every domain asks the same.
    """
    known: dict[str, np.ndarray] = {}

    def ask(texts: Sequence[str]) -> np.ndarray:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        known.update(zip(new, probabilities(model, new), strict=True))
        return np.array([known[text] for text in texts]).reshape(len(texts), len(model.labels))

    return ask


def judged(ask: Probabilities, texts: Texts, size: int) -> tuple[np.ndarray, np.ndarray]:
    """(n, D) probabilities of all windows of these texts, and (n,) the labels that they should
    have.
    """
    labelled = [
        (" ".join(text[start:end].split()), label)
        for label, documents in enumerate(texts.values())
        for points in documents.values()
        for text in points
        for start, end in windows(text, size)
    ]
    return ask([window for window, _ in labelled]), np.array([label for _, label in labelled], int)


def tuned(
    scores: np.ndarray,
    truth: np.ndarray,
    *,
    precision: float | None = None,
    recall: float | None = None,
) -> float:
    """The smallest z with this precision, or else the largest z with this recall.

    Guarantees: with both, either holds; InputError where no z does it.
    """
    candidates = np.unique([0.0, *scores.max(1, initial=0.0)])
    rate_by_name = rates(scores, truth, candidates)
    precise = rate_by_name["precision"] >= (precision or 0.0)
    complete = rate_by_name["recall"] >= (recall or 0.0)
    enough = precise & complete
    if not enough.any():
        key = "fit.recall" if precision is None else "fit.precision"
        raise InputError("no threshold reaches it on the valid split", key=key)
    return float(candidates[enough][-1 if precision is None else 0])


def rates(scores: np.ndarray, truth: np.ndarray, z: np.ndarray) -> dict[str, np.ndarray]:
    """Precision and recall of the windows that are flagged at each z.

    Precision is the share of the flagged ones that are of the right domain, recall the share of all
    windows that these are.

    Not a number where nothing is flagged, or there is nothing.
    """
    likeliest = scores.max(1, initial=0.0)
    right = np.sort(likeliest[scores.argmax(1) == truth])
    flagged = len(truth) - np.searchsorted(np.sort(likeliest), z, side="right")
    hits = len(right) - np.searchsorted(right, z, side="right")
    with np.errstate(invalid="ignore"):
        return {"precision": hits / flagged, "recall": hits / np.float64(len(truth))}


def at(scores: np.ndarray, truth: np.ndarray, z: float) -> Shares:
    """Both rates at one z, as JSON has them: null for what is not a number."""
    rate_by_name = rates(scores, truth, np.array([z]))
    return {
        name: None if np.isnan(value[0]) else round(float(value[0]), 4)
        for name, value in rate_by_name.items()
    }


def accuracy(scores: np.ndarray, truth: np.ndarray, domains: list[str]) -> Shares:
    """Share of each domain's windows whose likeliest label is their own."""
    likeliest = scores.argmax(1)
    return {
        domain: share(int(np.sum(likeliest[truth == index] == index)), int(np.sum(truth == index)))
        for index, domain in enumerate(domains)
    }


def share(part: int, whole: int) -> float | None:
    """A part of a whole, rounded; None where there is nothing."""
    return round(part / whole, 4) if whole else None


def flagged(policies: dict[str, Find], texts: Texts) -> dict[str, Shares]:
    """Share of each domain's characters that each domain's policy flags, markers aside."""
    share_by_domain: dict[str, Shares] = {}
    for domain, documents in texts.items():
        lines = [text for points in documents.values() for text in points]
        whole = sum(end - start for text in lines for start, end in utterances(text))
        hits = {
            policy: sum(span.end - span.start for spans in find(lines) for span in spans)
            for policy, find in policies.items()
        }
        share_by_domain[domain] = {policy: share(hit, whole) for policy, hit in hits.items()}
    return share_by_domain
