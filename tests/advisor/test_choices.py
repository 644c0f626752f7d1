"""What init chooses, and that the file it writes is one that the workflow takes."""

from array import array
from collections import Counter
from typing import get_args

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from confide.advisor.choices import (
    POLICIES,
    choose,
    coins_of,
    conservative_of,
    delta_of,
    doubtful,
    near,
    policies,
    policy_of,
    unit_of,
    useful_presets,
)
from confide.advisor.survey import Corpus, Effect, Hits, Points, Presets
from confide.advisor.template import as_yaml
from confide.config.params import validated
from confide.dp.accounting.audit_power import mu_of, power
from confide.dp.accounting.curves import gaussian_curve
from confide.dp.accounting.tradeoff import points_of
from confide.policies import policy, redacted_text
from confide.specs import LinesSpec, PresetName
from confide.types import MASK


def corpus_with(
    lines: int,
    turn: int,
    sentence: int,
    cut: dict[str, int] | None = None,
    gold: dict | None = None,
) -> Corpus:
    counts = {"turn": turn, "sentence": sentence, "dialogue": lines}
    return Corpus(
        lines=lines,
        points={unit: Counter(train=n) for unit, n in counts.items()},
        cut=Counter(cut),
        gold=Counter(gold),
    )


def points_with(
    count: int, held_out: int = 0, hidden: tuple[int, int, int] = (0, 0, 0), noisy: int = 100
) -> Points:
    """So many training points of ten words; of a sample of 100, `noisy` are such that the
    conservative policy fires.
    """
    found = {name: Effect(hidden=Counter(name=n)) for name, n in zip(POLICIES, hidden, strict=True)}
    return Points(
        lengths=array("L", [10] * count),
        sampled=100,
        noisy=noisy,
        held_out=Counter(name=held_out),
        effects=found,
    )


@pytest.mark.parametrize(
    ("counts", "cut", "unit"),
    [
        ((100, 900, 1400), {}, "turn"),
        ((100, 100, 900), {}, "sentence"),
        ((100, 110, 150), {}, "dialogue"),
        ((100, 900, 1400), {"turn": 2, "sentence": 3}, "dialogue"),
        ((100, 900, 1400), {"turn": 2}, "sentence"),
        ((100, 100, 900), {"sentence": 1}, "dialogue"),
    ],
)
def test_the_cut_into_points(counts, cut, unit):
    counts = tuple(10 * count for count in counts)
    assert unit_of(corpus_with(*counts, cut))[0] == unit


@pytest.mark.parametrize(
    ("counts", "cut", "unit"),
    [
        ((100, 499, 1400), {}, "sentence"),
        ((100, 499, 1400), {"sentence": 1}, "turn"),
        ((100, 499, 499), {}, "turn"),
        ((400, 500, 510), {}, "turn"),
        ((400, 450, 510), {}, "sentence"),
        ((100, 100, 499), {}, "sentence"),
    ],
)
def test_a_cut_that_leaves_too_few_points_gives_way_to_a_smaller_one(counts, cut, unit):
    assert unit_of(corpus_with(*counts, cut))[0] == unit


@pytest.mark.parametrize(
    ("held_out", "hidden", "name"),
    [
        (0, (0, 0, 0), "identifiers"),
        (9, (9, 9, 9), "identifiers"),
        (9, (3, 7, 7), "capitals"),
        (9, (3, 4, 5), "names"),
    ],
)
def test_the_policy_is_the_first_that_no_other_outdoes(held_out, hidden, name):
    assert policy_of(points_with(600, held_out, hidden))[0] == name


@pytest.mark.parametrize(
    ("held_out", "noisy", "unguarded", "name", "why"),
    [
        (0, 20, 0, "everything", "0 held-out secrets are too few"),
        (99, 20, 0, "everything", "99 held-out secrets are too few"),
        (100, 20, 1, "everything", "1 of 100 held-out secrets without noise"),
        (100, 95, 0, "everything", "no more than 5.0% of the points"),
        (100, 20, 0, "doubtful", "80% of the points need no noise"),
    ],
)
def test_less_than_everything_is_protected_only_where_there_is_reason_to(
    held_out, noisy, unguarded, name, why
):
    points = points_with(600, held_out, (held_out,) * 3, noisy)
    points.unguarded = unguarded
    found, reason = conservative_of(points)
    assert found == name and why in reason


@given(st.integers(2, 10**9))
def test_delta_is_a_power_of_ten_below_one_over_the_points(points):
    delta = delta_of(points)
    assert delta * points <= 0.5 * (
        1 + 1e-9
    ) < 10 * delta * points * 1.001 and f"{delta:.0e}".startswith("1e-")


