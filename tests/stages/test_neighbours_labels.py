"""The miss rate is that of the label that fares worst, of the corpus's own secrets alone, and its
bounds hold together.
"""

from collections import Counter

import numpy as np
import pytest
from scipy.stats import binom
from tested_neighbours import CODE, run, upper

from confide.data.neighbours import Kind, Outcome, Secret, quotas
from confide.data.partitioning import Raw
from confide.dp.accounting.bounds import clopper_pearson, each_of
from confide.stages.neighbours import Tally, Trial, summary
from tests.terms import TEXT


def labelled(counts):
    """Points with so many secrets of each label: codes are found by CODE's policy, names are
    not.
    """
    points = []
    for label, number in counts.items():
        for index in range(number):
            secret = f"{100000 + index}" if label == "code" else f"N{index}"
            start = len(f"{label} is ")
            gold = [[start, start + len(secret), label, 1.0]]
            points.append(
                Raw(f"{label}{index}:0", f"{label} is {secret}.", "train", None, None, gold)
            )
    return points


def test_the_worst_label_governs(tmp_path):
    """Frequent secrets that are found do not water down rare ones that are missed: all 8 names, not
    8 of 48 secrets.
    """
    found = run(tmp_path, labelled({"code": 40, "name": 8}), CODE)
    assert (found["gamma"], found["gamma_upper"], found["worst_label"]) == (1, 1, "name")
    assert found["labels"]["code"]["gamma"] == 0 and found["labels"]["code"][
        "gamma_upper"
    ] == pytest.approx(upper(0, 40, 8))
    assert (found["delta2"], found["labels"]["name"]["exposed"]) == (
        0,
        0,
    )  # pi_c fires on the digit in a name


def test_a_label_of_which_little_is_known_widens_the_bound(tmp_path):
    found = run(tmp_path, labelled({"code": 400}), CODE)
    rare = Raw("r:0", "rare 9 123456", "train", None, None, [[7, 13, "rare", 1.0]])
    more = run(tmp_path, [*labelled({"code": 400}), rare], CODE)
    assert found["gamma"] == more["gamma"] == 0
    assert (
        found["gamma_upper"] < 0.02
        and more["gamma_upper"] == pytest.approx(upper(0, 1, 8))
        and upper(0, 1, 8) > 0.9
    )


def test_canaries_and_audit_sentences_say_nothing_of_the_corpus(tmp_path):
    """Half of ten names are missed. 239 planted codes, all of them found, change neither gamma nor
    its bound.
    """
    own = labelled({"name": 5}) + [
        point._replace(key=f"x{n}:0") for n, point in enumerate(labelled({"code": 5}))
    ]
    own = [point._replace(gold=[[*point.gold[0][:2], "own", 1.0]]) for point in own]
    planted = [
        Raw(f"audit-game-{n}:0", f"code {300000 + n}", "train", None, None, [[5, 11, "audit", 1.0]])
        for n in range(239)
    ]
    alone, both = (
        run(tmp_path / name, points, CODE)
        for name, points in (("own", own), ("both", own + planted))
    )
    assert alone["gamma"] == 0.5
    assert both == alone | {"planted": both["planted"]}
    assert (
        both["planted"]["secrets"],
        both["planted"]["sampled"],
        both["planted"]["different"],
    ) == (239, 239, 0)
    only = run(tmp_path / "only", planted, CODE)
    assert only["gamma"] is only["gamma_upper"] is None and (only["secrets"], only["census"]) == (
        0,
        True,
    )
    assert only["planted"]["secrets"] == 239 and "nobody can say" in only["note"]


def test_rare_labels_are_tested_first():
    counts = {Kind(False, "rare"): 3, Kind(False, "some"): 30, Kind(False, "many"): 5000}
    assert quotas(counts, 100) == {
        Kind(False, "rare"): 3,
        Kind(False, "some"): 30,
        Kind(False, "many"): 67,
    }
    assert quotas(counts, 10**6) == counts
    assert sum(quotas(counts, 2).values()) == 2


