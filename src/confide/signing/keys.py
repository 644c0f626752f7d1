"""Ed25519 keys as people have them: PEM files (PKCS8, SubjectPublicKeyInfo) and OpenSSH's own.

A key is named by the fingerprint that `ssh-keygen -lf` prints, whatever the file's form, so that
people can compare it by eye. Nothing of a private key is ever printed or put into an error.
"""

import base64
import getpass
import hashlib
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from confide.errors import InputError

PASSPHRASE = "CONFIDE_KEY_PASSPHRASE"  # environment variable
LONGEST = 1 << 16  # bytes of a key file
PEM_PRIVATE = (b"-----BEGIN PRIVATE KEY-----", b"-----BEGIN ENCRYPTED PRIVATE KEY-----")
SSH_PRIVATE = b"-----BEGIN OPENSSH PRIVATE KEY-----"
PEM_PUBLIC = b"-----BEGIN PUBLIC KEY-----"
SSH_PUBLIC = b"ssh-ed25519"


def private_key(path: Path) -> Ed25519PrivateKey:
    """The private key of a file that only its owner may read.

    A passphrase comes from the environment or a prompt. InputError where others may read the file,
    where the passphrase is wrong, or where it is no Ed25519 key.
    """
    content = _content(path, closed=True).lstrip()
    if content.startswith(SSH_PRIVATE):
        loader: Callable[..., object] = serialization.load_ssh_private_key
    elif content.startswith(PEM_PRIVATE):
        loader = serialization.load_pem_private_key
    elif content.startswith((PEM_PUBLIC, b"ssh-")):
        raise InputError("is a public key; signing needs the private one", file=path)
    else:
        raise InputError("is no private key in PEM (PKCS8) or in OpenSSH's format", file=path)
    try:
        key = _loaded(loader, content, path)
    except UnsupportedAlgorithm:
        raise InputError(
            "is encrypted in a way, or of a kind, that is not supported; use an Ed25519 key",
            file=path,
        ) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(
            "is no Ed25519 key; make one with: ssh-keygen -t ed25519 -f FILE", file=path
        )
    return key


def _loaded(loader: Callable[..., object], content: bytes, path: Path) -> object:
    """The key, first without a passphrase: a file that needs none is not asked for one."""
    try:
        return loader(content, password=None)
    except TypeError:  # the file is encrypted
        pass
    except ValueError:
        raise InputError("is a damaged key", file=path) from None
    passphrase = _passphrase(path)
    try:
        return loader(content, password=passphrase)
    except (TypeError, ValueError):
        raise InputError("does not open with this passphrase, or is damaged", file=path) from None


def _passphrase(path: Path) -> bytes:
    """From the environment, else typed without an echo."""
    if (passphrase := os.environ.get(PASSPHRASE)) is not None:
        return passphrase.encode()
    if not sys.stdin.isatty():
        raise InputError(
            f"needs a passphrase: set {PASSPHRASE}, or run this where it can be typed", file=path
        )
    return getpass.getpass(f"Passphrase of {path}: ").encode()


def public_keys(path: Path) -> list[Ed25519PublicKey]:
    """The public keys of a file, at least one.

    That is one in PEM, or a line "ssh-ed25519 KEY comment" for each. InputError names the line that
    is neither.
    """
    content = _content(path, closed=False)
    if content.lstrip().startswith((SSH_PRIVATE, *PEM_PRIVATE)):
        raise InputError(
            "is a private key; whoever checks a signature needs the public one alone", file=path
        )
    if content.lstrip().startswith(PEM_PUBLIC):
        try:
            key = serialization.load_pem_public_key(content.lstrip())
        except (ValueError, UnsupportedAlgorithm):
            raise InputError("is a damaged public key", file=path) from None
        if not isinstance(key, Ed25519PublicKey):
            raise InputError("is no Ed25519 key", file=path)
        return [key]
    keys = [
        _public_line(line.strip(), path, number)
        for number, line in enumerate(content.splitlines(), 1)
        if line.strip() and not line.strip().startswith(b"#")
    ]
    if not keys:
        raise InputError("holds no public key", file=path)
    return keys


def _public_line(line: bytes, path: Path, number: int) -> Ed25519PublicKey:
    """A line of a .pub file, or of authorized_keys without options."""
    if not line.startswith(SSH_PUBLIC + b" "):
        message = "is no public key in PEM, nor a line 'ssh-ed25519 KEY comment'"
        raise InputError(message, file=path, line=number)
    try:
        key = serialization.load_ssh_public_key(line)
    except (ValueError, UnsupportedAlgorithm):
        raise InputError("is a damaged public key", file=path, line=number) from None
    if not isinstance(key, Ed25519PublicKey):
        raise InputError("is no Ed25519 key", file=path, line=number)
    return key


def fingerprint(key: Ed25519PublicKey) -> str:
    """OpenSSH's name of a public key: "SHA256:" and 43 letters."""
    line = key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    digest = hashlib.sha256(base64.b64decode(line.split()[1])).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def _without_waiting(name: str, flags: int) -> int:
    """Open a file, but do not wait for whoever writes to a named pipe."""
    return os.open(name, flags | os.O_NONBLOCK)


def _content(path: Path, *, closed: bool) -> bytes:
    """Bytes of a key file.

    closed: of one that nobody but its owner may read, as the opened file itself says.
    """
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise InputError("is not a file", file=path)
            content = file.read(LONGEST + 1)
            is_public = content.startswith((PEM_PUBLIC, SSH_PUBLIC))  # and to be read by all
            if closed and status.st_mode & 0o077 and not is_public:
                mode = f"{status.st_mode & 0o777:04o}"
                raise InputError(
                    f"can be read by others (mode {mode}): chmod 600, or make a new key", file=path
                )
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from error
    if len(content) > LONGEST:
        raise InputError(f"is longer than {LONGEST} bytes, so it is no key", file=path)
    return content
