"""Certificate against audit: what was measured of a model may not contradict what is certified of
it.

What is tested is the certificate's own claim, at all epsilons at once (dp/accounting/tradeoff.py), at a level
of 5 %: a true certificate is refuted in at most one training of twenty. How many of the coins are
guessed is settled by the claim and the number of coins alone, so nothing is picked after the fact.
An audit that would seldom ring even where the epsilon is five times what is certified says nothing
and does not pass; neither does one of other weights.
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from pydantic import ValidationError

from confide.dp.accounting.audit_power import TIMES, Power, base_of, power
from confide.dp.accounting.price import MEANINGLESS
from confide.dp.accounting.tradeoff import Points, epsilon_lower
from confide.errors import InputError
from confide.files.io import atomic, read_file
from confide.output.escaping import table, terminal
from confide.specs.files import AuditFile, AuditSetFile, Claims

# speaks for a certificate; neither for it nor against it
STANDS = "stands"
SKIPPED = "skipped"
REFUTED = "refuted"
INCONCLUSIVE = "inconclusive"
OTHER_WEIGHTS = "of other weights"
NOT_AUDITED = "not audited"
FAILURES = (REFUTED, INCONCLUSIVE, OTHER_WEIGHTS)  # of a workflow
UNFIT = (*FAILURES, NOT_AUDITED)  # for a release
SETS = {
    "game": ("game", "inclusion"),
    "gradients": ("replacement", "inclusion"),
}  # of coins, by kind of audit
IN_THE_OPEN = (
    "planted sentences were read without noise, and no claim about a record covers these: "
    "the conservative policy must catch them, as everything does"
)
ENOUGH = 0.5  # chance to ring at the last of TIMES, below which an audit is inconclusive
DELTA = 8e-5  # of a claim that names none


class Case(NamedTuple):
    """One comparison. `outcome`: stands, skipped (nothing finite is claimed, or nothing planted),
    not audited, or a failure.

    rings: chances that an ideal attacker with as many coins refutes the claim where epsilon is 2, 3
    and 5 times the certified one (of a certified 0: where it is 2, 3 and 5).
    """

    run: str
    audit: str  # game: of one secret; inclusion, replacement: of one record
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
    refuted: bool
    lower: float
    power: Power


def cases(certificate: Path, audit: Path) -> Iterator[Case]:
    """All games of an audit against the certificate's claims of the same unit and relation;
    InputError for another model's.
    """
    certified = read_file(certificate, Claims)
    measured = read_file(audit, AuditFile)
    if measured["attack"] not in SETS:
        raise InputError("is not an audit", file=audit, key="attack", value=measured["attack"])
    if measured["run"] != certified["run"]:
        raise InputError(
            f"belongs to another model than {certified['run']}",
            file=audit,
            key="run",
            value=measured["run"],
        )
    stranger = strange(certified, certificate, measured, audit)
    for name in SETS[measured["attack"]]:
        claim = claim_of(certified, certificate, name)
        if stranger is not None:
            epsilon = float(claim["epsilon"])
            yield Case(
                certified["run"],
                name,
                OTHER_WEIGHTS,
                epsilon,
                weights=measured.get("weights"),
                says=stranger,
            )
        elif (measured["attack"], name) == ("game", "inclusion") and in_the_open(certified):
            epsilon = float(claim["epsilon"])
            yield Case(certified["run"], name, NOT_AUDITED, epsilon, says=IN_THE_OPEN)
        else:
            yield compared(certified, measured, audit, name, claim)


def unaudited(certificate: Path) -> Case:
    """The row of a run that no audit tested: `not audited` if something finite is claimed that one
    could have tested.
    """
    certified = read_file(certificate, Claims)
    claimed = [float(claim_of(certified, certificate, name)["epsilon"]) for name in SETS["game"]]
    finite = [epsilon for epsilon in claimed if epsilon < math.inf]
    if not finite:
        return Case(
            certified["run"], "none", SKIPPED, certified=None, says="nothing finite is claimed"
        )
    says = f"epsilon {max(finite):.3g} is certified, and no audit has tested it"
    return Case(certified["run"], "none", NOT_AUDITED, certified=max(finite), says=says)


def strange(
    certified: dict[str, Any], certificate: Path, measured: dict[str, Any], audit: Path
) -> str | None:
    """Why the audit is not of what is certified; None if it is. Names alone prove nothing: a run
    can be made again.
    """
    files = certified["files"].get("model", [])
    if len(files) != 1:
        raise InputError(
            f"names {len(files)} files instead of one", file=certificate, key="files.model"
        )
    audited = measured.get("weights")
    repeated = measured.get("ledger")
    if audited is None:
        raise InputError(
            "is missing: of which weights is this an audit?", file=audit, key="weights"
        )
    if repeated is None and measured["attack"] == "gradients":
        raise InputError("is missing: which updates were made again?", file=audit, key="ledger")
    if audited != files[0]["sha256"]:
        return (
            f"the audit is of weights {audited[:12]}, the certificate of {files[0]['sha256'][:12]}"
        )
    if repeated is not None and repeated != certified.get("ledger_head"):
        return "the audit repeats other updates than those that are certified"
    return None


def in_the_open(certified: dict[str, Any]) -> bool:
    """Whether exact updates read a planted sentence: no claim about a record covers such a one."""
    names = {claim["name"] for claim in certified["claims"]}
    return read_planted(certified["policy"])["exposed"] > 0 and "secret_missed_by_both" in names


def secret_claim(certified: dict[str, Any]) -> str:
    """The claim that covers every planted secret: that of caught ones only if all of them were
    tested and none was missed.
    """
    names = [claim["name"] for claim in certified["claims"]]
    planted = read_planted(certified["policy"])
    if in_the_open(certified):
        return "secret_missed_by_both"
    caught = 0 < planted["secrets"] == planted["sampled"] and planted["different"] == 0
    found = "secret_caught" if caught else "secret_missed"
    if (
        "secret_other_length" in names
        and next(one for one in certified["claims"] if one["name"] == found)["epsilon"] != 0
    ):
        return "secret_other_length"  # a mask in a secret's place is not as long
    return found


def read_planted(policy: dict[str, Any]) -> dict[str, int]:
    """What became of the planted secrets, which the audits guess; of a certificate that does not
    say, nothing is known.
    """
    found = policy.get("planted")
    found = found if isinstance(found, dict) else {}
    names = ("secrets", "sampled", "different", "exposed")
    return {name: value if type(value := found.get(name)) is int else 0 for name in names}


def record_claim(certified: dict[str, Any]) -> str:
    """The claim that covers a planted record: where noise hides authors, that of one point of an
    author.
    """
    names = {claim["name"] for claim in certified["claims"]}
    return "point_add_or_remove" if "point_add_or_remove" in names else "record_add_or_remove_pld"


def replacement_claim(certified: dict[str, Any]) -> str:
    """The claim that covers a record whose gradient is another; where records are not protected,
    that of a caught secret.
    """
    found = next(
        (claim for claim in certified["claims"] if claim["name"] == "record_replace_one_pld"), None
    )
    if found is not None and found["epsilon"] == "inf":
        return "secret_caught"
    return "record_replace_one_pld"


def claim_of(certified: dict[str, Any], certificate: Path, name: str) -> dict[str, Any]:
    """The claim that a set of coins tests; InputError where the certificate makes none such."""
    wanted = {"game": secret_claim, "inclusion": record_claim, "replacement": replacement_claim}[
        name
    ](certified)
    claim = next((claim for claim in certified["claims"] if claim["name"] == wanted), None)
    if claim is None:
        raise InputError("makes no such claim", file=certificate, key="claims", value=wanted)
    if not 0 < claim.get("delta", DELTA) < 1:
        raise InputError(
            "must lie between 0 and 1",
            file=certificate,
            key=f"claims.{wanted}.delta",
            value=claim["delta"],
        )
    if MEANINGLESS < float(claim["epsilon"]) < math.inf:
        raise InputError(
            "is no bound of anything",
            file=certificate,
            key=f"claims.{wanted}.epsilon",
            value=claim["epsilon"],
        )
    return claim


def compared(
    certified: dict[str, Any],
    measured: dict[str, Any],
    audit: Path,
    name: str,
    claim: dict[str, Any],
) -> Case:
    """One case."""
    found = set_of(measured, audit, name)
    epsilon = float(claim["epsilon"])
    nothing_compared = Case(certified["run"], name, SKIPPED, certified=epsilon)
    if found["reason"] is not None:
        return nothing_compared._replace(says=found["reason"])
    for key in ("coins", "attempts", "relation"):
        if found[key] is None:
            raise InputError("is missing", file=audit, key=f"{name}_{key}")
    if found["relation"] != claim.get("relation"):
        message = f"is not the claim's, {claim.get('relation')}"
        raise InputError(message, file=audit, key=f"{name}_relation", value=found["relation"])
    if epsilon == math.inf:
        return nothing_compared._replace(says="nothing finite is claimed")
    result = against(
        certified,
        claim=claim,
        coins=found["coins"],
        attempts=found["attempts"],
        audit=audit,
        key=f"{name}_attempts",
    )
    outcome, words = judged(result)
    rings_2x, rings_3x, rings_5x = result.power.rings
    return Case(
        run=certified["run"],
        audit=name,
        outcome=outcome,
        certified=epsilon,
        lower=result.lower,
        coins=found["coins"],
        rings_2x=rings_2x,
        rings_3x=rings_3x,
        rings_5x=rings_5x,
        weights=measured.get("weights"),
        says=f"{words} ({claim['name']})",
    )


def set_of(measured: dict[str, Any], audit: Path, name: str) -> dict[str, Any]:
    """What an audit says of one set of coins, without the set's name before each key."""
    found = {field: measured.get(f"{name}_{field}") for field in AuditSetFile.model_fields}
    try:
        AuditSetFile.model_validate(found)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(first["msg"], file=audit, key=f"{name}_{first['loc'][0]}") from None
    return found