def test_a_label_that_was_not_sampled_bounds_nothing(tmp_path):
    found = run(tmp_path, labelled({"code": 40, "name": 8}), CODE, sample=1)
    assert found["gamma"] == found["gamma_upper"] == 1 and found["sampled"] == 1


def test_a_span_that_is_named_often_is_one_secret(tmp_path):
    """Repeating the spans that the policy finds does not make its misses rare."""
    point = Raw(
        "d:0",
        "code 123456 or abcdef",
        "train",
        None,
        None,
        [[15, 21, "code", 1.0], *[[5, 11, "code", 1.0]] * 50],
    )
    found = run(tmp_path, [point], CODE)
    assert (found["secrets"], found["gamma"]) == (2, 0.5)


@pytest.mark.parametrize(
    ("misses", "exposures"), [(0.02, 0.01), (0.3, 0.3), (0.004, 0.004), (0.1, 0.0)]
)
def test_bounds_hold_together(misses, exposures):
    """Exact coverage of gamma_upper and delta2_upper at once, over all counts: no less than
    said.
    """
    size = 200
    counts = np.arange(size + 1)

    def joint(each):
        bounds = np.array([clopper_pearson(int(count), size, each) for count in counts])
        missed = binom.pmf(counts, size, misses) @ (bounds >= misses)
        exposed = binom.pmf(counts, size, exposures) @ (bounds >= exposures)
        return (
            missed * exposed
        )  # of independent samples; overlapping events are bounded by their sum

    assert joint(each_of(0.95, 2)) >= 0.95


def test_two_bounds_of_95_percent_do_not_hold_together():
    size, rate = (
        200,
        0.0149,
    )  # no miss of 200 bounds it by just this: each alone holds with about 95 %
    counts = np.arange(size + 1)
    bounds = np.array([clopper_pearson(int(count), size, 0.95) for count in counts])
    alone = binom.pmf(counts, size, rate * 1.003) @ (bounds >= rate * 1.003)
    assert 0.95 <= alone < 0.953 and alone**2 < 0.91


def drawn_test(flags, label, number):
    """One secret that leaves a trace, and one in public, by these flags."""
    secret = Secret(f"d:{number}", f"{number}", 0, len(f"{number}"), label)
    same = Outcome("same", 0)
    different, exposed = flags.tolist()
    return Trial(secret, same, same, Tally(1, different, exposed))


def test_the_bounds_of_a_measurement_cover_all_labels_at_once(tmp_path):
    """Simulated: three labels of 60 secrets, each missed and exposed at rates where one bound of 95
    % is tight.
    """
    rng, rate, held = (
        np.random.default_rng(0),
        0.0488,
        0,
    )  # no miss of 60 bounds a rate of .0487 at 95 %
    for _ in range(300):
        there = Counter({Kind(False, label): 60 for label in "abc"})
        tested = [drawn_test(rng.random(2) < rate, label, n) for label in "abc" for n in range(60)]
        labels = summary(tested, there, 0.95)["labels"].values()
        held += all(rate <= row[name] for row in labels for name in ("gamma_upper", "delta2_upper"))
    assert held >= 0.95 * 300 - 3 * (300 * 0.95 * 0.05) ** 0.5


def test_labels_that_are_no_secrets_do_not_count(tmp_path):
    """And one that is named as secret, and that no secret has, counts as missed: a typing error
    must not make a policy look better.
    """
    points = labelled({"code": 40, "name": 8})
    only = run(tmp_path, points, CODE, text=TEXT | {"labels": ["code"]})
    alone = run(tmp_path, labelled({"code": 40}), CODE)
    measured = [name for name in alone if name != "terms"]
    assert [only[name] for name in measured] == [alone[name] for name in measured]
    assert only["terms"] == alone["terms"] | {"labels": ["code"]}
    wrong = run(tmp_path, points, CODE, text=TEXT | {"labels": ["code", "nmae"]})
    assert (wrong["gamma"], wrong["gamma_upper"], wrong["worst_label"]) == (1, 1, "nmae")
    none = run(tmp_path, points, CODE, text=TEXT | {"labels": ["nmae"]})
    assert (none["gamma"], none["delta2_upper"], none["secrets"]) == (1, 1, 0)
