"""The generator of messages: the same bytes everywhere, a long tail, exact sizes, and authors whom
a bag of words can tell.
"""

import hashlib
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import confide
from confide.corpora.simulated.authors import PHONE, WORDS, read, sizes
from confide.errors import InputError
from confide.files.io import sha256
from confide.specs import AuthorsSpec, SplitSpec
from confide.stages.split import split
from confide.text.tokenizer import train_bpe
from confide.text.word_canaries import whole_words
from tests.points import whole_lines

SRC = Path(confide.__file__).parents[1] if confide.__file__ else Path(confide.__path__[0]).parent


def spec(**options):
    return AuthorsSpec(reader="authors", **options)


def texts(**options):
    return [record.text for record in read(spec(**options))]


def test_sizes_add_up_and_everybody_is_in_train_and_test():
    found = sizes(spec(authors=40, samples=1000, valid=0.1, test=0.2))
    assert sum(map(sum, found)) == 1000 and len(found) == 40
    for train, valid, test in found:
        count = train + valid + test
        assert (
            train >= 3
            and test >= 1
            and abs(test - 0.2 * count) <= 1
            and abs(valid - 0.1 * count) <= 0.5
        )
    records = list(read(spec(authors=40, samples=1000)))
    assert len(records) == 1000 and len({record.doc for record in records}) == 1000
    counts = Counter((record.author, record.split) for record in records)
    assert [
        [counts[f"private-{author}", name] for name in ("train", "valid", "test")]
        for author in range(40)
    ] == [list(one) for one in found]
    assert [record.split for record in records] == sorted(
        (r.split for r in records), key=("train", "valid", "test").index
    )


def test_the_tail_is_long_and_its_steepness_is_the_specs():
    """Beyond the few that everybody has, samples follow rank ** -tail: the slope of a fit in
    logarithms is the exponent.
    """
    for tail in (0.5, 1.0, 1.5):
        counts = (
            np.sort([sum(one) for one in sizes(spec(authors=100, samples=100_000, tail=tail))])[
                ::-1
            ]
            - 4
        )
        slope = np.polyfit(np.log(np.arange(1, 51)), np.log(counts[:50]), 1)[0]
        assert slope == pytest.approx(-tail, abs=0.02)
    assert max(map(sum, sizes(spec()))) > 40 * min(map(sum, sizes(spec())))  # the default


def test_too_few_samples_or_nothing_for_train():
    assert sizes(spec(authors=10, samples=40)) == [(3, 0, 1)] * 10
    with pytest.raises(InputError, match=r"samples = 39: 10 authors need at least 40"):
        list(read(spec(authors=10, samples=39)))
    with pytest.raises(InputError, match=r"valid \+ test = 1.0: leaves too little"):
        list(read(spec(valid=0.5, test=0.5)))


def test_messages_do_not_depend_on_the_sizes():
    few, many = (
        {r.doc: r.text for r in read(spec(authors=30, samples=count))} for count in (300, 900)
    )
    assert few.keys() < many.keys() and all(many[doc] == text for doc, text in few.items())


def test_seed_and_variant_change_everything():
    base = texts(authors=20, samples=300)
    assert base == texts(authors=20, samples=300) and len(set(base)) > 290
    assert len(set(base) & set(texts(authors=20, samples=300, seed=1))) < 10
    assert not set(base) & set(texts(authors=20, samples=300, variant="public"))


def test_the_same_bytes_whatever_the_hash_seed(tmp_path):
    """In another process with another order of sets, and as the stage writes it."""
    job = SplitSpec(corpus=spec(authors=20, samples=300))
    split(job, output=tmp_path / "here")
    command = [
        sys.executable,
        "-m",
        "confide.cli",
        "split",
        "--spec",
        job.model_dump_json(),
        "--output",
        str(tmp_path / "there"),
    ]
    for seed in ("1", "2"):
        subprocess.run(
            command, check=True, env=os.environ | {"PYTHONPATH": str(SRC), "PYTHONHASHSEED": seed}
        )
        assert sha256(tmp_path / "here") == sha256(tmp_path / "there")
    assert (
        hashlib.sha256(whole_lines(tmp_path / "here")).hexdigest()
        == "0bae163357dba99879190282769445349f1b352e1080134644b834f33e9267ff"
    )


def test_gold_spans_are_the_authors_own_numbers():
    records = list(read(spec()))
    spans = [(record, span) for record in records for span in record.spans]
    assert len(spans) > 100 and all(span.label == PHONE for _, span in spans)
    numbers = {(record.author, record.text[span.start : span.end]) for record, span in spans}
    assert len({author for author, _ in numbers}) == len(numbers)  # one each
    assert all(number.isdigit() and len(number) == 7 for _, number in numbers)
    runs = sum(len(re.findall(r"\d{7}", record.text)) for record in records)
    assert runs == len(spans)  # and nothing else looks like one
    assert not [record for record in read(spec(variant="public", samples=1000)) if record.spans]


def test_variants_share_no_topic_name_or_sentence():
    private = WORDS["private"]
    public = WORDS["public"]
    assert not set(private.sentences) & set(public.sentences) and not set(private.people) & set(
        public.people
    )
    nouns, others = (
        {word for topic in words.topics for word in topic["noun"]} for words in (private, public)
    )
    assert len(nouns & others) <= 3 and min(len(nouns), len(others)) > 100


def test_lengths_are_those_of_short_messages():
    words = [len(text.split()) for text in texts()]
    assert 8 < np.mean(words) < 14 and max(words) < 50 and min(words) >= 3


def accuracy(train, test):
    """Of multinomial naive Bayes over words, by hand: counts with 0.1 added, and the prior."""
    vocabulary = {
        word: index
        for index, word in enumerate({word for _, text in train for word in text.split()})
    }
    authors = sorted({author for author, _ in train})
    counts = np.full((len(authors), len(vocabulary)), 0.1)
    prior = np.zeros(len(authors))
    for author, text in train:
        prior[authors.index(author)] += 1
        for word in text.split():
            counts[authors.index(author), vocabulary[word]] += 1
    weights = np.log(counts / counts.sum(1, keepdims=True))
    scores = [
        np.log(prior)
        + weights[:, [vocabulary[word] for word in text.split() if word in vocabulary]].sum(1)
        for _, text in test
    ]
    return np.mean(
        [
            authors[int(score.argmax())] == author
            for score, (author, _) in zip(scores, test, strict=True)
        ]
    )


def test_authors_can_be_told_but_not_always():
    """Control: with the authors of the training messages permuted, a guess is no better than the
    commonest author.
    """
    records = list(read(spec()))
    train, test = (
        [(r.author, r.text) for r in records if r.split == name] for name in ("train", "test")
    )
    found = accuracy(train, test)
    common = max(Counter(author for author, _ in test).values()) / len(test)
    assert 0.5 < found < 0.85 and found > 2.5 * common
    order = np.random.default_rng(0).permutation(len(train))
    shuffled = [(train[place][0], text) for place, (_, text) in zip(order, train, strict=True)]
    assert accuracy(shuffled, test) < common + 0.03


def test_the_public_variant_has_words_for_canaries():
    """As params.yaml uses it: 400 words that are one token at the start of a text as well as after
    a space.
    """
    public = [r.text for r in read(spec(variant="public", seed=2222)) if r.split == "train"]
    assert len(whole_words(train_bpe(public, 2048))) >= 400
