"""The index finds what a naive search finds, and characters are read as published tables say."""

import unicodedata

import numpy as np
import pytest
from planted_forms import gpt2
from tokenizers.pre_tokenizers import ByteLevel

from confide.scan import index, plain, readings
from confide.scan.index import Index


def naive(strings: list[bytes], data: bytes) -> list[tuple[int, int, int]]:
    """Owner, first and last of every place of every string."""
    return sorted(
        (owner, place, place + len(string))
        for owner, string in enumerate(strings)
        for place in range(len(data))
        if data.startswith(string, place)
    )


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("letters", [b"ab", b"abcdefgh", bytes(range(1, 256))])
def test_an_index_finds_what_a_naive_search_finds(monkeypatch, seed, letters):
    monkeypatch.setattr(index, "STEP", 64)
    rng = np.random.default_rng(seed)
    data = bytes(rng.choice(list(letters), 500).tolist())
    strings = [bytes(rng.choice(list(letters), rng.integers(1, 12)).tolist()) for _ in range(30)]
    strings += [
        data[start : start + size] for start, size in rng.integers(1, 15, (30, 2)).tolist()
    ] + [data[-9:], data[:7]]
    found = sorted(Index(zip(strings, range(len(strings)), strict=True)).matches(data))
    assert found == naive(strings, data) and found


def test_an_index_of_nothing_and_of_little():
    assert Index([]).matches(b"abc") == [] and len(Index([])) == 0
    assert Index([(b"abcdefghij", 3)]).matches(b"abcdefghi") == []
    assert Index([(b"abcdefghij", 3)]).matches(b"abcdefghij") == [(3, 0, 10)]
    assert Index([(b"abc", 3)]).matches(b"") == []


def test_the_alphabet_of_bytes_is_that_of_published_tokenizers():
    assert {chr(code) for code in readings.BYTE_OF} | set(map(chr, readings.PRINTED)) == set(
        ByteLevel.alphabet()
    )
    for text in ("Жуковский", "Ångström", "日本", "a\u00a0b"):
        assert readings.of_tokens("".join(letter for letter in gpt2(text) if not letter.isascii()))
        (reading,) = readings.tokens(gpt2(f" {text}"))
        assert reading.data.decode() == f" {plain.plain(text)}"


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_every_form_of_unicode_reads_the_same(form):
    for text in ("Ångström", "ﬁnal", "Ａｎｎａ", "ŝĉǽ", "Юрий Ёлкин", "각하", "\u1e9b\u0323"):
        for case in (text, text.upper(), text.casefold()):
            once = plain.plain(unicodedata.normalize(form, case)).lower()
            assert once == plain.plain(text).lower() == plain.plain(once).lower(), (text, case)


def test_a_table_of_characters_stays_small():
    text = "".join(map(chr, (*range(0x80, 0xD800), *range(0xE000, 0x20000))))
    plain.plain(text)
    assert len(plain.TABLE) <= 0x10000 and plain.remembered.cache_info().maxsize == 1 << 14


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_character_that_is_cut_in_two_does_not_hide_the_rest(cut):
    data = "ёж и Жуковский — уж".encode()
    for part in (data[cut:], data[:-cut]):
        assert plain.plain(readings.text_in(part, 6)) in plain.plain("ёж и Жуковский — уж")
    assert "жуковскии" in plain.plain(readings.text_in(data[min(cut, 5) :], 6))


def test_runs_of_text_among_numbers():
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(5000).astype(np.float32).tobytes()
    for text in ("Жуковский", "Ångström", "\\u0416\\u0443\\u043a\\u043e\\u0432"):
        found = readings.text_in(noise + b"\0" + text.encode() + b"\0" + noise, 6)
        assert f"{readings.BORDER}{text}{readings.BORDER}" in found and len(found) < 1000
    assert readings.text_in(b"\xff" * 100, 6) == ""
