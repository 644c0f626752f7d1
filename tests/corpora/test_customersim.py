"""The simulator against the published facts of its model: agenda, formats, shares, and splits that
share no user.
"""

import re
import subprocess
import sys
from collections import Counter

import pytest

from confide.corpora import READERS
from confide.corpora.simulated.customersim import SECRETS, SENTENCES, dialogue
from confide.corpora.simulated.customersim_values import WORDS, user_tables
from confide.errors import InputError
from confide.specs import CustomerSimSpec, Sizes

PLACE = r"(?:(?:North|South|East|West|New|Port|Lake) )?[A-Z][a-z]+, [A-Z]{2} \d{5}"
SHAPES = {
    "private": {
        "name": r"[A-Z][a-z]+ [A-Z][a-z]+",
        "phone": r"[1-9]\d\d([-.]?)\d{3}\1\d{4}",
        "order": r"[1-9]\d\d-[1-9]\d{4}-\d{4}",
        "tracking": r"[A-Z0-9]{10}",
        "address": rf"\d{{3,5}} [A-Z][a-z]+ [A-Z][a-z]+(?: Suite \d{{3}}| Apt\. \d{{3}})? {PLACE}"
        r"|(?:PSC \d{4}, Box \d{4} APO|Unit \d{4} Box \d{4} DPO|USNS [A-Z][a-z]+ FPO) A[AEP] \d{5}",
    },
    "public": {
        "name": r"[A-Z][a-z]+ [A-Z][a-z]+",
        "phone": r"\+\d\d \d{3} \d{3} \d{3}|\(0\d{3}\) \d{3} \d{4}",
        "order": r"ORD-\d{4}-\d{3}[A-Z]|INV20\d\d/\d{6}|#\d{8}",
        "tracking": r"[A-Z]{2}-\d{4}-\d{4}-\d\d",
        "address": r"(?:Flat \d+, )?\d+ [A-Z][a-z]+ [A-Z][a-z]+, [A-Z][a-z]+ [A-Z]{2}\d \d[A-Z]{2}",
    },
}


def make(train=1500, valid=300, test=300, **options):
    return CustomerSimSpec(
        reader="customersim", sizes=Sizes(train=train, valid=valid, test=test), **options
    )


def records(spec):
    return list(READERS["customersim"](spec, None))


def values(found, label, split=None):
    return [
        r.text[s.start : s.end]
        for r in found
        if split in (None, r.split)
        for s in r.spans
        if s.label == label
    ]


@pytest.fixture(scope="module")
def corpora():
    return {variant: records(make(variant=variant)) for variant in SHAPES}


@pytest.mark.parametrize("variant", SHAPES)
def test_gold_spans_have_the_shape_of_their_label(corpora, variant):
    labels = Counter()
    for record in corpora[variant]:
        assert list(record.spans) == sorted(record.spans)
        for left, right in zip(record.spans, record.spans[1:], strict=False):
            assert left.end <= right.start
        for span in record.spans:
            assert re.fullmatch(SHAPES[variant][span.label], record.text[span.start : span.end])
            labels[span.label] += 1
    assert set(labels) == set(SECRETS)


@pytest.mark.parametrize("variant", SHAPES)
def test_speakers_alternate_and_docs_are_in_split_order(corpora, variant):
    found = corpora[variant]
    assert [r.doc for r in found] == [
        f"{s}/dial-{i}"
        for s, n in (("train", 1500), ("valid", 300), ("test", 300))
        for i in range(n)
    ]
    for record in found:
        lines = record.text.split("\n")
        assert all(line.startswith(("SYS: ", "USR: ")[i % 2]) for i, line in enumerate(lines))


def test_no_digit_or_name_outside_the_spans_of_the_private_variant(corpora):
    for record in corpora["private"]:
        rest = ""
        last = 0
        for span in record.spans:
            rest = rest + record.text[last : span.start] + "_"
            last = span.end
        rest += record.text[last:]
        assert not re.search(r"\d|[A-Z][a-z]+ [A-Z][a-z]+", rest)


def test_agenda_and_line_counts(corpora):
    """Published shares of 3,000: 8 lines 49 %, 9 47 %, 11 1.6 %, 10 1.1 %, 6 .6 %, 7 .5 %."""
    counts = Counter(record.text.count("\n") + 1 for record in corpora["private"])
    total = sum(counts.values())
    assert abs(counts[8] / total - 0.485) < 0.04 and abs(counts[9] / total - 0.475) < 0.04
    assert 0.003 < (counts[6] + counts[7]) / total < 0.025
    assert 0.008 < (counts[10] + counts[11]) / total < 0.045
    assert set(counts) <= set(range(6, 16))
    for record in corpora["private"]:
        labels = Counter(span.label for span in record.spans)
        assert labels["name"] and labels["tracking"]
        assert sum(bool(labels[slot]) for slot in ("phone", "order", "address")) == 1


