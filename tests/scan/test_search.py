"""Every form of a secret is found and named, and what is there by chance is not."""

import base64
import html
import json
from urllib.parse import quote

import numpy as np
import pytest

from confide.scan import search
from confide.scan.search import Searcher
from confide.scan.variants import base64_core, spellings

PHONE = "555-123-4567"
NAME = "Mary Smith-Jones"
CANARY = "482913"
CAFE = "José Núñez & Söhne"
WEST = "Łódź Główna"
SECRETS = {0: PHONE, 1: NAME, 2: CANARY, 3: CAFE, 4: WEST}
TEXT = b"""{"loss": 0.4829130, "epoch": 12, "note": "nothing here"}
2026-11-21 15:52:00,123 step 48291 of 4829130 Mary smiths 555-123-456 x482913
"""
CODED = base64.b64encode


def found(data: bytes, secrets: dict[int, str] = SECRETS) -> dict[int, set[str]]:
    """Kinds by secret."""
    kinds: dict[int, set[str]] = {}
    for hit in Searcher(secrets).hits([data]):
        kinds.setdefault(hit.secret, set()).add(hit.kind)
    return kinds


VARIANTS = [
    (PHONE.encode(), 0, "exact"),
    (b"5551234567", 0, "separators"),
    (b"(555) 123 4567", 0, "separators"),
    (b"555_123.4567", 0, "separators"),
    (b"7654-321-555", 0, "reversed"),
    (b"MARY SMITH-JONES", 1, "case"),
    (b"mary_smith_jones", 1, "separators"),
    (b"MarySmithJones", 1, "separators"),
    (b"Mary\r\n  Smith-Jones", 1, "separators"),
    (b"Mary+Smith-Jones", 1, "separators"),
    (b"Mary\0Smith-Jones", 1, "separators"),
    (b"senoJ-htimS yraM", 1, "reversed"),
    (CANARY.encode(), 2, "exact"),
    (b"319284", 2, "reversed"),
    (CANARY.encode("utf-16-le"), 2, "utf16"),
    (CANARY.encode("utf-16-be"), 2, "utf16"),
    (CANARY.encode("utf-32-le"), 2, "utf16"),
    (NAME.encode("utf-16-le"), 1, "utf16"),
    (CANARY.encode().hex().encode(), 2, "hex"),
    (NAME.encode().hex(" ").upper().encode(), 1, "hex"),
    (CAFE.encode(), 3, "unicode"),
    (CAFE.upper().encode(), 3, "unicode"),
    (CAFE.encode("latin-1"), 3, "latin1"),
    (CAFE.encode("utf-16-le"), 3, "utf16"),
    (WEST.encode("utf-16-le"), 4, "utf16"),
    (WEST.encode("utf-16-be"), 4, "utf16"),
    (json.dumps(CAFE).encode(), 3, "escaped"),
    (html.escape(CAFE).encode(), 3, "escaped"),
    (CAFE.encode("ascii", "xmlcharrefreplace"), 3, "escaped"),
    (ascii(CAFE).encode(), 3, "escaped"),
    (quote(CAFE).encode(), 3, "escaped"),
    (quote(CAFE, safe="").lower().encode(), 3, "escaped"),
    *(
        (CODED(bytes(shift) + NAME.encode() + bytes(extra)), 1, "base64")
        for shift in range(3)
        for extra in range(3)
    ),
    *((base64.urlsafe_b64encode(b"?>"[:shift] + CAFE.encode()), 3, "base64") for shift in range(3)),
    *((CODED(bytes(shift) + CANARY.encode() + b"."), 2, "base64") for shift in range(3)),
    (base64.encodebytes(b"x" * 50 + NAME.encode() + b"y" * 50), 1, "base64"),
]


@pytest.mark.parametrize(
    "lead", [b"", b"\n\n", b'{"text": "', b"\\n", b"%20", b"\x1b[31m", b"id=", "日".encode()]
)
@pytest.mark.parametrize(("data", "secret", "kind"), VARIANTS)
def test_every_variant_is_found_and_named(data, secret, kind, lead):
    if data.count(0) > 1:
        lead = lead.decode().replace("日", "ä").encode("utf-16-le" if data[0] else "utf-16-be")
    tail = b"\0\0\0 " if 0 in data else b" "
    assert found(lead + data + tail + TEXT) == {secret: {kind}}
    assert found(lead + data) == {secret: {kind}}


@pytest.mark.parametrize(
    "data",
    [
        TEXT,
        b"0.482913",
        b"[12.482913, 1]",
        b"482913.5",
        b"3.5e-482913",
        b"482913e-05",
        b"1482913",
        b"4829130",
        b"a482913",
        b"482913a",
        b"48 29 13",
        b"482-913",
        b"48\n2913",
        b"4\0829\0\0\0" + b"13",
        b"555.1234567",
        b"0.5551234567",
        b"12 555-123-45678",
        b"1555-123-4567",
        b"XMary Smith-Jones",
        b"Mary Smith-Joneses",
        CODED(CANARY.encode()).swapcase(),
        CODED(CANARY.encode())[:-2],
        CANARY.encode().hex().encode()[:-1],
        "482913".encode("utf-16-le") + b"7\0",
    ],
)
def test_chance_is_no_leak(data):
    assert found(data) == {}
    assert found(b"...\n" + data + b"\n...") == {}


def test_a_secret_written_as_a_number_is_found_as_it_stands():
    assert found(b"at 1234.5678 and 0.555", {0: "1234.5678"}) == {0: {"exact"}}
    assert found(b"12345678", {0: "1234.5678"}) == {0: {"separators"}}
    assert found(b"1.1234.5678", {0: "1234.5678"}) == {}


