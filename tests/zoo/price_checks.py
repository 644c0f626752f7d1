"""What a price must be: closed forms, published numbers, and infinity where nothing holds."""

import hashlib
import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import orjson
from scipy.optimize import brentq
from scipy.special import log_ndtr
from scipy.stats import beta, binom, norm

from confide.certify.certificate import certificate, reads_of
from confide.certify.confidentiality import bayesian_at
from confide.certify.rounding import count_up, rate_up
from confide.commands.recommend import check_terms
from confide.dp.accounting.audit_bounds import p_value
from confide.dp.accounting.bounds import clopper_pearson
from confide.dp.accounting.calibration import calibrate
from confide.dp.accounting.curves import Mechanism, rdp_curve
from confide.dp.accounting.price import ACCOUNTANTS, Bound, epsilon, group, solve
from confide.dp.ledger import Ledger, settings_digest, updates_of
from confide.errors import InputError
from confide.provenance.terms import terms as terms_of
from confide.specs import CertifySpec, DataSpec, RecallSpec, RedactSpec, TextSpec, TrainSpec
from confide.train.planning import Sizes, check_ledger
from confide.types import AnyRelease, Release, StateRelease, Step

DELTA = 8e-5
POOLS = {"all": 640, "public": 320, "private": 320, "marked": 320}
TERMS = {"dataset": "toy", "corpus": "c" * 64, "cut": "b" * 64, "policies": "d" * 64}
WEIGHTS = "e" * 64
EVERYTHING = {"kind": "everything"}


def noisy(rate: float, sigma: float, count: int) -> list[Release]:
    step = Step(view="redacted", pool="private", noisy=True)
    return [
        Release(step=step, sample_rate=rate, noise_multiplier=sigma, max_grad_norm=1.0, count=count)
    ]


def by_author(releases: list[Release]) -> list[Release]:
    """The same with noise for authors."""
    return [replace(one, step=replace(one.step, unit="author")) for one in releases]


def exact(view: str, pool: str, tokens: str = "all", state: str = "reset") -> list[Release]:
    step = Step(view=view, pool=pool, noisy=False, tokens=tokens, state=state)
    return [Release(step=step, count=3)]


def selective(state: str = "reset", tokens: str = "public") -> list[Release]:
    """Exact updates on public tokens of all points, noisy ones on private tokens of those that have
    some.
    """
    step = Step(view="original", pool="marked", noisy=True, tokens="private", state=state)
    private = replace(noisy(0.05, 2.0, 60)[0], step=step)
    return [*exact("original", "all", tokens, state), private]


def gaussian(mu: float, delta: float) -> float:
    """Epsilon of N(0, 1) against N(mu, 1) (Balle and Wang 2018)."""

    def left(value: float) -> float:
        second = math.exp(min(700.0, value + float(log_ndtr(-mu / 2 - value / mu))))
        return float(norm.cdf(mu / 2 - value / mu)) - second - delta

    return brentq(left, 0, 5 * mu**2 + 50 * mu, xtol=1e-12) if left(0) > 0 else 0.0


def epsilon_is_never_below_the_closed_form() -> None:
    """Without sampling every accountant is at or above the Gaussian mechanism; the tight one is
    near it.
    """
    for relation, size in (("add_or_remove", 1), ("zero_out", 1), ("replace_one", 2)):
        for sigma, count in ((2.0, 1), (10.0, 25), (40.0, 400)):
            truth = gaussian(size * math.sqrt(count) / sigma, 1e-5)
            found = {
                name: epsilon(noisy(1.0, sigma, count), 1e-5, relation, name)
                for name in ACCOUNTANTS
            }
            assert all(value >= truth * (1 - 1e-7) for value in found.values()), (
                f"{relation}: {found} below {truth}"
            )
            assert found["pld"] <= truth * 1.02, f"{relation}: {found} above {truth}"
    for sigma, count in ((2.0, 25), (0.9, 3)):  # lines of a ledger add up
        together = epsilon(noisy(1.0, sigma, count) * 2, 1e-5)
        assert together >= gaussian(2 * math.sqrt(2 * count) / sigma, 1e-5) * (1 - 1e-7)


