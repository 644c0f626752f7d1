"""Assemble what may be shown of one model: weights, vocabulary, and a certificate that can be verified from these files.

What is not in RELEASED stays. The certificate goes without its digests of confidential text: whoever knows all of a corpus but
one short secret could try its values until the digest fits, and no epsilon covers that.
"""

import csv
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confide.certificate import sealed
from confide.errors import Failure, InputError
from confide.gate import UNFIT
from confide.io import atomic, read_object, write_json
from confide.report.certificate import as_html, page
from confide.stages.verify import reached, read, verify

RELEASED = {  # files that a certificate names, and what each is called outside; {} numbers those that may be several
    "model": "model.safetensors",
    "config": "config.json",
    "tokenizer": "tokenizer.json",
    "ledger": "ledger.jsonl",
    "recall": "recall.json",
    "neighbours": "neighbours.json",
    "start_ledgers": "start_ledger_{}.jsonl",
}


def release(certificate: Path, *, study: Path, output: Path, anyway: bool = False) -> None:
    """Verify a certificate and copy the model that it is of into the new folder `output`, open to others as the umask says.

    `study`: folder of a study that the run is part of, with its gate and its scan. Failure names all that speaks against a
    release; with `anyway` that is printed. InputError where the certificate does not hold or a file is missing.
    Guarantees: nothing else is copied, and no digest of a confidential text.
    """
    if output.exists():
        raise InputError("exists already", file=output)
    verify(certificate)
    found = read(certificate)
    files, _ = reached(found["files"], [*certificate.resolve().parents], certificate)
    for name in ("model", "config", "tokenizer"):
        if not files.get(name):
            raise InputError("is not here, and without it there is nothing to release", file=certificate, key=f"files.{name}")
    against = list(objections(found, study))
    if against and not anyway:
        raise Failure("\n".join(against))
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
        print(f"  released all the same: {reason}")
    print(f"  released: {output}")


def objections(found: dict[str, Any], study: Path) -> Iterator[str]:
    """What speaks against showing a certified model to others. Files count as searched under the names that they had then."""
    if found["release_note"]:
        yield found["release_note"]
    if found["headline"]["record_epsilon"] == "inf":
        yield f"nothing finite is certified of {found['headline']['unit']}"
    gate, scan = study / "gate.csv", study / "scan.json"
    for path in (gate, scan):
        if not path.is_file():
            yield f"{path}: is missing: the study was not checked, or did not pass"
    if gate.is_file():
        with open(gate, newline="") as lines:
            rows = [row for row in csv.DictReader(lines) if row["run"] == found["run"]]
        if not rows:
            yield f"{gate}: says nothing of this run: not audited"
        yield from (f"{gate}: {row['audit']} {row['outcome']}: {row['says']}" for row in rows if row["outcome"] in UNFIT)
        digests = {file["sha256"] for file in found["files"]["model"]}
        if any(row["outcome"] == "stands" and row.get("weights") not in digests for row in rows):
            yield f"{gate}: is of other weights than this certificate: check the study again"
    if scan.is_file():
        hits = {row["path"]: row["hits"] for row in read_object(scan, "files")["files"]}
        named = [file["path"] for name in RELEASED for file in found["files"][name]]
        for path in (f"results/runs/{found['run']}/certificate.json", *named):
            if hits.get(path) != 0:
                yield f"{path}: {'holds a secret' if path in hits else 'was not searched'}, says {scan}"


def assemble(found: dict[str, Any], files: dict[str, list[Path]], folder: Path) -> None:
    """Copy the files, and write the certificate that names these copies alone."""
    named: dict[str, list[dict[str, str]]] = {}
    for name, pattern in RELEASED.items():
        copies = [(path, pattern.format(number)) for number, path in enumerate(files[name])]
        for path, copy in copies:
            shutil.copyfile(path, folder / copy)
        digests = (file["sha256"] for file in found["files"][name])
        named[name] = [{"path": copy, "sha256": digest} for (_, copy), digest in zip(copies, digests, strict=True)]
    written = sealed(found | {"files": named})
    text = page(written)
    write_json(folder / "certificate.json", written)
    for suffix, shown in ((".md", text), (".html", as_html(text, f"Certificate of {written['run']}"))):
        with atomic(folder / f"certificate{suffix}") as temporary:
            temporary.write_text(shown)
