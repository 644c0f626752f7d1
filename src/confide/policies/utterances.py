"""What was said in a dialogue, and windows of its words.

The markers that a reader put between utterances are left out. Policies of domains (Domain Private
Transformers, section 5.1) judge words and runs of words within one utterance. Markers are the
control tokens <_soc_>, <_eoc_> and <DOMAIN> (capitals, digits, _), the speakers USR:, SYS: and
BOT:, and line breaks; they are never flagged, as in the paper's table 1, as a control token says
nothing that the model was not told. <MASK> is a word.
"""

import re

from confide.types import MASK

MARKER = re.compile(
    rf"(?!{MASK})<(?:_soc_|_eoc_|[A-Z][A-Z0-9_]*)>|(?<!\S)(?:USR|SYS|BOT):(?!\S)|[\r\n]"
)
WORD = re.compile(r"\S+")
Range = tuple[int, int]  # half-open, in characters
Texts = dict[str, dict[str, list[str]]]  # domain -> document -> its points


def utterances(text: str) -> list[Range]:
    """The ranges between markers, blank ones left out."""
    edges = [0, *(edge for match in MARKER.finditer(text) for edge in match.span()), len(text)]
    between = zip(edges[::2], edges[1::2], strict=True)
    return [(start, end) for start, end in between if text[start:end].strip()]


def spoken(text: str) -> str:
    """The utterances alone, with single spaces between words."""
    return " ".join(MARKER.sub(" ", text).split())


def windows(text: str, size: int) -> list[Range]:
    """Every run of so many words of one utterance, or the whole utterance if it is shorter."""
    ranges: list[Range] = []
    for first, last in utterances(text):
        places = [match.span() for match in WORD.finditer(text, first, last)]
        count = max(1, len(places) - size + 1)
        ranges += [
            (places[index][0], places[min(index + size, len(places)) - 1][1])
            for index in range(count)
        ]
    return ranges