def epsilon_is_that_of_published_settings() -> None:
    """Selective-DPSGD's tables by the classic conversion, and a tenth sampled 100 times by both
    accountants.
    """
    orders = (*(1 + x / 10 for x in range(1, 100)), *range(12, 64))
    for printed, rate, sigma, steps in (
        (4.89, 1 / 9994, 0.5, 100 * 9994),
        (2.51, 1 / 10010, 0.6, 100 * 10010),
    ):
        assert (
            abs(
                solve(Bound(rdp_curve((Mechanism(rate, sigma, steps),), "classic", orders)), 8e-5)
                - printed
            )
            < 0.006
        )
    known = {
        ("add_or_remove", "pld"): 1.82,
        ("replace_one", "pld"): 3.51,
        ("add_or_remove", "rdp"): 2.00,
    }
    for (relation, accountant), expected in known.items():
        found = epsilon(noisy(0.1, 2.42, 100), 1e-5, relation, accountant)
        assert abs(found - expected) < 0.006, (
            f"{relation} by {accountant}: {found:.3f} for {expected}"
        )
    hop = epsilon(noisy(0.1, 2.42, 100), 1e-5 / 10, "add_or_remove", "rdp")
    assert (
        epsilon(noisy(0.1, 2.42, 100), 1e-5, "replace_one", "rdp") > 2 * hop * 0.95
    )  # two hops at a divided delta


def groups_cost_what_they_shift() -> None:
    """k records without sampling are one record of k times the norm."""
    for size in (1, 2, 5):
        truth = gaussian(2 * size * math.sqrt(9) / 40, 1e-5)
        found, _ = group(noisy(1.0, 40.0, 9), 1e-5, size)
        assert truth * (1 - 1e-7) <= found <= truth * 1.02, (
            f"a group of {size}: {found} for {truth}"
        )


def bounds_are_those_of_the_binomial() -> None:
    """Clopper-Pearson, the p-value of a one-run audit, and the Bayesian epsilon, by other means."""
    for events, trials in ((0, 200), (3, 50), (20, 21)):
        assert math.isclose(
            clopper_pearson(events, trials),
            beta.ppf(0.95, events + 1, trials - events),
            rel_tol=1e-9,
        )
    for right in (12, 25, 40):
        law = binom(40, math.e / (1 + math.e))
        share = max((law.cdf(right - 1) - law.cdf(right - i - 1)) / i for i in range(1, right + 1))
        expected = min(1.0, law.sf(right - 1) + 2 * 60 * 1e-3 * share)
        assert math.isclose(p_value(60, 40, right, 1.0, 1e-3), expected, rel_tol=1e-6)
    for gamma in (0.1, 0.5):
        found = bayesian_at(lambda delta: gaussian(1.0, delta), 1e-5, gamma)
        assert math.isclose(
            found, math.log1p(gamma * math.expm1(gaussian(1.0, 1e-5 / gamma))), rel_tol=1e-9
        )


def ledger_of(*releases: Sequence[AnyRelease], state: int = 0) -> Ledger:
    """A ledger of releases; noisy ones leave the random states state, state + 1, ... behind."""
    ledger = Ledger()
    for number, release in enumerate(chain.from_iterable(releases)):
        ledger.append(release, f"{state + number:064x}" if release.noisy else None)
    ledger.epoch(1)
    return ledger


def source_of(
    *releases: list[Release], reads: bool = False, noise: str = "system", **others: Any
) -> Ledger:
    """A ledger of another run, that is over; `others`: what differs in the terms of its
    training.
    """
    ledger = ledger_of(*releases, state=100)
    ledger.start("source", settings="", code="", noise=noise, arithmetic="float32")
    read_usual(ledger, public=not reads)
    ledger.data(terms(ledger) | others, pools=POOLS, authors=None, states=0)
    ledger.end(weights=WEIGHTS)
    return ledger


