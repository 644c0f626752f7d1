"""Keywords of domains, mined from text.

N-grams are ranked by the log-odds ratio with an informative Dirichlet prior (Monroe et al. 2008).
An n-gram is a keyword of a domain where its odds there are many times its odds in the other
domains, the ratio is several of its standard errors from 1, and several documents hold it. The
prior keeps rare n-grams from looking sure. The surest come first; function words are out by the
ratio, what one customer says again and again by the number of documents.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping

from confide.errors import InputError
from confide.policies.keyword import WORD, folded
from confide.policies.utterances import Texts, utterances
from confide.specs import KeywordFitSpec

LETTERS = re.compile(r"[^\W\d_]{2}")


def mine(spec: KeywordFitSpec, texts: Texts) -> dict[str, list[str]]:
    """Keywords of each domain, the surest first; InputError for a domain without any.

    A phrase that holds a keyword is none: it is found already. Nor is a number or an initial: those
    are values.
    """
    chosen: dict[str, dict[str, float]] = {domain: {} for domain in texts}
    for size in range(1, spec.words + 1):
        grams, documents = counted(texts, size)
        everywhere = sum(grams.values(), Counter())
        for domain, keywords in chosen.items():
            for gram, (ratio, z) in log_odds(grams[domain], everywhere, spec.prior).items():
                often = (
                    documents[domain][gram] >= spec.min_count and LETTERS.search(gram) is not None
                )
                sure = ratio >= math.log(spec.odds) and z >= spec.min_z
                if often and sure and not any(part in keywords for part in parts(gram)):
                    keywords[gram] = z
    for domain, keywords in chosen.items():
        if not keywords:
            raise InputError(
                "has no keyword that passes min_count, odds and min_z", key="domains", value=domain
            )
    return {
        domain: sorted(keywords, key=lambda gram: (-keywords[gram], gram))[: spec.count]
        for domain, keywords in chosen.items()
    }


def counted(texts: Texts, size: int) -> tuple[dict[str, Counter[str]], dict[str, Counter[str]]]:
    """How often each n-gram of so many words occurs in each domain, within utterances.

    The second value is in how many documents it does.
    """
    grams: dict[str, Counter[str]] = {domain: Counter() for domain in texts}
    documents: dict[str, Counter[str]] = {domain: Counter() for domain in texts}
    for domain, by_document in texts.items():
        for points in by_document.values():
            in_document = Counter(gram for text in points for gram in n_grams(text, size))
            grams[domain].update(in_document)
            documents[domain].update(in_document.keys())
    return grams, documents


def n_grams(text: str, size: int) -> Iterator[str]:
    """Runs of so many words of an utterance, as the policy would compare them."""
    for start, end in utterances(text):
        words = WORD.findall(folded(text[start:end]))
        yield from (" ".join(words[index : index + size]) for index in range(len(words) - size + 1))


def parts(gram: str) -> Iterator[str]:
    """The shorter n-grams within one."""
    words = gram.split(" ")
    return (
        " ".join(words[i:j])
        for i in range(len(words))
        for j in range(i + 1, len(words) + 1)
        if j - i < len(words)
    )


def log_odds(
    counts: Mapping[str, int], everywhere: Mapping[str, int], prior: float
) -> dict[str, tuple[float, float]]:
    """Log-odds ratio of each n-gram of `counts` against the rest of `everywhere`.

    Beside it stands how many of its standard errors it is. The prior has the n-grams in the
    proportions that they have everywhere, and weighs as much as `prior` of them.
    """
    size = sum(counts.values())
    whole = sum(everywhere.values())
    ratios = {}
    for gram, count in counts.items():
        alpha = prior * everywhere[gram] / whole
        here = count + alpha
        there = everywhere[gram] - count + alpha
        ratio = math.log(here / (size + prior - here)) - math.log(
            there / (whole - size + prior - there)
        )
        ratios[gram] = ratio, ratio / math.sqrt(1 / here + 1 / there)
    return ratios
