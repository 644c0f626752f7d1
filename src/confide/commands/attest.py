"""`confide attest CERTIFICATE --key KEY --study STUDY --output FILE`: sign a certificate, its files
and what was measured.

KEY is an Ed25519 private key of yours (PEM or OpenSSH), STUDY the folder results/studies/STUDY with
gate and scan. The signature covers weights, ledger, certificate, audits, gate and scan by their
SHA-256, and stands for the word of whoever holds the key: nothing here can know whether the
training took place. Certificates with digests of confidential text can be signed for one's own
records; what is given away is signed after `confide release`, whose copy has none. `--sigstore`
was never tried against the public instance.
"""

from importlib.metadata import version
from pathlib import Path
from typing import Any

from confide.commands.release import RELEASED, own_objections, shown
from confide.commands.verify import reached, verified
from confide.errors import Failure, InputError
from confide.files.io import atomic, sha256, write_json
from confide.output.escaping import say
from confide.signing.checked import REPEATED
from confide.signing.envelope import signed
from confide.signing.evidence import Evidence, evidence
from confide.signing.keys import fingerprint, private_key
from confide.signing.public_log import bundle
from confide.signing.statement import CERTIFICATE, payload_of

REQUIRED = ("model", "config", "tokenizer", "ledger")
OF_TEXT = (
    "the certificate holds digests of confidential text: keep this attestation, "
    "and sign the copy of `confide release`"
)


def attest(
    certificate: Path,
    *,
    output: Path,
    key: Path | None = None,
    study: Path | None = None,
    anyway: bool = False,
    sigstore: bool = False,
) -> None:
    """Verify a certificate and write a signed statement about it to `output`.

    Failure names what speaks against signing. InputError where the certificate does not hold, or
    files are missing or of other weights.

    certificate: a file, or the folder that it is in.
    output: the new file with the statement.
    key: an Ed25519 private key of yours, PEM or OpenSSH.
    study: folder with the gate and the scan, results/studies/STUDY.
    anyway: sign whatever speaks against it; the statement says so.
    sigstore: sign by Sigstore's public instance instead of a key.
    """
    if (key is None) is not sigstore:
        key_path = None if key is None else str(key)
        raise InputError("give either a key or sigstore", key="key", value=key_path)
    private = None if key is None else private_key(key)
    path = certificate / "certificate.json" if certificate.is_dir() else certificate
    inputs = {file.resolve() for file in (path, key) if file is not None}
    if output.resolve() in inputs or output.is_dir():
        raise InputError("is not a file that an attestation may take the place of", file=output)
    certified, files = holding(path)
    measured = Evidence(against=["no study is given (--study), so no audit and no scan is signed"])
    if study is not None:
        measured = evidence(certified["run"], files, path, study)
    against = [*own_objections(certified), *measured.against]
    if against and not anyway:
        raise Failure(*against)
    subjects, roles = subjects_of(path, files, measured)
    payload = payload_of(subjects, predicate_of(certified, roles, measured, against))
    if private is not None:
        write_json(output, signed(payload, private))
    else:
        text = bundle(payload)
        with atomic(output) as temporary:
            temporary.write_text(text)
    say(*(f"  signed all the same: {reason}" for reason in against))
    if set(certified["files"]) - set(RELEASED):
        say(f"  note: {OF_TEXT}")
    by = "Sigstore" if private is None else fingerprint(private.public_key())
    say(f"  signed by {by}: {len(subjects)} files of {certified['run']}, in {output}")


def holding(path: Path) -> tuple[dict[str, Any], dict[str, list[dict[str, str]]]]:
    """A certificate that holds, and its files that are signed.

    These are all that others may see; InputError where one of them is not here.
    """
    certified = verified(path)
    places, _ = reached(certified["files"], [*path.resolve().parents], path)
    for name in REQUIRED:
        if not certified["files"].get(name):
            message = "is not named, and without it there is nothing to sign"
            raise InputError(message, file=path, key=f"files.{name}")
    files = shown(certified["files"])
    for name, some in files.items():
        if len(places[name]) < len(some):
            message = "is not here, and what is not here is not signed"
            raise InputError(message, file=path, key=f"files.{name}")
    return certified, files


def subjects_of(
    path: Path, files: dict[str, list[dict[str, str]]], measured: Evidence
) -> tuple[dict[str, str], dict[str, list[str]]]:
    """SHA-256 of everything that is signed by its name, and the names by role."""
    roles = {CERTIFICATE: [path.name]} | {
        role: [file["path"] for file in some] for role, some in files.items()
    }
    listed = [(path.name, sha256(path))]
    listed += ((file["path"], file["sha256"]) for some in files.values() for file in some)
    listed += measured.subjects.items()
    subjects = dict(listed)
    if len(subjects) < len(listed):
        message = "names one file twice, so that roles cannot be told apart"
        raise InputError(message, file=path, key="files")
    return subjects, roles | measured.roles


def predicate_of(
    certified: dict[str, Any], roles: dict[str, list[str]], measured: Evidence, against: list[str]
) -> dict[str, Any]:
    """What is said of the subjects."""
    return {
        **{key: certified[key] for key in REPEATED},
        "roles": roles,
        "gate": measured.gate,
        "unbound": measured.unbound,
        "overruled": against,
        "version": version("confide"),
    }
