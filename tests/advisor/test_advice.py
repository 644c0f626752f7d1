"""Each branch of the advice, from prices made up by hand."""

import math
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.advisor.advice import COVERS, Option, Policies, Wish, advise, cover, rank
from confide.certify.facts import COPIES_KEPT
from confide.commands.recommend import (
    best_unigram,
    cells,
    described,
    evaluation_of,
    is_stale,
    other_settings,
    trained,
    unigrams_of,
    unmarked,
    worths,
)
from confide.config import jobs
from confide.config.params import load
from confide.files.io import write_json
from confide.report.results import unigram_like
from confide.report.tables.table import worse_than_unigram
from tests.project import ROOT

SECRET, RECORD, AUTHOR = (
    Wish(unit, 3.0, 1e-5, "replace_one") for unit in ("secret", "record", "author")
)
MEASURED = Policies("mine", "names", "everything", 1000, 1000, 0.2, 400, 0.01, 0.02, 0.008)
SPLIT = MEASURED._replace(dataset="split", conservative="digits", private=300)
UNKNOWN = MEASURED._replace(secrets=0, gamma=None, gamma_upper=None, delta2_upper=None)
CRT = Option("mine", "crt", 2.0, caught=0, missed=3, random=0.4, record=3)
DPSGD = Option("mine", "dpsgd", 2.0, caught=3, missed=3, random=3, record=3)
REDACTED = Option("mine", "redacted", caught=0)
SELECTIVE = Option("mine", "selective", 2.1, caught=3)
NOTHING = Option("mine", "nonprivate")
CONDITIONAL = CRT._replace(dataset="split", conditional=True)
IMPOSSIBLE = Option(
    "mine", "dpsgd", problem="needs an author of every training point, and 7 have none"
)


def methods(options) -> list[str]:
    return [f"{option.dataset} {option.method}" for option in options]


@pytest.mark.parametrize(
    ("option", "wish", "found"),
    [
        (CRT, SECRET, "all"),
        (CRT, RECORD, "all"),
        (CRT._replace(missed=3.1, caught=3.1, record=3.1), SECRET, "none"),
        (CONDITIONAL, SECRET, "if"),
        (CONDITIONAL, RECORD, "if"),
        (REDACTED, SECRET, "caught"),
        (REDACTED, RECORD, "none"),
        (SELECTIVE._replace(caught=3.2), SECRET, "none"),
        (NOTHING, SECRET, "none"),
        (IMPOSSIBLE._replace(missed=0, caught=0, record=0), AUTHOR, "none"),
    ],
)
def test_for_whom_a_price_holds(option, wish, found):
    assert cover(option, wish) == found


def test_the_order_is_for_whom_then_how_much():
    options = [NOTHING, SELECTIVE, REDACTED, CONDITIONAL, DPSGD, CRT]
    found = advise(options, [MEASURED, SPLIT], SECRET)
    assert methods(found.ranked) == [
        "mine crt",
        "mine dpsgd",
        "split crt",
        "mine redacted",
        "mine selective",
        "mine nonprivate",
    ]
    assert found.best == CRT


@given(
    st.permutations([NOTHING, SELECTIVE, REDACTED, CONDITIONAL, DPSGD, CRT]),
    st.sampled_from([SECRET, RECORD]),
)
def test_the_order_of_the_options_does_not_matter(options, wish):
    ranked = advise(options, [MEASURED, SPLIT], wish).ranked
    assert [rank(option, wish) for option in ranked] == sorted(
        rank(option, wish) for option in options
    )
    assert ranked[0] in (CRT, DPSGD)


def test_calibration_that_ends_a_little_lower_does_not_decide():
    other = CRT._replace(dataset="split", missed=2.9991, random=0.5)
    assert advise([other, CRT], [MEASURED, SPLIT], SECRET).best == CRT


def test_all_secrets_with_what_a_random_one_costs():
    reasons = advise([CRT, DPSGD], [MEASURED], SECRET).reasons
    assert (
        reasons[0] == "a secret that the policy names catches: epsilon = 0; one that it misses: 3"
    )
    assert reasons[1] == "a random secret, missed with a probability of at most 2%: epsilon = 0.4"
    assert (
        reasons[2].startswith("what its model is worth is unknown: none was trained here")
        and len(reasons) == 3
    )
    assert "Noise may leave less than a unigram model knows" in reasons[2]


