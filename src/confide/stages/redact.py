"""Find what the policy pi flags in every point, and where pi_c fires (CRT section 3.2).

Spans are stored beside the text, which stays as it is. A policy that fails on a text makes the text
private: its line says conservative and failed, and the number of failures goes to stderr. Where pi
fails, one span covers the whole text, so that no method reads any of it as redacted; where pi_c
fails, what pi found stays in the line.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from confide.data.redaction import Finding, Sayer, batch_finder_of, sayer_of
from confide.files import arrays, columns
from confide.files.io import Range, dump_lines, write_pieces
from confide.files.rows import located_rows
from confide.files.shards import no_collection, of_share, scatter, shards
from confide.files.stretches import closing
from confide.output.escaping import warn
from confide.provenance.terms import findings_by
from confide.specs import RedactSpec

CACHE_TEXTS = 1 << 16  # dialogue repeats itself: most turns of a support corpus come again
CACHE_LENGTH = 256  # characters; longer texts seldom repeat and would fill the memory
BATCH = 512  # points that a batched policy sees at once

Rows = Iterator[tuple[int, tuple[str, str]]]  # byte at which the point begins, key and text


def redact(
    spec: RedactSpec, *, points: Path, output: Path, share: str | None = None, threads: int = 1
) -> None:
    """Write {"key", "spans", "conservative", "at"} for each point of which a policy says something.

    That is a span or a conservative hit; lines are in file order.

    "at" is the byte of the points' file at which the point begins. A line closes what is said of
    each shard, so that a file that lost lines, or is of other points or policies, does not pass for
    one that had less to say.

    share: of the points, such as 2-of-8; the files of all shares, one after the other, are the
    file of all points
    threads: processes, each with policies of its own

    Guarantees: fails closed; a text on which a policy raises is private, and one on which pi raises
    is masked whole.
    """
    failures = 0
    by = findings_by(spec)

    def pieces() -> Iterator[bytes]:
        nonlocal failures
        ranges = of_share(shards(points), share)
        found = scatter(lambda: finder_in(spec), ranges, threads)
        for shard, (lines, failed) in zip(ranges, found, strict=True):
            failures += failed
            yield lines + closing(shard, lines, by)

    write_pieces(output, pieces())
    if failures:
        warn(f"redact: warning: a policy failed on {failures} points; they are private")


def finder_in(spec: RedactSpec) -> Callable[[Range], tuple[bytes, int]]:
    """A function of a shard of the points that finds its lines of the output.

    It also counts the texts that a policy failed on.
    """
    find = batch_finder_of(spec)
    if find is None:
        say = sayer_of(spec)

        def lines(shard: Range) -> tuple[bytes, int]:
            with no_collection():
                return lines_in(say, shard)

        return lines

    def look(shard: Range) -> tuple[bytes, int]:
        return dumped(batches(located_rows(shard, "key", "text"), find))

    return look


def lines_in(say: Sayer, shard: Range) -> tuple[bytes, int]:
    """Lines of the output for a shard, each different text of which is looked at once."""
    try:
        points = columns.points(shard, columns.LONG)
    except columns.Unlike:
        return dumped(findings(located_rows(shard, "key", "text"), say))
    texts = points.texts.dictionary_encode()
    said = say(texts.dictionary)
    which = arrays.from_integers(texts.indices)
    something = arrays.from_integers(pc.binary_length(said.written)) > 0
    places = np.flatnonzero(something[which])
    lines = arrays.lines(
        '{"key":"',
        points.keys_at(places),
        '",',
        said.written.take(arrays.integers(which[places])),
        ',"at":',
        arrays.digits(points.at[places]),
        "}\n",
    )
    return lines, int(said.failed[which].sum())


def dumped(rows: Iterable[Finding]) -> tuple[bytes, int]:
    """Findings as lines of the output, and on how many texts a policy failed."""
    listed = list(rows)
    return dump_lines(listed), sum("failed" in finding for finding in listed)


def findings(rows: Rows, say: Sayer) -> Iterator[Finding]:
    """Lines of the output, row by row."""
    located = list(rows)
    texts = list(dict.fromkeys(text for _, (_, text) in located))
    finding_of = dict(zip(texts, say(arrays.texts(texts)).findings(), strict=True))
    for at, (key, text) in located:
        if finding := finding_of[text]:
            yield {"key": key, **finding, "at": at}


def batches(rows: Rows, find: Callable[[Sequence[str]], list[Finding]]) -> Iterator[Finding]:
    """Lines of the output with a batched policy, which looks at a text once in each batch.

    Short texts are remembered within a shard, and not from shard to shard: what a process saw
    before may show in the last digits of what a model says of a batch.
    """
    known: dict[str, Finding] = {}
    while batch := list(islice(rows, BATCH)):
        texts = list(dict.fromkeys(text for _, (_, text) in batch if text not in known))
        fresh = dict(zip(texts, find(texts), strict=True))
        for at, (key, text) in batch:
            if finding := fresh[text] if text in fresh else known[text]:
                yield {"key": key, **finding, "at": at}
        known = {} if len(known) > CACHE_TEXTS else known
        known |= {text: finding for text, finding in fresh.items() if len(text) <= CACHE_LENGTH}
