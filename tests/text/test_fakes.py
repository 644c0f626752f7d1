"""Made-up values: their checks by other rules, their number by enumeration, what they depend on."""

import inspect
import re
from collections import Counter
from itertools import product

import numpy as np
import pytest

from confide.text import fakes
from confide.text.fakes import KINDS, LISTS, VALUES, filled, in_slots, kind_of, value_of

PHONE = r"[2-9]\d\d(?P<sign>[-.]?)555(?P=sign)01\d\d"


def drawn(kind: str, count: int = 400) -> list[str]:
    return [value_of(kind, 0, f"text-{number}") for number in range(count)]


def by_luhn(number: str) -> bool:
    """Luhn's check from the right, digit by digit."""
    total = 0
    for place, digit in enumerate(reversed(number)):
        value = int(digit) * (2 if place % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def by_iso_7064(account: str) -> bool:
    """Country and check behind the number, letters as numbers from 10 on: 1 modulo 97."""
    moved = account[4:] + account[:4]
    remainder = 0
    for letter in "".join(str(int(sign, 36)) for sign in moved):
        remainder = (10 * remainder + int(letter)) % 97
    return remainder == 1


def test_numbers_pass_their_checks() -> None:
    assert by_luhn("4539578763621486") and not by_luhn("4539578763621487")
    assert by_iso_7064("DE89370400440532013000") and not by_iso_7064("DE88370400440532013000")
    assert all(map(by_luhn, drawn("card"))) and all(map(by_iso_7064, drawn("iban")))
    assert all(re.fullmatch(r"DE\d{20}", value) for value in drawn("iban"))
    assert all(re.fullmatch(PHONE, v) for v in drawn("phone"))
    assert all(re.fullmatch(r"[a-z.]+\d\d@example\.(com|net|org)", v) for v in drawn("email"))


class Chosen:
    """A source that gives given numbers, and notes how many there were to choose from."""

    def __init__(self, numbers: tuple[int, ...] = ()):
        self.numbers = list(numbers)
        self.sizes: list[int] = []

    def integers(self, size_of: int, size: int | None = None):
        if size is not None:
            return np.array([self.integers(size_of) for _ in range(size)])
        self.sizes.append(size_of)
        return np.int64(self.numbers.pop(0) if self.numbers else 0)


@pytest.mark.parametrize("kind", KINDS)
def test_there_are_as_many_values_as_is_said_and_all_are_as_likely(kind: str) -> None:
    """Every draw is even and draws make different values: all of them for kinds with few, and for
    the others whatever changes one draw.
    """
    source = Chosen()
    first = KINDS[kind](source)  # type: ignore[arg-type]
    sizes = source.sizes
    assert np.prod([float(size) for size in sizes]) == pytest.approx(VALUES[kind], rel=1e-12)
    if VALUES[kind] <= 100_000:
        every = {KINDS[kind](Chosen(n)) for n in product(*map(range, sizes))}  # type: ignore
        assert len(every) == VALUES[kind]
    for place, size in enumerate(sizes):
        others = {first}
        for number in range(1, min(size, 50)):
            numbers = [0] * len(sizes)
            numbers[place] = number
            others.add(KINDS[kind](Chosen(tuple(numbers))))  # type: ignore[arg-type]
        assert len(others) == min(size, 50)


def test_a_value_is_one_of_a_kind_in_a_text_and_another_in_others() -> None:
    text = "My name is <MASK>. Yes, <MASK>. Call me at <MASK>, order <MASK>, order <MASK>."
    whole = filled(text, 3, "a")
    name, phone, order = (value_of(kind, 3, "a") for kind in ("name", "phone", "number"))
    assert (
        whole
        == f"My name is {name}. Yes, {name}. Call me at {phone}, order {order}, order {order}."
    )
    assert filled(text, 3, "b") != whole != filled(text, 4, "a")
    assert filled("nothing to fill", 3, "a") == "nothing to fill"
    counts = Counter(drawn("phone"))
    assert len(counts) > 390  # of 400 draws from 240,000


@pytest.mark.parametrize(
    ("before", "kind"),
    [
        ("", None),
        ("what comes next is ", None),
        ("your order number is ", "number"),
        ("your tracking number is ", "code"),
        ("my phone number is ", "phone"),
        ("My name is ", "name"),
        ("my NAME's ", "name"),
        ("the street of my phone: ", "phone"),
        ("the phone in my street: ", "address"),
        ("pay by credit card ", "card"),
        ("a bank account ", "iban"),
        ("I was born on ", "date"),
        ("renamed ", None),  # no word of its own
        ("name " + "x" * 60, None),  # too far away
    ],
)
def test_the_kind_is_that_of_the_last_cue(before: str, kind: str | None) -> None:
    assert kind_of(before) == kind


def test_of_masks_that_nothing_tells_of_every_kind_is_as_likely() -> None:
    shapes = {
        "name": r"[A-Z][a-z]+ [A-Z][a-z]+",
        "phone": PHONE,
        "address": r"\d+ [A-Z].*, [A-Z]{2} \d{5}",
        "number": r"(?=(?:\d-?){12}$)[\d-]+",
        "code": r"[A-Z0-9]{10}",
    }
    assert tuple(shapes) == fakes.ANY
    values = [filled("Sure, <MASK>", 0, f"text-{n}").removeprefix("Sure, ") for n in range(2000)]
    kinds = [
        next(kind for kind, shape in shapes.items() if re.fullmatch(shape, value))
        for value in values
    ]
    assert all(320 < kinds.count(kind) < 480 for kind in shapes)  # 400 each, in the mean
    assert filled("<MASK> and <MASK>", 0, "a").split(" and ") == [value_of(None, 0, "a")] * 2


def test_slots_are_filled_by_their_labels_or_their_words() -> None:
    text = "I am Bob Lee, call 555-1234 about 9XK"
    slots = [(5, 12, "name"), (19, 27, "tel"), (34, 37, "order"), (8, 12, "name")]
    name = value_of("name", 0, "d")
    phone = value_of("phone", 0, "d")
    whole = in_slots(text, slots, 0, "d")
    assert whole.startswith(f"I am {name}, call {phone} about ")
    assert "Bob" not in whole and "555-1234" not in whole and "9XK" not in whole


def test_nothing_but_text_seed_and_name_is_asked_for_and_lists_are_constants() -> None:
    """Values depend on no file but the lists beside the module, which every copy has alike."""
    assert list(inspect.signature(filled).parameters) == ["text", "seed", "named"]
    assert list(inspect.signature(value_of).parameters) == ["kind", "seed", "text"]
    source = inspect.getsource(fakes)
    assert source.count("beside.") == 1 and "beside.words(__file__" in source
    assert not any(way in source for way in ("read_", "open(", "environ"))
    for name, words in LISTS.items():
        if name != "cues":
            assert len(set(words)) == len(words), name
