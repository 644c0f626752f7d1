"""Certificate against audit: what was measured of a model may not contradict what is certified.

What is tested is the certificate's own claim, at all epsilons at once (dp/accounting/tradeoff.py),
at a level of 5 %: a true certificate is refuted in at most one training of twenty. How many of the
coins are guessed is settled by the claim and the number of coins alone, so nothing is picked after
the fact. An audit that would seldom ring even where the epsilon is five times what is certified
says nothing and does not pass; neither does one of other weights or of other texts. An audit of
coins that the model does not read says nothing either, unless that is what is claimed.

An audit of texts that the model wrote tests the same claims: what is claimed of the model, it
claims of all that it writes. p-values of such an audit refute one claim alone, that of epsilon = 0
for planted numbers (`of_canaries`). All others rest on something that no certificate claims, such
as that the corpus was split by lot, or are of what a certificate lets the model tell.
"""

import csv
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from pydantic import ValidationError

from confide.certify.facts import MISSED_BY_BOTH, SECRET_CAUGHT, SECRET_MISSED
from confide.dp.accounting.audit_power import TIMES, Power, base_of, power
from confide.dp.accounting.price import MEANINGLESS
from confide.dp.accounting.tradeoff import Points, epsilon_lower
from confide.errors import InputError, misfit
from confide.files.io import atomic, read_file, write_text
from confide.files.jsons import JsonObject
from confide.output.escaping import table, terminal
from confide.output.rounding import percent_down, rounded_down, rounded_up
from confide.specs import TEXT_AUDIT
from confide.specs.files import AuditFile, AuditSetFile, Claims, File, SurfacedFile, TextsFile

# speaks for a certificate; neither for it nor against it
STANDS = "stands"
SKIPPED = "skipped"
REFUTED = "refuted"
INCONCLUSIVE = "inconclusive"
OTHER_WEIGHTS = "of other weights"
OTHER_TEXTS = "of other texts"
NOT_AUDITED = "not audited"
FAILURES = (REFUTED, INCONCLUSIVE, OTHER_WEIGHTS, OTHER_TEXTS)  # of a workflow
# of coins, by kind of audit
SETS = {
    "game": ("game", "inclusion"),
    "gradients": ("replacement", "inclusion"),
    TEXT_AUDIT: ("texts_game", "texts_inclusion", "probed_game", "probed_inclusion"),
}
CANARIES = "canaries"  # the comparison of an audit of texts that is of planted numbers, not coins
BY_TEXTS = (*SETS[TEXT_AUDIT], CANARIES)
KINDS = ("texts", "hot", "prompted")  # of texts in which planted numbers are looked for
IN_THE_OPEN = (
    "planted sentences were read without noise, and no claim about a record covers these: "
    "the conservative policy must catch them, as everything does"
)
UNREAD = (
    "the model reads nothing of planted secrets that the policy catches, so that guessing them "
    "tells nothing of its noise: an audit of its updates (kind: gradients) does"
)
NOTHING_FINITE = "nothing finite is claimed of all that was planted"
ENOUGH = 0.5  # chance to ring at the last of TIMES, below which an audit is inconclusive
DELTA = 8e-5  # of a claim that names none
LEVEL = 0.05  # of all tests here


class Case(NamedTuple):
    """One comparison.

    outcome: stands, skipped (nothing finite is claimed, or nothing planted), not audited, or a
    failure. rings: chances that an ideal attacker with as many coins refutes the claim where
    epsilon is 2, 3 and 5 times the certified one (of a certified 0: where it is 2, 3 and 5).
    """

    run: str
    audit: str  # game, canaries: of one secret; inclusion, replacement: of one record
    outcome: str
    certified: float | None
    lower: float | None = None  # None, as all that follows: nothing was compared
    coins: int | None = None
    rings_2x: float | None = None
    rings_3x: float | None = None
    rings_5x: float | None = None
    weights: str | None = None  # SHA-256 of what was audited
    says: str = ""

    @property
    def failed(self) -> bool:
        return self.outcome in FAILURES


class Comparison(NamedTuple):
    """Of a finite claim and a set of coins, once both are known to belong together."""

    epsilon: float
    correct: int  # guesses that are right, of those that power.guesses says
    lower: float
    power: Power

    @property
    def refuted(self) -> bool:
        return self.correct >= self.power.fewest


