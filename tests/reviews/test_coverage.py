"""Reviews of corpora whose miss rates are known: how often the bounds hold together."""

from collections import Counter

import numpy as np
import pytest

from confide.certify.review import ANY, RATES, bounds_in, rates_of
from confide.dp.accounting.bounds import each_of
from confide.reviews.draw import Counted, Drawn, Text, quotas
from confide.reviews.marks import Marks, Review
from confide.reviews.tally import counts_of

CONFIDENCE = 0.95
TEXT = " ".join(f"w{number}" for number in range(24))  # as many words as a text has


def world(random, kind, texts, *, apart=False):
    """Texts, and by text the marks of a person who knows: clusters or single secrets.

    apart: no two stand side by side.
    """
    every = []
    known = []
    for number in range(texts):
        words = list(random.permutation(24))
        size = random.integers(1, 25) if kind == "long" else 24
        text = " ".join(TEXT.split(" ")[:size])
        places = sorted(one for one in words if one < size and not (apart and one % 2))
        found = int(min(random.poisson(1.5), size)) if random.random() < 0.5 else 0
        misses = {
            "rare": int(random.random() < 0.03),
            "common": int(random.random() < 0.4),
            "clustered": size if random.random() < 0.02 else 0,
            "long": int(random.integers(0, size + 1)) if random.random() < 0.05 else 0,
        }[kind]
        chosen = random.permutation(places)
        spans = sorted(place(one) for one in chosen[:found])
        missed = sorted(place(one) for one in chosen[found : found + misses])
        labels = random.choice(["code", "id"], size=len(spans))
        text_found = tuple((*span, str(one)) for span, one in zip(spans, labels, strict=True))
        stratum = "found" if spans else ("near" if random.random() < 0.2 else "nothing")
        vain = [one for one in range(len(spans)) if random.random() < 0.05]
        every.append(Text(f"d{number}:0", text, stratum, text_found))
        kinds = random.choice(["code", "name"], size=len(missed))
        marks = [(*span, str(one)) for span, one in zip(missed, kinds, strict=True)]
        known.append(Marks(missed=marks, vain=vain))
    return every, known


def place(word):
    """Where a word stands in TEXT."""
    start = len(" ".join(f"w{number}" for number in range(word))) + (word > 0)
    return int(start), int(start + len(f"w{word}"))


def truth(every, known):
    """Miss rates by label, of all texts."""
    missed = Counter()
    kept = Counter()
    for text, marks in zip(every, known, strict=True):
        for label in (one for *_, one in marks.missed):
            missed.update([label, ANY])
        for number, (*_, label) in enumerate(text.found):
            if number not in marks.vain:
                kept.update([label, ANY])
    return {label: missed[label] / (missed[label] + kept[label]) for label in missed | kept}


def counted_in(every):
    """What is known of the strata."""
    counted = {}
    for text in every:
        counted.setdefault(text.stratum, Counted()).add(text, None)
    return counted


def reviewed(random, every, known, counted, size, unread=()):
    """Bounds of one review of so many texts."""
    chosen = []
    for stratum, number in quotas({name: one.texts for name, one in counted.items()}, size).items():
        alike = [index for index, text in enumerate(every) if text.stratum == stratum]
        chosen += list(random.choice(alike, size=number, replace=False))
    marks = [None if place in unread else known[index] for place, index in enumerate(chosen)]
    review = Review(
        version=1,
        by=None,
        terms={},
        points="",
        spans="",
        seed=0,
        size=max(10, size),
        most=None,
        labels=["code", "id", "name", "other"],
        marks=marks,
    )
    sample = Drawn([every[index] for index in chosen], counted, "", "")
    missed_ones = {(every[index].key, *mark) for index in chosen for mark in known[index].missed}

    def leaves_a_trace(text, mark):
        return dict.fromkeys(RATES, (text.key, *mark) in missed_ones)

    counts = counts_of(review, sample, leaves_a_trace, RATES)
    return counts, rates_of(counts, each_of(CONFIDENCE, bounds_in(counts)))


def failures(kind, seed, texts, size, trials):
    """In how many reviews of one corpus any bound lies below its rate, and the bounds over all."""
    random = np.random.default_rng(seed)
    every, known = world(random, kind, texts)
    rates = truth(every, known)
    counted = counted_in(every)
    wrong = 0
    bounds = []
    for _ in range(trials):
        _, found = reviewed(random, every, known, counted, size)
        wrong += any(row["gamma_upper"] < rates[label] - 1e-9 for label, row in found.items())
        bounds.append(found[ANY]["gamma_upper"])
    return wrong, bounds, rates[ANY]