def read_usual(ledger: Ledger, *, public: bool = True, unread: Sequence[str] = ()) -> None:
    """What every run has read: a tokenizer, public or not, and a policy; without those stages that
    are `unread`.
    """
    if "tokenizer" not in unread:
        ledger.read(
            "tokenizer", "own", public=public, digest=hashlib.sha256(b"tokenizer").hexdigest()
        )
    if "policy" not in unread:
        ledger.read("policy", "codes", public=True, digest=None)


def terms(ledger: Ledger, dedup: bool | None = None) -> dict[str, Any]:
    """On what terms the made-up runs were trained; where noise hides authors, nothing is
    deduplicated unless asked.
    """
    authors = any(one.step.unit == "author" for one in updates_of(ledger.releases()))
    return DataSpec(**TERMS, dedup=not authors if dedup is None else dedup).model_dump()


def started_from(source: Ledger) -> Ledger:
    """A ledger of one noisy update on the weights of another."""
    started = Ledger()
    started.init("source", public=False, ledger=source.dump())
    started.append(noisy(0.05, 2.0, 60)[0], f"{7:064x}")
    return started


def claims_of(
    ledger: Ledger,
    start: Ledger | None = None,
    alter: Callable[[str], str] = str,
    **missed: float | None,
) -> dict:
    """Epsilons of the certificate that follows, by the names of the claims."""
    written = certificate_of(ledger, start, alter, **missed)
    return {claim["name"]: float(claim["epsilon"]) for claim in written["claims"]}


def certificate_of(
    ledger: Ledger,
    start: Ledger | None = None,
    alter: Callable[[str], str] = str,
    weights: bytes = b"model",
    unread: Sequence[str] = (),
    swapped: dict[str, dict[str, Any]] | None = None,
    **missed: Any,
) -> dict[str, Any]:
    """The certificate of a ledger that ends with the weights of the bytes "model".

    unread: stages that nothing names as read. swapped: of recall.json and neighbours.json, keys
    that another run's have.
    """
    data = terms(ledger, missed.pop("dedup", None))
    ledger = Ledger.load(ledger.dump())
    if not ledger.events("read"):
        read_usual(ledger, unread=unread)
    reads = reads_of(ledger)
    authors = any(one.step.unit == "author" for one in updates_of(ledger.releases()))
    unit = {"unit": "author"} if authors else {}
    train = {
        "run": "r/g0-s0",
        "method": "crt",
        "model": {"kind": "lstm"},
        "recipe": {},
        "privacy": {"epsilon": 3} | unit,
    }
    started = ledger.events("init")
    train["reads"] = [{key: read[key] for key in ("stage", "source", "public")} for read in reads]
    train |= {"data": data, "noise_seed": None, "init": "source" if started else None}
    spec = CertifySpec(train=train, miss_rate=0.05)
    digest = settings_digest(spec.train.model_dump_json())
    ledger.start(spec.train.run, settings=digest, code="abc", noise="system", arithmetic="float32")
    ledger.data(data, pools=POOLS, authors=POOLS if authors else None, states=0)
    ledger.end(weights=hashlib.sha256(b"model").hexdigest())
    measured_on = {"terms": data, "reads": reads}
    rates = measured_on | {
        "misaligned": 0,
        "gamma": 0.1,
        "gamma_upper": 0.2,
        "delta2": 0.0,
        "delta2_upper": 0.01,
    }
    rates |= {"confidence": 0.95, "sampled": 10, "secrets": 10} | missed
    recall = {"terms": data, "reads": [read for read in reads if read["stage"] == "policy"]}
    recall |= {"multiplicity": 4, "multiplicity_distinct": 3, "pools": {"public": 4, "private": 4}}
    for key, value in (swapped or {}).items():
        {"recall": recall, "neighbours": rates}[key].update(value)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "ledger").write_text(alter(ledger.dump()))
        (folder / "start").write_text(start.dump() if start else "")
        (folder / "recall").write_bytes(orjson.dumps(recall))
        (folder / "neighbours").write_bytes(orjson.dumps(rates))
        (folder / "model").write_bytes(weights)
        (folder / "tokenizer").write_bytes(b"tokenizer")
        files = {
            key: [folder / key] for key in ("ledger", "model", "recall", "neighbours", "tokenizer")
        }
        return certificate(spec, files | {"start_ledgers": [folder / "start"] if start else []})


