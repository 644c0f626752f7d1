"""Tokenize the points and part them into public and private (CRT Algorithm 1; A.6-4, A.6-5).

Points, copies and spans are read side by side, shard by shard; `confide.data.partitioning` says
what becomes of each point.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path

from confide.data import occurrences
from confide.data.partition_columns import part_of
from confide.data.partition_files import write_partitions
from confide.data.partitioning import Fill, Part, Raw, builder, fill_of, joined, remembering, rows
from confide.errors import InputError
from confide.files import columns
from confide.files.io import Range, sha256, state_of, write_json
from confide.files.rows import Copy, Found, Join, read_rows
from confide.files.shards import no_collection, of_share, scatter, shards
from confide.files.stretches import Beside, stretches
from confide.specs import PartitionSpec
from confide.text.tokenizer import load


def partition(
    spec: PartitionSpec,
    *,
    points: Path,
    copies: Path,
    spans: Path,
    tokenizer: Path,
    policies: str,
    original: Path,
    redacted: Path,
    values: Path | None = None,
    fill_key: Path | None = None,
    share: str | None = None,
    owners: Path | None = None,
    threads: int = 1,
) -> None:
    """Write the original and the redacted view.

    InputError if copies or spans do not belong to the points, or spans to the policies.

    policies: whose findings the spans are, `confide.provenance.terms.findings_by`
    values: of a public text, to put in place of masks, where spec.fill names a dataset
    fill_key: by which values are drawn that stand in place of masks, where spec.fill asks for some
    share: of the points, such as 2-of-8; `confide gather` puts shares together
    owners: file for the names of owners in the order of their numbers, which `gather` needs
    threads: processes

    Memory: a few shards, and the names of owners.
    Guarantees: the redacted file depends on the redacted texts alone; where values stand in place
    of masks, on names of points and the key, too. Masking, in the raw text, a secret that the
    policy finds leaves it the same byte for byte; one that only the conservative policy notices
    changes one point, which is private on both sides.
    """
    if (share is None) != (owners is None):
        message = "goes with owners, which `confide gather` needs of each share"
        raise InputError(message, key="share", value=share)
    ranges = of_share(shards(points), share)
    fill = fill_of(spec, values, fill_key)
    copied = Beside(copies)
    findings = Beside(spans, policies)
    parts = scatter(lambda: part_in(spec, copied, findings, tokenizer, fill), ranges, threads)
    numbers: dict[str, int] = {}
    known_by = None
    if share is not None:
        known_by = f"{share} {made_of(spec, points, copies, spans, tokenizer, values, fill_key)}"
    write_partitions(joined(parts, numbers), original, redacted, known_by)
    if owners is not None:
        write_json(owners, {"share": known_by, "owners": list(numbers)})


def made_of(
    spec: PartitionSpec,
    points: Path,
    copies: Path,
    spans: Path,
    tokenizer: Path,
    values: Path | None,
    fill_key: Path | None,
) -> str:
    """SHA-256 of what all shares of one partition are made of, as far as it is known at once: of
    large files how many bytes they have, and when they were written.
    """
    states = [state_of(path) for path in (points, copies, spans)]
    digests = [sha256(path) for path in (tokenizer, values, fill_key) if path is not None]
    said = f"{spec.model_dump_json()} {states} {' '.join(digests)}"
    return hashlib.sha256(said.encode()).hexdigest()


def part_in(
    spec: PartitionSpec, copies: Beside, spans: Beside, tokenizer: Path, fill: Fill | None
) -> Callable[[Range], Part]:
    """A function from a shard of the points to a part of the partition."""
    tokens = load(tokenizer)
    build = builder(tokens, spec.learn)
    encode = remembering(tokens)

    def part(shard: Range) -> Part:
        copied, findings = stretches(shard, copies, spans)
        with no_collection():
            try:
                there = occurrences.read(shard, findings)
                return part_of(spec, tokens, encode, there, columns.copies(copied), fill)
            except columns.Unlike:
                return build(
                    rows(
                        spec,
                        read_rows(shard, *Raw._fields),
                        Join(Copy, copied),
                        Join(Found, findings),
                        fill,
                        shard.path,
                    )
                )

    return part
