"""What was measured of a model, for whoever shows its certificate: audits, gate and scan.

Audits and scans belong to weights. Where one names the weights that it was made of, by their
SHA-256, these must be the certificate's; where an audit names none, that is said. What is missing
or speaks against the model is listed, for somebody to overrule.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confide.certify.gate import INCONCLUSIVE, REFUTED, SKIPPED, STANDS, cases_of, rows_of
from confide.certify.rounding import ROUNDED
from confide.errors import InputError
from confide.files.io import read_file, read_json, read_object, sha256
from confide.signing.statement import AUDITS, SCAN
from confide.specs import TEXT_AUDIT
from confide.specs.files import CERTIFICATE, AuditFile, Claims

# Attacks that can refute a certificate. They read the model, the ledger and public coins. What is
# measured of the corpus's own text is not signed: its digest would tell who tries texts which fits.
AUDITING = ("game", "gradients")
REFUTING = (*AUDITING, TEXT_AUDIT)
AGAINST = (REFUTED, INCONCLUSIVE)
NamedFiles = dict[str, list[dict[str, str]]]  # by role, with path and SHA-256


@dataclass(kw_only=True)
class Evidence:
    """What was measured, and what of it speaks against showing the model.

    subjects: SHA-256 by name. roles: names by role. against: reasons that may be overruled.
    changed: what is about other bytes than were certified. unbound: audits that do not name their
    weights.
    """

    subjects: dict[str, str] = field(default_factory=dict)
    roles: dict[str, list[str]] = field(default_factory=dict)
    gate: list[dict[str, str]] = field(default_factory=list)
    against: list[str] = field(default_factory=list)
    changed: list[InputError] = field(default_factory=list)
    unbound: list[str] = field(default_factory=list)

    def add(self, role: str, name: str, path: Path) -> None:
        """One file that is signed."""
        self.subjects[name] = sha256(path)
        self.roles.setdefault(role, []).append(name)

    def compare(self, named: Any, digest: str, path: Path, key: str) -> None:
        """Note a file that is about other bytes than these."""
        if named != digest:
            message = "is about other bytes than were certified: make it again"
            self.changed.append(InputError(message, file=path, key=key))


def checks_of(run: str, files: NamedFiles, certificate: Path, study: Path) -> Evidence:
    """The verdict of a study's gate and scan on a certificate's model.

    files: those that are shown. study: results/studies/STUDY of the project.
    """
    if study.resolve().parent.name != "studies":
        raise InputError("is not the folder of a study, results/studies/STUDY", file=study)
    if not study.is_dir():
        raise InputError("is not there: the workflow makes it last, so run that first", file=study)
    checks = Evidence()
    take_gate(checks, run, files["model"][0]["sha256"], study)
    take_refutations(checks, run, certificate, study)
    take_scan(checks, run, files, certificate, study)
    return checks


def evidence(run: str, files: NamedFiles, certificate: Path, study: Path) -> Evidence:
    """All that a study measured of a certificate's model, to be signed.

    InputError where an audit, the gate or the scan is of another model or of other weights.
    """
    collected = checks_of(run, files, certificate, study)
    take_audits(collected, run, files["model"][0]["sha256"], study)
    if collected.changed:
        raise collected.changed[0]
    return collected


def take_audits(collected: Evidence, run: str, weights: str, study: Path) -> None:
    """Each attack on the run that can refute its certificate."""
    for path, value in audits_in(runs_of(run, study), run, AUDITING):
        name = f"results/runs/{run}/{path.name}"
        if value.get("weights") is None:
            collected.unbound.append(name)
        else:
            collected.compare(value["weights"], weights, path, "weights")
        collected.add(AUDITS, name, path)
    if AUDITS not in collected.roles:
        collected.against.append(f"results/runs/{run}: holds no audit of the model")


def take_gate(collected: Evidence, run: str, weights: str, study: Path) -> None:
    """The gate's rows of this run.

    One row must stand, for these weights, and none may be worse than skipped. The files are not
    signed: they have the digests of other models of this text, which are not handed out.
    """
    for file in ("gate.csv", "gate.xml"):
        if not (study / file).is_file():
            name = name_of(study, file)
            collected.against.append(f"{name}: is missing: the study was not checked")
    path = study / "gate.csv"
    if not path.is_file():
        return
    name = name_of(study, "gate.csv")
    collected.gate = [row for row in rows_of(path) if row.get("run") == run]
    failed = [row for row in collected.gate if row["outcome"] not in (STANDS, SKIPPED)]
    stands = [row for row in collected.gate if row["outcome"] == STANDS]
    for row in collected.gate:
        if row.get("weights") or row["outcome"] == STANDS:
            collected.compare(row.get("weights"), weights, path, "weights")
    for row in failed:
        says = row.get("says", "")
        collected.against.append(f"{name}: {row['audit']} {row['outcome']}: {says}")
    if not collected.gate:
        collected.against.append(f"{name}: has no row of this run")
    elif not failed and not stands:
        nothing = "has no audit that was compared with the certificate"
        collected.against.append(f"{name}: {nothing}")


def take_refutations(collected: Evidence, run: str, certificate: Path, study: Path) -> None:
    """Audits beside the run, or beside its certificate, that speak against it, whatever studies
    list. The gate's rows then say so, too.

    Of one that does not name its weights nobody knows whether it is of this model.
    """
    told = {(row["audit"], row["outcome"]) for row in collected.gate}
    certified = read_file(certificate, Claims)
    for path in refuting(run, certificate, study):
        measured = read_file(path, AuditFile)
        for case in cases_of(certified, certificate, measured=measured, audit=path):
            if case.outcome in AGAINST and (case.audit, case.outcome) not in told:
                said = f"{case.audit} {case.outcome}: {case.says}"
                collected.against.append(f"results/runs/{run}/{path.name}: {said}")
                others = [row for row in collected.gate if row["audit"] != case.audit]
                row = {"run": run, "audit": case.audit, "outcome": case.outcome}
                collected.gate = [*others, row | {"says": case.says}]


def refuting(run: str, certificate: Path, study: Path) -> list[Path]:
    """Audits that can refute a certificate and name their weights, each once: beside the run in the
    project of a study, and beside the certificate where that lies in the run's own folder.
    """
    folders = [runs_of(run, study)]
    beside = certificate.resolve().parent
    if beside.as_posix().endswith(f"/{run}"):
        folders.append(beside)
    named = {
        path.resolve(): path
        for folder in folders
        for path, value in audits_in(folder, run, REFUTING)
        if value.get("weights") is not None
    }
    return list(named.values())


def runs_of(run: str, study: Path) -> Path:
    """Where what was measured of a run lies, in the project of a study."""
    return study.resolve().parent.parent / "runs" / run


def audits_in(
    folder: Path, run: str, attacks: Sequence[str]
) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Each of some attacks on a run that can refute its certificate: its file, and what it says."""
    for path in sorted(folder.glob("*.json")):
        value = read_json(path)
        if not isinstance(value, dict) or value.get("attack") not in attacks:
            continue
        if value.get("run") != run:
            message = f"belongs to another model than {run}"
            raise InputError(message, file=path, key="run", value=value.get("run"))
        yield path, value


