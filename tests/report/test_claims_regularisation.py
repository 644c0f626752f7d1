"""Verdicts on Privacy Regularization follow the numbers, branch by branch."""

import math
from dataclasses import replace

import numpy as np
import pytest
from authored import AUTHORS, COPIES, EPOCHS, ppl, write_authors
from edited import attacked, changed, in_each_epoch, like, one_seed, renamed

from confide.report.figures.authors import EXPOSURE
from confide.report.results import load
from confide.report.verdicts import regularisation
from confide.report.verdicts.evidence import (
    FAILS,
    HOLDS,
    ONE_SEED,
    OPEN,
    PUBLISHED,
    NotComparable,
    Study,
    settled,
)

LEVEL = 20.0  # that all rows come to but those with a finite epsilon
NAMES = {
    "plain": "writers_nonprivate",
    "dp": "writers_dpsgd",
    "clip": "writers_clip_noise",
    "adversarial": "writers_adversarial",
    "triplet": "writers_triplet",
}
KINDS = ("adversarial", "triplet")


@pytest.fixture(scope="module")
def authors(tmp_path_factory):
    root = tmp_path_factory.mktemp("claims")
    spec = write_authors(root, seeds=5, rows=tuple(NAMES))
    found = load(spec.runs, root / "results", root / "models")
    by_author = renamed(found, {"clip": "writers_by_author"})
    at_level = spec.model_copy(update={"ppl_levels": [LEVEL]})
    return Study(at_level, [*renamed(found, NAMES), *by_author])


def regularised(study: Study, other: str) -> Study:
    """The same study, where both regularisers measured what another row did."""
    for kind in KINDS:
        study = like(study, f"writers_{kind}", other)
    return study


def word(verdict) -> str:
    """The verdict's, as the page says it where no other claim is tested."""
    (alone,) = settled([verdict])
    return alone.word


def at_level(study: Study, row: str, name: str, number) -> list[float]:
    """A number at LEVEL between two epochs, over the seeds; `name`: the row of the fixture."""
    epochs = np.arange(1, EPOCHS + 1)
    logs = np.log([ppl(name, epoch) for epoch in epochs])
    return [
        float(np.interp(-math.log(LEVEL), -logs, [number(run, epoch) for epoch in epochs]))
        for run in study.runs(row)
    ]


def test_numbers_are_compared_at_the_level_itself(authors):
    """Between the epochs around it, along the logarithm of the perplexity."""

    def exposure(run, epoch):
        return np.mean(run.trajectory[epoch][EXPOSURE]["canaries"]["exposures"])

    def often(run, epoch):
        canaries = run.trajectory[epoch][EXPOSURE]["canaries"]
        first = COPIES.index(10) * AUTHORS
        return np.mean(canaries["exposures"][first:])

    expected = np.mean(at_level(authors, "writers_nonprivate", "plain", exposure))
    found = regularisation.less_exposed(authors, "writers")
    assert f"nonprivate {expected:.3g}" in found.evidence
    expected = np.mean(at_level(authors, "writers_clip_noise", "clip", often))
    assert f"clip noise {expected:.3g}" in regularisation.against_noise(authors).evidence


def test_a_level_that_a_row_jumps_over_or_never_reaches_is_not_compared(authors):
    # the non-private row falls from 32 to 21 in one epoch, and the adversarial one stays above 11
    for level, row in ((25.0, "writers_nonprivate"), (10.0, "writers_adversarial")):
        spec = authors.spec.model_copy(update={"ppl_levels": [level]})
        with pytest.raises(NotComparable, match=f"{row} has no epochs near"):
            regularisation.less_exposed(Study(spec, authors.results), "writers")


@pytest.mark.parametrize("claim", [regularisation.less_exposed, regularisation.less_extracted])
def test_regularisers_against_their_batches(authors, claim):
    def judged(study: Study) -> str:
        return word(claim(study, "writers"))

    assert judged(authors) == HOLDS
    as_good = like(authors, "writers_by_author", "writers_adversarial")
    assert judged(as_good) == PUBLISHED  # batches of one author do it alone
    assert judged(regularised(authors, "writers_nonprivate")) == OPEN  # no difference at all
    better = like(authors, "writers_nonprivate", "writers_adversarial")
    assert judged(regularised(better, "writers_clip_noise")) == FAILS


def test_one_seed_shows_nothing(authors):
    single = Study(authors.spec, one_seed(authors.results))
    assert regularisation.less_exposed(single, "writers").word == ONE_SEED