def test_audits_mostly_refute_three_times_what_is_claimed():
    for claimed in (1.5, 3.0):
        coins = coins_of(claimed, 1e-5, 1000)
        points = ((claimed, 1e-5), *points_of(gaussian_curve(mu_of(claimed, 1e-5))))
        assert (
            power(points, claimed, 1e-5, coins).rings[1]
            >= 0.85
            > power(points, claimed, 1e-5, coins // 2).rings[1]
        )
    assert 0 < coins_of(3.0, 1e-5, 60) <= 60  # five times is what so few can see
    assert coins_of(3.0, 1e-5, 19) == 0 and coins_of(12.0, 1e-5, 200) == 0


def test_powers_of_two():
    assert [near(value, 16, 128) for value in (0, 16, 40, 50, 10**6)] == [16, 16, 32, 64, 128]


TEXTS = st.lists(
    st.sampled_from(
        ["Ann", "Lee", "my", "I", "12", "5-5", "a1", "USPS", "x@y.de", MASK, ",", ".", "(", "St."]
    )
)


@given(TEXTS, st.sampled_from([" ", ""]))
def test_each_policy_finds_all_that_the_one_before_it_finds(words, between):
    text = between.join(words)
    before = set()
    for name, spec in policies().items():
        found = {place for start, end, *_ in policy(spec)(text) for place in range(start, end)}
        assert found >= before, name
        before = found


@given(
    st.lists(st.sampled_from(["call", "Ann", "now,", "is", "Order", "ok."])),
    st.sampled_from(["555-1234", "12", "7 8"]),
)
def test_a_number_leaves_no_trace_among_words(words, secret):
    """What was in its place cannot be told from what is found around it."""
    find = policy(policies()["names"])
    for place in range(len(words) + 1):
        texts = [" ".join([*words[:place], one, *words[place:]]) for one in (secret, MASK)]
        first, second = (redacted_text(text, find(text)) for text in texts)
        assert first == second


@pytest.mark.parametrize(
    "text",
    ["a" * 200_000, "A " * 100_000, "1 " * 100_000, "1" * 200_000, "@." * 100_000, "(" * 200_000],
)
def test_no_pattern_takes_more_than_a_glance_at_each_character(text):
    """A pattern that looked back and forth would take hours here."""
    for spec in policies().values():
        policy(spec)(text)


def test_identifiers_are_found():
    text = (
        "Mail ann.b+c@mail.example.org or see https://x.org/a?b, id AB12-9 of 12/05/2024, +49 "
        "(30) 123-456."
    )
    found = {
        text[span.start : span.end]: span.label for span in policy(policies()["identifiers"])(text)
    }
    assert found == {
        "ann.b+c@mail.example.org": "email",
        "https://x.org/a?b": "link",
        "AB12-9": "code",
        "12/05/2024": "date",
        "+49 (30) 123-456": "phone",
    }


def test_presets_that_find_nothing_are_left_out_where_all_was_looked_at():
    """And those that cover no secret, where the user says which secrets count."""
    found = Presets(
        sampled=9, whole=True, held_out=2, hits={"email": Hits(points=3), "card": Hits()}
    )
    assert useful_presets(found, None) == {"email"} and useful_presets(found, ["name"]) == set()
    found.whole = False
    assert (
        useful_presets(found, None)
        == set(get_args(PresetName))
        == useful_presets(Presets(), ["name"])
    )
    found.hits["card"].covered["name"] = 1
    assert useful_presets(found, ["name"]) == {"card"}
    assert policies(["card"])["names"].names == ["card"]
    assert policies([])["names"] == policies()["names"]  # nobody knows what would help


LABEL = "a: 'b\"\n"
NONE = (0, 0, 0), 100, {}
SOME = (100, 120, 130), 30, {(LABEL, "train"): 60, (LABEL, "test"): 60}


@pytest.mark.parametrize("count", [500, 30_000])
@pytest.mark.parametrize("epsilon", [0.5, 3, 9])
@pytest.mark.parametrize(("hidden", "noisy", "gold"), [NONE, SOME])
def test_the_file_is_one_that_the_workflow_takes(count, epsilon, hidden, noisy, gold):
    points = points_with(count, max(hidden), hidden, noisy)
    choice = choose(corpus_with(100, 900, 1400, gold=gold), points, "turn", epsilon)
    params = validated(
        yaml.safe_load(as_yaml(choice, LinesSpec(reader="lines", path=__file__))), []
    )
    assert choice.attacked == (LABEL if gold else None) and ("members" in params.attacks) == bool(
        gold
    )
    assert params.policies[choice.policy] == policies()[choice.policy]
    dataset = params.datasets["mine"]
    assert params.corpora["mine"].path == __file__ and dataset.conservative == (
        "doubtful" if gold else "everything"
    )
    assert params.policies.get("doubtful") == (doubtful() if gold else None)
    budget = params.privacy["budget"]
    recipe = params.recipes["noisy"]
    assert (
        budget.epsilon == epsilon
        and budget.delta < 1 / count
        and recipe.noisy_batch_size <= count * noisy / 100 / 4
    )
    assert params.runs["crt"].noise_seed is None and ("game" in params.attacks) == (choice.game > 0)
    assert {"updates", *(["game"] if choice.game else [])} <= set(
        params.runs["crt"].attacks
    )  # always audited
    if choice.game:
        planted = params.canaries["planted"]
        assert (
            params.attacks["game"].delta == budget.delta
            and planted.game.count == choice.game <= count / 4
        )
        assert (
            (planted.inclusion.count if planted.inclusion else 0) == choice.inclusion <= count / 4
        )
    paths = (__file__, __file__.replace("test_choices", "test_init"))
    specs = [LinesSpec(reader="lines", path=path) for path in paths]
    validated(yaml.safe_load(as_yaml(choice, *specs)), [])