@pytest.mark.parametrize("kind", ["rare", "common", "clustered", "long"])
def test_bounds_hold_together_as_often_as_they_say(kind):
    wrong, bounds, rate = failures(kind, 1, 300, 100, 25)
    assert wrong == 0  # of 25; at 95 % two are expected to be too many
    assert rate < np.mean(bounds) <= 1


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["rare", "common", "clustered", "long"])
@pytest.mark.parametrize("size", [30, 150])
def test_bounds_hold_in_many_reviews(kind, size):
    wrong = sum(failures(kind, seed, 300, size, 50)[0] for seed in range(4))
    assert wrong <= 0.05 * 200


@pytest.mark.parametrize("apart", [True, False])
def test_a_review_of_all_texts_gives_the_rates(apart):
    """Larger ones where secrets stand side by side: what the policy finds there counts once."""
    random = np.random.default_rng(3)
    every, known = world(random, "common", 60, apart=apart)
    rates = truth(every, known)
    _, found = reviewed(random, every, known, counted_in(every), 60)
    for label, row in found.items():
        assert row["gamma"] == row["gamma_upper"] >= rates[label] - 1e-9
        assert not apart or row["gamma"] == pytest.approx(rates[label])


@pytest.mark.parametrize(
    ("text", "found", "missed", "kept"),
    [
        ("call 555-123-4567 or write", ("555", "123", "4567"), (), 1),  # one number, and not three
        ("call 5551234 or write", ("555", "1234"), (), 1),
        ("write to Anna Smith, please", ("Anna",), ("Anna Smith",), 0),  # its rest can be read
        ("write to Anna Smith, please", ("Anna",), ("Smith",), 0),
        ("ask 123456 or Smith", ("123456",), ("Smith",), 1),
    ],
)
def test_pieces_are_one_secret_and_a_part_is_none(text, found, missed, kept):
    """Counted apart, pieces would make misses look rare, as would what is found in part."""

    def marks(strings):
        starts = [(text.index(string), string) for string in strings]
        return [(start, start + len(string), "code") for start, string in starts]

    other = Text("e:0", "spelled out it is five", "nothing", ())
    every = [Text("d:0", text, "found", tuple(marks(found))), other]
    known = [Marks(missed=marks(missed)), Marks(missed=[(0, 22, "code")])]
    _, rates = reviewed(np.random.default_rng(0), every, known, counted_in(every), 2)
    missing = len(missed) + 1
    assert rates["code"]["gamma"] == rates[ANY]["gamma"] == missing / (missing + kept)
    assert rates["code"]["found"] == 1


def test_labels_side_by_side_are_one_run_of_any_label():
    text = Text("d:0", "at 555 1234 today", "found", ((3, 6, "area"), (7, 11, "number")))
    assert text.runs("area") == [[0]] and text.runs("number") == [[1]]
    assert text.runs(ANY) == [[0, 1]]
    apart = text._replace(text="at 555 or 1234", found=((3, 6, "area"), (10, 14, "area")))
    assert apart.runs("area") == [[0], [1]]
    masked = apart._replace(found=((3, 6, "area"), (7, 9, "word"), (10, 14, "area")))
    assert masked.runs("area") == [[0, 2]]  # no word that is left stands between them


def test_texts_that_were_not_read_count_as_missed():
    """Whoever stops early, or passes over what looks bad, gains nothing."""
    every, known = world(np.random.default_rng(4), "common", 200)
    counted = counted_in(every)
    bounds = []
    for unread in (range(0), range(5), range(50)):
        _, found = reviewed(np.random.default_rng(5), every, known, counted, 100, unread)
        bounds.append({label: row["gamma_upper"] for label, row in found.items()})
    for label in bounds[0]:
        assert bounds[0][label] <= bounds[1][label] <= bounds[2][label]
    assert bounds[0][ANY] < bounds[2][ANY]


def test_every_stratum_has_its_share():
    assert quotas({"found": 900, "near": 50, "nothing": 50}, 100) == {
        "found": 80,
        "near": 10,
        "nothing": 10,
    }
    assert quotas({"found": 3, "nothing": 997}, 50) == {"found": 3, "nothing": 47}
    assert quotas({"found": 3, "nothing": 4}, 50) == {"found": 3, "nothing": 4}
