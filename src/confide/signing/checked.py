"""Is a certificate one that the owner of a public key vouches for?

An attestation is held against the certificate and the files at hand.
"""

from collections.abc import Iterator, Sequence
from os.path import isfile
from pathlib import Path
from typing import Any

from confide.errors import InputError
from confide.files.io import sha256
from confide.signing.envelope import opened, signer
from confide.signing.keys import public_keys
from confide.signing.statement import CERTIFICATE, statement_of

NAME = "attestation.json"  # beside a certificate
NEEDED = (CERTIFICATE, "model", "ledger")
UNSIGNED = (
    "  not checked: who vouches for it; whoever trains can make up a ledger, "
    "so give --key PUBLIC_KEY of somebody you trust"
)
# what the predicate says of the certificate
REPEATED = ("run", "says", "seal", "ledger_head", "headline", "release_note")


def vouched(
    certificate: Path,
    certified: dict[str, Any],
    *,
    key: Path,
    attestation: Path,
    folders: list[Path],
    beside: Sequence[str] = (),
) -> Iterator[str]:
    """What a signature adds to a certificate that holds, in lines for people.

    certified: the certificate's content. folders: where the other files that were signed are looked
    for. beside: names of what lies beside the certificate, signed or not. InputError where the
    signature is not about this certificate.
    """
    envelope = opened(attestation)
    name = signer(envelope, public_keys(key), attestation)
    # parsed only now: by then we know whose text it is
    subjects, predicate = statement_of(envelope.payload, attestation)
    roles = predicate["roles"]
    check_roles(roles, subjects, attestation)
    check_certificate(certificate, certified, subjects, predicate, attestation)
    named = {file["path"] for files in certified["files"].values() for file in files}
    others = [
        file for role in roles for file in roles[role] if role != CERTIFICATE and file not in named
    ]
    checked, absent = at_hand(others, subjects, folders)
    covered = ", ".join(["this certificate and its files", *checked])
    vouches = "the key's owner vouches that this was trained and measured as it says"
    yield f"  signed by {name}: {vouches}"
    yield f"  checked: the signature, and that it is over {covered}"
    if absent:
        yield f"  signed, but not here: {', '.join(absent)}"
    folder = certificate.parent
    if unsigned := [name for name in beside if not is_signed(folder, name, subjects)]:
        yield f"  not signed, so not checked: {', '.join(unsigned)}"
    for reason in predicate["overruled"]:
        yield f"  signed all the same: {reason}"
    for audit in predicate["unbound"]:
        yield f"  does not say of which weights it is: {audit}"


def is_signed(folder: Path, name: str, subjects: dict[str, str]) -> bool:
    """Whether a file of a folder is one that was signed, by its name and its bytes."""
    path = folder / name
    return name in subjects and path.is_file() and sha256(path) == subjects[name]


def check_roles(roles: dict[str, list[str]], subjects: dict[str, str], attestation: Path) -> None:
    """InputError unless each subject has one role, and what is needed is among them."""
    listed = [name for names in roles.values() for name in names]
    if sorted(listed) != sorted(subjects):
        message = "does not give each file that was signed one role"
        raise InputError(message, file=attestation, key="payload.predicate.roles")
    for role in NEEDED:
        if len(roles.get(role, [])) != 1:
            message = f"names {len(roles.get(role, []))} files instead of one"
            raise InputError(message, file=attestation, key=f"payload.predicate.roles.{role}")


def check_certificate(
    certificate: Path,
    certified: dict[str, Any],
    subjects: dict[str, str],
    predicate: dict[str, Any],
    attestation: Path,
) -> None:
    """InputError unless this very certificate was signed, with its files and its claims."""
    roles = predicate["roles"]
    if subjects[roles[CERTIFICATE][0]] != sha256(certificate):
        message = "is about another certificate than this one"
        key = f"payload.subject.{CERTIFICATE}"
        raise InputError(message, file=attestation, key=key, value=str(certificate))
    for role, files in certified["files"].items():
        signed = {name: subjects[name] for name in roles.get(role, [])}
        if role in roles and signed != {file["path"]: file["sha256"] for file in files}:
            message = "has other files or digests than the certificate names"
            raise InputError(message, file=attestation, key=f"payload.subject.{role}")
    for key in REPEATED:
        if predicate[key] != certified[key]:
            message = "is not what the certificate says"
            raise InputError(message, file=attestation, key=f"payload.predicate.{key}")


def at_hand(
    names: list[str], subjects: dict[str, str], folders: list[Path]
) -> tuple[list[str], list[str]]:
    """Of the other files that were signed those that are here, and those that are not.

    InputError for one of other bytes.
    """
    checked = []
    absent = []
    for name in names:
        place = next((folder / name for folder in folders if isfile(folder / name)), None)
        if place is None:
            absent.append(name)
        elif sha256(place) != subjects[name]:
            raise InputError("is not the file that was signed: other bytes", file=place)
        else:
            checked.append(name)
    return checked, absent
