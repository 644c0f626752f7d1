"""Several models together: updates of all ledgers composed, common starts counted once, nothing
added that is not the same.
"""

import math
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from confide.certify.facts import SECRET_MISSED, TOKENS
from confide.certify.together import (
    ADDED,
    CLAIMS,
    COMPOSED,
    COPIES,
    RECORDS,
    TWICE,
    Model,
    Stated,
    distinct,
    groups_of,
    total,
)
from confide.dp.accounting.price import epsilon
from confide.dp.ledger import Ledger
from confide.errors import InputError
from tests.releases import exact, noised

DELTA = 8e-5
UPDATES = 60
NAMES = list(CLAIMS)
RECORD = "record_replace_one_pld"
STATES = count(1)  # of the noise: no two trainings here draw the same, unless a test says so


def updates(number):
    return noised(count=number, view="original", pool="all")


def ledger_of(name, source=None, states=STATES, noise="system"):
    """A ledger of DP-SGD, warm-started from another one if that is given."""
    ledger = Ledger()
    if source is not None:
        ledger.init("start/g0-s0", public=False, ledger=source.dump())
    ledger.start(name, settings="0" * 64, code="0" * 64, noise=noise, arithmetic="float32")
    for _ in range(UPDATES):
        ledger.append(updates(1), f"{next(states):064x}")
    return ledger


def priced(number, delta, relation="replace_one"):
    return epsilon([updates(number)], delta, relation)


def model(name, *history, **given):
    """A model as its certificate would have it: it claims what its ledgers cost."""
    history = history or (ledger_of(name),)
    cost = len(history) * UPDATES
    claims = {
        claim: Stated(priced(cost, DELTA, relation), DELTA)
        for claim, (_, relation) in CLAIMS.items()
    }
    given = {
        "unit": "one turn",
        "secret": "one secret within one turn",
        "claims": claims,
        "history": history,
        "head": history[-1].head,
    } | given
    return Model(file=Path(name), run=name, **given)


def runs(groups, claims=RECORDS):
    """Whose claims of records, or of secrets, add up."""
    return [[one.run for one in group.models] for group in groups if group.claims == claims]


@pytest.mark.parametrize("name", NAMES)
def test_two_equal_trainings_cost_one_of_twice_as_many_updates(name):
    relation = CLAIMS[name][1]
    found = total([model("a"), model("b")], name)
    assert math.isclose(found.epsilon, priced(2 * UPDATES, 2 * DELTA, relation), rel_tol=1e-6)
    assert found.delta == 2 * DELTA and found.how == COMPOSED and not found.shared
    assert found.epsilon < found.added == pytest.approx(2 * priced(UPDATES, DELTA, relation))
    found = total([model("a"), model("b")], name, 1e-5)
    assert (
        math.isclose(found.epsilon, priced(2 * UPDATES, 1e-5, relation), rel_tol=1e-6)
        and found.delta == 1e-5
    )


def test_a_secret_in_copies_is_not_the_same_change_to_all_models():
    """Masked wherever its text stands it changes several records of a model that reads copies, and
    masked in one place two of a model that does not; and so it is with a record that is replaced.
    """
    models = [model(name, dedup=dedup) for name, dedup in (("a", True), ("b", False))]
    for name in ("secret_missed", RECORD):
        found = total(models, name)
        assert (found.epsilon, found.why) == (math.inf, COPIES)
    alike = [model(name, dedup=True) for name in ("a", "b")]
    assert max(total(alike, name).epsilon for name in ("secret_missed", RECORD)) < math.inf


def test_a_start_that_models_share_is_counted_once_and_never_left_out():
    """Of 60 updates each for a start and two that go on from it 180 took place, not 240, and not
    120.
    """
    start = ledger_of("start")
    first, second = (model(name, start, ledger_of(name, start)) for name in ("a", "b"))
    found = total([first, second], RECORD, DELTA)
    assert math.isclose(
        found.epsilon, priced(3 * UPDATES, DELTA), rel_tol=1e-6
    ) and found.shared == ["start"]
    found = total([model("start", start), first, second], RECORD, DELTA)
    assert math.isclose(
        found.epsilon, priced(3 * UPDATES, DELTA), rel_tol=1e-6
    ) and found.shared == ["start"]