def certificate_follows_from_the_ledger() -> None:
    """Claims of CRT are the ledger's price, at the measured miss rate, for the group counted, warm
    starts composed.
    """
    ran, at = noisy(0.05, 2.0, 60), lambda delta: epsilon(noisy(0.05, 2.0, 60), delta)
    found = claims_of(ledger_of(exact("redacted", "public"), ran))
    assert math.isclose(found["record_replace_one_pld"], at(DELTA), rel_tol=1e-6)
    assert (
        math.isclose(found["secret_missed"], at(DELTA), rel_tol=1e-6)
        and found["secret_caught"] == 0
    )
    assert math.isclose(
        found["bayesian"], math.log1p(0.1 * math.expm1(at(DELTA / 0.1))), rel_tol=1e-6
    )
    assert at(DELTA) < found["group_after_dedup"] < found["group_before_dedup"]
    tokens = claims_of(ledger_of(selective()))
    assert math.isclose(tokens["secret_caught"], at(DELTA), rel_tol=1e-6), (
        "a caught secret's tokens are read with noise alone"
    )
    states = StateRelease(noise_multiplier=2.0, max_grad_norm=1.0, count=12)
    both = claims_of(ledger_of([*selective("noise"), states]))["secret_caught"]
    assert both > gaussian(2 * math.sqrt(12) / 2.0, DELTA), (
        "states that were handed on are not counted"
    )
    authors = claims_of(ledger_of(by_author(ran)))
    for name in (
        "record_replace_one_pld",
        "point_replace_one",
        "point_add_or_remove",
        "secret_missed",
    ):
        assert math.isclose(authors[name], at(DELTA), rel_tol=1e-6), (
            f"{name} is not what replacing an author costs"
        )
    both = claims_of(started_from(source := source_of(ran)), start=source)["record_replace_one_pld"]
    assert math.isclose(both, epsilon(noisy(0.05, 2.0, 120), DELTA), rel_tol=1e-3), (
        "a warm start is not composed"
    )