def test_what_a_secret_in_several_texts_costs_stands_behind_what_it_costs_in_one():
    several = CRT._replace(several={2: 7.9716, 10: 2729.3, 400: math.inf})
    reasons = advise([several, DPSGD], [MEASURED], SECRET).reasons
    assert reasons[1] == (
        "a missed secret that stands in several texts costs more: "
        "epsilon = 7.98 in 2 texts, 2,730 in 10 texts, infinity in 400 texts"
    )
    of_records = advise([several], [MEASURED], RECORD).reasons
    assert not any("several texts" in reason for reason in of_records)


def test_where_redaction_amplifies_nothing_no_random_secret_is_spoken_of():
    assert not any("random" in reason for reason in advise([DPSGD], [MEASURED], SECRET).reasons)


def test_without_gold_secrets_only_a_missed_one_counts():
    found = advise([CRT._replace(random=None), REDACTED], [UNKNOWN], SECRET)
    assert found.best.method == "crt" and any(
        "share that the policy misses is unknown" in reason for reason in found.reasons
    )


def test_a_bound_that_allows_all_secrets_to_be_missed_is_no_bound():
    """As of a review of few texts: caught secrets alone are then nothing to count on."""
    useless = MEASURED._replace(gamma=None, gamma_upper=1.0)
    found = advise([CRT._replace(random=3.0), REDACTED], [useless], SECRET)
    assert found.best.method == "crt"
    assert any("for a bound below all. Count on" in reason for reason in found.reasons)
    found = advise([REDACTED, NOTHING], [useless], SECRET)
    assert found.best is None and "too few secrets were tested" in found.reasons[0]
    assert advise([REDACTED, NOTHING], [MEASURED], SECRET).best == REDACTED


@pytest.mark.parametrize(
    ("measured", "words"),
    [(SPLIT, "at most 0.8%"), (UNKNOWN._replace(dataset="split"), "is unknown")],
)
def test_a_condition_is_named_with_what_was_measured_of_it(measured, words):
    random = None if measured.gamma is None else CONDITIONAL.random
    reasons = advise([CONDITIONAL._replace(random=random), REDACTED], [measured], SECRET).reasons
    (condition,) = (reason for reason in reasons if reason.startswith("only if"))
    assert words in condition and "`everything` in its place" in condition


def test_a_condition_on_records_names_how_many_are_left_out():
    reasons = advise([CONDITIONAL], [SPLIT], RECORD).reasons
    assert (
        reasons[0].startswith("only 300 of 1,000 points")
        and "the others are learned as they are" in reasons[0]
    )


def test_what_holds_for_caught_secrets_alone_says_so():
    found = advise([SELECTIVE, REDACTED, NOTHING], [MEASURED], SECRET)
    assert (
        found.best == REDACTED
        and found.reasons[0] == "only for secrets that the policy names catches: epsilon = 0"
    )
    assert (
        "epsilon = infinity: at most 2% of the secrets of any label, by 400 tested"
        in found.reasons[1]
    )


def test_a_bound_by_hand_is_said_to_be_of_what_was_found_or_marked():
    by_hand = MEASURED._replace(secrets=0, gamma=None)
    reasons = advise([REDACTED], [by_hand], SECRET).reasons
    assert "2% of the secrets of any label found or marked, by what a person" in reasons[1]


def test_what_holds_for_caught_secrets_alone_is_not_recommended_where_nobody_knows_what_is_caught():
    found = advise([SELECTIVE, REDACTED, NOTHING], [UNKNOWN], SECRET)
    assert found.best is None and "nobody can say what the policy misses" in found.reasons[0]


def test_copies_that_count_are_named():
    def named(option):
        return [
            reason
            for reason in advise([option], [MEASURED], SECRET).reasons
            if "each copy" in reason
        ]

    assert len(named(DPSGD._replace(copies=True))) == 1 and not named(DPSGD)


def test_one_copy_alone_is_priced():
    reasons = advise([CRT._replace(alone=2.9), DPSGD], [MEASURED], SECRET).reasons
    assert (
        reasons[1]
        == "that is of masking it in all copies of its text; of one copy alone: epsilon = 2.9"
    )
    assert not any("alone" in reason for reason in advise([CRT], [MEASURED], SECRET).reasons)


WORSE = CRT._replace(trained="190 / 184 / 9e3 / 131", perplexity=184.0, unigram=131.0, spent=3.0)