def test_a_start_of_a_start_is_counted_too():
    first = ledger_of("first")
    second = ledger_of("second", first)
    third = ledger_of("third", second)
    one = model("first", first)
    two = model("second", first, second)
    three = model("third", first, second, third)
    for listed in ([three], [two, three], [one, three], [one, two, three]):
        assert math.isclose(
            total(listed, RECORD, DELTA).epsilon, priced(3 * UPDATES, DELTA), rel_tol=1e-6
        )
    found = total([three, model("other")], RECORD, DELTA)
    assert (
        math.isclose(found.epsilon, priced(4 * UPDATES, DELTA), rel_tol=1e-6) and not found.shared
    )


def test_one_training_is_one_model_by_its_ledger_if_that_is_there():
    one = model("a")
    copy = model("a", *one.history)
    bare = model("a", history=None, head=one.head)
    dearer = model("a", history=None, head=one.head, claims={RECORD: Stated(9.0, DELTA)})
    for listed, kept in (([one, copy], one), ([bare, one], one), ([bare, dearer], dearer)):
        found, left_out = distinct(listed)
        assert found == [kept] and [stands for _, stands in left_out] == [kept]


def test_without_ledgers_epsilons_and_deltas_are_added():
    found = total([model("a", history=None, head="x"), model("b", history=None, head="y")], RECORD)
    assert found.epsilon == found.added == pytest.approx(2 * priced(UPDATES, DELTA))
    assert (found.delta, found.how) == (2 * DELTA, ADDED)
    found = total([model("a"), model("b", history=None, head="y")], RECORD, 3 * DELTA)
    assert math.isclose(
        found.epsilon, priced(UPDATES, 2 * DELTA) + priced(UPDATES, DELTA), rel_tol=1e-6
    )
    assert found.how == f"{COMPOSED} and {ADDED}"


def test_a_claim_that_is_more_than_the_price_of_its_updates_is_added():
    """As of an ancestor whose records are a group: composing updates would make it cheaper than it
    is.
    """
    more = {name: Stated(9.0, DELTA) for name in CLAIMS}
    found = total([model("a"), model("b", claims=more)], RECORD)
    assert math.isclose(found.epsilon, priced(UPDATES, DELTA) + 9.0, rel_tol=1e-6)


@pytest.mark.parametrize("delta", [DELTA, 1.0, 0.5 * DELTA])
def test_a_delta_that_the_claims_alone_need_is_refused(delta):
    with pytest.raises(InputError, match="delta = "):
        total([model("a"), model("b", history=None, head="y")], RECORD, delta)


@pytest.mark.parametrize("name", NAMES)
def test_one_model_without_a_bound_leaves_none_for_all(name):
    for claims in ({}, {name: Stated(math.inf, DELTA)}):
        found = total([model("a"), model("bare", claims=claims)], name)
        assert found.epsilon == math.inf and found.why == "nothing bounds bare"


def test_an_exact_update_in_a_ledger_is_never_priced_as_nothing():
    """Even where a certificate claims no more than what the noised updates cost."""
    ledger = ledger_of("a")
    ledger.append(exact(view="original", pool="all"))
    assert total([model("a", ledger), model("b")], RECORD).epsilon == math.inf


def test_noise_that_two_trainings_share_hides_neither():
    """Whoever subtracts one model's updates from the other's has no noise left."""
    found = total(
        [model(name, ledger_of(name, states=count(10**9))) for name in ("a", "b")], RECORD
    )
    assert (found.epsilon, found.why) == (math.inf, TWICE)


