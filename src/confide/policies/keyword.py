"""Keywords of domains as a policy (Domain Private Transformers, section 5.1, "Keyword Detection").

Keywords match as whole words whatever their case, so that "car" never hits "card"; a word is a run
of letters, digits and _, and anything else may stand between the words of a phrase. The paper
redacts each text, whatever domain it is of, for the keywords of all domains, and takes a generation
for a leak where it has one of a domain that the prompt is not of. So a policy, which sees the text
alone, flags the keywords of the domains it names, by default all, in any text: never less than the
text's own. Spans are found first and replaced later, so nothing that overlaps is missed (the
paper's code replaces strings in turn).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from confide.errors import InputError
from confide.files.io import read_json
from confide.policies.spans import Policy, merge
from confide.policies.utterances import MARKER
from confide.specs import KeywordPolicySpec
from confide.types import Span

WORD = re.compile(r"\w+")
LONGEST = 200  # characters of a keyword
Keywords = Mapping[str, Sequence[str]]  # domain -> words and phrases


def keyword(spec: KeywordPolicySpec) -> Policy:
    """The policy of a specification.

    InputError where keywords cannot be read, or a domain has none.
    """
    if (spec.keywords is None) == (spec.model is None):
        raise InputError(
            "needs either keywords or the model that they were written to", key="keywords"
        )
    file = None if spec.model is None else Path(spec.model)
    keywords = read(file) if file is not None else spec.keywords or {}
    return finder(keywords, spec.domains, file)


def read(path: Path) -> dict[str, list[str]]:
    """Keywords of each domain from a JSON object of lists; InputError names file and domain."""
    value = read_json(path)
    if not isinstance(value, dict):
        raise InputError("expected a JSON object of domains and their keywords", file=path)
    for domain, words in value.items():
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise InputError("expected a list of keywords", file=path, key=domain)
    return value


def finder(
    keywords: Keywords, domains: Sequence[str] | None = None, file: Path | None = None
) -> Policy:
    """The policy that flags the keywords of the given domains (None: all), labelled by domain.

    Guarantees: flags each occurrence of each keyword; a domain that was asked for and has no
    keywords is an InputError.
    """
    labels = labelled(keywords, keywords if domains is None else domains, file)
    first = "".join(sorted({re.escape(key[0]) for key in labels}))
    # Looks ahead, so that keywords may overlap, and at one letter before it looks at all: that is
    # half of the time.
    scan = re.compile(rf"\W(?=[{first}])(?=({any_of(labels)})(?!\w))").finditer

    def find(text: str) -> list[Span]:
        spans = []
        for match in scan(" " + folded(text)):
            # The blank before the text has moved it by one.
            start = match.start()
            end = match.end(1) - 1
            if start and text[start - 1] == "<" and MARKER.match(text, start - 1):
                continue
            spans.append(Span(start, end, labels.get(match[1]) or labels[normal(match[1])]))
        return merge(spans)

    return find


def labelled(
    keywords: Keywords, domains: Iterable[str], file: Path | None = None
) -> dict[str, str]:
    """Domain of each normalised keyword: the first of those that list it."""
    labels: dict[str, str] = {}
    for domain in domains:
        if domain not in keywords:
            raise InputError(
                f"unknown: one of {', '.join(keywords)}", file=file, key="domains", value=domain
            )
        for index, word in enumerate(keywords[domain]):
            key = normal(word)
            if not key or len(key) > LONGEST:
                message = "holds no word" if not key else f"is longer than {LONGEST} characters"
                raise InputError(message, file=file, key=f"{domain}[{index}]")
            labels.setdefault(key, domain)
        if not keywords[domain]:
            raise InputError("has no keywords", file=file, key=domain)
    if not labels:
        raise InputError("there are no domains", file=file, key="keywords")
    return labels


def normal(phrase: str) -> str:
    """A phrase as keywords are compared: its words in lower case with single spaces between."""
    return " ".join(WORD.findall(folded(phrase)))


def folded(text: str) -> str:
    """The text in lower case, character by character: as long as it was."""
    lower = text.lower()
    if len(lower) != len(text):
        # A few characters, such as a dotted I, have a longer lower case: they stay.
        pairs = zip(text, map(str.lower, text), strict=True)
        lower = "".join(small if len(small) == 1 else character for character, small in pairs)
    return lower.replace("ς", "σ")  # which of the two str.lower writes depends on what follows


def any_of(phrases: Iterable[str]) -> str:
    """A regular expression of any of these phrases, the longest first.

    It is a tree of common beginnings.
    """
    branches: dict[str, list[str]] = {}
    for phrase in phrases:
        branches.setdefault(phrase[:1], []).append(phrase[1:])
    ends = branches.pop("", None) is not None
    parts = [
        (r"\W+" if first == " " else re.escape(first)) + any_of(rest)
        for first, rest in branches.items()
    ]
    if not parts:
        return ""
    tree = parts[0] if len(parts) == 1 and not ends else f"(?:{'|'.join(parts)})"
    return f"{tree}?" if ends else tree