def test_slot_and_separator_and_address_shares(corpora):
    found = corpora["private"]
    slots = Counter(
        next(s.label for s in r.spans if s.label in ("phone", "order", "address")) for r in found
    )
    assert all(abs(count / len(found) - 1 / 3) < 0.05 for count in slots.values())
    phones = values(found, "phone")
    for separator in ("-", "."):
        assert abs(sum(separator in phone for phone in phones) / len(phones) - 1 / 3) < 0.08
    addresses = values(found, "address")
    shares = [
        sum(part in text for text in addresses) / len(addresses)
        for part in ("Suite", "Apt.", "O A")
    ]
    assert all(
        abs(share - expected) < 0.07
        for share, expected in zip(shares, (0.22, 0.22, 0.11), strict=True)
    )


def test_numbers_of_variants_are_the_published_ones():
    counts = {move: len(options) for move, options in SENTENCES.private.items()}
    assert counts == {
        "open": 3,
        "greet": 3,
        "request": 8,
        "ask name": 3,
        "name": 7,
        "ask phone": 2,
        "ask order": 3,
        "ask address": 2,
        "phone": 5,
        "order": 5,
        "address": 5,
        "tracking": 3,
        "close": 4,
        "satisfied": 5,
        "user bye": 3,
        "bye": 4,
    }


def test_tables_are_unique_and_disjoint_at_full_size():
    for variant in SHAPES:
        tables = user_tables(variant, 1111, 20_000, 3)
        assert [len(table) for table in tables] == [20_000] * 3
        for column in zip(*(user for table in tables for user in table), strict=True):
            assert len(set(column)) == 60_000


def test_splits_share_no_value_by_default_and_share_names_with_one_table():
    alone = records(make(1200, 400, 400, users=300))
    shared = records(make(1200, 400, 400, users=300, shared_users=True))
    for label in ("name", "address", "phone", "order"):
        digits = {
            s: {re.sub(r"(?<=\d)[-.](?=\d)", "", v) for v in values(alone, label, s)}
            for s in ("train", "valid", "test")
        }
        assert (
            not digits["train"] & digits["valid"]
            and not digits["train"] & digits["test"]
            and not digits["valid"] & digits["test"]
        )
        assert set(values(shared, label, "train")) & set(values(shared, label, "test"))
    owners = {s: {r.author for r in alone if r.split == s} for s in ("train", "valid", "test")}
    assert not owners["train"] & owners["test"]
    assert {r.author for r in shared if r.split == "train"} & {
        r.author for r in shared if r.split == "test"
    }


def test_published_overlap_is_reproduced_by_a_shared_table():
    """10,000 draws with replacement from 20,000 rows: 7,869 distinct expected (7,863 published); 1
    - e^-.5 = 39 % of test.
    """
    names = {
        split: {values([dialogue(spec, split, n)], "name")[0] for n in range(size)}
        for spec in [make(shared_users=True)]
        for split, size in (("train", 4000), ("test", 1000))
    }
    expected = 20_000 * (1 - (1 - 1 / 20_000) ** 4000)
    assert abs(len(names["train"]) - expected) < 80
    assert abs(len(names["train"] & names["test"]) / len(names["test"]) - expected / 20_000) < 0.05


def test_dialogue_depends_on_seed_split_and_number_only():
    small = records(make(20, 5, 5))
    large = records(make(60, 5, 5))
    assert small[:20] == large[:20] and small[20:] == large[60:]
    assert dialogue(make(), "train", 7) == small[7]
    assert records(make(20, 5, 5, seed=2))[0].text != small[0].text
    assert len({r.text for r in large}) == len(large)


def test_same_in_another_process():
    code = (
        "from confide.corpora.simulated.customersim import dialogue\n"
        "from confide.specs import CustomerSimSpec, Sizes\n"
        "sizes = Sizes(train=1, valid=1, test=1)\n"
        "s = CustomerSimSpec(reader='customersim', sizes=sizes, variant='public')\n"
        "print(dialogue(s, 'valid', 3).text)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert found == dialogue(make(variant="public"), "valid", 3).text + "\n"


def test_public_variant_shares_no_sentence_and_no_value_word_with_the_private_one(corpora):
    flat = [
        o for i in SENTENCES.intents for o in (*i.requests, *i.questions, *i.answers, *i.endings)
    ]
    public = {text for options in SENTENCES.public.values() for text in options} | set(flat)
    private = {text for options in SENTENCES.private.values() for text in options}
    assert not public & private and len(public) >= 200
    for field in ("first", "last", "streets", "city_stems", "city_ends"):
        assert not set(getattr(WORDS["private"], field)) & set(getattr(WORDS["public"], field))
    known = set(SECRETS) | set(SENTENCES.fillers)
    assert all(
        slot in known for text in public | private for slot in re.findall(r"\{(\w*)\}", text)
    )
    for label in SECRETS:
        assert not set(values(corpora["private"], label)) & set(values(corpora["public"], label))
    lines = [{line for r in corpora[v] for line in r.text.split("\n")} for v in SHAPES]
    assert not lines[0] & lines[1]


def test_more_users_than_names_is_refused():
    with pytest.raises(InputError, match="users"):
        records(make(1, 1, 1, users=10_000_000))