def points_claimed(certified: dict[str, Any], claim: dict[str, Any]) -> Points:
    """All that the certificate says of the claim: its one pair, and its curve where there is
    one.
    """
    curve = certified.get("curves", {}).get(claim["name"], [])
    return (
        (float(claim["epsilon"]), claim.get("delta", DELTA)),
        *((epsilon, delta) for epsilon, delta in curve),
    )


def against(
    certified: dict[str, Any],
    claim: dict[str, Any],
    coins: int,
    attempts: Sequence[Sequence[int]],
    audit: Path,
    key: str,
) -> Comparison:
    """What a set of coins says of a finite claim. `attempts`: (guesses, right ones), of which one
    is looked at.
    """
    points = points_claimed(certified, claim)
    epsilon, delta = points[0]
    chances = power(points, epsilon, delta, coins)
    right = {guesses: correct for guesses, correct in attempts}
    if chances.guesses not in right:
        raise InputError(
            f"says nothing of {chances.guesses} guesses, which this claim is tested by",
            file=audit,
            key=key,
        )
    if not 0 <= right[chances.guesses] <= chances.guesses:
        raise InputError(
            "has more right guesses than guesses, or fewer than none", file=audit, key=key
        )
    correct = right[chances.guesses]
    lower = epsilon_lower(points, coins, chances.guesses, correct)
    return Comparison(epsilon, correct >= chances.fewest, lower, chances)


