"""Assemble what may be shown of one model: weights, vocabulary, and a certificate that can be
verified from these files.

What is not in RELEASED stays. The certificate goes without its digests of confidential text:
whoever knows all of a corpus but one short secret could try its values until the digest fits, and
no epsilon covers that. Nor do exact counts of secrets go: the measurements are rounded to bounds on
a public grid, and the certificate is made again from these.
"""

import csv
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confide.certify.certificate import certificate as certificate_of
from confide.certify.certificate import sealed
from confide.certify.facts import CONSERVATIVE, UNKNOWN
from confide.certify.gate import STANDS, UNFIT
from confide.certify.rounding import ROUNDED
from confide.commands.verify import reached, read, verify
from confide.errors import Failure, InputError
from confide.files.io import atomic, read_file, read_object, sha256, write_json
from confide.output.escaping import say
from confide.report.pages.certificate import as_html, page
from confide.specs import CertifySpec, parse
from confide.specs.files import NeighboursFile, RecallFile

# files that a certificate names, and what each is called outside; {} numbers those that may be
# several
RELEASED = {
    "model": "model.safetensors",
    "config": "config.json",
    "tokenizer": "tokenizer.json",
    "ledger": "ledger.jsonl",
    "recall": "recall.json",
    "neighbours": "neighbours.json",
    "start_ledgers": "start_ledger_{}.jsonl",
}

MEASURED = {"recall": RecallFile, "neighbours": NeighboursFile}


def release(certificate: Path, *, study: Path, output: Path, anyway: bool = False) -> None:
    """Verify a certificate and copy the model that it is of into the new folder `output`, open to
    others as the umask says.

    `study`: folder of a study that the run is part of, with its gate and its scan. Failure names
    all that speaks against a release; with `anyway` that is printed. InputError where the
    certificate does not hold or a file is missing.
    Guarantees: nothing else is copied, no digest of a confidential text, and no count of its
    secrets.
    """
    if output.exists():
        raise InputError("exists already", file=output)
    verify(certificate)
    found = read(certificate)
    files, _ = reached(found["files"], [*certificate.resolve().parents], certificate)
    for name in ("model", "config", "tokenizer"):
        if not files.get(name):
            raise InputError(
                "is not here, and without it there is nothing to release",
                file=certificate,
                key=f"files.{name}",
            )
    against = list(objections(found, study, sha256(certificate)))
    if against and not anyway:
        raise Failure(*against)
    folder = output.with_name(f".{output.name}.{os.getpid()}.tmp")
    try:
        folder.mkdir(parents=True)
        assemble(found, files, folder)
        folder.rename(output)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=output) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for reason in against:
        say(f"  released all the same: {reason}")
    say(f"  released: {output}")


def own_objections(found: dict[str, Any]) -> list[str]:
    """What the certificate itself says against giving its model away."""
    reasons = [found["release_note"]] if found["release_note"] else []
    if found["headline"]["record_epsilon"] == "inf":
        reasons.append(f"nothing finite is certified of {found['headline']['unit']}")
    return [*reasons, *unknown(found)]


def unknown(found: dict[str, Any]) -> list[str]:
    """What nobody can say of the policies, where the claims rest on them: on what both catch, or on
    what one misses.
    """
    on_pi = not any(claim["name"] == "bayesian" for claim in found["claims"])
    on_pi_c = found["headline"]["condition"] == CONSERVATIVE
    measured = found["policy"]["gamma_upper"] is not None
    return (
        []
        if measured or not (on_pi or on_pi_c)
        else [f"how many secrets the policy misses is {UNKNOWN}"]
    )


def objections(found: dict[str, Any], study: Path, digest: str) -> Iterator[str]:
    """What speaks against showing a certified model to others; `digest` is that of its certificate.

    Files count as searched under the names that they had then, and with the bytes that they had
    then.
    """
    yield from own_objections(found)
    gate = study / "gate.csv"
    scan = study / "scan.json"
    for path in (gate, scan):
        if not path.is_file():
            yield f"{path}: is missing: the study was not checked, or did not pass"
    if gate.is_file():
        with open(gate, newline="") as lines:
            rows = [row for row in csv.DictReader(lines) if row["run"] == found["run"]]
        if not rows:
            yield f"{gate}: says nothing of this run: not audited"
        yield from (
            f"{gate}: {row['audit']} {row['outcome']}: {row['says']}"
            for row in rows
            if row["outcome"] in UNFIT
        )
        digests = {file["sha256"] for file in found["files"]["model"]}
        if any(row["outcome"] == STANDS and row.get("weights") not in digests for row in rows):
            yield f"{gate}: is of other weights than this certificate: check the study again"
    if scan.is_file():
        searched = read_object(scan, "files")
        if searched.get("warning"):
            yield f"{scan}: {searched['warning']}"
        rows = {row["path"]: row for row in searched["files"]}
        named = [
            (file["path"], file["sha256"]) for name in RELEASED for file in found["files"][name]
        ]
        for path, current in ((f"results/runs/{found['run']}/certificate.json", digest), *named):
            if path not in rows:
                yield f"{path}: was not searched, says {scan}"
            elif rows[path]["hits"]:
                yield f"{path}: holds a secret, says {scan}"
            elif rows[path].get("sha256") != current:
                yield f"{path}: was changed since it was searched, says {scan}"


def assemble(found: dict[str, Any], files: dict[str, list[Path]], folder: Path) -> None:
    """Copy the files, round what was measured, and certify again from these alone."""
    copies: dict[str, list[Path]] = {}
    for name, pattern in RELEASED.items():
        copies[name] = [folder / pattern.format(number) for number in range(len(files[name]))]
        for path, copy in zip(files[name], copies[name], strict=True):
            if name not in ROUNDED:
                shutil.copyfile(path, copy)
                continue
            write_json(copy, ROUNDED[name](read_file(path, MEASURED[name])))
    named = {
        name: [{"path": copy.name, "sha256": sha256(copy)} for copy in some]
        for name, some in copies.items()
    }
    again = certificate_of(
        parse(CertifySpec, found["asked"], file="certificate.json"), copies, named
    )
    written = sealed(again | {"code": again["code"] | {"version": found["code"]["version"]}})
    text = page(written)
    write_json(folder / "certificate.json", written)
    for suffix, shown in (
        (".md", text),
        (".html", as_html(text, f"Certificate of {written['run']}")),
    ):
        with atomic(folder / f"certificate{suffix}") as temporary:
            temporary.write_text(shown)
