"""Texts for the eye, with all that is or may be secret masked: what models wrote, and what policies
redact.

Tables 1 to 3 and Appendix E.4 of Domain Private Transformers, which print such texts as they are.
Here what any judge's policy finds is <MASK>, and what only a gold span knows of its label in
brackets.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from confide import policies
from confide.attacks.domains.judges import hits
from confide.attacks.domains.prompts import Prompt, Texts
from confide.files.rows import read_rows
from confide.policies.spans import merge
from confide.scan.search import Searcher
from confide.scan.variants import length
from confide.specs import PolicySpec, PromptedSpec
from confide.types import MASK, Span

CONTEXT = 160  # characters of a prompt that are shown, its last ones
WORDS = 8  # an utterance that shows what a policy does has so many at least
Veil = Callable[[str], str | None]


def veil(judges: Iterable[PolicySpec], points: Path, shortest: int) -> Veil:
    """A text with its secrets masked; None where one cannot be.

    Guarantees: no gold secret of the corpus, of any split, with `shortest` letters and digits is in
    what comes out, in any form that the leak scan knows. What neither a policy nor a gold span
    knows of may be there.
    """
    labels = {
        text[a:b]: label
        for text, gold in read_rows(points, "text", "gold")
        for a, b, label, *_ in gold
    }
    known = {value: label for value, label in labels.items() if length(value) >= shortest}
    searcher = Searcher(dict(enumerate(known)))
    find = policies.union(*map(policies.policy, judges))

    def masked(text: str) -> str | None:
        here = sorted((value for value in known if value in text), key=len, reverse=True)
        gold = [
            Span(at, at + len(value), known[value])
            for value in here
            for at in occurrences(text, value)
        ]
        found = drawn(text, find(text), gold)
        return None if hits(searcher, found) or any(value in found for value in here) else found

    return masked


def occurrences(text: str, value: str) -> Iterable[int]:
    """Where a value stands in a text."""
    at = text.find(value)
    while at >= 0:
        yield at
        at = text.find(value, at + 1)


def drawn(text: str, found: Iterable[Span], gold: Iterable[Span]) -> str:
    """The text with a policy's spans, and gold ones that they touch, as <MASK>, and other gold ones
    as [label].
    """
    spans = merge(found)
    known = merge(gold)
    touched = [
        any(one.start < span.end and span.start < one.end for span in spans) for one in known
    ]
    marks = [
        (span, MASK)
        for span in merge([*spans, *(one for one, hit in zip(known, touched, strict=True) if hit)])
    ]
    marks += [(one, f"[{one.label}]") for one, hit in zip(known, touched, strict=True) if not hit]
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
    """Some of the answers (n,) to prompts (n,), each with the end of its prompt and with who flags
    (n,) it.
    """
    rows: list[dict[str, Any]] = []
    for place in places:
        prompt = prompts[place]
        context = show(prompt.text)
        text = show(texts[place])
        leaks = {judge: bool(found[place]) for judge, found in flags.items()}
        rows.append(
            {
                "prompt": prompt.domain,
                "context": context and ending_of(context),
                "text": text,
                "leaks": leaks,
            }
        )
    return rows


def ending_of(text: str) -> str:
    """The last characters of a text, whole words."""
    return text if len(text) <= CONTEXT else "… " + text[-CONTEXT:].partition(" ")[2]


def redactions(spec: PromptedSpec, points: Path, texts: Texts) -> list[dict[str, Any]]:
    """What each judge's policy leaves of the first held-out utterances of each domain that are long
    enough.
    """
    rows: list[dict[str, Any]] = []
    for name, judge in spec.judges.items():
        show = veil([judge], points, spec.min_secret)
        for domain, said in texts.held_out.items():
            some = [one.text for one in said if len(one.text.split()) >= WORDS][: spec.examples]
            rows += [{"domain": domain, "judge": name, "text": show(text)} for text in some]
    return rows
