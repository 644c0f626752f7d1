"""The partition on disk: points and spans as JSON lines, views as two safetensors files.

redacted.safetensors is all that confidentially redacted training reads; original.safetensors holds the text as it
was and the gold secrets, for other methods and for evaluation. No torch here.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from confide.errors import InputError
from confide.io import atomic, read_jsonl
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


def read_rows(path: Path, *fields: str) -> Iterator[Any]:
    """The given fields of each line, as a tuple (a bare value for one field); InputError names one that is missing."""
    pick = itemgetter(*fields)
    for row in read_jsonl(path):
        try:
            value = pick(row)
        except KeyError as error:
            raise InputError("missing field", file=path, key=str(error.args[0])) from None
        yield value


class Join:
    """Merge-join of keyed rows, a file of them or `rows`, with the points: ask for each point's key in turn, then `finish`."""

    def __init__(self, path: Path | None = None, rows: Iterable[dict[str, Any]] = ()):
        self.path = path
        self.rows = iter(rows) if path is None else read_jsonl(path)
        self._advance()

    def _advance(self) -> None:
        self.row = next(self.rows, None)
        if self.row is not None and "key" not in self.row:
            raise InputError("missing field", file=self.path, key="key")
        self.key = None if self.row is None else self.row["key"]

    def take(self, key: str) -> dict[str, Any] | None:
        """The row of this point, if it has one."""
        if key != self.key:
            return None
        row = self.row
        self._advance()
        return row

    def finish(self) -> None:
        """InputError if a row belongs to no point, or stands out of the order of the points."""
        if self.row is not None:
            raise InputError("matches no point, or is out of order", file=self.path, key=self.key)


def write_partition(partition: Partition, original: Path, redacted: Path) -> None:
    """Write both files, each whole or not at all.

    Guarantees: redacted.safetensors depends on the redacted view alone, byte for byte.
    """
    first, second = partition.original, partition.redacted
    _save(
        original,
        {"ids": first.ids, "starts": first.starts, "private": first.private, "secret": partition.secret},
        ORIGINAL,
    )
    arrays = {"ids": second.ids, "starts": second.starts, "private_tokens": second.private}
    arrays |= {name: getattr(partition, name) for name in ("private", "copy", "split", "domain", "owner")}
    _save(redacted, arrays, REDACTED, {"domains": orjson.dumps(list(partition.domains)).decode()})


def load_partition(original: Path, redacted: Path) -> Partition:
    """Read both files; InputError if one is corrupt, or if their shapes do not fit together."""
    first, _ = _load(original, ORIGINAL)
    second, metadata = _load(redacted, REDACTED)
    count = len(second["starts"]) - 1
    _require(len(first["starts"]) - 1 == count, original, "starts", "number of points differs between the two files")
    for name in ("private", "copy", "split", "domain", "owner"):
        _require(len(second[name]) == count, redacted, name, f"expected {count} entries")
    domains = _domains(redacted, metadata)
    _require(count == 0 or int(second["domain"].max()) < len(domains), redacted, "domain", "index out of range")
    _require(count == 0 or int(second["split"].max()) < len(SPLITS), redacted, "split", "index out of range")
    return Partition(
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


def within(partition: Partition, domains: Sequence[str], file: Path) -> Partition:
    """The points of some domains; the others belong to no split. InputError for a domain without points to train on."""
    for name in domains:
        if name not in partition.domains:
            known = ", ".join(partition.domains) or "there are none"
            raise InputError(f"is not one of the corpus's domains: {known}", file=file, key="domains", value=name)
        if not ((partition.domain == partition.domains.index(name)) & (partition.split == 0)).any():
            raise InputError("has no points to train on", file=file, key="domains", value=name)
    chosen = np.isin(partition.domain, [partition.domains.index(name) for name in domains])
    return replace(partition, split=np.where(chosen, partition.split, len(SPLITS)).astype(np.uint8))


def _save(path: Path, arrays: dict[str, np.ndarray], types: dict[str, Any], metadata: dict[str, str] | None = None) -> None:
    ready = {name: np.ascontiguousarray(arrays[name], dtype) for name, dtype in types.items()}
    with atomic(path) as temporary:
        save_file(ready, temporary, metadata)


def _load(path: Path, types: dict[str, Any]) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays that `types` names, one-dimensional and of these types, and the metadata."""
    try:
        with safe_open(path, "numpy") as file:
            names, metadata = set(file.keys()), file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in types if name in names}
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from None
    except SafetensorError as error:
        raise InputError(f"corrupt safetensors file: {error}", file=path) from None
    for name, dtype in types.items():
        _require(name in arrays, path, name, "missing array")
        right = arrays[name].ndim == 1 and arrays[name].dtype == dtype
        _require(right, path, name, f"expected a vector of {np.dtype(dtype)}")
    return arrays, metadata


def _view(path: Path, arrays: dict[str, np.ndarray], private: str) -> View:
    ids, starts = arrays["ids"], arrays["starts"]
    ordered = len(starts) > 0 and starts[0] == 0 and starts[-1] == len(ids) and not (np.diff(starts) < 0).any()
    _require(bool(ordered), path, "starts", "does not cut the token ids into points")
    return View(ids, starts, _same_length(path, arrays, private))


def _same_length(path: Path, arrays: dict[str, np.ndarray], name: str) -> np.ndarray:
    _require(len(arrays[name]) == len(arrays["ids"]), path, name, f"expected {len(arrays['ids'])} entries")
    return arrays[name]


def _domains(path: Path, metadata: dict[str, str]) -> tuple[str, ...]:
    try:
        return tuple(orjson.loads(metadata["domains"]))
    except (KeyError, TypeError, orjson.JSONDecodeError):
        raise InputError("missing or malformed metadata", file=path, key="domains") from None


def _require(condition: bool, path: Path, name: str, message: str) -> None:
    if not condition:
        raise InputError(message, file=path, key=name)