def test_a_model_that_is_worse_than_a_unigram_model_is_not_recommended():
    found = advise([WORSE, REDACTED, NOTHING], [MEASURED], SECRET)
    assert found.best is None and WORSE.worse
    assert found.reasons[0] == (
        "crt on mine: its model is worse than a unigram model, which reads no context: "
        "perplexity 184 on public tokens against 131"
    )
    assert "more text" in found.reasons[1] and "larger epsilon" in found.reasons[1]


def test_one_that_certifies_as_much_and_is_better_takes_its_place():
    good = DPSGD._replace(trained="90", perplexity=90.0, unigram=131.0, spent=3.0)
    found = advise([WORSE, good], [MEASURED], SECRET)
    assert found.best == good and any(
        reason.startswith("crt on mine: its model is worse") for reason in found.reasons
    )
    assert "measured: 90 (ε 3)" in found.reasons
    lesser = REDACTED._replace(trained="3", perplexity=3.0, unigram=131.0)
    found = advise(
        [WORSE, lesser], [MEASURED], SECRET
    )  # nobody asked for less, so it is named and not recommended
    assert found.best is None and found.reasons[-1].startswith(
        "redacted on mine certifies less, only secrets that the policy"
    )


def test_noise_for_more_points_does_not_make_a_model_better():
    stricter = CRT._replace(dataset="mine (everything)", missed=2.9, kin=WORSE)
    everything = MEASURED._replace(dataset="mine (everything)")
    found = advise([stricter, REDACTED], [MEASURED, everything], SECRET)
    assert (
        found.best is None
        and "with noise for fewer points (mine), is worse than a unigram model" in found.reasons[0]
    )


def test_a_larger_epsilon_than_the_trained_one_may_help():
    tight = WORSE._replace(spent=0.5)
    found = advise([tight], [MEASURED], SECRET)
    assert found.best == tight and any(
        "at its own epsilon it is worse than a unigram model" in one for one in found.reasons
    )


def test_a_model_that_is_worse_than_its_start_is_not_recommended():
    start = CRT._replace(trained="t", perplexity=40.0, unigram=131.0, spent=3.0)
    found = advise([start._replace(untouched=30.0)], [MEASURED], SECRET)
    assert found.best is None
    assert found.reasons[0] == (
        "crt on mine: its model is worse than the model that it started from: "
        "perplexity 40 on public tokens against 30"
    )
    better = start._replace(untouched=50.0)
    assert advise([better], [MEASURED], SECRET).best == better and better.bar is None


def test_what_was_trained_with_less_noise_tells_of_what_was_not_trained():
    kin = CRT._replace(trained="14 % guessed right", perplexity=90.0, unigram=131.0, spent=3.0)
    stricter = CRT._replace(dataset="mine (everything)", missed=2.9, kin=kin)
    everything = MEASURED._replace(dataset="mine (everything)")
    reasons = advise([stricter, kin], [MEASURED, everything], SECRET).reasons
    assert reasons[2].endswith(
        "with noise for fewer points (mine) it was worth more than that: "
        "measured: 14 % guessed right (ε 3)"
    )


def test_a_policy_that_misses_many_is_to_be_mended():
    for gamma, many in ((0.67, True), (0.1, False), (None, False)):
        reasons = advise([CRT], [MEASURED._replace(gamma=gamma)], SECRET).reasons
        assert any("mend the policy first: names misses 67%" in one for one in reasons) is many


def test_what_is_hidden_with_its_neighbours_is_no_miss():
    """More patterns would not help there."""
    traces = MEASURED._replace(gamma=0.37, not_hidden=0.0, label="id")
    reasons = advise([CRT], [traces], SECRET).reasons
    assert "hides the secrets that it finds worst, and 37% leave a trace" in reasons[0]
    assert "it hides all of these whole, and some leave a trace" in described(traces)
    for misses in (0.37, None):
        assert "leave a trace" not in described(traces._replace(not_hidden=misses))
    misses = advise([CRT], [traces._replace(not_hidden=0.3)], SECRET).reasons
    assert "names misses 37%" in misses[0]


