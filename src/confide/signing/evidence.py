"""What was measured of a model, for whoever signs its certificate: audits, the gate's verdict, the
scan.

Audits and scans belong to weights. Where one names the weights that it was made of, by their
SHA-256, these must be the certificate's; where it names none, that is said. What is missing or
speaks against the model is listed, for somebody to overrule.
"""

import csv
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confide.certify.gate import SKIPPED, STANDS
from confide.certify.rounding import ROUNDED
from confide.errors import InputError
from confide.files.io import read_json, read_object, sha256
from confide.signing.statement import AUDITS, GATE, SCAN

AUDITING = ("game", "gradients")  # attacks that can refute a certificate
BOUND = "epsilon_lower"  # how the keys end under which others have a lower bound


@dataclass
class Evidence:
    """`subjects`: SHA-256 by name; `against`: reasons not to sign; `unbound`: audits that do not
    name their weights.
    """

    subjects: dict[str, str] = field(default_factory=dict)
    roles: dict[str, list[str]] = field(default_factory=dict)
    gate: list[dict[str, str]] = field(default_factory=list)
    against: list[str] = field(default_factory=list)
    unbound: list[str] = field(default_factory=list)

    def add(self, role: str, name: str, path: Path) -> None:
        """One file that is signed."""
        self.subjects[name] = sha256(path)
        self.roles.setdefault(role, []).append(name)


def evidence(
    run: str, files: dict[str, list[dict[str, str]]], certificate: Path, study: Path
) -> Evidence:
    """All that a study measured of a certificate's model. `study`: results/studies/STUDY of the
    project.

    `files`: those that are signed, by their roles, each with path and SHA-256 as the certificate
    has them. InputError where an audit, the gate or the scan is of another model or of other
    weights.
    """
    if study.resolve().parent.name != "studies" or not study.is_dir():
        raise InputError("is not the folder of a study, results/studies/STUDY", file=study)
    collected = Evidence()
    weights = files["model"][0]["sha256"]
    take_audits(collected, run, weights, study)
    take_gate(collected, run, weights, study)
    take_scan(collected, run, files, certificate, study)
    return collected


def take_audits(collected: Evidence, run: str, weights: str, study: Path) -> None:
    """Each attack on the run that bounds epsilon from below."""
    folder = study.resolve().parent.parent / "runs" / run
    for path in sorted(folder.glob("*.json")):
        value = read_json(path)
        if not isinstance(value, dict) or "attack" not in value:
            continue
        if value["attack"] not in AUDITING and not any(key.endswith(BOUND) for key in value):
            continue
        if value.get("run") != run:
            raise InputError(
                f"belongs to another model than {run}", file=path, key="run", value=value.get("run")
            )
        name = f"results/runs/{run}/{path.name}"
        if not same_bytes(value.get("weights"), weights, path, "weights"):
            collected.unbound.append(name)
        collected.add(AUDITS, name, path)
    if AUDITS not in collected.roles:
        collected.against.append(f"results/runs/{run}: holds no audit of the model")


def take_gate(collected: Evidence, run: str, weights: str, study: Path) -> None:
    """The gate's table and JUnit file, and its rows of this run: one must stand, and none may be
    worse than skipped.
    """
    for file in ("gate.csv", "gate.xml"):
        if (study / file).is_file():
            collected.add(GATE, name_of(study, file), study / file)
        else:
            collected.against.append(
                f"{name_of(study, file)}: is missing: the study was not checked"
            )
    table = study / "gate.csv"
    name = name_of(study, "gate.csv")
    if not table.is_file():
        return
    try:
        with open(table, newline="", encoding="utf-8") as lines:
            rows = [row for row in csv.DictReader(lines, restval="") if row.get("run") == run]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError("is not a table in UTF-8", file=table) from error
    for row in rows:
        if None in row or not row.get("audit") or not row.get("outcome"):
            raise InputError(
                "has a row without audit and outcome, or a longer one",
                file=table,
                key="run",
                value=run,
            )
        same_bytes(row.get("weights") or None, weights, table, "weights")
        if row["outcome"] not in (STANDS, SKIPPED):
            collected.against.append(
                f"{name}: {row['audit']} {row['outcome']}: {row.get('says', '')}"
            )
    if not any(row["outcome"] == STANDS for row in rows):
        found = (
            "no row of this run" if not rows else "no audit that was compared with the certificate"
        )
        collected.against.append(f"{name}: has {found}")
    collected.gate = rows


def take_scan(
    collected: Evidence,
    run: str,
    files: dict[str, list[dict[str, str]]],
    certificate: Path,
    study: Path,
) -> None:
    """The scan: each file that is signed, and the certificate, was searched, and nothing was found.

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
    if scanned.get("warning"):
        collected.against.append(f"{called}: {scanned['warning']}")
    if not isinstance(rows, list) or not all(
        isinstance(row, dict) and isinstance(row.get("path"), str) for row in rows
    ):
        raise InputError("is not a list of files with their paths", file=path, key="files")
    collected.add(SCAN, called, path)
    by_name = {row["path"]: row for row in rows}
    by_digest = {row["sha256"]: row for row in rows if isinstance(row.get("sha256"), str)}
    own = f"results/runs/{run}/certificate.json"
    rewritten = not any(file["path"] in by_name for some in files.values() for file in some)
    wanted = [
        file for role, some in files.items() if not (rewritten and role in ROUNDED) for file in some
    ]
    if not rewritten:
        wanted.append({"path": own, "sha256": sha256(certificate)})
    for name, digest in ((file["path"], file["sha256"]) for file in wanted):
        row = by_digest.get(digest) or by_name.get(name)
        if row is not None:
            same_bytes(row.get("sha256"), digest, path, f"files.{name}.sha256")
        judge(collected, row, name, called)
    if rewritten:
        judge(collected, by_name.get(own), own, called)


def judge(collected: Evidence, row: dict[str, Any] | None, name: str, scan: str) -> None:
    """Note a file that was not searched, or in which something was found."""
    if row is None or row.get("hits") != 0:
        collected.against.append(
            f"{name}: {'was not searched' if row is None else 'holds a secret'}, says {scan}"
        )


def name_of(study: Path, file: str) -> str:
    """How a file of a study is called in a statement, wherever the project lies."""
    return f"results/studies/{study.resolve().name}/{file}"


def same_bytes(named: Any, digest: str, path: Path, key: str) -> bool:
    """Whether a file names these bytes; False where it names none, InputError where it names
    others.
    """
    if named is None:
        return False
    if named != digest:
        raise InputError(
            "is about other bytes than were certified: make it again", file=path, key=key
        )
    return True
