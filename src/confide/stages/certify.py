"""Price a ledger and write the certificate of a run: what is guaranteed, of what unit, to whom, and on which condition.

Nothing here trusts the training job: claims follow from the verified ledger and the audit alone, whose hashes are quoted.
"""

from pathlib import Path
from typing import Any

from confide.dp.claims import Facts, all_claims, epoch_claims, headline
from confide.dp.ledger import Ledger
from confide.errors import InputError
from confide.io import number, read_json, sha256, write_json
from confide.specs import CertifySpec, PrivacySpec
from confide.types import Release

NOT_FOR_RELEASE = "noise reproducible from a recorded seed: not for release"
ASSUMPTIONS = (
    "the attacker sees the released model and every update, but neither the noise nor the Poisson batches",
    "pseudo-random numbers stand for randomness; they are not cryptographic",
    "tokenizer, vocabulary, policies, pool sizes and hyper-parameters come from public data",
    "replace_one: (1-q)N(0,s2) + qN(1,s2) against (1-q)N(0,s2) + qN(-1,s2) dominates; the claim by RDP does not need that",
)


def certify(spec: CertifySpec, *, ledger: Path, audit: Path, output: Path, init_ledger: list[Path] | None = None) -> None:
    """Write certificate.json. `init_ledger`: ledgers of the runs that this one was warm-started from, unless public."""
    ran, measured = read_ledger(ledger), read_audit(audit)
    if spec.init is not None and not ran.starts():
        raise InputError("the run was warm-started, but its ledger does not say so", file=ledger, key="init", value=spec.init)
    before = inherited(ran, ledger, [read_ledger(path) for path in init_ledger or ()])
    facts = facts_of(spec, [*before, *ran.releases()], measured)
    certificate = {
        "run": spec.run,
        "unit": facts.unit,
        "claims": all_claims(facts),
        "headline": headline(facts),
        "epochs": epoch_claims(facts, before, ran.epochs()),
        "policy": policy(spec, measured),
        "dedup": spec.dedup,
        "updates": updates(ran.releases()),
        "warm_start": [{key: start[key] for key in ("source", "public", "ledger")} for start in ran.starts()],
        "assumptions": ASSUMPTIONS,
        "hashes": {"ledger": sha256(ledger), "ledger_head": ran.head, "audit": sha256(audit)},
    }
    write_json(output, finite(certificate | noise(spec, facts)))


def read_ledger(path: Path) -> Ledger:
    """A verified ledger; an empty one is refused, since it would price at nothing."""
    ledger = Ledger.read(path)
    if not ledger.releases():
        raise InputError("holds no update, so there is nothing to certify", file=path)
    return ledger


def read_audit(path: Path) -> dict[str, Any]:
    """audit.json, with every rate a probability or null."""
    measured = read_json(path)
    for key in ("miss_rate", "miss_rate_upper", "delta2_upper"):
        if not isinstance(measured, dict) or key not in measured:
            raise InputError("is missing", file=path, key=key)
        value = measured[key]
        if value is not None and not (isinstance(value, int | float) and 0 <= value <= 1):
            raise InputError("must be a probability or null", file=path, key=key, value=value)
    return measured


def inherited(ran: Ledger, path: Path, given: list[Ledger]) -> list[Release]:
    """Releases that the starting weights carry, over any number of warm starts; InputError where a ledger is missing."""
    by_hash = {ledger.head: ledger for ledger in given}
    found = []
    for start in ran.starts():
        if start["public"]:
            continue
        if start["ledger"] not in by_hash:
            message = "the ledger of the run that it was warm-started from is not given (or is another one)"
            raise InputError(message, file=path, key="init", value=start["source"])
        source = by_hash[start["ledger"]]
        found += [*inherited(source, path, given), *source.releases()]
    return found


def facts_of(spec: CertifySpec, releases: list[Release], measured: dict[str, Any]) -> Facts:
    """Ledger, audit and specification, brought together. What is measured governs, not what was simulated."""
    return Facts(
        releases,
        (spec.privacy or PrivacySpec()).delta,
        spec.point,
        measured["miss_rate"],
        measured["miss_rate_upper"],
        delta2_bound(spec, measured),
        measured.get("confidence", spec.confidence),
        measured.get("multiplicity_distinct") if spec.dedup else None,
        measured.get("multiplicity"),
        spec.everything_private,
    )


def delta2_bound(spec: CertifySpec, measured: dict[str, Any]) -> float | None:
    """What the audit bounds plus what is assumed beyond it; without an audit only what is assumed, if anything is."""
    if measured["delta2_upper"] is None:
        return spec.delta2 or None
    return min(1.0, measured["delta2_upper"] + spec.delta2)


def policy(spec: CertifySpec, measured: dict[str, Any]) -> dict[str, Any]:
    """Miss rates: simulated, measured (these govern) and bounded."""
    return {
        "miss_rate_simulated": spec.miss_rate,
        "miss_rate": measured["miss_rate"],
        "miss_rate_upper": measured["miss_rate_upper"],
        "delta2": measured.get("delta2"),
        "delta2_upper": measured["delta2_upper"],
        "delta2_assumed": spec.delta2,
        "confidence": measured.get("confidence", spec.confidence),
        "everything_private": spec.everything_private,
        "multiplicity": measured.get("multiplicity"),
        "multiplicity_distinct": measured.get("multiplicity_distinct"),
        "note": measured.get("note"),
    }


def updates(releases: list[Release]) -> dict[str, int]:
    """How many updates of each kind ran, warm starts not counted."""
    counts: dict[str, int] = {}
    for release in releases:
        kind = f"{'noisy' if release.step.noisy else 'exact'} {release.step.view} {release.step.pool}"
        counts[kind] = counts.get(kind, 0) + release.count
    return counts


def noise(spec: CertifySpec, facts: Facts) -> dict[str, Any]:
    """Whether whoever knows the seed can draw the noise again, which undoes every guarantee that rests on it."""
    reproducible = spec.noise_seed is not None and any(release.step.noisy for release in facts.releases)
    return {"noise_reproducible": reproducible, "release_note": NOT_FOR_RELEASE if reproducible else None}


def finite(value: Any) -> Any:
    """The same with infinity as the string "inf"."""
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return number(value) if isinstance(value, float) else value
