"""What lies below a folder, links followed."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from confide.files.io import readable


def found_below(place: Path) -> Iterator[tuple[str, os.stat_result]]:
    """All files at a path, and all that links below it lead to, with what the file system says of
    them; a folder that several links lead to counts once.
    """
    folders: set[tuple[int, int]] = set()
    waiting = [str(place)]
    while waiting:
        path = waiting.pop()
        try:
            known = os.stat(path)
        except OSError:  # a link that leads nowhere
            continue
        identity = known.st_dev, known.st_ino
        if not stat.S_ISDIR(known.st_mode):
            yield path, known
        elif identity not in folders:
            folders.add(identity)
            waiting += [os.path.join(path, name) for name in sorted(os.listdir(path))]


def walk(folder: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """As os.walk does; OSError for a folder that cannot be read, which that passes over."""

    def refuse(error: OSError) -> None:
        raise error

    return os.walk(folder, onerror=refuse)


def listed(folder: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """As os.walk does; InputError for a folder that cannot be read."""
    with readable(folder):
        yield from walk(folder)


def visible(folder: Path, hidden: tuple[str, ...] = (".",)) -> Iterator[Path]:
    """Files below a folder that are not hidden, nor any folder that they lie in.

    `hidden`: what names of such files and folders begin with. InputError for a folder that cannot
    be read.
    """
    with readable(folder):
        for here, folders, names in walk(folder):
            folders[:] = [name for name in folders if not name.startswith(hidden)]
            paths = (Path(here, name) for name in names if not name.startswith(hidden))
            yield from filter(Path.is_file, paths)


def is_below(path: Path, folder: Path) -> bool:
    """Whether a path leads to something inside a folder once all links are followed."""
    try:
        return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
    except (OSError, ValueError):  # a name that no file can have
        return False
