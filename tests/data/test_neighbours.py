"""Neighbouring corpora through dedup, redact and partition: what confidentially redacted training
may see of a secret.

D' is D with one secret replaced by <MASK> in the raw text; where the sentence stands several times,
the first copy has the secret masked and every later one becomes a whole <MASK>. A secret that the
policy finds leaves no trace at all; one that only the conservative policy notices changes one
point, private on both sides (CRT section 3 and A.6).
"""

from collections import Counter

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from confide.data.partition_files import load_partition
from confide.provenance.terms import digest_of_specs
from confide.specs import DedupSpec, PartitionSpec, RedactSpec
from confide.stages.dedup import dedup
from confide.stages.partition import partition
from confide.stages.redact import redact
from confide.text.tokenizer import save, train_bpe
from confide.types import MASK
from tests.fills import key_for

TOKENIZER = train_bpe(
    ["my code is 123456, call 555-123-4567 please", "café, thank you; good bye"] * 5, 300
)
PHONE = r"(?=[A-Z0-9])\b\d{3}-\d{3}-\d{4}\b"
CODE = r"(?=[A-Z0-9])\b\d{6}\b"
REDACT = RedactSpec(
    policy={"kind": "regex", "patterns": {"phone": PHONE, "code": CODE}},
    conservative={"kind": "regex", "patterns": {"digit": r"\d"}},
)
PHONES_ONLY = REDACT.model_copy(
    update={"policy": REDACT.policy.model_copy(update={"patterns": {"phone": PHONE}})}
)

secrets = st.sampled_from(["123456", "000000", "654321"])
pieces = st.sampled_from(
    ["my code is", "thank you", "café", "<MASK>", "555-123-4567", "123456", "99", "😀", "USR"]
)
gaps = st.sampled_from([" ", ", ", "/", ";", " ("])
fillers = st.lists(st.tuples(pieces, gaps), max_size=3)
sentences = st.tuples(pieces, fillers).map(
    lambda parts: parts[0] + "".join(gap + piece for piece, gap in parts[1])
)


@st.composite
def neighbours(draw):
    """Two lists of (text, split) that differ in one secret, and the place of the point that holds
    it.
    """
    before = "".join(piece + gap for piece, gap in draw(fillers))
    after = "".join(gap + piece for piece, gap in draw(fillers))
    sentence = before + draw(secrets) + after
    masked = before + MASK + after
    others = draw(
        st.lists(st.tuples(sentences, st.sampled_from(["train", "train", "valid"])), max_size=6)
    )
    others = [(text, split) for text, split in others if text != sentence]
    others += draw(st.lists(st.sampled_from(others), max_size=3)) if others else []
    corpus = [*others, *[(sentence, "train")] * draw(st.integers(1, 3))]
    order = draw(st.permutations(range(len(corpus))))
    first = [corpus[index] for index in order]
    places = [index for index, (text, _) in enumerate(first) if text == sentence]
    # a sentence with <MASK> in it is never a copy: each of its occurrences is a point, and only one
    # holds this secret
    repeated = places[1:] if MASK not in sentence else []
    second = list(first)
    second[places[0]] = (masked, "train")
    for index in repeated:
        second[index] = (MASK, "train")
    return first, second, places[0]


def through(folder, corpus, spec, parted):
    """Run the data stages; the bytes that training reads, and the partition."""
    folder.mkdir()
    empty = {"doc": "d", "domain": None, "owner": None, "gold": [], "canary": None}
    rows = [
        {"key": f"d:{index}", "text": text, "split": split, **empty}
        for index, (text, split) in enumerate(corpus)
    ]
    (folder / "points").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    save(TOKENIZER, folder / "tokenizer")
    dedup(DedupSpec(), points=folder / "points", output=folder / "copies")
    redact(spec, points=folder / "points", output=folder / "spans")
    inputs = {
        name: folder / name
        for name in ("points", "copies", "spans", "tokenizer", "original", "redacted")
    }
    inputs |= key_for(parted.fill, folder)
    partition(parted, **inputs, policies=digest_of_specs(spec))
    return (folder / "redacted").read_bytes(), load_partition(
        folder / "original", folder / "redacted"
    )


