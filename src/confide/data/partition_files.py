"""The partition on disk: two views as two safetensors files.

redacted.safetensors is all that confidentially redacted training reads; original.safetensors holds
the text as it was and the gold secrets, for other methods and for evaluation. No torch here.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from safetensors import SafetensorError, safe_open

from confide.data.vectors import Columns, Laid, laid
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
SHARE = "share"  # key of the metadata of a file that holds a share of the points alone


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
    domains = _fill(first, second, [] if part is None else chain([part], parts))
    known_by = {} if share is None else {SHARE: share}
    first.write(known_by or None)
    second.write(_metadata(domains) | known_by)


def write_gathered(
    parts: Iterable[Partition],
    *,
    originals: Sequence[Path],
    redacteds: Sequence[Path],
    original: Path,
    redacted: Path,
) -> None:
    """Write the same from the parts that all shares of the points are, in their order.

    originals, redacteds: their files, which tell how long each vector becomes, so that it is
    written once

    InputError if a file is corrupt, or of other lengths than its part.
    """
    first = [_lengths(path, ORIGINAL) for path in originals]
    second = [_lengths(path, REDACTED) for path in redacteds]
    more = LEARNED if LEARNED.keys() <= first[0].keys() else {}
    named = dict.fromkeys(name for path in redacteds for name in _domains_of(path))
    metadata = _metadata(tuple(named))
    with (
        laid(original, ORIGINAL | more, _added(first)) as ones,
        laid(redacted, REDACTED | more, _added(second), metadata) as twos,
    ):
        if _metadata(_fill(ones, twos, parts)) != metadata:
            raise InputError("is of other domains than its parts said", file=redacted)


def _fill(
    first: Columns | Laid, second: Columns | Laid, parts: Iterable[Partition]
) -> tuple[str, ...]:
    """Add the vectors of all parts to those of both files; the domains, which the last names."""
    domains: tuple[str, ...] = ()
    tokens = [0, 0]  # so far, of either view
    for columns in (first, second):
        columns.add(starts=np.zeros(1, np.int64))
    parts = iter(parts)
    while (part := next(parts, None)) is not None:
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
    return domains


def _metadata(domains: tuple[str, ...]) -> dict[str, str]:
    """Of the redacted view's file."""
    return {"domains": orjson.dumps(list(domains)).decode()}


def _added(lengths: Sequence[dict[str, int]]) -> dict[str, int]:
    """How long each vector becomes where those of several files follow one another."""
    added = {name: sum(each.get(name, 0) for each in lengths) for name in lengths[0]}
    added["starts"] -= len(lengths) - 1  # one begins where another ends
    return added


def load_partition(original: Path, redacted: Path) -> Partition:
    """Read both files.

    InputError if one is corrupt or holds a share alone, or if their shapes do not fit together.
    """
    partition, shares = _load_both(original, redacted)
    for path, share in shares.items():
        message = "is a share of the points: confide gather puts all of them together"
        _require(share is None, path, SHARE, message)
    return partition


def load_share(original: Path, redacted: Path) -> tuple[Partition, str]:
    """A share of the points, and what it is known by.

    InputError as of a partition, and where the files are of no share or of two.
    """
    partition, shares = _load_both(original, redacted)
    share = shares[original]
    if share is None:
        raise InputError("is no share of the points", file=original, key=SHARE)
    _require(shares[redacted] == share, redacted, SHARE, f"is of another share than {original}")
    return partition, share


def _load_both(original: Path, redacted: Path) -> tuple[Partition, dict[Path, str | None]]:
    """What both files hold, and of what share each says that it is."""
    first, said = _load(original, ORIGINAL, LEARNED)
    second, metadata = _load(redacted, REDACTED, LEARNED)
    count = len(second["starts"]) - 1
    _require(
        ("learned" in first) == ("learned" in second),
        redacted,
        "learned",
        "is in one of the two files alone",
    )
    _require(
        len(first["starts"]) - 1 == count,
        original,
        "starts",
        "number of points differs between the two files",
    )
    for name in ("private", "copy", "split", "domain", "owner"):
        _require(len(second[name]) == count, redacted, name, f"expected {count} entries")
    domains = _domains(redacted, metadata)
    for name, most in (("domain", len(domains)), ("owner", count)):
        least, largest = (int(second[name].min()), int(second[name].max())) if count else (-1, -1)
        _require(least >= -1 and largest < most, redacted, name, "index out of range")
    _require(
        count == 0 or int(second["split"].max()) < len(SPLITS),
        redacted,
        "split",
        "index out of range",
    )
    partition = Partition(
        original=_view(original, first, "private"),
        redacted=_view(redacted, second, "private_tokens"),
        secret=_same_length(original, first, "secret"),
        private=second["private"],
        copy=second["copy"],
        split=second["split"],
        domain=second["domain"],
        owner=second["owner"],
        domains=domains,
    )
    return partition, {original: said.get(SHARE), redacted: metadata.get(SHARE)}


