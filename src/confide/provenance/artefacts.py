"""Digests of what was made elsewhere and is in a model, such as pretrained weights.

Whoever trains declares that such an artefact saw no protected text; the digest says which one is
meant.
"""

import hashlib
import importlib.util
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from confide.files.folders import found_below, walk
from confide.files.io import sha256

MUCH = 4_000_000_000  # bytes of a file that is not read at each look, as in profiles/default


def digest_of(artefact: str | None) -> str | None:
    """SHA-256 of a file, or over the names and digests of all files of a folder.

    None where there is no such artefact.

    `artefact`: a path, an installed package, or the name of a model of the Hugging Face hub that is
    in its cache.
    """
    place = None if artefact is None else place_of(artefact)
    if place is None:
        return None
    if place.is_file():
        return sha256(place)
    total = hashlib.sha256()
    for file in files_below(place):
        total.update(f"{file.relative_to(place)}\0{sha256(file)}\n".encode())
    return total.hexdigest()


def corpus_state(path: Path) -> str | None:
    """What a corpus is read from: its content, but of more than MUCH its names, sizes and dates;
    None where there is none.

    Snakemake itself looks at a file that is newer than what was made of it, and at no other: what
    `mv` or a backup puts in its place may be older. A folder's own date stays where a file in it is
    changed.
    """
    if path.is_file() and path.stat().st_size <= MUCH:
        return sha256(path)
    if not path.exists():
        return None
    found = dict(found_below(path))
    files = {file: known for file, known in found.items() if stat.S_ISREG(known.st_mode)}
    by_content = bool(files) and sum(known.st_size for known in files.values()) <= MUCH
    total = hashlib.sha256()
    for file, known in (files if by_content else found).items():
        dated = f"{known.st_size}\0{known.st_mtime_ns}"
        state = sha256(Path(file)) if by_content else dated
        named = os.fsencode(os.path.relpath(file, path))
        total.update(b"%s\0%s\n" % (named, state.encode()))
    return total.hexdigest()


def place_of(artefact: str) -> Path | None:
    """Where an artefact lies, in the order in which the libraries that load it look."""
    if Path(artefact).exists():
        return Path(artefact)
    if artefact.isidentifier() and (package := importlib.util.find_spec(artefact)) is not None:
        folders = list(package.submodule_search_locations or [])
        path = folders[0] if folders else package.origin
        return None if path is None else Path(path)
    return cached(artefact)


def cached(name: str) -> Path | None:
    """The folder of a model of the hub that was downloaded before."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, local_files_only=True))
    except (HFValidationError, LocalEntryNotFoundError):
        return None


def files_below(folder: Path) -> Iterator[Path]:
    """All files below a folder, in the order of their names; what Python compiled is left out."""
    for parent, folders, names in walk(folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        yield from (Path(parent, name) for name in sorted(names) if Path(parent, name).is_file())