def take_scan(
    collected: Evidence, run: str, files: NamedFiles, certificate: Path, study: Path
) -> None:
    """The scan: each file that is shown, and the certificate, was searched, and nothing was found.

    A row is found by its digest, else by its name. Of a certificate that `release` rewrote, whose
    files have other names than when they were scanned, the original was searched, and of the
    numbers that it rounds.
    """
    path = study / "scan.json"
    called = name_of(study, "scan.json")
    if not path.is_file():
        collected.against.append(f"{called}: is missing: nothing was searched for secrets")
        return
    scanned = read_object(path, "files")
    rows = scanned["files"]
    if scanned.get("warning"):  # which counts secrets, and these reasons are shown to others
        collected.against.append(f"{called}: no secret was looked for")
    elif (scanned.get("secrets") or {}).get("marked_searched") == 0:
        why = "only planted secrets were looked for, as corpora mark no other that could be"
        collected.against.append(f"{called}: {why}")
    if not isinstance(rows, list) or not all(
        isinstance(row, dict) and isinstance(row.get("path"), str) for row in rows
    ):
        raise InputError("is not a list of files with their paths", file=path, key="files")
    collected.add(SCAN, called, path)
    by_name = {row["path"]: row for row in rows}
    by_digest = {row["sha256"]: row for row in rows if isinstance(row.get("sha256"), str)}
    original = f"results/runs/{run}/{CERTIFICATE}"
    rewritten = not any(file["path"] in by_name for some in files.values() for file in some)
    wanted = [
        file for role, some in files.items() if not (rewritten and role in ROUNDED) for file in some
    ]
    if not rewritten:
        wanted.append({"path": original, "sha256": sha256(certificate)})
    for name, digest in ((file["path"], file["sha256"]) for file in wanted):
        row = by_digest.get(digest) or by_name.get(name)
        if judged(collected, row, name, called) and row is not None:
            collected.compare(row.get("sha256"), digest, path, f"files.{name}.sha256")
    if rewritten:
        judged(collected, by_name.get(original), original, called)


def judged(collected: Evidence, row: dict[str, Any] | None, name: str, scan: str) -> bool:
    """Whether a file was searched and nothing was found in it; if not, that is noted."""
    if row is not None and row.get("hits") == 0:
        return True
    why = "was not searched" if row is None else "holds a secret"
    collected.against.append(f"{name}: {why}, says {scan}")
    return False


def name_of(study: Path, file: str) -> str:
    """How a file of a study is called in a statement, wherever the project lies."""
    return f"results/studies/{study.resolve().name}/{file}"