def cases(certificate: Path, audit: Path, texts: Path | None = None) -> Iterator[Case]:
    """All sets of coins of an audit against the certificate's claims of the same unit and relation.

    texts: the certificate of the texts, if the audit is of texts.
    InputError for another model's, and for an audit of texts without their certificate.
    """
    certified = read_file(certificate, Claims)
    measured = read_file(audit, AuditFile)
    stated = None if texts is None else read_file(texts, TextsFile)
    if measured["attack"] == TEXT_AUDIT and stated is None:
        message = "is of texts, and their certificate is not given"
        raise InputError(message, file=audit, key="attack", value=TEXT_AUDIT)
    yield from cases_of(certified, certificate, measured=measured, audit=audit, texts=stated)


def cases_of(
    certified: JsonObject,
    certificate: Path,
    *,
    measured: JsonObject,
    audit: Path,
    texts: JsonObject | None = None,
) -> Iterator[Case]:
    """The same of files that were read, whose paths are for errors.

    texts: the certificate of the texts; None where it is not at hand, for a report that repeats
    what the gate found.
    """
    if measured["attack"] not in SETS:
        raise InputError("is not an audit", file=audit, key="attack", value=measured["attack"])
    if measured["run"] != certified["run"]:
        message = f"belongs to another model than {certified['run']}"
        raise InputError(message, file=audit, key="run", value=measured["run"])
    stranger = strange(certified, certificate, measured, audit)
    outcome = OTHER_WEIGHTS
    if stranger is None and measured["attack"] == TEXT_AUDIT and texts is not None:
        stranger = strange_texts(measured, audit, texts)
        outcome = OTHER_TEXTS
    for name in SETS[measured["attack"]]:
        claim = claim_of(certified, certificate, name)
        case = Case(certified["run"], name, SKIPPED, certified=float(claim["epsilon"]))
        if stranger is not None:
            weights = measured.get("weights")
            yield case._replace(outcome=outcome, weights=weights, says=stranger)
        elif of_planted_records(measured["attack"], name) and in_the_open(certified):
            yield case._replace(outcome=NOT_AUDITED, says=IN_THE_OPEN)
        else:
            yield compared(case, certified, measured, audit, claim)
    if measured["attack"] == TEXT_AUDIT and stranger is None:
        yield from of_canaries(certified, certificate, measured, audit)


def of_planted_records(attack: str, name: str) -> bool:
    """Whether coins decided which sentences were planted."""
    return attack != "gradients" and name.endswith("inclusion")


def unaudited(certificate: Path) -> Case:
    """The row of a run that no audit tested.

    It is `not audited` if something finite is claimed that one could have tested.
    """
    certified = read_file(certificate, Claims)
    claimed = [float(claim_of(certified, certificate, name)["epsilon"]) for name in SETS["game"]]
    finite = [epsilon for epsilon in claimed if epsilon < math.inf]
    if not finite:
        return Case(certified["run"], "none", SKIPPED, certified=None, says=NOTHING_FINITE)
    largest = rounded_up(max(finite), 3)
    says = f"epsilon {largest} is certified, and no audit of the model has tested it"
    return Case(certified["run"], "none", NOT_AUDITED, certified=max(finite), says=says)


def strange(
    certified: JsonObject, certificate: Path, measured: JsonObject, audit: Path
) -> str | None:
    """Why the audit is not of what is certified; None if it is.

    Names alone prove nothing: a run can be made again.
    """
    files = certified.get("files", {}).get("model", [])
    if len(files) != 1:
        message = f"names {len(files)} files instead of one"
        raise InputError(message, file=certificate, key="files.model")
    audited = measured.get("weights")
    repeated = measured.get("ledger")
    if audited is None:
        message = "is missing: of which weights is this an audit?"
        raise InputError(message, file=audit, key="weights")
    if repeated is None and measured["attack"] == "gradients":
        raise InputError("is missing: which updates were made again?", file=audit, key="ledger")
    if audited != files[0]["sha256"]:
        return (
            f"the audit is of weights {audited[:12]}, the certificate of {files[0]['sha256'][:12]}"
        )
    if repeated is not None and repeated != certified.get("ledger_head"):
        return "the audit repeats other updates than those that are certified"
    return None


def strange_texts(measured: JsonObject, audit: Path, texts: JsonObject) -> str | None:
    """Why the audit is not of the texts that are certified; None if it is."""
    audited = measured.get("texts_sha256")
    if audited is None:
        raise InputError("is missing: of which texts is this?", file=audit, key="texts_sha256")
    stated = texts["texts"]["sha256"]
    if audited != stated:
        return f"the audit is of texts {audited[:12]}, their certificate of {stated[:12]}"
    model = texts["model"]["weights"]
    if measured["weights"] != model:
        return f"the texts are certified of weights {model[:12]}"
    return None


