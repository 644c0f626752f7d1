"""Verdicts on Privacy Regularization follow the numbers, branch by branch."""

import pytest
from authored import write_authors
from edited import attacked, changed, like, renamed

from confide.report.results import load
from confide.report.verdicts import regularisation
from confide.report.verdicts.evidence import FAILS, HOLDS, OPEN, PUBLISHED, Study


@pytest.fixture(scope="module")
def authors(tmp_path_factory):
    root = tmp_path_factory.mktemp("claims")
    spec = write_authors(root, seeds=1)
    names = {
        "plain": "writers_nonprivate",
        "dp": "writers_dpsgd",
        "dp_author": "writers_by_author",
        "clip": "writers_clip_noise",
        "adversarial": "writers_adversarial",
        "triplet": "writers_triplet",
    }
    return Study(spec, renamed(load(spec.runs, root / "results", root / "models"), names))


def test_regularisers_against_their_batches(authors):
    found = regularisation.less_exposed(authors, "writers")
    as_plain = like(authors, "writers_adversarial", "writers_nonprivate")
    assert regularisation.less_exposed(as_plain, "writers").word in (FAILS, OPEN)
    assert found.word in (PUBLISHED, OPEN) and "batches of one author" in found.evidence


def test_canaries_that_come_back_need_intervals_apart(authors):
    def judged(study: Study) -> str:
        return regularisation.less_extracted(study, "writers").word

    assert judged(authors) == OPEN  # fewer, with intervals that overlap
    none = like(
        like(authors, "writers_adversarial", "writers_dpsgd"), "writers_triplet", "writers_dpsgd"
    )
    assert judged(none) == PUBLISHED  # but no fewer than with batches of one author
    assert (
        judged(
            like(
                like(none, "writers_by_author", "writers_nonprivate"),
                "writers_nonprivate",
                "writers_dpsgd",
            )
        )
        == FAILS
    )


def test_often_repeated_canaries_against_noise(authors):
    def judged(other: str) -> str:
        return regularisation.against_noise(like(authors, "writers_clip_noise", other)).word

    assert judged("writers_nonprivate") == HOLDS and judged("writers_dpsgd") == FAILS
    same = like(
        like(authors, "writers_clip_noise", "writers_triplet"),
        "writers_adversarial",
        "writers_triplet",
    )
    assert regularisation.against_noise(same).word == OPEN


def test_gaps_between_authors_need_intervals_apart(authors):
    found = regularisation.fair(authors, "writers", "dpsgd")
    assert found.word == HOLDS
    assert regularisation.fair(authors, "writers", "adversarial").word == OPEN  # against itself
    assert (
        regularisation.fair(authors, "writers", "triplet").word == FAILS
    )  # whose gap is smaller than the adversarial one's


def test_an_author_is_hidden_only_from_every_probe(authors):
    assert regularisation.hidden(authors, "writers").word == HOLDS
    seen = attacked(
        authors.results,
        "writers_triplet",
        "author_inference",
        accuracy=0.4,
        accuracy_low=0.3,
        accuracy_high=0.5,
    )
    assert regularisation.hidden(Study(authors.spec, seen), "writers").word == FAILS


def test_time_of_regularisers(authors):
    assert regularisation.quick(authors, "writers").word in (HOLDS, FAILS)
    assert "printed 1.06 and 1.80" in regularisation.quick(authors, "writers").evidence
    assert regularisation.equal_utility(authors, "writers").word == FAILS  # 11 and 11.5 against 9


def trained_further(authors) -> Study:
    """The same compared where much has been learned."""
    return Study(authors.spec.model_copy(update={"ppl_levels": [9.2]}), authors.results)


def test_seldom_repeated_canaries_against_noise(authors):
    late = trained_further(authors)

    def judged(noise: str, regularised: str) -> str:
        rows = ("writers_adversarial", "writers_triplet")
        study = like(late, "writers_clip_noise", noise)
        for row in rows:
            study = like(study, row, regularised)
        return regularisation.few_copies(study).word

    assert judged("writers_dpsgd", "writers_nonprivate") == FAILS
    assert judged("writers_dpsgd", "writers_dpsgd") == HOLDS
    evidence = regularisation.few_copies(late).evidence
    assert "up to 9 copies: adversarial" in evidence and "clip + noise (ε = ∞)" in evidence


def test_canaries_that_come_back_against_noise(authors):
    def judged(other: str) -> str:
        return regularisation.tab_against_noise(like(authors, "writers_clip_noise", other)).word

    assert judged("writers_nonprivate") in (HOLDS, OPEN) and judged("writers_dpsgd") == FAILS


def test_a_finite_epsilon_at_a_large_perplexity(authors):
    assert regularisation.useless(authors, "writers").word == FAILS  # 26 against 9
    lost = changed(authors.results, "writers_dpsgd", ppl=90.0)
    assert regularisation.useless(Study(authors.spec, lost), "writers").word != FAILS


def test_real_text_against_canaries(authors):
    assert regularisation.real(authors, "writers").word == OPEN  # few of either
    late = regularisation.real(trained_further(authors), "writers")
    assert late.word == FAILS and "real text" in late.evidence  # half as often as canaries


def test_batches_of_one_author_against_random_ones(authors):
    def judged(own: str, random: str) -> str:
        results = authors.results
        for kind in ("adversarial", "triplet"):
            for end, source in (("", own), ("_random", random)):
                given = {f"writers_{source}": f"w_{kind}{end}"}
                results = [*results, *renamed(authors.results, given)]
        return regularisation.batches(Study(authors.spec, results), "w").word

    assert judged("triplet", "nonprivate") == HOLDS
    assert judged("nonprivate", "triplet") == FAILS
    assert judged("triplet", "triplet") == OPEN
