"""DSSE envelopes (https://github.com/secure-systems-lab/dsse): a payload, its type, signatures.

What is signed is not the payload but its pre-authentication encoding (PAE), which holds the
payload's type and both lengths: bytes that were signed as one kind of document cannot be passed off
as another. An envelope may come from anybody, so it is parsed strictly: no more than LARGEST bytes,
no key twice, no deep nesting (`jsons`), Base64 in its canonical form.
"""

import base64
import binascii
from pathlib import Path
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from confide.errors import InputError
from confide.files.io import parse_json
from confide.signing.keys import fingerprint

IN_TOTO = "application/vnd.in-toto+json"
BUNDLE = "application/vnd.dev.sigstore.bundle"  # how the type of Sigstore's own files begins
LARGEST = 1 << 20  # bytes of an envelope
MOST_SIGNATURES = 64


class Signature(NamedTuple):
    """One signature. keyid: whose it says it is; nothing binds it, so it is a hint and no more."""

    keyid: str
    value: bytes


class Envelope(NamedTuple):
    """What was signed, and by whom it says that it was."""

    payload: bytes
    payload_type: str
    signatures: list[Signature]


def pae(payload_type: str, payload: bytes) -> bytes:
    """What is signed: "DSSEv1", then type and payload, each after its length in bytes."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def signed(payload: bytes, key: Ed25519PrivateKey) -> dict[str, Any]:
    """An in-toto payload in an envelope with one signature, as JSON values."""
    value = key.sign(pae(IN_TOTO, payload))
    signature = {"keyid": fingerprint(key.public_key()), "sig": base64.b64encode(value).decode()}
    return {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": IN_TOTO,
        "signatures": [signature],
    }


def opened(path: Path) -> Envelope:
    """The envelope in a file, its signatures not yet checked; InputError where it is not one."""
    value = parse_json(_head(path), path)
    if not isinstance(value, dict):
        raise InputError("is not a signed envelope", file=path)
    if str(value.get("mediaType", "")).startswith(BUNDLE):
        message = (
            "is a bundle of Sigstore, which `sigstore verify identity` checks, "
            "and no envelope signed by a key"
        )
        raise InputError(message, file=path)
    for name, kind in (("payload", str), ("payloadType", str), ("signatures", list)):
        if name not in value:
            raise InputError("is missing", file=path, key=name)
        if not isinstance(value[name], kind):
            raise InputError(f"is not a {'list' if kind is list else 'text'}", file=path, key=name)
    if value["payloadType"] != IN_TOTO:
        raise InputError(
            f"is not {IN_TOTO}", file=path, key="payloadType", value=value["payloadType"]
        )
    if not 1 <= len(value["signatures"]) <= MOST_SIGNATURES:
        count = len(value["signatures"])
        message = f"has {count} entries, where 1 to {MOST_SIGNATURES} can be checked"
        raise InputError(message, file=path, key="signatures")
    signatures = [
        _signature(entry, path, f"signatures[{index}]")
        for index, entry in enumerate(value["signatures"])
    ]
    return Envelope(decoded(value["payload"], path, "payload"), value["payloadType"], signatures)


def _head(path: Path) -> bytes:
    """Bytes of a file that is no larger than an envelope may be."""
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from error
    if len(content) > LARGEST:
        raise InputError(f"is larger than {LARGEST} bytes, so it is no attestation", file=path)
    return content


def _signature(value: Any, path: Path, key: str) -> Signature:
    """One entry of the envelope's list; a key id may be missing."""
    if not isinstance(value, dict) or not isinstance(value.get("sig"), str):
        raise InputError("has no signature", file=path, key=f"{key}.sig")
    keyid = value.get("keyid", "")
    if not isinstance(keyid, str):
        raise InputError("is not a text", file=path, key=f"{key}.keyid")
    return Signature(keyid, decoded(value["sig"], path, f"{key}.sig"))


def signer(envelope: Envelope, keys: list[Ed25519PublicKey], path: Path) -> str:
    """Fingerprint of the first of the given keys that signed the envelope.

    InputError where none did.
    Guarantees: the signature holds over the PAE of payload and type. A key id never stands in for a
    signature; one that names a given key whose signature does not hold is an error, even if another
    signature holds.
    """
    message = pae(envelope.payload_type, envelope.payload)
    names = {fingerprint(key): key for key in keys}
    good = []
    for index, signature in enumerate(envelope.signatures):
        candidates = names if signature.keyid in ("", *names) else {}
        valid = [name for name, key in candidates.items() if _holds(key, signature.value, message)]
        if signature.keyid in names and signature.keyid not in valid:
            text = "does not hold: the statement was altered, or the signature is not by this key"
            raise InputError(text, file=path, key=f"signatures[{index}]", value=signature.keyid)
        good += valid
    if not good:
        others = ", ".join(
            signature.keyid or "a key without a name" for signature in envelope.signatures[:3]
        )
        raise InputError(
            f"is not signed by {' or '.join(names)}", file=path, key="signatures", value=others
        )
    return good[0]


def _holds(key: Ed25519PublicKey, value: bytes, message: bytes) -> bool:
    try:
        key.verify(value, message)
    except InvalidSignature:
        return False
    return True


def decoded(text: str, path: Path, key: str) -> bytes:
    """Bytes of Base64 text.

    InputError unless it is exactly what encoding these bytes gives, in one of DSSE's two alphabets.
    """
    try:
        plain = text.encode("ascii")
        value = base64.b64decode(plain.translate(bytes.maketrans(b"-_", b"+/")), validate=True)
    except (UnicodeEncodeError, binascii.Error, ValueError):
        raise InputError("is not Base64", file=path, key=key) from None
    if plain not in (base64.b64encode(value), base64.urlsafe_b64encode(value)):
        raise InputError("is not Base64 in its canonical form", file=path, key=key)
    return value
