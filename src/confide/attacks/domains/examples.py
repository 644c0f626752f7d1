"""Texts for the eye, with all that is or may be secret masked.

They are what models wrote, and what policies redact, as in tables 1 to 3 and appendix E.4
of Domain Private Transformers, which prints such texts as they are. Here what any judge's policy
finds is <MASK>, and what only a gold span knows of is its label in brackets.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from confide import policies
from confide.attacks.domains.judges import hits, policies_of
from confide.attacks.domains.prompts import Prompt, Texts, searcher_of
from confide.policies.spans import merge
from confide.scan.secrets import gold as gold_of
from confide.scan.variants import length
from confide.specs import PolicySpec, PromptedSpec
from confide.types import MASK, Span

CONTEXT = 160  # characters of a prompt that are shown, its last ones
WORDS = 8  # an utterance that shows what a policy does has so many at least
Veil = Callable[[str], str | None]


def veil(judges: Iterable[PolicySpec], points: Iterable[Path], shortest: int) -> Veil:
    """A text with its secrets masked by the judges' policies; None where one cannot be, or where a
    policy fails.

    points: the corpus, and what a person marked in it.

    Guarantees: no gold secret of the points, of any split, with `shortest` letters and digits is in
    what comes out, in any form that the search of releases knows. What neither a policy nor a gold
    span knows of may be there.
    """
    labels = dict(span for path in points for span in gold_of(path))
    known = {value: label for value, label in labels.items() if length(value) >= shortest}
    searcher = searcher_of(known)
    find = policies.one_by_one(policies.union(*map(policies.policy, judges)))

    def masked(text: str) -> str | None:
        here = [value for value in known if value in text]
        gold = [
            Span(start, start + len(value), known[value])
            for value in sorted(here, key=len, reverse=True)
            for start in occurrences(text, value)
        ]
        (spans,) = find([text])
        if spans is None:
            return None
        result = drawn(text, spans, gold)
        left = hits(searcher, result) or any(value in result for value in here)
        return None if left else result

    return masked


def occurrences(text: str, value: str) -> list[int]:
    """Where a value stands in a text; its places may overlap."""
    return [match.start() for match in re.finditer(f"(?={re.escape(value)})", text)]


def drawn(text: str, policy_spans: Iterable[Span], gold: Iterable[Span]) -> str:
    """The text with a policy's spans, and gold ones that they touch, as <MASK>.

    Other gold spans become [label].
    """
    spans = merge(policy_spans)
    marks: list[tuple[Span, str]] = []
    touched: list[Span] = []
    for known in merge(gold):
        if any(known.start < span.end and span.start < known.end for span in spans):
            touched.append(known)
        else:
            marks.append((known, f"[{known.label}]"))
    marks += [(span, MASK) for span in merge([*spans, *touched])]
    for span, mark in sorted(marks, reverse=True):
        text = text[: span.start] + mark + text[span.end :]
    return text


def written(
    show: Veil,
    prompts: Sequence[Prompt],
    texts: Sequence[str],
    flags: dict[str, np.ndarray],
    places: Iterable[int],
) -> list[dict[str, Any]]:
    """Some of the answers (n,) to prompts (n,).

    Each comes with the end of its prompt, and with who flags (n,) it.
    """
    rows: list[dict[str, Any]] = []
    for place in places:
        prompt = prompts[place]
        context = show(prompt.text)
        row = {"prompt": prompt.domain, "context": context and ending_of(context)}
        leaks = {judge: bool(flagged[place]) for judge, flagged in flags.items()}
        rows.append(row | {"text": show(texts[place]), "leaks": leaks})
    return rows


def ending_of(text: str) -> str:
    """The last characters of a text, whole words."""
    return text if len(text) <= CONTEXT else "… " + text[-CONTEXT:].partition(" ")[2]


def redactions(spec: PromptedSpec, points: Sequence[Path], texts: Texts) -> list[dict[str, Any]]:
    """What each judge's policy leaves of the first held-out utterances of each domain.

    Short ones are passed over.
    """
    rows: list[dict[str, Any]] = []
    for name, judge in policies_of(spec).items():
        show = veil([judge], points, spec.min_secret)
        for domain, utterances in texts.held_out.items():
            long = [said.text for said in utterances if len(said.text.split()) >= WORDS]
            shown = long[: spec.examples]
            rows += [{"domain": domain, "judge": name, "text": show(text)} for text in shown]
    return rows