@pytest.mark.parametrize("claim", [regularisation.against_noise, regularisation.tab_against_noise])
def test_canaries_against_noise(authors, claim):
    assert word(claim(authors)) == HOLDS
    assert word(claim(like(authors, "writers_clip_noise", "writers_adversarial"))) == FAILS
    assert word(claim(regularised(authors, "writers_clip_noise"))) == OPEN


def test_seldom_repeated_canaries_are_alike_within_two_bits(authors):
    assert word(regularisation.few_copies(authors)) == HOLDS
    evidence = regularisation.few_copies(authors).evidence
    assert "up to 9 copies" in evidence and "clip noise 5.2 (ε = ∞)" in evidence

    def less(attack):
        canaries = attack["canaries"]
        exposures = [max(0.0, value - 4) for value in canaries["exposures"]]
        return attack | {"canaries": canaries | {"exposures": exposures}}

    forgotten = [
        replace(
            run,
            trajectory={
                epoch: {**attacks, EXPOSURE: less(attacks[EXPOSURE])}
                for epoch, attacks in run.trajectory.items()
            },
        )
        if run.run.name == "writers_triplet"
        else run
        for run in authors.results
    ]
    assert word(regularisation.few_copies(Study(authors.spec, forgotten))) == FAILS


def test_gaps_between_authors(authors):
    assert word(regularisation.fair(authors, "writers", "dpsgd")) == HOLDS
    assert (
        word(regularisation.fair(authors, "writers", "triplet")) == FAILS
    )  # adversarial's is larger


def test_an_author_is_hidden_only_from_every_probe(authors):
    assert word(regularisation.hidden(authors, "writers")) == HOLDS
    seen = attacked(authors.results, "writers_triplet", "author_inference", accuracy=0.45)
    assert word(regularisation.hidden(Study(authors.spec, seen), "writers")) == FAILS


def test_time_of_regularisers(authors):
    usual = {"nonprivate": 1.0, "by_author": 1.0, "adversarial": 1.1, "triplet": 1.7, "dpsgd": 3.5}
    for changes, word in (
        ({}, HOLDS),
        ({"dpsgd": 3.3}, FAILS),
        ({"triplet": 1.9, "dpsgd": 9.0}, FAILS),
        ({"adversarial": 1.2}, FAILS),
        ({"triplet": 2.5, "by_author": 1.5, "dpsgd": 5.1}, HOLDS),
    ):
        own = [lasting(run, usual | changes) for run in authors.results]
        found = regularisation.quick(Study(authors.spec, own), "writers")
        assert found.word == word and "printed 1.06 and 1.80" in found.evidence
    assert regularisation.equal_utility(authors, "writers").word == FAILS  # 11 and 11.5 against 9


def lasting(run, seconds):
    """A run whose epochs last as long as is said of its row."""
    return in_each_epoch(run, cpu_seconds=seconds.get(run.run.name.removeprefix("writers_"), 1.0))


def test_a_finite_epsilon_at_a_large_perplexity(authors):
    assert regularisation.useless(authors, "writers").word == FAILS  # 26 against 9
    lost = changed(authors.results, "writers_dpsgd", ppl=90.0)
    assert regularisation.useless(Study(authors.spec, lost), "writers").word != FAILS


def test_real_text_against_canaries(authors):
    found = regularisation.real(authors, "writers")
    assert word(found) == FAILS and "real text 8.39" in found.evidence  # half as often


def test_batches_of_one_author_against_random_ones(authors):
    def judged(own: str, random: str) -> str:
        results = authors.results
        for kind in KINDS:
            for end, source in (("", own), ("_random", random)):
                given = {f"writers_{source}": f"w_{kind}{end}"}
                results = [*results, *renamed(authors.results, given)]
        return word(regularisation.batches(Study(authors.spec, results), "w"))

    assert judged("triplet", "nonprivate") == HOLDS
    assert judged("nonprivate", "triplet") == FAILS
    assert judged("triplet", "triplet") == OPEN


def test_a_larger_weight_protects_more_and_costs_more(authors):
    """Two rows stand for a small and a large weight."""

    def weighted(little, much):
        names = {f"writers_{little}": "001", f"writers_{much}": "10"}
        rows = [
            renamed(authors.results, {name: f"writers_{kind}_{end}"})
            for kind in KINDS
            for name, end in names.items()
        ]
        return Study(authors.spec, [result for row in rows for result in row])

    assert word(regularisation.traded(weighted("nonprivate", "dpsgd"), "001", "10")) == HOLDS
    assert word(regularisation.traded(weighted("dpsgd", "nonprivate"), "001", "10")) == FAILS