def check_vocabulary(partition: Partition, size: int, original: Path, redacted: Path) -> None:
    """InputError unless all tokens are among so many."""
    for view, path in ((partition.original, original), (partition.redacted, redacted)):
        _require(
            not len(view.ids) or int(view.ids.max()) < size,
            path,
            "ids",
            f"has tokens beyond the {size} of the tokenizer",
        )


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


def _load(
    path: Path, types: dict[str, Any], optional: dict[str, Any]
) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays that `types` names, one-dimensional and of these types, and the metadata.

    Those of `optional` are among them where the file has them.
    """
    with _opened(path) as file:
        names = set(file.keys())
        metadata = file.metadata() or {}
        types = types | {name: kind for name, kind in optional.items() if name in names}
        arrays = {name: file.get_tensor(name) for name in types if name in names}
    for name, dtype in types.items():
        _require(name in arrays, path, name, "missing array")
        right = arrays[name].ndim == 1 and arrays[name].dtype == dtype
        _require(right, path, name, f"expected a vector of {np.dtype(dtype)}")
    return arrays, metadata


def _lengths(path: Path, types: dict[str, Any]) -> dict[str, int]:
    """How long the vectors of a file are, by name; InputError where one of `types` is missing."""
    with _opened(path) as file:
        names = set(file.keys())
        shapes = {name: file.get_slice(name).get_shape() for name in names}
    for name in types:
        _require(name in shapes, path, name, "missing array")
    for name, shape in shapes.items():
        _require(len(shape) == 1, path, name, "expected a vector")
    return {name: shape[0] for name, shape in shapes.items()}


def _domains_of(path: Path) -> tuple[str, ...]:
    with _opened(path) as file:
        metadata = file.metadata() or {}
    return _domains(path, metadata)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """A safetensors file; InputError where it cannot be read, or is none."""
    try:
        with safe_open(path, "numpy") as file:
            yield file
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from None
    # These come also of types that numpy does not have.
    except (SafetensorError, AttributeError, TypeError, ValueError) as error:
        raise InputError(f"corrupt safetensors file: {str(error)[:200]}", file=path) from None


def _view(path: Path, arrays: dict[str, np.ndarray], private: str) -> View:
    ids = arrays["ids"]
    starts = arrays["starts"]
    ordered = (
        len(starts) > 0
        and starts[0] == 0
        and starts[-1] == len(ids)
        and not (np.diff(starts) < 0).any()
    )
    _require(bool(ordered), path, "starts", "does not cut the token ids into points")
    _require(not len(ids) or int(ids.min()) >= 0, path, "ids", "a token has no number below 0")
    learned = _same_length(path, arrays, "learned") if "learned" in arrays else None
    return View(ids, starts, _same_length(path, arrays, private), learned)


def _same_length(path: Path, arrays: dict[str, np.ndarray], name: str) -> np.ndarray:
    _require(
        len(arrays[name]) == len(arrays["ids"]),
        path,
        name,
        f"expected {len(arrays['ids'])} entries",
    )
    return arrays[name]


def _domains(path: Path, metadata: dict[str, str]) -> tuple[str, ...]:
    try:
        names = orjson.loads(metadata["domains"])
    except (KeyError, orjson.JSONDecodeError):
        names = None
    _require(
        isinstance(names, list) and all(isinstance(name, str) for name in names),
        path,
        "domains",
        "missing or malformed metadata",
    )
    return tuple(names)


def _require(condition: bool, path: Path, name: str, message: str) -> None:
    if not condition:
        raise InputError(message, file=path, key=name)
