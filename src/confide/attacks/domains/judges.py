"""Who says that a text is of a domain: policies whose labels are domains, and the domain's own
secrets.

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
        parts = [part for one in spec.policies if (part := about(one, domain)) is not None]
        return spec.model_copy(update={"policies": parts}) if parts else None
    if spec.kind == "regex":
        return (
            spec.model_copy(update={"patterns": {domain: spec.patterns[domain]}})
            if domain in spec.patterns
            else None
        )
    if spec.kind in ("keyword", "classifier") and domain in (spec.domains or [domain]):
        return spec.model_copy(update={"domains": [domain]})
    return None


def judge(name: str, spec: str | PolicySpec, domain: str) -> Judge:
    """The judge of a domain that a policy makes; InputError where the policy knows no such domain,
    or fails on a text.
    """
    key = f"judges.{name}"
    if isinstance(spec, str):
        raise InputError(
            "is the name of a policy; a job needs the policy itself", key=key, value=spec
        )
    if name == GOLD:
        raise InputError(
            "is the name of the judge that looks for gold secrets", key="judges", value=name
        )
    part = about(spec, domain)
    if part is None:
        raise InputError(f"a policy of kind {spec.kind} has no label {domain}", key=key)
    find = policies.batched(part)

    def flagged(texts: Sequence[str]) -> list[bool]:
        spans = find(texts)
        if None in spans:
            raise InputError(f"fails on {spans.count(None)} of {len(spans)} texts", key=key)
        return [any(span.label == domain for span in found) for found in spans]

    return flagged


def verdicts(
    spec: PromptedSpec,
    domain: str,
    secrets: Searcher,
    texts: Sequence[str],
    contexts: Sequence[str] | None = None,
) -> Verdicts:
    """What each judge of a domain says of texts (n,); `contexts` (n,): prompts, whose own secrets
    are no leak.
    """
    distinct = {
        text: place for place, text in enumerate(dict.fromkeys(texts))
    }  # models repeat themselves
    where = np.array([distinct[text] for text in texts], dtype=np.int64)
    found = {}
    for name, policy in spec.judges.items():
        flags = judge(name, policy, domain)(list(distinct))
        found[name] = np.array(flags, dtype=bool)[where]
    held = [hits(secrets, text) for text in distinct]
    known = {context: hits(secrets, context) for context in dict.fromkeys(contexts or ())}
    own = zip(where, contexts or [None] * len(texts), strict=True)
    found[GOLD] = np.array(
        [bool(held[place] - known.get(context, set())) for place, context in own], dtype=bool
    )
    return found


def hits(secrets: Searcher, text: str) -> set[int]:
    """Numbers of the secrets that stand in a text, in whatever form."""
    return {hit.secret for hit in secrets.hits([text.encode()])}
