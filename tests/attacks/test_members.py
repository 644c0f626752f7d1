"""Who is asked about: the published setting's random strings, and secrets without their text."""

import numpy as np
import pytest

from confide.attacks.membership.members import (
    against_random,
    bare,
    candidates_of,
    first_occurrences,
    occurrences,
    tokens_of,
)
from confide.files.io import write_jsonl
from confide.specs import MembershipSpec

SPEC = MembershipSpec(kind="membership", label="year", limit=100, seed=5, non_members="random")


@pytest.fixture
def points(tmp_path):
    """60 years in train, three of which occur outside, too, and one before it."""
    rows = [("valid", "1900", "Ended in 1900 .")]
    rows += [("train", str(1900 + i), f"Born in {1900 + i} .") for i in range(60)]
    rows += [
        ("test", "1901", "Died in 1901 ."),
        ("valid", "1902", "Died in 1902 ."),
        ("train", "   ", "Of    ."),
    ]
    rows = [
        {
            "key": f"d{number}:0",
            "text": text,
            "split": split,
            "gold": [[text.index(secret), text.index(secret) + len(secret), "year", 1.0]],
        }
        for number, (split, secret, text) in enumerate(rows)
    ]
    write_jsonl(tmp_path / "points.jsonl", rows)
    return tmp_path / "points.jsonl"


def test_members_are_distinct_training_secrets_and_others_random_strings_in_their_places(points):
    found = candidates_of(SPEC, points)
    members = found[:60]
    others = found[60:]
    assert [c.secret for c in members] == [str(1900 + i) for i in range(60)] and all(
        c.member for c in members
    )
    assert not any(c.member for c in others) and len(others) == 60
    for own, other in zip(members, others, strict=True):
        assert (
            own.text == f"Born in {own.secret} ." and other.text == f"Born in {other.secret} ."
        )  # in train, not where first
        assert len(other.secret) == 4 and set(other.secret) <= set(" 0123456789")
        assert other.text[other.start : other.end] == other.secret
    assert (
        found
        == candidates_of(SPEC, points)
        != candidates_of(SPEC.model_copy(update={"seed": 6}), points)
    )


def test_limit_is_per_side(points):
    found = candidates_of(SPEC.model_copy(update={"limit": 7}), points)
    assert [c.member for c in found] == [True] * 7 + [False] * 7


def test_random_strings_are_uniform_and_never_a_training_secret(points):
    """Chi-square of all characters; with nine of eleven one-character strings taken, only the other
    two come.
    """
    from scipy.stats import chisquare

    secrets = [c for c in occurrences(points, ["year"]).values() if c.member]
    drawn = [
        c.secret
        for seed in range(20)
        for c in against_random(secrets, 60, np.random.default_rng(seed))
        if not c.member
    ]
    assert not {c.secret for c in secrets} & set(drawn)
    counts = [sum(string.count(letter) for string in drawn) for letter in " 0123456789"]
    assert sum(counts) == 4 * 1200 and chisquare(counts).pvalue > 1e-3
    short = [secrets[0]._replace(secret=str(i), text=str(i), start=0, end=1) for i in range(9)]
    assert {
        c.secret for c in against_random(short, 9, np.random.default_rng(0)) if not c.member
    } <= {"9", " "}


def test_the_honest_setting_leaves_out_what_is_on_both_sides(points):
    secrets = {c.secret for c in first_occurrences(points, ["year"])}
    assert len(secrets) == 57 and not secrets & {"1900", "1901", "1902"}
    assert candidates_of(SPEC.model_copy(update={"non_members": "held_out"}), points) == []


@pytest.mark.parametrize("name", ["digit_tokenizer", "merging_tokenizer"])
def test_bare_secrets_stand_after_a_space_alone(request, points, name):
    """Scored are the secret's tokens; the space's only where it is a part of them."""
    tokenizer = request.getfixturevalue(name)
    found = candidates_of(SPEC.model_copy(update={"context": "bare"}), points)
    assert all(c.text == " " + c.secret and c.text[c.start : c.end] == c.secret for c in found)
    assert found == [bare(c) for c in candidates_of(SPEC, points)]
    view = tokens_of(found, tokenizer)
    for i, candidate in enumerate(found):
        ids = tokenizer.encode(candidate.text)
        scored = view.private[view.starts[i] : view.starts[i + 1]]
        assert view[i].tolist() == ids and scored[1:].all()
        assert scored[0] == (len(tokenizer.decode(ids[:1])) > 1)