def certificate_is_infinite_where_nothing_holds() -> None:
    """Exact updates on private text, unaccounted reads, an unknown miss rate; altered ledgers,
    others' measures are refused.
    """
    ran = noisy(0.05, 2.0, 60)
    bare = claims_of(ledger_of(exact("original", "all")))
    assert set(bare.values()) == {math.inf}
    masked = claims_of(ledger_of(exact("redacted", "private"), ran))
    assert (
        masked["secret_missed"]
        == masked["record_replace_one_pld"]
        == masked["bayesian"]
        == math.inf
    )
    missed = claims_of(ledger_of(selective()), gamma=1e-3)
    names = ("secret_missed", "record_replace_one_pld", "bayesian", "group_after_dedup")
    assert {missed[name] for name in names} == {math.inf}, (
        "public tokens hold the secrets that the policy misses"
    )
    for spoiled in (
        selective("carry"),
        selective("published"),
        selective("noise"),
        selective(tokens="private"),
    ):
        found = claims_of(ledger_of(spoiled))
        assert {value for name, value in found.items() if name != "as_published"} == {math.inf}, (
            "private text is read exactly"
        )
    mixed = claims_of(ledger_of(ran, by_author(ran)))
    assert set(mixed.values()) == {math.inf}, "noise for points and noise for authors are composed"
    read = ledger_of(ran)
    read_usual(read, public=False)
    twice = Ledger()
    for release in (*ran, *exact("redacted", "public"), *ran):
        twice.append(release, f"{1:064x}" if release.noisy else None)
    for ledger in (read, twice):
        assert set(claims_of(ledger).values()) == {math.inf}, (
            "a reason for which nothing holds is ignored"
        )
    for others in ({"policies": "0" * 64}, {"point": "dialogue"}, {"dataset": "other"}):
        source = source_of(ran, **others)
        found = claims_of(started_from(source), start=source)
        assert set(found.values()) == {math.inf}, f"a start on other terms is composed: {others}"
    recorded = source_of(ran, noise="recorded")
    assert certificate_of(started_from(recorded), recorded)["noise_reproducible"], (
        "an ancestor's noise can be drawn again"
    )
    tied = [replace(one, step=replace(one.step, unit="author")) for one in ran]
    assert set(claims_of(ledger_of(tied), dedup=True).values()) == {math.inf}, (
        "copies tie authors together"
    )
    assert refused(ledger_of(ran), weights=b"other"), "other weights are certified"
    published = Ledger()
    elsewhere = source_of(ran, corpus="b" * 64)
    published.init("source", public=True, ledger=elsewhere.dump())
    published.append(ran[0], f"{7:064x}")
    assert refused(published, start=elsewhere), "a start is public because it is said to be"
    leaky = source_of(ran, reads=True)
    assert set(claims_of(started_from(leaky), start=leaky).values()) == {math.inf}, (
        "a warm start launders what it read"
    )
    assert set(claims_of(ledger_of(ran), misaligned=1).values()) == {math.inf}, (
        "D and D' differ in several points"
    )
    unknown = claims_of(
        ledger_of(ran), gamma=None, gamma_upper=None, delta2=None, delta2_upper=None
    )
    assert not [name for name in unknown if name.startswith("bayesian")], (
        "an unknown miss rate is taken for a known one"
    )
    for unread in (("tokenizer",), ("policy",), ("tokenizer", "policy")):
        assert refused(ledger_of(ran), unread=unread), (
            f"nothing says what the {' and the '.join(unread)} were made of"
        )
    another = {"terms": terms(ledger_of(ran)) | {"policies": "0" * 64}}
    model = {"reads": [{"stage": "policy", "source": "codes", "public": True, "digest": "1" * 64}]}
    for file in ("recall", "neighbours"):
        assert refused(ledger_of(ran), swapped={file: another}), (
            f"{file} of another policy is taken for this run's"
        )
        assert refused(ledger_of(ran), swapped={file: model}), (
            f"{file} of another model is taken for this run's"
        )
        assert refused(ledger_of(ran), swapped={file: {"terms": {}}}), (
            f"{file} does not say what it was measured on"
        )
    assert refused(ledger_of(ran), lambda text: text.replace(":2.0", ":9.0")), (
        "an altered ledger is priced"
    )
    assert refused(ledger_of(ran), lambda text: text[: text.rindex("\n", 0, -1) + 1]), (
        "a ledger without its end is priced"
    )


def advice_rests_on_these_policies() -> None:
    """What was measured of a policy says nothing of the one that took its place."""
    text = TextSpec(dataset="toy", corpus="c" * 64, cut="b" * 64)
    now, before = (
        RedactSpec(policy={"kind": "regex", "patterns": {"a": found}}, conservative=EVERYTHING)
        for found in ("[0-9]", "[a-z]")
    )
    place = Path("recall.json")
    asked = RecallSpec(text=text, redact=now, reads=[])
    check_terms({"terms": terms_of(text, now), "reads": []}, asked, place, place, "snakemake")
    try:
        check_terms(
            {"terms": terms_of(text, before), "reads": []}, asked, place, place, "snakemake"
        )
    except InputError:
        return
    raise AssertionError("another policy's misses are taken for this one's")


