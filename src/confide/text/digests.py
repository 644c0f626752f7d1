"""Digests by which texts are compared; whoever needs no more of copies loads no columns."""

import hashlib
import secrets
from collections.abc import Callable

SIZE = 20  # bytes of a digest
BLOCK = 64  # bytes of SHA-1's, and of the key
INNER = bytes(byte ^ 0x36 for byte in range(256))  # RFC 2104
OUTER = bytes(byte ^ 0x5C for byte in range(256))


def digest(name: str, key: bytes | None = None) -> Callable[[bytes], bytes]:
    """20-byte digest function: SHA-1, or HMAC-SHA-1 under a key of BLOCK bytes.

    key: a fresh random one, if nothing is said.
    """
    if name == "hmac-sha1":
        return keyed(secrets.token_bytes(BLOCK) if key is None else key)
    return lambda text: hashlib.sha1(text).digest()


def keyed(key: bytes) -> Callable[[bytes], bytes]:
    """HMAC-SHA-1 under a key of BLOCK bytes, which is hashed once and not for each text."""
    inner = hashlib.sha1(key.translate(INNER))
    outer = hashlib.sha1(key.translate(OUTER))
    copy_inner = inner.copy
    copy_outer = outer.copy

    def digested(text: bytes) -> bytes:
        within = copy_inner()
        within.update(text)
        whole = copy_outer()
        whole.update(within.digest())
        return whole.digest()

    return digested
