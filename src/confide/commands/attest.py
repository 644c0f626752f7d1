"""`confide attest CERTIFICATE --key KEY --study STUDY --output FILE`: sign a certificate, its files
and what was measured.

KEY is an Ed25519 private key of yours (PEM or OpenSSH), STUDY the folder results/studies/STUDY with
gate and scan. The signature covers weights, ledger, certificate, audits, gate and scan by their
SHA-256, and stands for the word of whoever holds the key: nothing here can know whether the
training took place. Certificates with digests of confidential text can be signed for one's own
records; what is given away is signed after `confide release`, whose copy has none. `--sigstore`
was never tried against the public instance.
"""

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from confide.commands.release import RELEASED, export_of, own_objections, public_files
from confide.commands.verify import EXPORTED, certificate_in, checked, pages_beside
from confide.errors import Failure, InputError
from confide.files.io import read_json, sha256, write_json, write_text
from confide.output.escaping import say
from confide.report.pages.certificate import both_pages
from confide.report.pages.opening import audited
from confide.signing.checked import REPEATED
from confide.signing.envelope import signed
from confide.signing.evidence import Evidence, evidence
from confide.signing.keys import fingerprint, private_key
from confide.signing.public_log import bundle
from confide.signing.statement import CERTIFICATE, PAGES, payload_of

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
    path = certificate_in(certificate)
    inputs = {file.resolve() for file in (path, key) if file is not None}
    if output.resolve() in inputs or output.is_dir():
        raise InputError("is not a file that an attestation may take the place of", file=output)
    certified, files, places = holding(path)
    if output.resolve() in {place.resolve() for named in places.values() for place in named}:
        message = "is a file of the certificate, which an attestation may not take the place of"
        raise InputError(message, file=output)
    measurements = Evidence(
        against=["no study is given (--study), so no audit and no scan is signed"]
    )
    if study is not None:
        measurements = evidence(certified["run"], files, path, study)
    against = [*own_objections(certified), *measurements.against]
    against += [
        f"{shown.name}: is not the page of this certificate, so make it again"
        for shown in pages_beside(path)
        if not is_page_of(shown, certified, measurements)
    ]
    against += differences_of(certified, places, measurements)
    if against and not anyway:
        raise Failure(*against)
    subjects, roles = subjects_of(path, files, measurements)
    payload = payload_of(subjects, predicate_of(certified, roles, measurements, against))
    if private is not None:
        write_json(output, signed(payload, private))
    else:
        write_text(output, bundle(payload))
    say(*(f"  signed all the same: {reason}" for reason in against))
    if set(certified["files"]) - {*RELEASED, *EXPORTED}:
        say(f"  note: {OF_TEXT}")
    by = "Sigstore" if private is None else fingerprint(private.public_key())
    say(f"  signed by {by}: {len(subjects)} files of {certified['run']}, in {output}")


def holding(
    path: Path,
) -> tuple[dict[str, Any], dict[str, list[dict[str, str]]], dict[str, list[Path]]]:
    """A certificate that holds, its files that are signed, and where all of them lie.

    Signed are all that others may see; InputError where one of them is not here.
    """
    certified, places, _ = checked(path, [*path.resolve().parents])
    for name in REQUIRED:
        if not certified["files"].get(name):
            message = "is not named, and without it there is nothing to sign"
            raise InputError(message, file=path, key=f"files.{name}")
    files = public_files(certified["files"])
    for name, entries in files.items():
        if len(places[name]) < len(entries):
            message = "is not here, and what is not here is not signed"
            raise InputError(message, file=path, key=f"files.{name}")
    return certified, files, places


def differences_of(
    certified: dict[str, Any], places: dict[str, list[Path]], measurements: Evidence
) -> Iterator[str]:
    """What of a release does not follow from its model and the study's audits: what it says was
    tried, and files for another library, which are made again.
    """
    said = certified.get("handed_out")
    if said is not None and said["tried"] != audited(measurements.gate):
        yield "certificate: says that other audits were tried than the study's gate"
    files = {name: some for name, some in certified["files"].items() if name not in EXPORTED}
    bare = {name: value for name, value in certified.items() if name != "seal"} | {"files": files}
    for role in EXPORTED:
        if not places.get(role):
            continue
        with TemporaryDirectory() as folder:
            again = Path(folder, role)
            try:
                export_of(bare, places, again, audits=measurements.gate)
            except InputError as error:
                yield f"{role}/: cannot be made again: {error}"
                continue
            for shown in places[role]:
                if not same(shown, again / shown.name):
                    yield f"{role}/{shown.name}: is not what the certified model gives"


def same(shown: Path, again: Path) -> bool:
    """Whether two files say the same, whichever release of transformers wrote them."""
    if not again.is_file():
        return False
    if shown.suffix != ".json":
        return sha256(shown) == sha256(again)
    found, wanted = read_json(shown), read_json(again)
    for value in (found, wanted):
        if isinstance(value, dict):
            value.pop("transformers_version", None)
    return bool(found == wanted)


def is_page_of(shown: Path, certified: dict[str, Any], measurements: Evidence) -> bool:
    """Whether a page says what follows from a certificate, with the audits or before there were
    any: who signs vouches for it.
    """
    pages = (both_pages(certified, tried) for tried in (None, audited(measurements.gate)))
    said = shown.read_text(encoding="utf-8", errors="replace")
    return any(said == page[shown.suffix] for page in pages)


def subjects_of(
    path: Path, files: dict[str, list[dict[str, str]]], measurements: Evidence
) -> tuple[dict[str, str], dict[str, list[str]]]:
    """SHA-256 of everything that is signed by its name, and the names by role."""
    roles = {CERTIFICATE: [path.name]} | {
        role: [file["path"] for file in entries] for role, entries in files.items()
    }
    pages = pages_beside(path)
    if pages:
        roles[PAGES] = [page.name for page in pages]
    pairs = [(shown.name, sha256(shown)) for shown in (path, *pages)]
    pairs += ((file["path"], file["sha256"]) for entries in files.values() for file in entries)
    pairs += measurements.subjects.items()
    subjects = dict(pairs)
    if len(subjects) < len(pairs):
        message = "names one file twice, so that roles cannot be told apart"
        raise InputError(message, file=path, key="files")
    return subjects, roles | measurements.roles


def predicate_of(
    certified: dict[str, Any],
    roles: dict[str, list[str]],
    measurements: Evidence,
    against: list[str],
) -> dict[str, Any]:
    """What is said of the subjects."""
    return {
        **{key: certified[key] for key in REPEATED},
        "roles": roles,
        "gate": measurements.gate,
        "unbound": measurements.unbound,
        "overruled": against,
        "version": version("confide"),
    }
