"""What is claimed behind a cover that says, too, which points are private."""

import math

import pytest
from certified import DELTA, certificate, number, step
from tested_neighbours import corpus_of, run, write

from confide.data.partition_files import load_partition
from confide.dp.accounting.price import epsilon
from confide.provenance.terms import digest_of_specs
from confide.specs import DedupSpec, PartitionSpec, RedactSpec
from confide.stages.dedup import dedup
from confide.stages.partition import partition
from confide.stages.redact import redact

EXACT = step("redacted", "all", False)
NOISED = [step("original", "all", True)] * 20
COVER = {"kind": "cover", "patterns": {"digit": r"\d", "capital": "[A-Z]"}}
COVERED = RedactSpec(policy=COVER, conservative=COVER)
JFT = {
    "method": "jft",
    "recipe": {"epochs": 1, "noisy_epochs": 3, "batch_size": 32, "noisy_batch_size": 32},
}


@pytest.mark.parametrize("copies", [True, False])
def test_a_covered_secret_costs_the_noise_and_another_everything(tmp_path, copies):
    """60 noised updates and one pass without noise over covered text.

    Masked in one of several copies alone, the secret lets the next copy be read without noise.
    """
    _, claims = certificate(tmp_path, [EXACT, *NOISED], dedup=copies, **JFT)
    updates = NOISED * 3
    assert number(claims["secret_caught"]) == pytest.approx(epsilon(updates, DELTA))
    assert number(claims["secret_missed"]) == math.inf
    assert number(claims["record_replace_one_pld"]) == math.inf
    assert "secret_missed_by_both" not in claims
    if copies:
        assert number(claims["secret_caught_literal"]) == math.inf
    else:
        assert "secret_caught_literal" not in claims


def test_copies_are_masked_only_where_the_cover_finds_something(tmp_path):
    """A harmless text that is repeated stays, whichever of its copies; of others the first does."""
    texts = [
        "is it late",
        "is it late",
        "so Ann, room [7] is",
        "so Ann, room [7] is",
        "by [Bob] now",
    ]
    points = corpus_of(*texts)
    found = run(tmp_path, points, COVERED)
    paths = {name: tmp_path / name for name in ("copies", "spans", "original", "redacted")}
    paths |= {"points": write(tmp_path / "points", points)}
    dedup(DedupSpec(), points=paths["points"], output=paths["copies"])
    redact(COVERED, points=paths["points"], output=paths["spans"])
    policies = digest_of_specs(COVERED)
    partition(PartitionSpec(), **paths, tokenizer=tmp_path / "tokenizer", policies=policies)
    read = load_partition(paths["original"], paths["redacted"])
    assert list(read.private) == [False, False, True, True, True]
    assert list(read.copy) == [False, False, False, True, False]
    assert found["occurrences"]["different"] == found["occurrences"]["unstable"] == 0
    assert found["misaligned"] == 0 and found["gamma"] == found["delta2"] == 0