def test_why_nothing_is_bounded_is_said_with_what_helps():
    reason = "the policy names: list.txt is made from protected text"
    options = [
        CRT._replace(missed=math.inf, unbounded=(reason,)),
        DPSGD._replace(missed=math.inf, caught=math.inf, unbounded=(reason,)),
    ]
    options[0] = options[0]._replace(caught=math.inf)
    found = advise(options, [MEASURED], SECRET)
    assert found.best is None
    assert found.reasons[1] == f"crt, dpsgd: nothing is bounded, for {reason}"
    assert "`independent: true`" in found.reasons[2] and len(found.reasons) == 3
    start = options[0]._replace(unbounded=("it starts from big, which has seen protected text",))
    assert len(advise([start], [MEASURED], SECRET).reasons) == 2  # there it would not help


def test_copies_of_a_record_stay_as_they_are():
    reasons = advise([CRT._replace(alone=3.0)], [MEASURED], RECORD).reasons
    assert reasons[:2] == ["every record: epsilon = 3", f"that is if {COPIES_KEPT}"]


def test_records_and_authors():
    found = advise([REDACTED, CRT, NOTHING], [MEASURED], RECORD)
    assert found.best == CRT and found.reasons[0] == "every record: epsilon = 3"
    assert advise([CRT], [MEASURED], AUTHOR).reasons[0] == "every author: epsilon = 3"


def test_a_table_says_of_authors_which_of_their_points_are_meant():
    """Those in which the conservative policy finds nothing are learned as they are."""
    for wish, option, whose in (
        (AUTHOR, CRT._replace(conditional=True), "of every author the points where the"),
        (RECORD, CRT._replace(conditional=True), "every record where the"),
        (AUTHOR, CRT._replace(conditional=False), "every author"),
    ):
        assert cells(option, wish)[2].startswith(whose)


def test_nothing_fits_and_why():
    other = Option("mine", "selective", problem="is no recurrent model")
    found = advise(
        [IMPOSSIBLE, IMPOSSIBLE._replace(method="crt"), other, NOTHING], [MEASURED], AUTHOR
    )
    assert (
        found.best is None
        and found.reasons[0] == "nothing here certifies epsilon <= 3 for one author"
    )
    assert found.reasons[1:3] == [
        f"dpsgd, crt: {IMPOSSIBLE.problem}",
        "selective: is no recurrent model",
    ]
    assert "plant none" in found.reasons[3] and len(found.reasons) == 4
    assert len(advise([other, NOTHING], [MEASURED], RECORD).reasons) == 2


def test_utility_is_what_was_measured_and_nothing_else():
    trained = CRT._replace(trained="9 / 2 / 800", perplexity=9.0, spent=3.0)
    better, worse = (
        DPSGD._replace(trained=f"{ppl}", perplexity=ppl, spent=3.0) for ppl in (5.0, 10.0)
    )
    leaky = NOTHING._replace(
        trained="2", perplexity=2.0
    )  # certifies nothing: no reason to prefer it
    lesser = CONDITIONAL._replace(trained="4", perplexity=4.0, spent=3.0)
    least = REDACTED._replace(trained="3", perplexity=3.0)
    measured = "measured: 9 / 2 / 800 (ε 3)"
    same = "dpsgd on mine certifies as much; measured: 5.0 (ε 3)"
    less = [
        "crt on split certifies less, only where the conservative policy fires; measured: 4 (ε 3)",
        "redacted on mine certifies less, only secrets that the policy catches; "
        "measured: 3 (ε 0 for one that it catches, ∞ for one that it misses)",
    ]
    cases = [
        ([trained], [measured]),
        ([trained, worse, leaky], [measured]),
        ([trained, better], [measured, same]),
    ]
    cases += [
        ([trained, lesser, least], [measured, *less]),
        ([CRT, lesser], ["what its model is worth is unknown", less[0]]),
    ]
    for options, lines in cases:
        found = advise(options, [MEASURED, SPLIT], SECRET).reasons[2:]
        assert len(found) == len(lines) and all(
            one.startswith(line) for one, line in zip(found, lines, strict=True)
        )


def test_covers_are_all_there_are():
    assert COVERS == ("all", "if", "caught", "none") and math.isinf(NOTHING.missed)


