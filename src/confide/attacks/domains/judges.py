"""Who says that a text is of a domain: policies whose labels are domains, and its own secrets.

A policy that redacted the training text is a poor judge of what it missed, so there should be
several. The judge `gold` asks no policy: it finds texts that hold a secret of the domain's training
text which stands in no other domain's, nor in the prompt.
"""

from collections.abc import Callable, Sequence

import numpy as np

from confide import policies
from confide.errors import InputError
from confide.scan.search import Searcher
from confide.specs import PolicySpec, PromptedSpec

GOLD = "gold"
Judge = Callable[[Sequence[str]], list[bool]]  # which texts it flags
Verdicts = dict[str, np.ndarray]  # judge -> (n,) bool


def about(spec: PolicySpec, domain: str) -> PolicySpec | None:
    """What of a policy looks for text of one domain; None: nothing of it does, or nobody can tell.

    The whole policy would not do: spans that overlap are merged, and keep the label of the first
    alone.
    """
    if spec.kind == "union":
        parts = [part for policy in spec.policies if (part := about(policy, domain)) is not None]
        return spec.model_copy(update={"policies": parts}) if parts else None
    if spec.kind == "regex" and domain in spec.patterns:
        return spec.model_copy(update={"patterns": {domain: spec.patterns[domain]}})
    if spec.kind in ("keyword", "classifier") and domain in (spec.domains or [domain]):
        return spec.model_copy(update={"domains": [domain]})
    return None


def judge(name: str, spec: PolicySpec, domain: str) -> Judge:
    """The judge of a domain that a policy makes.

    InputError where the policy knows no such domain, or fails on a text.
    """
    key = f"judges.{name}"
    if name == GOLD:
        message = "is the name of the judge that looks for gold secrets"
        raise InputError(message, key="judges", value=name)
    part = about(spec, domain)
    if part is None:
        raise InputError(f"a policy of kind {spec.kind} has no label {domain}", key=key)
    find = policies.batched(part)

    def flagged(texts: Sequence[str]) -> list[bool]:
        by_text = [spans for spans in find(texts) if spans is not None]
        if len(by_text) < len(texts):
            message = f"fails on {len(texts) - len(by_text)} of {len(texts)} texts"
            raise InputError(message, key=key)
        return [any(span.label == domain for span in spans) for spans in by_text]

    return flagged


def policies_of(spec: PromptedSpec) -> dict[str, PolicySpec]:
    """The policy of each judge by its name; InputError where there is only the policy's name."""
    by_judge = {}
    for name, policy in spec.judges.items():
        if isinstance(policy, str):
            message = "is the name of a policy; a job needs the policy itself"
            raise InputError(message, key=f"judges.{name}", value=policy)
        by_judge[name] = policy
    return by_judge


def verdicts(
    spec: PromptedSpec,
    domain: str,
    secrets: Searcher,
    texts: Sequence[str],
    contexts: Sequence[str] | None = None,
) -> Verdicts:
    """What each judge of a domain says of texts (n,).

    `contexts` (n,): prompts, whose own secrets are no leak.
    """
    distinct = list(dict.fromkeys(texts))  # models repeat themselves
    flagged = {}
    for name, policy in policies_of(spec).items():
        flags = dict(zip(distinct, judge(name, policy, domain)(distinct), strict=True))
        flagged[name] = np.array([flags[text] for text in texts], dtype=bool)
    contexts = contexts or [""] * len(texts)
    held = {text: hits(secrets, text) for text in dict.fromkeys([*distinct, *contexts])}
    leaks = [bool(held[text] - held[said]) for text, said in zip(texts, contexts, strict=True)]
    flagged[GOLD] = np.array(leaks, dtype=bool)
    return flagged


def hits(secrets: Searcher, text: str) -> set[int]:
    """Numbers of the secrets that stand in a text, in whatever form."""
    return {hit.secret for hit in secrets.hits([text.encode()])}