@pytest.mark.parametrize(
    ("names", "noise", "shared"),
    [("aa", "recorded", True), ("ab", "recorded", False), ("aa", "system", False)],
)
def test_a_seed_that_is_written_down_gives_one_name_one_noise(names, noise, shared):
    """Trainings of other lengths, or of other sizes, leave other states behind the same noise."""
    both = [model(name, ledger_of(name, noise=noise)) for name in names]
    assert (total(both, RECORD).why == TWICE) is shared


def test_other_units_stand_apart_and_chunks_are_those_of_one_model():
    models = [model("a"), model("b", unit="one author"), model("c"), model("d", unit="one author")]
    assert runs(groups_of(models)) == [["a", "c"], ["b", "d"]]
    assert runs(groups_of(models), (SECRET_MISSED,)) == [["a", "b", "c", "d"]]


def test_chunks_are_those_of_one_model_and_the_secrets_in_them_are_not():
    """A chunk of 64 tokens is no record of a model that reads others; a secret in both is one."""
    chunks = [
        model(name, unit=f"one chunk of {size} tokens", alone=True, secret=secret)
        for name, size, secret in (
            ("a", 64, "one secret of fewer than 64 tokens within one turn"),
            ("b", 64, "one secret of fewer than 64 tokens within one turn"),
            ("c", 128, "one secret of fewer than 128 tokens within one turn"),
        )
    ]
    groups = groups_of(chunks)
    assert runs(groups) == [["a"], ["b"], ["c"]]
    assert runs(groups, (SECRET_MISSED,)) == [["a", "b", "c"]]
    assert groups[-1].unit == chunks[0].secret, "what both claims are of is the shorter"
    found = total(chunks, SECRET_MISSED)
    assert (found.how, found.epsilon) == (ADDED, found.added)


def test_tokens_of_a_secret_are_part_of_it():
    """What Selective DP says of them has no sum of its own: a model without bound leaves none."""
    secret = "one secret within one turn"
    claims = {SECRET_MISSED: Stated(math.inf, DELTA)}
    models = [model("a", secret=secret), model("b", secret=TOKENS, claims=claims)]
    (group,) = [group for group in groups_of(models) if group.claims == (SECRET_MISSED,)]
    assert group.unit == TOKENS and total(group.models, SECRET_MISSED).epsilon == math.inf


def test_noise_that_hides_authors_is_added_to_noise_that_hides_points():
    def hiding(name, unit):
        ledger = Ledger()
        ledger.start(name, settings="0" * 64, code="0" * 64, noise="system", arithmetic="float32")
        for _ in range(UPDATES):
            release = updates(1)
            step = replace(release.step, unit=unit)
            ledger.append(replace(release, step=step), f"{next(STATES):064x}")
        return model(name, ledger)

    both = [hiding("a", "point"), hiding("b", "author")]
    found = total(both, SECRET_MISSED)
    assert found.how == ADDED and found.epsilon == found.added < math.inf
    assert total([both[1], hiding("c", "author")], SECRET_MISSED).how == COMPOSED


def test_corpora_are_one_where_names_or_digests_meet():
    def of(name, *corpora):
        return model(name, history=None, head=name, corpora=frozenset(corpora))

    models = [
        of("a", ("name", "x"), ("digest", "1")),
        of("b", ("name", "y"), ("digest", "2")),
        of("c", ("name", "z")),
    ]
    assert runs(groups_of(models)) == [["a"], ["b"], ["c"]]
    between = of("d", ("name", "y"), ("digest", "1"))  # under another name the digest of a's corpus
    assert runs(groups_of([*models, between])) == [["c"], ["a", "b", "d"]]


def test_a_model_whose_corpus_is_not_recorded_is_counted_with_each():
    models = [
        model("a", corpora=frozenset({("name", "x")})),
        model("b", corpora=frozenset({("name", "y")})),
        model("c"),
    ]
    groups = [group for group in groups_of(models) if group.claims == RECORDS]
    assert (
        runs(groups) == [["a", "c"], ["b", "c"]]
        and [[one.run for one in group.assumed] for group in groups] == [["c"]] * 2
    )
    assert runs(groups_of([model("a"), model("b")])) == [["a", "b"]]
