"""Certificate against audit: what was measured may not exceed what is certified, and must have been able to.

An audit that could not have refuted a certificate, whatever the model (its `power` is no larger than the certified epsilon),
says nothing and does not pass. Only bounds that hold for any (epsilon, delta) mechanism count (Steinke et al. 2023).
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from confide.errors import InputError
from confide.io import atomic, read_file
from confide.outward import table, terminal
from confide.specs.files import AuditFile, Claims

FAILURES = ("refuted", "inconclusive")


class Case(NamedTuple):
    """One comparison. `outcome`: stands, refuted, inconclusive or skipped (nothing finite is claimed, or nothing planted)."""

    run: str
    audit: str  # game: of one secret; inclusion: of one record
    outcome: str
    certified: float | None
    lower: float | None
    power: float | None
    says: str

    @property
    def failed(self) -> bool:
        return self.outcome in FAILURES


def cases(certificate: Path, audit: Path) -> Iterator[Case]:
    """Both games of an audit against the certificate's claims of the same unit and relation; InputError for another model's."""
    certified, measured = read_file(certificate, Claims), read_file(audit, AuditFile)
    if measured["attack"] != "game":
        raise InputError("is not an audit", file=audit, key="attack", value=measured["attack"])
    if measured["run"] != certified["run"]:
        raise InputError(f"belongs to another model than {certified['run']}", file=audit, key="run", value=measured["run"])
    for name, claim in (("game", secret_claim(certified)), ("inclusion", record_claim(certified))):
        yield compared(certified, certificate, measured, audit, name, claim)


def secret_claim(certified: dict[str, Any]) -> str:
    """The claim that covers every planted secret: that of caught ones only if all of them were tested and none was missed."""
    names = [claim["name"] for claim in certified["claims"]]
    planted = read_planted(certified["policy"])
    if planted["exposed"] and "secret_missed_by_both" in names:
        return "secret_missed_by_both"
    caught = 0 < planted["secrets"] == planted["sampled"] and planted["different"] == 0
    found = "secret_caught" if caught else "secret_missed"
    if "secret_other_length" in names and next(one for one in certified["claims"] if one["name"] == found)["epsilon"] != 0:
        return "secret_other_length"  # a mask in a secret's place is not as long
    return found


def read_planted(policy: dict[str, Any]) -> dict[str, int]:
    """What became of the planted secrets, which the audits guess; of a certificate that does not say, nothing is known."""
    found = policy.get("planted")
    found = found if isinstance(found, dict) else {}
    names = ("secrets", "sampled", "different", "exposed")
    return {name: value if type(value := found.get(name)) is int else 0 for name in names}


def record_claim(certified: dict[str, Any]) -> str:
    """The claim that covers a planted record: where noise hides authors, that of one point of an author."""
    names = {claim["name"] for claim in certified["claims"]}
    return "point_add_or_remove" if "point_add_or_remove" in names else "record_add_or_remove_pld"


def compared(
    certified: dict[str, Any], certificate: Path, measured: dict[str, Any], audit: Path, name: str, claim: str
) -> Case:
    """One case."""
    claims = {one["name"]: one for one in certified["claims"]}
    if claim not in claims:
        raise InputError("makes no such claim", file=certificate, key="claims", value=claim)
    epsilon = float(claims[claim]["epsilon"])
    if (reason := measured.get(f"{name}_reason")) is not None:
        return Case(certified["run"], name, "skipped", epsilon, None, None, reason)
    for key in ("epsilon_lower", "power", "relation"):
        if measured.get(f"{name}_{key}") is None:
            raise InputError("is missing", file=audit, key=f"{name}_{key}")
    if (relation := measured[f"{name}_relation"]) != claims[claim].get("relation"):
        raise InputError(
            f"is not the claim's, {claims[claim].get('relation')}", file=audit, key=f"{name}_relation", value=relation
        )
    lower, power = float(measured[f"{name}_epsilon_lower"]), float(measured[f"{name}_power"])
    if not (0 <= lower <= power):
        raise InputError("must lie between 0 and power", file=audit, key=f"{name}_epsilon_lower", value=lower)
    outcome, words = judged(epsilon, lower, power)
    return Case(certified["run"], name, outcome, epsilon, lower, power, f"{words} ({claim})")


def judged(certified: float, lower: float, power: float) -> tuple[str, str]:
    """Outcome and words."""
    if certified == math.inf:
        return "skipped", "nothing finite is claimed"
    if lower > certified:
        return "refuted", f"measured at least {lower:.3g}, certified {certified:.3g}"
    if power <= certified:
        return "inconclusive", f"could have shown at most {power:.3g}, certified {certified:.3g}: plant more canaries"
    return "stands", f"measured at least {lower:.3g}, could have shown {power:.3g}, certified {certified:.3g}"


def write_table(path: Path, found: Sequence[Case]) -> None:
    """CSV with a line per comparison; infinity is inf."""
    with atomic(path) as temporary:
        temporary.write_text(table(Case._fields, found))


def write_junit(path: Path, found: Sequence[Case], suite: str) -> None:
    """JUnit XML, as build servers read it."""
    counts = {"tests": len(found), "failures": sum(case.failed for case in found)}
    counts["skipped"] = sum(case.outcome == "skipped" for case in found)
    root = ElementTree.Element("testsuite", name=terminal(suite), **{key: str(value) for key, value in counts.items()})
    for case in found:
        element = ElementTree.SubElement(root, "testcase", classname=terminal(case.run), name=case.audit)
        if case.failed:
            ElementTree.SubElement(element, "failure", type=case.outcome, message=terminal(case.says))
        elif case.outcome == "skipped":
            ElementTree.SubElement(element, "skipped", message=terminal(case.says))
        else:
            ElementTree.SubElement(element, "system-out").text = terminal(case.says)
    ElementTree.indent(root)
    with atomic(path) as temporary:
        ElementTree.ElementTree(root).write(temporary, encoding="unicode", xml_declaration=True)
