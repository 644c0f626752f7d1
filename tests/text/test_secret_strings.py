"""What is counted by secret string, against counting them one by one."""

from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.files import buckets
from confide.text.fingerprints import fresh
from confide.text.secret_strings import (
    Everywhere,
    Flags,
    Most,
    Occurrences,
    Records,
    Strings,
    alike,
    all_alike,
    records_of,
)

AUTHORS = ["Ann", "Bob", ""]
LABELS = ["name", "id"]
SPELLINGS = {
    "Ann": "Ann",
    "ANN": "Ann",
    "Bob": "Bob",
    "7": "7",
    " 7": "7",
    "é": "é",
    "e\u0301": "é",
}
secrets = st.tuples(st.sampled_from(list(SPELLINGS)), st.sampled_from(LABELS))
points = st.fixed_dictionaries(
    {
        "author": st.sampled_from([None, *AUTHORS]),
        "fresh": st.sampled_from([True, False, None]),  # None: it turns out later to be a copy
        "secrets": st.lists(st.tuples(secrets, st.booleans(), st.booleans()), max_size=4),
    }
)


def by_rows(some: list[dict], fingerprints) -> Records:
    strings = Strings()
    for point in some:
        flags: dict = {}
        for key, missed, unprotected in point["secrets"]:
            before = flags.get(key, (False, False))
            flags[key] = (before[0] or missed, before[1] or unprotected)
        strings.add(point["author"], flags, fresh=point["fresh"] is not False)
    return strings.records(fingerprints)


def by_columns(some: list[dict], fingerprints) -> Records:
    rows = [(line, *secret) for line, point in enumerate(some) for secret in point["secrets"]]
    line = np.array([row[0] for row in rows], np.int64)
    numbers = [-1 if point["author"] is None else AUTHORS.index(point["author"]) for point in some]
    there = Occurrences(
        line=line,
        string=pa.array([row[1][0] for row in rows], pa.string()),
        author=np.array(numbers, np.int64)[line],
        label=np.array([LABELS.index(row[1][1]) for row in rows], np.int64),
        fresh=np.array([point["fresh"] is not False for point in some], bool)[line],
        missed=np.array([row[2] for row in rows], bool),
        unprotected=np.array([row[3] for row in rows], bool),
    )
    return records_of(there, AUTHORS, LABELS, fingerprints)


def expected(every: list[dict]) -> tuple[Most, dict[str, Flags]]:
    """Of all points, one at a time."""
    every = [
        point
        | {"secrets": [((SPELLINGS[key[0]], key[1]), *flags) for key, *flags in point["secrets"]]}
        for point in every
    ]
    most = Most()
    for string in {key[0] for point in every for key, _, _ in point["secrets"]}:
        places = [
            point for point in every if any(key[0] == string for key, _, _ in point["secrets"])
        ]
        first = [point for point in places if point["fresh"]]
        most = most.beside(Most(len(places), len(first), authors(places), authors(first)))
    flags = defaultdict(lambda: [False, False])
    for point in every:
        for key, missed, unprotected in point["secrets"]:
            flags[key][0] |= missed
            flags[key][1] |= unprotected
    labels = {
        label: Flags(
            sum(key[1] == label for key in flags),
            sum(key[1] == label and flag[0] for key, flag in flags.items()),
            sum(key[1] == label and flag[1] for key, flag in flags.items()),
        )
        for label in {key[1] for key in flags}
    }
    return most, labels


def authors(places: list[dict]) -> int:
    """Of points; one without an author might be anybody's."""
    names = {point["author"] for point in places} - {None}
    return len(names) + sum(point["author"] is None for point in places)


@given(
    st.lists(st.tuples(st.booleans(), st.lists(points, max_size=6)), max_size=4),
    st.sampled_from([100, 1 << 25]),
)
def test_counts_are_what_counting_one_by_one_gives(tmp_path_factory, shards, largest):
    """Of shards that are read as rows and as columns, in parts of a record or in one; what differs
    in case, blanks or the encoding of accents alone is one string.
    """
    fingerprints = fresh()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buckets, "LARGEST", largest)
        everywhere = Everywhere(tmp_path_factory.mktemp("strings"), 0)
        for as_columns, some in shards:
            records = by_columns if as_columns else by_rows
            everywhere.add(records(some, fingerprints))
            later = [point for point in some if point["fresh"] is None]
            everywhere.add(records(later, fingerprints).taken_back())
        labels = everywhere.labels(1)
        most = everywhere.most(1)
    wanted_most, wanted_labels = expected([point for _, some in shards for point in some])
    assert most == wanted_most
    of_labels = fingerprints(pa.array([name.encode() for name in LABELS], pa.binary())).tolist()
    names = dict(zip(of_labels, LABELS, strict=True))
    assert {names[label]: flags for label, flags in labels.items()} == wanted_labels


@given(st.lists(st.text(st.sampled_from("aZ \t\x1c\x7fÄe\u0301ß\u00a0"), max_size=6), max_size=6))
def test_columns_are_spelled_as_strings_one_by_one(some):
    column = pa.array(["Ä before", *some, " behind"], pa.string()).slice(1, len(some))
    assert all_alike(column).to_pylist() == [alike(secret) for secret in some]
