"""Values of the simulator.

They are tables of users whose names, addresses, phone and order numbers are all different. Formats
and shares are those of Shi et al. (2021) for the private variant; the public variant has formats of
its own. Values for all splits are drawn together, without repeats, and then dealt out, so no value
is in two splits' tables. The words that values are made of stand in customersim_values.yaml.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.random import Generator, default_rng

from confide.corpora.simulated.templates import Options
from confide.errors import InputError
from confide.files import beside

COMPASS = ("North", "South", "East", "West", "New", "Port", "Lake")
LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"
CODE = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


@dataclass(frozen=True)
class Words:
    """What names, streets and cities of one variant are made of."""

    first: Options
    last_common: Options
    last_stems: Options
    last_ends: Options
    streets: Options  # kinds of street
    city_stems: Options
    city_ends: Options
    states: Options = ()

    @cached_property
    def last(self) -> Options:
        """Common surnames, then every stem with every ending, without repeats.

        Together with the given names they make some hundred thousand full names.
        """
        compounds = (stem + end for stem in self.last_stems for end in self.last_ends)
        return tuple(dict.fromkeys([*self.last_common, *compounds]))


WORDS = beside.words(__file__, dict[str, Words])


class User(NamedTuple):
    """A row of the user table; the field names are the gold labels."""

    name: str
    address: str
    phone: str
    order: str


Draw = Callable[[Generator, int, Words], list[str]]  # a batch of values, repeats allowed


def _names(rng: Generator, count: int, words: Words) -> list[str]:
    """`count` different full names, common ones more likely.

    They have the largest Gumbel-perturbed log weights.
    """
    first = len(words.first)
    last = len(words.last)
    weight = -np.log(np.arange(first) + 20.0)[:, None] - np.log(np.arange(last) + 50.0)[None, :]
    keys = (weight + rng.gumbel(size=(first, last))).ravel()
    if count > keys.size:
        raise InputError(
            f"too many: the simulator knows {keys.size} names for all splits together", key="users"
        )
    indices = rng.permutation(np.argpartition(-keys, count - 1)[:count])
    return [
        f"{words.first[row]} {words.last[column]}"
        for row, column in zip(*divmod(indices, last), strict=True)
    ]


def _digits(rng: Generator, low: int, high: int, count: int) -> list[int]:
    return rng.integers(low, high, count).tolist()


def _pick(rng: Generator, options: Sequence[str], count: int) -> list[str]:
    return rng.choice(options, count).tolist()


def _compounds(rng: Generator, count: int, words: Words) -> list[str]:
    """Names of cities: a stem and an ending each."""
    stems = _pick(rng, words.city_stems, count)
    ends = _pick(rng, words.city_ends, count)
    return [stem + end for stem, end in zip(stems, ends, strict=True)]


def _cities(rng: Generator, count: int, words: Words) -> list[str]:
    """Half of them a compound, half with a compass word in front, as in "North Allisonville"."""
    plain = _compounds(rng, count, words)
    fronts = _pick(rng, COMPASS, count)
    fronted = (rng.random(count) < 0.5).tolist()
    return [
        f"{front} {city}" if with_front else city
        for front, city, with_front in zip(fronts, plain, fronted, strict=True)
    ]


def _military(rng: Generator, words: Words) -> str:
    """APO, DPO or FPO address."""
    kind, unit, box, code = rng.integers(0, [3, 10_000, 10_000, 100_000]).tolist()
    area = ("AA", "AE", "AP")[rng.integers(3)]
    if kind == 0:
        return f"PSC {unit:04d}, Box {box:04d} APO {area} {code:05d}"
    if kind == 1:
        return f"Unit {unit:04d} Box {box:04d} DPO {area} {code:05d}"
    return f"USNS {words.last[rng.integers(len(words.last))]} FPO {area} {code:05d}"


def _us_addresses(rng: Generator, count: int, words: Words) -> list[str]:
    """House, street, perhaps a room, city, state and ZIP code, in the American way.

    45 % have no room, 22 % a suite, 22 % an apartment, and 11 % are military addresses.
    """
    width = _digits(rng, 3, 6, count)
    number = _digits(rng, 0, 100_000, count)
    names = _pick(rng, words.first + words.last, count)
    kinds = _pick(rng, words.streets, count)
    cities = _cities(rng, count, words)
    states = _pick(rng, words.states, count)
    zips = _digits(rng, 0, 100_000, count)
    rooms = _digits(rng, 0, 1000, count)
    kind = rng.random(count).tolist()
    addresses = []
    for i in range(count):
        if kind[i] < 0.11:
            addresses.append(_military(rng, words))
            continue
        room = ""
        if kind[i] < 0.55:
            room = f" {'Suite' if kind[i] < 0.33 else 'Apt.'} {rooms[i]:03d}"
        house = f"{number[i]:05d}"[: width[i]]
        addresses.append(
            f"{house} {names[i]} {kinds[i]}{room} {cities[i]}, {states[i]} {zips[i]:05d}"
        )
    return addresses


def _phone_numbers(rng: Generator, count: int, words: Words) -> list[str]:
    """3-3-4 digits, unpunctuated; the last four are never one digit repeated."""
    parts = zip(
        _digits(rng, 100, 1000, count),
        _digits(rng, 1, 889, count),
        _digits(rng, 1, 9999, count),
        strict=True,
    )
    return [f"{area:03d}{middle:03d}{last:04d}" for area, middle, last in parts if last % 1111]


def _us_orders(rng: Generator, count: int, words: Words) -> list[str]:
    parts = zip(
        _digits(rng, 100, 1000, count),
        _digits(rng, 10_000, 100_000, count),
        _digits(rng, 1, 9999, count),
        strict=True,
    )
    return [f"{a}-{b}-{c:04d}" for a, b, c in parts]


def _eu_addresses(rng: Generator, count: int, words: Words) -> list[str]:
    """House, street, town and a mixed postcode: "Flat 3, 27 Brandt Mews, Castlemere KD4 7QP"."""
    flats = [
        f"Flat {flat}, " if flat else ""
        for flat in (rng.integers(1, 30, count) * (rng.random(count) < 0.3)).tolist()
    ]
    houses = _digits(rng, 1, 320, count)
    names = _pick(rng, words.last, count)
    kinds = _pick(rng, words.streets, count)
    towns = _compounds(rng, count, words)
    letters = rng.integers(0, len(LETTERS), (count, 4)).tolist()
    numbers = rng.integers(1, 10, (count, 2)).tolist()
    codes = [
        f"{LETTERS[a]}{LETTERS[b]}{m} {n}{LETTERS[c]}{LETTERS[d]}"
        for (a, b, c, d), (m, n) in zip(letters, numbers, strict=True)
    ]
    rows = zip(flats, houses, names, kinds, towns, codes, strict=True)
    return [
        f"{flat}{house} {name} {kind}, {town} {code}"
        for flat, house, name, kind, town, code in rows
    ]


def _eu_phones(rng: Generator, count: int, words: Words) -> list[str]:
    """+cc ddd ddd ddd or (0ddd) ddd dddd."""
    ranges = ((30, 50), (100, 1000), (0, 1000), (0, 10_000))
    columns = [_digits(rng, low, high, count) for low, high in ranges]
    national = (rng.random(count) < 0.5).tolist()
    return [
        f"(0{a}) {b:03d} {c:04d}" if here else f"+{code} {a} {b:03d} {c % 1000:03d}"
        for code, a, b, c, here in zip(*columns, national, strict=True)
    ]


def _eu_orders(rng: Generator, count: int, words: Words) -> list[str]:
    """ORD-dddd-dddL, INV20dd/dddddd or #dddddddd."""
    kind = _digits(rng, 0, 3, count)
    a = _digits(rng, 0, 10_000, count)
    b = _digits(rng, 0, 10_000, count)
    ends = _pick(rng, list(LETTERS), count)
    make = (
        lambda i: f"ORD-{a[i]:04d}-{b[i] % 1000:03d}{ends[i]}",
        lambda i: f"INV20{b[i] % 100:02d}/{a[i]:04d}{b[i] // 100:02d}",
        lambda i: f"#{a[i]:04d}{b[i]:04d}",
    )
    return [make[kind[i]](i) for i in range(count)]


