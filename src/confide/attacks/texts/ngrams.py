"""A model of characters, of nothing but some texts: how well does a string go with them?

Counts of all contexts of up to `order` - 1 characters, interpolated as Witten and Bell (1991) do:
p(c | h) = (n(h c) + d(h) p(c | h')) / (n(h) + d(h)), where d(h) different characters follow h and
h' is h without its first one. Below the empty context all characters are alike.
"""

import math
from collections.abc import Iterable

ALPHABET = 0x110000  # characters of Unicode
END = "\x03"  # stands before a text, as what no text has


class Ngrams:
    """Fitted once, then asked of any number of strings."""

    def __init__(self, texts: Iterable[str], order: int):
        self.order = order
        self.following: dict[str, dict[str, int]] = {}  # by context, how often each character
        for text in texts:
            self._read(END + text)
        self.totals = {context: sum(after.values()) for context, after in self.following.items()}

    def _read(self, text: str) -> None:
        for place in range(1, len(text)):
            for size in range(min(self.order, place + 1)):
                after = self.following.setdefault(text[place - size : place], {})
                after[text[place]] = after.get(text[place], 0) + 1

    def probability(self, context: str, character: str) -> float:
        """Of a character after a context, of which the last `order` - 1 characters count."""
        value = 1 / ALPHABET
        for size in range(min(self.order, len(context) + 1)):
            after = self.following.get(context[len(context) - size :])
            if after is None:
                break
            total = self.totals[context[len(context) - size :]]
            value = (after.get(character, 0) + len(after) * value) / (total + len(after))
        return value

    def score(self, text: str, start: int = 0, end: int | None = None) -> float:
        """Mean log-probability in nats of the characters of text[start:end], each after all that
        stands before it; 0 of none.
        """
        whole = END + text
        places = range(start + 1, (len(text) if end is None else end) + 1)
        logs = [math.log(self.probability(whole[:place], whole[place])) for place in places]
        return sum(logs) / len(logs) if logs else 0.0