def in_the_open(certified: JsonObject) -> bool:
    """Whether exact updates read a planted sentence: no claim about a record covers such a one."""
    both_missed = named(certified, MISSED_BY_BOTH)
    return planted_in(certified["policy"])["exposed"] > 0 and both_missed is not None


def unread(certified: JsonObject, name: str, claim: JsonObject) -> bool:
    """Whether some coins of a set tell nothing of a claim, so that an audit of it would flatter it.

    Where the model reads nothing of a secret that is caught, coins of such secrets are at random
    whatever it gives away of a missed one, or of a record. Of a claim of epsilon = 0, that it reads
    nothing is what they test.
    """
    caught = named(certified, SECRET_CAUGHT)
    if caught is None or caught["epsilon"] != 0 or claim["epsilon"] == 0:
        return False
    coins = coins_in(certified["policy"], name)
    return not 0 < coins["secrets"] == coins["sampled"] == coins["read"]


def settled(cases: Sequence[Case]) -> list[Case]:
    """All cases of a run: coins that it does not read are passed over where its updates stand."""
    stand = any(case.audit == "replacement" and case.outcome == STANDS for case in cases)
    passed = SKIPPED if stand else NOT_AUDITED
    return [case._replace(outcome=passed) if case.says == UNREAD else case for case in cases]


def secret_claim(certified: JsonObject) -> str:
    """The claim that covers every planted secret of the coin game.

    That of caught ones does only if all of them were tested and none was missed.
    """
    if in_the_open(certified):
        return MISSED_BY_BOTH
    planted = coins_in(certified["policy"], "game")
    caught = 0 < planted["secrets"] == planted["sampled"] and planted["different"] == 0
    name = SECRET_CAUGHT if caught else SECRET_MISSED
    claim = named(certified, name)
    unprotected = claim is None or claim["epsilon"] != 0
    if unprotected and named(certified, "secret_other_length") is not None:
        return "secret_other_length"  # a mask in a secret's place is not as long
    return name


def named(certified: JsonObject, name: str) -> JsonObject | None:
    """The claim of a name; None where the certificate makes none such."""
    return next((claim for claim in certified["claims"] if claim["name"] == name), None)


def planted_in(policy: JsonObject) -> dict[str, int]:
    """What became of all planted secrets.

    Of a certificate that does not say, nothing is known.
    """
    told = policy.get("planted")
    counts = told if isinstance(told, dict) else {}
    names = ("secrets", "sampled", "different", "exposed")
    return {name: value if type(value := counts.get(name)) is int else 0 for name in names}


def coins_in(policy: JsonObject, name: str) -> dict[str, int]:
    """The same of the secrets whose coins a set guesses, and how many redacted text holds.

    It is of all where those are not counted apart, and then nobody knows what text holds. Which of
    a set were not tested nobody knows: where any planted secret was not, `secrets` is more than
    `sampled`.
    """
    planted = planted_in(policy)
    planted_set = name.rpartition("_")[2]  # of texts_game it is game
    sets = policy["planted"].get("sets") if isinstance(policy.get("planted"), dict) else None
    counts = sets.get(planted_set) if isinstance(sets, dict) else None
    if not isinstance(counts, dict):
        return planted | {"read": 0}
    names = ("sampled", "different", "read")
    mine = {key: value if type(value := counts.get(key)) is int else 0 for key in names}
    untested = planted["secrets"] - planted["sampled"]
    return mine | {"secrets": mine["sampled"] + untested}


def record_claim(certified: JsonObject) -> str:
    """The claim that covers a planted record.

    Where noise hides authors, it is that of one point of an author.
    """
    of_points = "point_add_or_remove"
    return "record_add_or_remove_pld" if named(certified, of_points) is None else of_points


def replacement_claim(certified: JsonObject) -> str:
    """The claim that covers a record whose gradient is another.

    Where records are not protected, it is that of a caught secret.
    """
    name = "record_replace_one_pld"
    claim = named(certified, name)
    return SECRET_CAUGHT if claim is not None and claim["epsilon"] == "inf" else name


COVERING = {
    "game": secret_claim,
    "inclusion": record_claim,
    "replacement": replacement_claim,
    "texts_game": secret_claim,
    "texts_inclusion": record_claim,
    "probed_game": secret_claim,
    "probed_inclusion": record_claim,
}