DRAWS: dict[str, dict[str, Draw]] = {
    "private": {
        "name": _names,
        "address": _us_addresses,
        "phone": _phone_numbers,
        "order": _us_orders,
    },
    "public": {"name": _names, "address": _eu_addresses, "phone": _eu_phones, "order": _eu_orders},
}


def _distinct(draw: Draw, rng: Generator, count: int, words: Words) -> list[str]:
    """Batches of values, repeats dropped, until `count` are at hand."""
    values = dict.fromkeys(draw(rng, count, words))
    while len(values) < count:
        values.update(dict.fromkeys(draw(rng, count - len(values) + 64, words)))
    return list(values)[:count]


@lru_cache(maxsize=4)
def user_tables(variant: str, seed: int, users: int, tables: int) -> tuple[tuple[User, ...], ...]:
    """`tables` tables of `users` rows; every value is unique in all of them together.

    InputError where names run out.
    """
    words = WORDS[variant]
    columns = []
    for index, label in enumerate(User._fields):
        rng = default_rng([seed, list(WORDS).index(variant), index, 0x7AB1E])
        columns.append(_distinct(DRAWS[variant][label], rng, users * tables, words))
    rows = [User(*row) for row in zip(*columns, strict=True)]
    return tuple(tuple(rows[table * users : (table + 1) * users]) for table in range(tables))


def spoken_phone(rng: Generator, variant: str, phone: str) -> str:
    """The private variant's ten digits are written with no separator, hyphens or dots.

    Others stand as they are.
    """
    separator = ("", "-", ".")[rng.integers(3)] if variant == "private" else None
    return phone if separator is None else separator.join((phone[:3], phone[3:6], phone[6:]))


def tracking_code(rng: Generator, variant: str) -> str:
    """Private: ten of [A-Z0-9]. Public: LL-dddd-dddd-dd."""
    if variant == "private":
        return "".join(CODE[index] for index in rng.integers(0, 36, 10).tolist())
    digits = "".join(map(str, rng.integers(0, 10, 10).tolist()))
    front = "".join(LETTERS[index] for index in rng.integers(0, len(LETTERS), 2).tolist())
    return f"{front}-{digits[:4]}-{digits[4:8]}-{digits[8:]}"
