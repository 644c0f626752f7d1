"""Made-up values in the place of masks: names, addresses, numbers that pass their checks.

Guarantees: a filled text is a function of the text with its masks, of the public lists beside this
module, of a seed and of the text's name. The corpus is no argument of anything here, so filling is
post-processing. Whoever knows the seed and the name can make the values again; where the seed is a
secret key nobody can. A value is drawn evenly from `VALUES[kind]` different ones: it equals any
given string with at most one in so many, and where it equals a real secret that is coincidence. Of
m values and s secrets of a kind, one is among the other with at most m s / VALUES[kind].

Policies write one <MASK> for whatever they hide, so that the kind is a guess by the words before
it. Where none of these says one it is drawn: a model of such texts then expects names, numbers and
addresses there, and not one of these alone. In one text all masks of a kind are one value.
"""

import hashlib
import re
import string
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from confide.files import beside
from confide.types import MASK

LISTS: dict[str, Any] = beside.words(__file__, dict[str, Any])
BEFORE = 48  # characters before a mask that are looked at
ANY = ("name", "phone", "address", "number", "code")  # of which a mask may be that nothing tells of
LETTERS = string.ascii_uppercase + string.digits
CODE = 10  # characters of a code
DIGITS = 12  # of a number
GROUPS = ((4, 8), (3, 9), (6,), ())  # where it is cut
HOUSES = 9999
ZIPS = 100_000
YEARS = range(1940, 2020)
DAYS = 28  # of every month
CUES = {
    word: re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
    for words in LISTS["cues"].values()
    for word in words
}
KIND_OF_CUE = {word: kind for kind, words in LISTS["cues"].items() for word in words}
Source = np.random.Generator
Seed = int | str  # str: a key in hexadecimal digits


def one_of(name: str, source: Source) -> str:
    """A word of a list, each as likely."""
    words: list[str] = LISTS[name]
    return words[source.integers(len(words))]


def name(source: Source) -> str:
    """A given name and a surname."""
    return f"{one_of('first', source)} {one_of('last', source)}"


def email(source: Source) -> str:
    """An address of a domain that is reserved for examples."""
    person = f"{one_of('first', source)}.{one_of('last', source)}".lower()
    return f"{person}{source.integers(100):02d}@{one_of('domain', source)}"


def address(source: Source) -> str:
    """A house in a city that does not exist, with a state and a postal code."""
    house = 1 + int(source.integers(HOUSES))
    street = f"{one_of('street', source)} {one_of('way', source)}"
    city = f"{one_of('city', source)}, {one_of('state', source)}"
    return f"{house} {street}, {city} {source.integers(ZIPS):05d}"


def phone(source: Source) -> str:
    """A number of the range 555-01xx, which is reserved for fiction."""
    sign = one_of("sign", source)
    return f"{200 + int(source.integers(800))}{sign}555{sign}01{source.integers(100):02d}"


def card(source: Source) -> str:
    """Sixteen digits whose last one is that of Luhn's check."""
    digits = f"4{source.integers(10**14):014d}"
    return digits + str(luhn(digits))


def iban(source: Source) -> str:
    """A German account number with its check of ISO 7064, modulo 97."""
    account = f"{source.integers(10**18):018d}"
    return f"DE{98 - int(account + '131400') % 97:02d}{account}"  # 131400: D, E and 00


def date(source: Source) -> str:
    """Day, month and year."""
    day = 1 + int(source.integers(DAYS))
    month = 1 + int(source.integers(12))
    return f"{day:02d}/{month:02d}/{YEARS[source.integers(len(YEARS))]}"


def code(source: Source) -> str:
    """Capital letters and digits."""
    return "".join(LETTERS[place] for place in source.integers(len(LETTERS), size=CODE))


def number(source: Source) -> str:
    """Digits, in one group or some, as orders and accounts have them."""
    digits = f"{source.integers(10**DIGITS):0{DIGITS}d}"
    edges = [0, *GROUPS[source.integers(len(GROUPS))], DIGITS]
    return "-".join(digits[start:end] for start, end in pairwise(edges))


def luhn(digits: str) -> int:
    """The digit that makes these pass Luhn's check."""
    doubled = [2 * int(digit) for digit in digits[::-2]]
    kept = [int(digit) for digit in digits[-2::-2]]
    return -sum(value // 10 + value % 10 for value in (*doubled, *kept)) % 10


KINDS: dict[str, Callable[[Source], str]] = {
    "name": name,
    "phone": phone,
    "address": address,
    "email": email,
    "card": card,
    "iban": iban,
    "date": date,
    "code": code,
    "number": number,
}
PEOPLE = len(LISTS["first"]) * len(LISTS["last"])
STREETS = len(LISTS["street"]) * len(LISTS["way"])
CITIES = len(LISTS["city"]) * len(LISTS["state"]) * ZIPS
# how many different values a kind has, all as likely
VALUES = {
    "name": PEOPLE,
    "phone": len(LISTS["sign"]) * 800 * 100,
    "address": HOUSES * STREETS * CITIES,
    "email": PEOPLE * 100 * len(LISTS["domain"]),
    "card": 10**14,
    "iban": 10**18,
    "date": DAYS * 12 * len(YEARS),
    "code": len(LETTERS) ** CODE,
    "number": len(GROUPS) * 10**DIGITS,
}


def kind_of(before: str) -> str | None:
    """The kind of a mask after these words: that of the last cue among them, None without one.

    Of two cues that end together the longer one counts.
    """
    words = before[-BEFORE:].lower()
    cues = [
        (match.end(), len(cue), KIND_OF_CUE[cue])
        for cue, pattern in CUES.items()
        if cue in words  # which is a tenth of the time of a pattern that finds nothing
        for match in pattern.finditer(words)
    ]
    return max(cues)[2] if cues else None


def source_of(seed: Seed, text: str, what: str) -> Source:
    """Where a draw comes from that belongs to the text of this name."""
    digest = hashlib.sha256(f"{seed} {text} {what}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest))


def value_of(kind: str | None, seed: Seed, text: str) -> str:
    """The value of a kind in the text of this name; None: of a kind that is drawn, too."""
    if kind is None:
        kind = ANY[source_of(seed, text, "any").integers(len(ANY))]
    return KINDS[kind](source_of(seed, text, kind))


def filled(text: str, seed: Seed, named: str) -> str:
    """A text with a value in place of each mask; `named` is what the text is called."""
    whole, *rest = text.split(MASK)
    for piece in rest:
        whole += value_of(kind_of(whole), seed, named) + piece
    return whole


def in_slots(text: str, slots: list[tuple[int, int, str]], seed: Seed, named: str) -> str:
    """A text with another value in each slot (start, end, label).

    The kind is the label's, where it names one, and else goes by the words before the slot.
    """
    whole = ""
    end = 0
    for start, stop, label in sorted(slots):
        if start < end:
            continue
        whole += text[end:start]
        kind = label if label in KINDS else kind_of(whole)
        whole += value_of(kind, seed, named)
        end = stop
    return whole + text[end:]
