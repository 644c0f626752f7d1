"""The partition on disk: two views as two safetensors files.

redacted.safetensors is all that confidentially redacted training reads; original.safetensors holds
the text as it was and the gold secrets, for other methods and for evaluation. No torch here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson

from confide.data.vectors import Columns, Stored, stored
from confide.errors import InputError
from confide.types import SPLITS, Partition, View

ORIGINAL = {"ids": np.int32, "starts": np.int64, "private": np.bool_, "secret": np.bool_}
REDACTED = {
    "ids": np.int32,
    "starts": np.int64,
    "private_tokens": np.bool_,
    "private": np.bool_,
    "copy": np.bool_,
    "split": np.uint8,
    "domain": np.int32,
    "owner": np.int32,
}
LEARNED = {"learned": np.bool_}  # of both files, where some tokens alone are scored
# As long as a file's token ids; the others are as long as there are points.
OF_TOKENS = ({"private", "secret", "learned"}, {"private_tokens", "learned"})
SHARE = "share"  # key of the metadata of a file that holds a share of the points alone
OUT_OF_RANGE = "index out of range"
UNCUT = "does not cut the token ids into points"
BELOW_0 = "a token has no number below 0"


def write_partitions(
    parts: Iterable[Partition], original: Path, redacted: Path, share: str | None = None
) -> None:
    """Write both files from parts that follow one another, each file whole or not at all.

    The last part names all domains.

    share: what a share of the points is known by

    Guarantees: redacted.safetensors depends on the redacted views alone, byte for byte.
    """
    parts = iter(parts)
    part = next(parts, None)
    more = LEARNED if part is not None and part.original.learned is not None else {}
    first = Columns(original, ORIGINAL | more)
    second = Columns(redacted, REDACTED | more)
    domains: tuple[str, ...] = ()
    tokens = [0, 0]  # so far, of either view
    for columns in (first, second):
        columns.add(starts=np.zeros(1, np.int64))
    while part is not None:
        views = (part.original, part.redacted)
        domains = part.domains
        for columns, view, before in zip((first, second), views, tokens, strict=True):
            columns.add(ids=view.ids, starts=view.starts[1:] + before)
            if view.learned is not None:
                columns.add(learned=view.learned)
        first.add(private=part.original.private, secret=part.secret)
        fields = ("private", "copy", "split", "domain", "owner")
        second.add(
            private_tokens=part.redacted.private, **{name: getattr(part, name) for name in fields}
        )
        tokens = [before + len(view.ids) for before, view in zip(tokens, views, strict=True)]
        del views, view, part  # a part is gone before the next one is made
        part = next(parts, None)
    known_by = {} if share is None else {SHARE: share}
    first.write(known_by or None)
    second.write(with_domains(domains) | known_by)


def with_domains(names: Sequence[str]) -> dict[str, str]:
    """Metadata of the redacted view's file."""
    return {"domains": orjson.dumps(list(names)).decode()}


def load_partition(original: Path, redacted: Path) -> Partition:
    """Read both files.

    InputError if one is corrupt or holds a share alone, or if their shapes do not fit together.
    """
    files = both(original, redacted)
    for file in files:
        message = "is a share of the points: confide gather puts all of them together"
        require(SHARE not in file.metadata, file.path, SHARE, message)
    first, second = ({name: file.whole(name) for name in file.types} for file in files)
    count = len(second["starts"]) - 1
    domains = domains_in(redacted, files[1].metadata)
    for name, most in (("domain", len(domains)), ("owner", count)):
        least, largest = (int(second[name].min()), int(second[name].max())) if count else (-1, -1)
        require(least >= -1 and largest < most, redacted, name, OUT_OF_RANGE)
    is_known = count == 0 or int(second["split"].max()) < len(SPLITS)
    require(is_known, redacted, "split", OUT_OF_RANGE)
    return Partition(
        original=_view(original, first, "private"),
        redacted=_view(redacted, second, "private_tokens"),
        secret=first["secret"],
        private=second["private"],
        copy=second["copy"],
        split=second["split"],
        domain=second["domain"],
        owner=second["owner"],
        domains=domains,
    )


def both(original: Path, redacted: Path) -> tuple[Stored, Stored]:
    """The two files of a partition, or of a share of one, whose vectors are not read yet.

    InputError if one is corrupt, or if their lengths do not fit together.
    """
    first = stored(original, ORIGINAL, LEARNED)
    second = stored(redacted, REDACTED, LEARNED)
    points = second.lengths["starts"] - 1
    message = "number of points differs between the two files"
    require(first.lengths["starts"] - 1 == points, original, "starts", message)
    for file, of_tokens in zip((first, second), OF_TOKENS, strict=True):
        for name, length in file.lengths.items():
            if name in ("ids", "starts"):
                continue
            expected = file.lengths["ids"] if name in of_tokens else points
            require(length == expected, file.path, name, f"expected {expected} entries")
    is_in_both = ("learned" in first.types) == ("learned" in second.types)
    require(is_in_both, redacted, "learned", "is in one of the two files alone")
    return first, second


def check_vocabulary(partition: Partition, size: int, original: Path, redacted: Path) -> None:
    """InputError unless all tokens are among so many."""
    for view, path in ((partition.original, original), (partition.redacted, redacted)):
        require(
            not len(view.ids) or int(view.ids.max()) < size,
            path,
            "ids",
            f"has tokens beyond the {size} of the tokenizer",
        )


def check_points(partition: Partition, count: int, points: Path) -> None:
    """InputError unless a file of points has as many as the partition."""
    if count != len(partition.split):
        raise InputError(f"has {count} points, the partition {len(partition.split)}", file=points)


def within(partition: Partition, domains: Sequence[str], file: Path) -> Partition:
    """The points of some domains; the others belong to no split.

    InputError for a domain without points to train on.
    """
    for name in domains:
        if name not in partition.domains:
            known = ", ".join(partition.domains) or "there are none"
            raise InputError(
                f"is not one of the corpus's domains: {known}", file=file, key="domains", value=name
            )
        if not ((partition.domain == partition.domains.index(name)) & (partition.split == 0)).any():
            raise InputError("has no points to train on", file=file, key="domains", value=name)
    chosen = np.isin(partition.domain, [partition.domains.index(name) for name in domains])
    return replace(partition, split=np.where(chosen, partition.split, len(SPLITS)).astype(np.uint8))


def _view(path: Path, arrays: dict[str, np.ndarray], private: str) -> View:
    ids = arrays["ids"]
    starts = arrays["starts"]
    ordered = (
        len(starts) > 0
        and starts[0] == 0
        and starts[-1] == len(ids)
        and not (np.diff(starts) < 0).any()
    )
    require(bool(ordered), path, "starts", UNCUT)
    require(not len(ids) or int(ids.min()) >= 0, path, "ids", BELOW_0)
    return View(ids, starts, arrays[private], arrays.get("learned"))


def domains_in(path: Path, metadata: dict[str, str]) -> tuple[str, ...]:
    try:
        names = orjson.loads(metadata["domains"])
    except (KeyError, orjson.JSONDecodeError):
        names = None
    require(
        isinstance(names, list) and all(isinstance(name, str) for name in names),
        path,
        "domains",
        "missing or malformed metadata",
    )
    return tuple(names)


def require(condition: bool, path: Path, name: str, message: str) -> None:
    """InputError that names file and vector, unless the condition holds."""
    if not condition:
        raise InputError(message, file=path, key=name)
