"""A certificate with its signed statement, in a folder of its own: what strangers send to whoever
checks a signature.
"""

import json
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from confide.files.io import sha256, write_json
from confide.output.escaping import terminal
from confide.signing.checked import REPEATED, vouched
from confide.signing.envelope import signed
from confide.signing.keys import public_keys
from confide.signing.statement import payload_of

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
FOUND = dict.fromkeys(REPEATED, "said") | {
    "headline": {"record_epsilon": 3.0},
    "release_note": None,
}
ROLES = {
    "certificate": ["certificate.json"],
    "model": ["model"],
    "ledger": ["ledger"],
    "gate": ["gate.csv"],
}


def statement_and_key(folder: Path) -> None:
    """Certificate, gate, statement, envelope and public key."""
    for name in ("certificate.json", "model", "ledger", "gate.csv"):
        (folder / name).write_text(name)
    digests = {
        name: sha256(folder / name) for name in ("certificate.json", "model", "ledger", "gate.csv")
    }
    said = {"roles": ROLES, "gate": [], "unbound": [], "overruled": ["it was late"], "version": "0"}
    (folder / "statement.json").write_bytes(payload_of(digests, FOUND | said))
    resigned(folder)
    public = (serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    (folder / "key.pub").write_bytes(KEY.public_key().public_bytes(*public) + b" ada@example\n")


def resigned(folder: Path) -> None:
    """An envelope about what the statement says now."""
    write_json(folder / "attestation.json", signed((folder / "statement.json").read_bytes(), KEY))


def attestation(folder: Path) -> None:
    """Check the envelope as `verify` does, once the certificate holds."""
    files = {
        name: [{"path": name, "sha256": sha256(folder / name)}] for name in ("model", "ledger")
    }
    given = {
        "key": folder / "key.pub",
        "attestation": folder / "attestation.json",
        "folders": [folder],
    }
    for line in vouched(folder / "certificate.json", FOUND | {"files": files}, **given):
        assert terminal(line).isprintable() and json.dumps(line)


def statement(folder: Path) -> None:
    """The same of a statement that the key's owner has signed, whatever it says."""
    resigned(folder)
    attestation(folder)


def key(folder: Path) -> None:
    public_keys(folder / "key.pub")