def one_copy_alone_costs_what_comes_back() -> None:
    """Masking one of several copies changes a record of a caught secret and two of a missed one,
    and shares of them add up. Replacing one changes three.
    """
    ran = noisy(0.05, 2.0, 60)
    literal = {
        "gamma_literal": 0.3,
        "gamma_literal_upper": 0.4,
        "doubled_literal": 0.1,
        "doubled_literal_upper": 0.2,
    }
    found = claims_of(ledger_of(exact("redacted", "public"), ran), **literal)
    one, two = (lambda delta, size=size: group(ran, delta, size)[0] for size in (1, 2))
    assert found["secret_caught"] == 0 and math.isclose(
        found["secret_caught_literal"], one(DELTA), rel_tol=1e-6
    )
    assert math.isclose(found["secret_missed_literal"], two(DELTA), rel_tol=1e-6)
    three = group(ran, DELTA, 3)[0]
    assert math.isclose(found["record_replace_one_literal"], three, rel_tol=1e-6)
    parts = ((0.2, one(DELTA / 0.3)), (0.1, two(DELTA / 0.3)))
    expected = math.log1p(sum(share * math.expm1(value) for share, value in parts))
    assert math.isclose(found["bayesian_literal"], expected, rel_tol=1e-6)


def released_bounds_are_no_smaller() -> None:
    """Rounded for a release, a rate and a number of repetitions claim the same or less; few values
    are left.
    """
    rates = [count / 997 for count in range(998)]
    assert (
        all(rate <= rate_up(rate) <= 1 for rate in rates)
        and len({rate_up(rate) for rate in rates}) < 25
    )
    counts = range(1, 2000)
    assert (
        all(count <= count_up(count) < 2 * count for count in counts)
        and len({count_up(count) for count in counts}) < 13
    )


def refused(ledger: Ledger, alter: Callable[[str], str] = str, **given: Any) -> bool:
    """Whether nothing is certified of an altered ledger."""
    try:
        certificate_of(ledger, alter=alter, **given)
    except InputError:
        return True
    return False


def a_ledger_holds_what_its_settings_ask_for() -> None:
    """Verification enumerates the updates and their noise again; fewer, rarer or other ones, or
    other noise, are refused.
    """
    recipe = {"epochs": 2, "batch_size": 64, "noisy_batch_size": 16}
    privacy = {"epsilon": 3.0, "delta": DELTA}
    settings = {"run": "r/g0-s0", "method": "crt", "data": TERMS, "model": {"kind": "lstm"}}
    spec = TrainSpec(**settings, recipe=recipe, privacy=privacy)
    sizes = Sizes(pools=POOLS)
    needed = calibrate(3.0, DELTA, 0.05, 40)

    def made(
        epochs: int = 2,
        exact_updates: int = 5,
        noisy_updates: int = 20,
        rate: float = 0.05,
        sigma: float = needed,
    ) -> Ledger:
        ledger = Ledger()
        for epoch in range(1, epochs + 1):
            ledger.append(replace(exact("redacted", "public")[0], count=exact_updates))
            ledger.append(noisy(rate, sigma, noisy_updates)[0], f"{epoch:064x}")
            ledger.epoch(epoch)
        return ledger

    check_ledger(spec, made(), sizes, Path("ledger"))
    others = (
        {"epochs": 1},
        {"exact_updates": 4},
        {"noisy_updates": 2},
        {"rate": 0.001},
        {"sigma": 100 * needed},
    )
    for other in (*others, {"sigma": 0.9 * needed}):
        try:
            check_ledger(spec, made(**other), sizes, Path("ledger"))
        except InputError:
            continue
        raise AssertionError(f"a ledger of other updates is accepted: {other}")
    some = spec.model_copy(update={"domains": ["air"]})
    try:
        check_ledger(some, made(), sizes, Path("ledger"))
    except InputError:
        return
    raise AssertionError("what policies miss in all domains is claimed of some of them")
