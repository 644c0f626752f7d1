"""Digests of a share of the points, by which jobs on several machines look for copies.

`dedup` is this, `repeats` and `copies` in one job.
"""

from functools import partial
from pathlib import Path

from confide.data.copies import WARNING, records
from confide.errors import InputError
from confide.files import shared_digests
from confide.files.buckets import KEYED, Buckets, Offsets, sort
from confide.files.io import read_bytes, size_of, state_of
from confide.files.shards import numbers_of_share, of_share, shards
from confide.output.escaping import warn
from confide.specs import DedupSpec
from confide.text.digests import BLOCK, digest
from confide.text.fingerprints import each


def digests(spec: DedupSpec, *, points: Path, key: Path, share: str, output: Path) -> None:
    """Write digests of this share's training texts, ordered by the bucket that they belong to.

    key: random bytes that all shares have; share: such as 2-of-8

    Guarantees: no text is written. Who reads the key and these files can tell whether a text is
    in the corpus: they are as confidential as the points, beside which they lie, and go when all
    shares are done.
    """
    if spec.digest == "sha1":
        warn(WARNING)
    secret = read_bytes(key)
    if len(secret) != BLOCK:
        raise InputError(f"expected {BLOCK} bytes", file=key)
    digested = each(digest(spec.digest, secret))
    _, count = numbers_of_share(share)
    buckets = Buckets(output.parent, size_of(points), KEYED, multiple=count)
    offsets = Offsets(output.parent)
    ranges = of_share(shards(points), share)
    sort(partial(records, digested), ranges, threads=1, buckets=buckets, offsets=offsets)
    shared_digests.write(
        output,
        share=share,
        points=state_of(points),
        key=digest("hmac-sha1", secret)(b"").hex(),  # of plain digests, too: they are of this key
        offsets=offsets,
        buckets=buckets,
    )