@settings(max_examples=150)
@given(neighbours(), st.sampled_from(["private", "all"]), st.booleans())
def test_a_secret_that_the_policy_finds_leaves_no_trace(tmp_path_factory, pair, scope, fill):
    folder = tmp_path_factory.mktemp("n")
    spec = PartitionSpec(scope=scope, fill=fill)
    first, _ = through(folder / "first", pair[0], REDACT, spec)
    second, _ = through(folder / "second", pair[1], REDACT, spec)
    assert first == second


@settings(max_examples=150)
@given(neighbours(), st.sampled_from(["private", "all"]))
def test_a_missed_secret_changes_one_point_that_is_private_on_both_sides(
    tmp_path_factory, pair, scope
):
    folder = tmp_path_factory.mktemp("n")
    _, first = through(folder / "first", pair[0], PHONES_ONLY, PartitionSpec(scope=scope))
    _, second = through(folder / "second", pair[1], PHONES_ONLY, PartitionSpec(scope=scope))
    different = [
        index
        for index in range(len(pair[0]))
        if not np.array_equal(first.redacted[index], second.redacted[index])
    ]
    assert different == [pair[2]]
    assert first.private[pair[2]]
    assert second.private[pair[2]]
    assert np.array_equal(first.private, second.private)
    others = np.arange(len(pair[0])) != pair[2]
    assert np.array_equal(first.copy[others], second.copy[others])


@settings(max_examples=30)
@given(neighbours(), st.floats(0, 1), st.integers(0, 3))
def test_a_missed_share_falls_into_one_of_the_two_cases(tmp_path_factory, pair, gamma, seed):
    spec = REDACT.model_copy(update={"miss_rate": gamma, "miss_seed": seed})
    folder = tmp_path_factory.mktemp("n")
    bytes_one, first = through(folder / "first", pair[0], spec, PartitionSpec())
    bytes_two, second = through(folder / "second", pair[1], spec, PartitionSpec())
    different = [
        index
        for index in range(len(pair[0]))
        if not np.array_equal(first.redacted[index], second.redacted[index])
    ]
    assert different in ([], [pair[2]])
    assert (bytes_one == bytes_two) == (not different)
    assert first.private[pair[2]] and second.private[pair[2]]


def test_a_conservative_policy_that_is_silent_shows_up(tmp_path):
    """The check can fail: with no conservative hit a missed secret moves its point from the public
    to the private pool.
    """
    blind = PHONES_ONLY.model_copy(update={"conservative": PHONES_ONLY.policy})
    _, first = through(tmp_path / "first", [("my code is 123456", "train")], blind, PartitionSpec())
    _, second = through(
        tmp_path / "second", [("my code is <MASK>", "train")], blind, PartitionSpec()
    )
    assert (first.private.tolist(), second.private.tolist()) == ([False], [True])


def test_plain_copies_elsewhere_stay_aligned(tmp_path):
    corpus = [
        ("thank you", "train"),
        ("my code is 123456", "train"),
        ("thank you", "train"),
        ("my code is 123456", "train"),
    ]
    masked = [corpus[0], ("my code is <MASK>", "train"), corpus[2], (MASK, "train")]
    bytes_one, first = through(tmp_path / "first", corpus, REDACT, PartitionSpec(scope="all"))
    bytes_two, _ = through(tmp_path / "second", masked, REDACT, PartitionSpec(scope="all"))
    assert bytes_one == bytes_two
    assert first.copy.tolist() == [False, False, True, True]


def changed_records(first, second):
    """How many private points of one partition are in the other, whatever their order, no longer.

    A Poisson batch has no order either, so that this is how many contributions a record changes.
    """

    def records(read):
        pool = read.pool("private").tolist()
        return Counter(tuple(read.redacted[point].tolist()) for point in pool)

    return (records(first) - records(second)).total()


@pytest.mark.parametrize(("fill", "changed"), [(False, 1), (True, 2)])
def test_a_record_with_copies_changes_itself_alone_but_for_made_up_values(tmp_path, fill, changed):
    """Replaced, it no longer makes copies of those that follow it: the next is read in its place.

    So it changes one contribution, unless what is read goes by the place, as made-up values do:
    noised updates of them are refused.
    """
    train = [("my code is 123456", "train"), ("my code is 123456", "train")]
    train += [("thank you 99", "train")]
    second = [("call me 123456", "train"), *train[1:]]
    spec = PartitionSpec(fill=fill)
    parts = [
        through(tmp_path / name, corpus, REDACT, spec)[1]
        for name, corpus in (("first", train), ("second", second))
    ]
    assert changed_records(*parts) == changed