@pytest.mark.parametrize("size", range(3, 12))
@pytest.mark.parametrize("shift", range(3))
def test_base64_core_is_what_all_contexts_share(size, shift):
    """Oracle: encode with many neighbours; the core is in each, and no character more is the same
    in all.
    """
    data = bytes(range(60, 60 + size))
    rng = np.random.default_rng(size)
    coded = [CODED(rng.bytes(shift) + data + rng.bytes(4)) for _ in range(400)]
    end = 8 * (shift + size) // 6
    same = [place for place in range(end + 1) if len({text[place] for text in coded}) == 1]
    assert bytes(coded[0][place] for place in same) == base64_core(data, shift)


def test_a_secret_across_any_border_of_blocks_is_found_once(monkeypatch):
    monkeypatch.setattr(search, "BLOCK", 256)
    long = "Unit 0012 Box 4455 DPO AE 09876 c/o Mary Smith-Jones"
    searcher = Searcher({0: PHONE, 1: long})
    for secret, kind in ((PHONE.encode(), "exact"), (long.lower().encode("utf-32-le"), "utf16")):
        for place in range(100, 520):
            data = b"." * place + secret + b"." * 300
            for size in (1, 7, 256):
                pieces = [data[start : start + size] for start in range(0, len(data), size)]
                assert [hit.kind for hit in searcher.hits(pieces)] == [kind], (place, size)
    searcher = Searcher(SECRETS)
    digits = b"." * 250 + b"482913" + b"7" * 300  # the byte after the border decides
    assert not list(searcher.hits([digits[:256], digits[256:]]))


def test_separators_may_be_many_but_not_endless(monkeypatch):
    """The same limit wherever a block ends."""
    monkeypatch.setattr(search, "BLOCK", 256)
    searcher = Searcher(SECRETS)
    for place in range(0, 512, 5):
        for blanks in (50, 120, 124, 125, 129, 130, 300):
            data = b"." * place + b"Mary" + b" " * (blanks + 1) + b"Smith-Jones" + b"." * 300
            hits = list(
                searcher.hits(data[start : start + 64] for start in range(0, len(data), 64))
            )
            assert len(hits) == (len(data.strip(b".")) <= search.STRETCH * 14 + search.CONTEXT), (
                place,
                blanks,
            )


def test_as_many_hits_as_a_naive_search_finds():
    rng = np.random.default_rng(0)
    secrets = {
        number: f"{value:07d}" for number, value in enumerate(rng.choice(10**7, 200, replace=False))
    }
    words = [
        secrets[int(pick)] if pick < 200 else f"w{pick}" for pick in rng.integers(0, 5000, 20_000)
    ]
    hits = [
        hit.secret
        for hit in Searcher(secrets).hits([" ".join(words).encode()])
        if hit.kind == "exact"
    ]
    assert [secrets[hit] for hit in hits] == [word for word in words if not word.startswith("w")]


def test_a_long_secret_with_separators_of_its_own():
    long = {0: "5551234567", 1: "AB12CD34EF56"}
    for text, secret in (
        (b"555-123-4567", 0),
        (b"(555) 123-4567", 0),
        (b"AB12 CD34 EF56", 1),
        (b"ab12.cd34\nef56", 1),
    ):
        assert found(text, long) == {secret: {"separators"}}
    for text in (b"55512 34567", b"5 5512.34567", b"555\n1234567", b"555,1234567"):
        assert not found(text, long)


def test_equal_forms_of_two_secrets_are_hits_of_both():
    both = {0: "555-123-4567", 1: "5551234567"}
    assert found(b"5551234567", both) == {0: {"separators"}, 1: {"exact"}}
    assert found(b"555-123-4567", both) == {0: {"exact"}, 1: {"separators"}}
    assert found(b"madam im adam", {0: "madam im adam"}) == {0: {"exact"}}


def test_spellings_are_what_standard_decoders_undo():
    forms = {}
    for kind, data in spellings(CAFE):
        forms.setdefault(kind, []).append(data)
    assert bytes.fromhex(forms["hex"][0].decode()).decode() == CAFE
    assert {data.decode("utf-16-le", errors="replace") for data in forms["wide"]} >= {
        CAFE,
        CAFE.upper(),
    }


PASSWORD = "a:b;c,*d|"


def test_a_secret_of_little_but_separators_is_looked_for_as_it_stands():
    assert found(b"the word is a:b;c,*d today", {0: PASSWORD, 1: PHONE}) == {0: {"exact"}}
    for text in (b"abcd", b"a b c d", b"a:b;c,d"):
        assert not found(text, {0: PASSWORD, 1: PHONE})


@pytest.mark.parametrize(
    ("secret", "chance", "leak"),
    [
        ("12-34-56", b"[12, 34, 56]", b"12.34.56"),
        ("10:30:45", b"103045 10 30 45", b"at 10:30:45 sharp"),
        ("12,500.00", b"1250000 and 12500.00", b"paid 12,500.00 today"),
        ("555-123-4567", b"[5551, 2345, 67]", b"555,123,4567"),
        ("Petrow", b"Pet row [Pe, trow]", b'["Pe","trow"]'),
        ("48291", b'["48", "291"]', b'["48291"]'),
    ],
)
def test_what_stands_between_numbers_and_strings(secret, chance, leak):
    assert not found(chance, {0: secret}) and found(leak, {0: secret})


def test_a_letter_of_the_same_alphabet_before_makes_it_another_word():
    assert not found(f"é{CAFE}".encode()) and not found(f"{CAFE}é".encode())
    for text in (f"№{WEST}", f"“{WEST}”", f"日{WEST}本", f"¿{CAFE}?"):
        assert list(found(text.encode()).values()) == [{"unicode"}]