def judged(found: Comparison) -> tuple[str, str]:
    """Outcome and words."""
    certified = found.epsilon
    lower = found.lower
    rings = found.power.rings
    at = [
        f"{times * base_of(certified):.3g} ({chance:.0%})"
        for times, chance in zip(TIMES, rings, strict=True)
    ]
    chance = f"an ideal attacker would refute it if epsilon were {', '.join(at[:-1])} or {at[-1]}"
    if found.refuted:
        return REFUTED, f"measured at least {lower:.3g}, certified {certified:.3g}"
    if rings[-1] < ENOUGH:
        return (
            INCONCLUSIVE,
            f"too few coins to tell: {chance}; certified {certified:.3g}: plant more canaries",
        )
    return STANDS, f"measured at least {lower:.3g}, certified {certified:.3g}; {chance}"


def write_table(path: Path, found: Sequence[Case]) -> None:
    """CSV with a line per comparison; infinity is inf."""
    with atomic(path) as temporary:
        temporary.write_text(table(Case._fields, found))


def write_junit(path: Path, found: Sequence[Case], suite: str) -> None:
    """JUnit XML, as build servers read it."""
    passed_over = (SKIPPED, NOT_AUDITED)
    counts = {"tests": len(found), "failures": sum(case.failed for case in found)}
    counts["skipped"] = sum(case.outcome in passed_over for case in found)
    root = ElementTree.Element(
        "testsuite", name=terminal(suite), **{key: str(value) for key, value in counts.items()}
    )
    for case in found:
        element = ElementTree.SubElement(
            root, "testcase", classname=terminal(case.run), name=case.audit
        )
        if case.failed:
            ElementTree.SubElement(
                element, "failure", type=case.outcome, message=terminal(case.says)
            )
        elif case.outcome in passed_over:
            ElementTree.SubElement(
                element, "skipped", message=terminal(f"{case.outcome}: {case.says}")
            )
        else:
            ElementTree.SubElement(element, "system-out").text = terminal(case.says)
    ElementTree.indent(root)
    with atomic(path) as temporary:
        ElementTree.ElementTree(root).write(temporary, encoding="unicode", xml_declaration=True)