def claim_of(certified: JsonObject, certificate: Path, name: str) -> JsonObject:
    """The claim that a set of coins tests; InputError where the certificate makes none such."""
    wanted = COVERING[name](certified)
    claim = named(certified, wanted)
    if claim is None:
        raise InputError("makes no such claim", file=certificate, key="claims", value=wanted)
    key = f"claims.{wanted}"
    if not 0 < claim.get("delta", DELTA) < 1:
        message = "must lie between 0 and 1"
        raise InputError(message, file=certificate, key=f"{key}.delta", value=claim["delta"])
    if MEANINGLESS < float(claim["epsilon"]) < math.inf:
        message = "is no bound of anything"
        raise InputError(message, file=certificate, key=f"{key}.epsilon", value=claim["epsilon"])
    return claim


def compared(
    case: Case,
    certified: JsonObject,
    measured: JsonObject,
    audit: Path,
    claim: JsonObject,
) -> Case:
    """A finite claim held against one set of coins; or why there is nothing to compare."""
    name = case.audit
    coins = part_of(measured, audit, name, AuditSetFile)
    if coins["reason"] is not None:
        # planted, and the model gave no answer that tells anything
        unanswered = measured["attack"] == "game" and coins["coins"] is not None
        finite = float(claim["epsilon"]) < math.inf
        outcome = NOT_AUDITED if unanswered and finite else SKIPPED
        return case._replace(outcome=outcome, says=coins["reason"])
    for key in ("coins", "attempts", "relation"):
        if coins[key] is None:
            raise InputError("is missing", file=audit, key=f"{name}_{key}")
    if coins["relation"] != claim.get("relation"):
        message = f"is not the claim's, {claim.get('relation')}"
        raise InputError(message, file=audit, key=f"{name}_relation", value=coins["relation"])
    if case.certified == math.inf:
        return case._replace(says=NOTHING_FINITE)
    result = against(
        certified,
        claim=claim,
        coins=coins["coins"],
        attempts=coins["attempts"],
        audit=audit,
        key=f"{name}_attempts",
    )
    outcome, sentence = judged(result)
    if measured["attack"] != "gradients" and outcome != REFUTED and unread(certified, name, claim):
        return case._replace(outcome=NOT_AUDITED, weights=measured.get("weights"), says=UNREAD)
    rings_2x, rings_3x, rings_5x = result.power.rings
    return case._replace(
        outcome=outcome,
        lower=result.lower,
        coins=coins["coins"],
        rings_2x=rings_2x,
        rings_3x=rings_3x,
        rings_5x=rings_5x,
        weights=measured.get("weights"),
        says=f"{sentence} ({claim['name']})",
    )


def of_canaries(
    certified: JsonObject, certificate: Path, measured: JsonObject, audit: Path
) -> Iterator[Case]:
    """Planted numbers among those that texts hold, if (0, 0) is claimed of each; else nothing.

    If nothing that the model does depends on any planted number, the texts are independent of which
    numbers were drawn. That these are drawn evenly is our own doing, so that the p-values of
    `surfaced` are exact, and small ones refute the claim. The level is shared by the kinds of texts
    (Bonferroni). Of a larger epsilon a p-value says nothing.
    """
    claim = claim_of(certified, certificate, "game")
    if (0.0, 0.0) not in points_claimed(certified, claim):
        return
    parts = [part_of(measured, audit, f"{CANARIES}_{kind}", SurfacedFile) for kind in KINDS]
    values = [part["p_value"] for part in parts if part["p_value"] is not None]
    if not values:
        return
    p_value = min(1.0, min(values) * len(values))
    says = f"planted numbers stand in the texts with p = {p_value:.2g} if none was learnt"
    yield Case(
        certified["run"],
        CANARIES,
        REFUTED if p_value < LEVEL else STANDS,
        certified=0.0,
        weights=measured.get("weights"),
        says=f"{says} ({claim['name']})",
    )


def told_apart(certificate: Path, audit: Path) -> str | None:
    """A warning, where an audit of texts finds that they tell of the training text.

    That refutes no claim: most of its tests take for granted that the corpus was split by lot, and
    an epsilon above 0 lets a model tell something. None where nothing finite is claimed, as nobody
    was promised anything.
    """
    certified = read_file(certificate, Claims)
    p_value = read_file(audit, AuditFile).get("p_value")
    finite = any(float(claim["epsilon"]) < math.inf for claim in certified["claims"])
    if p_value is None or p_value >= LEVEL or not finite:
        return None
    return (
        f"texts of {certified['run']} tell of their training text (p = {p_value:.2g}), which "
        f"refutes no claim by itself: {audit.name} says which test found it"
    )