def test_a_model_is_compared_with_a_unigram_model_that_knows_what_it_may_know():
    """Of redacted text, by tokens outside secrets; where no secrets are known, of the text."""
    metrics = {"bits_per_character": 2.0, "ppl": 100.0, "ppl_public": 50.0}
    metrics |= {"ppl_unigram": 400.0, "ppl_unigram_redacted": 300.0}
    bits = f"{2 * math.log(400) / math.log(100):.3g}"
    known = {"unigram": ["–", "–", bits, "–"], "unigram of redacted text": ["–", "–", "–", "300"]}
    assert unigrams_of(metrics) == known and unigram_like(metrics) == "ppl_unigram_redacted"
    metrics["ppl_public"] = metrics["ppl"]
    assert unigrams_of(metrics) == {"unigram": ["–", "–", bits, "400"]}
    assert unigram_like(metrics) == "ppl_unigram"
    # as where pages mark a model that is worse
    guesses = {"ppl_unigram": 110.0, "ppl_unigram_redacted": 160.0}
    assert worse_than_unigram({"ppl": 130.0, "ppl_public": 130.0} | guesses)
    assert not worse_than_unigram({"ppl": 140.0, "ppl_public": 130.0} | guesses)


def test_every_model_of_a_dataset_is_compared_with_the_best_unigram_model_of_it(
    tmp_path, monkeypatch
):
    """Where later copies are masked a unigram model is easier to beat: it is the same for all."""
    monkeypatch.chdir(tmp_path)
    usual = {"bits_per_character": 2.0, "ppl": 200.0, "accuracy": 0.1, "accuracy_public": 0.1}
    usual |= {"ppl_unigram": 400.0}
    guesses = {"nonprivate": 104.0, "crt": 206.0}
    runs = []
    for method, guess in guesses.items():
        row = SimpleNamespace(dataset="mine", method=method)
        runs.append(SimpleNamespace(run=f"{method}/g0-s0", row=row))
        folder = tmp_path / "results/runs" / runs[-1].run
        folder.mkdir(parents=True)
        measured = usual | {"ppl_public": 158.0, "ppl_unigram_redacted": guess}
        write_json(folder / "evaluate.json", measured)
        write_json(folder / "certificate.json", {"headline": {"record_epsilon": 3.0}})
    measured = {run.run: evaluation_of(run) for run in runs}
    found = trained(runs[1], measured, None, best_unigram(runs, measured))
    assert (found["perplexity"], found["unigram"]) == (158.0, 104.0)
    (line,) = [line for line in worths(runs, measured) if "unigram of redacted text" in line]
    assert "104" in line and "206" not in "".join(worths(runs, measured))
    assert best_unigram([], {}) is None and worths([], {}) == []
    assert trained(runs[1], {}, None, best_unigram(runs, measured)) == {}  # of other settings


def test_a_policy_that_finds_nothing_is_a_warning():
    assert "WARNING: policy names finds nothing" in described(MEASURED._replace(found=0))
    for found in (1, None):
        assert "WARNING" not in described(MEASURED._replace(found=found))


def test_kinds_of_which_the_corpus_marks_nothing_are_named():
    said = described(MEASURED._replace(unmarked={"password": 1200, "iban": 3}))
    assert "It finds password (1,200), iban (3) where the corpus marks nothing" in said
    spans = {"name": (5, 0.0), "id": (7, 0.5), "tax": (0, None), "mail": (2, None)}
    counted = {
        "spans": {
            label: {"found": found, "precision": precision}
            for label, (found, precision) in spans.items()
        }
    }
    assert unmarked(counted) == {"name": 5}  # of the others it marks some, or nobody marks any


def test_a_model_of_other_settings_does_not_count(tmp_path, monkeypatch):
    params = load(ROOT / "params.yaml")
    monkeypatch.chdir(tmp_path)
    (run, *_) = jobs.of_row(params, "crt")
    asked = jobs.certification(params, run).model_dump(mode="json")
    certificate = tmp_path / "results/runs" / run.run / "certificate.json"
    certificate.parent.mkdir(parents=True)
    assert not is_stale(params, run)  # it is not trained at all
    write_json(certificate, {"asked": asked})
    assert not is_stale(params, run)
    mixed = params.recipes["mixed"].model_copy(update={"noisy_lr": 0.03})
    changed = params.model_copy(update={"recipes": params.recipes | {"mixed": mixed}})
    assert is_stale(changed, run)
    said, gap = other_settings([run], "snakemake -d mine")
    assert said.startswith("crt/g0-s0 was made with other settings than params.yaml has")
    assert "`snakemake -d mine` makes it again" in said and gap == ""
    assert other_settings([], "snakemake") == []