def part_of(measured: JsonObject, audit: Path, name: str, kind: type[File]) -> JsonObject:
    """Part of what an audit says, such as of one set of coins, without its name before each key."""
    part = {field: measured.get(f"{name}_{field}") for field in kind.model_fields}
    try:
        kind.model_validate(part)
    except ValidationError as error:
        raise misfit(error, audit, above=f"{name}_") from None
    return part


def points_claimed(certified: JsonObject, claim: JsonObject) -> Points:
    """All that the certificate says of a claim: its one pair, and its curve where there is one."""
    curve = certified.get("curves", {}).get(claim["name"], [])
    stated = (float(claim["epsilon"]), claim.get("delta", DELTA))
    return (stated, *((epsilon, delta) for epsilon, delta in curve))


def against(
    certified: JsonObject,
    claim: JsonObject,
    coins: int,
    attempts: Sequence[Sequence[int]],
    audit: Path,
    key: str,
) -> Comparison:
    """What a set of coins says of a finite claim.

    attempts: pairs of guesses and right ones, of which one is looked at.
    """
    points = points_claimed(certified, claim)
    epsilon, delta = points[0]
    chances = power(points, epsilon, delta, coins)
    correct = {guesses: right for guesses, right in attempts}.get(chances.guesses)
    if correct is None:
        message = f"says nothing of {chances.guesses} guesses, which this claim is tested by"
        raise InputError(message, file=audit, key=key)
    if not 0 <= correct <= chances.guesses:
        message = "has more right guesses than guesses, or fewer than none"
        raise InputError(message, file=audit, key=key)
    lower = epsilon_lower(points, coins, chances.guesses, correct)
    return Comparison(epsilon, correct, lower, chances)


def judged(comparison: Comparison) -> tuple[str, str]:
    """Outcome of a comparison, and what to say of it."""
    rings = comparison.power.rings
    base = base_of(comparison.epsilon)
    certified = f"certified {rounded_up(comparison.epsilon, 3)}"
    measured = f"measured at least {rounded_down(comparison.lower)}, {certified}"
    if comparison.refuted:
        guesses = f"{comparison.correct} of {comparison.power.guesses} guesses are right"
        chance = f"of a true claim {comparison.power.fewest} are in at most 5 % of trainings"
        return REFUTED, f"{measured}: {guesses}, and {chance}"
    at = [
        f"{rounded_up(times * base, 3)} ({percent_down(chance)})"
        for times, chance in zip(TIMES, rings, strict=True)
    ]
    chance = f"an ideal attacker would refute it if epsilon were {', '.join(at[:-1])} or {at[-1]}"
    if rings[-1] < ENOUGH:
        return INCONCLUSIVE, f"too few coins to tell: {chance}; {certified}: plant more canaries"
    return STANDS, f"{measured}; {chance}"


def write_table(path: Path, rows: Sequence[Case]) -> None:
    """CSV with a line per comparison; infinity is inf."""
    write_text(path, table(Case._fields, rows))


def rows_of(path: Path) -> list[dict[str, str]]:
    """The lines of such a table; InputError for a file that is none."""
    try:
        with open(path, newline="", encoding="utf-8") as lines:
            rows = list(csv.DictReader(lines, restval=""))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError("is not a table in UTF-8", file=path) from error
    for row in rows:
        if None in row or not row.get("audit") or not row.get("outcome"):
            message = "has a row without audit and outcome, or a longer one"
            raise InputError(message, file=path, key="run", value=row.get("run"))
    return rows


def write_junit(path: Path, rows: Sequence[Case], suite: str) -> None:
    """JUnit XML, as build servers read it."""
    passed_over = (SKIPPED, NOT_AUDITED)
    root = ElementTree.Element(
        "testsuite",
        {
            "name": terminal(suite),
            "tests": str(len(rows)),
            "failures": str(sum(case.failed for case in rows)),
            "skipped": str(sum(case.outcome in passed_over for case in rows)),
        },
    )
    for case in rows:
        about = {"classname": terminal(case.run), "name": case.audit}
        element = ElementTree.SubElement(root, "testcase", about)
        says = terminal(case.says)
        if case.failed:
            ElementTree.SubElement(element, "failure", {"type": case.outcome, "message": says})
        elif case.outcome in passed_over:
            says = terminal(f"{case.outcome}: {case.says}")
            ElementTree.SubElement(element, "skipped", {"message": says})
        else:
            ElementTree.SubElement(element, "system-out").text = says
    ElementTree.indent(root)
    with atomic(path) as temporary:
        ElementTree.ElementTree(root).write(temporary, encoding="unicode", xml_declaration=True)
