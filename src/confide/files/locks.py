"""Files that one job has at a time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from confide.errors import InputError
from confide.files.io import writable
from confide.output.escaping import warn


def lock(opened: IO[Any], shown: Path) -> bool:
    """Lock an open file until it is closed; say so where another job has it, and wait.

    shown: what a line calls the place of both jobs

    Returns whether it had to wait. InputError where the file system has no locks.
    """
    try:
        _flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB, shown)
    except BlockingIOError:
        warn(f"{shown}: another job is at work here; waiting for its end")
        _flock(opened, fcntl.LOCK_EX, shown)
        return True
    return False


def _flock(opened: IO[Any], operation: int, shown: Path) -> None:
    try:
        fcntl.flock(opened, operation)
    except BlockingIOError:
        raise
    except OSError as error:  # NFS without its lock daemon, say
        message = f"cannot be locked: {error.strerror}; expected a file system that has locks"
        raise InputError(message, file=shown) from error


@contextmanager
def exclusive(file: Path) -> Iterator[None]:
    """Hold a file, which is made if need be: a second job on it waits for the first.

    Meanwhile it may be moved or removed, and whoever waited for it holds a new one of its name. A
    file that was held and is empty in the end is removed.
    """
    with locked(file) as held:
        try:
            yield
        finally:
            if has_name(held, file) and not file.stat().st_size:
                file.unlink(missing_ok=True)


def locked(file: Path) -> IO[bytes]:
    """A file, made if need be, that is locked under its name."""
    while True:
        with writable(file):
            file.parent.mkdir(parents=True, exist_ok=True)
            opened = file.open("ab")
        try:
            lock(opened, shown=file)
        except BaseException:
            opened.close()
            raise
        if has_name(opened, file):
            return opened
        opened.close()


def has_name(opened: IO[bytes], file: Path) -> bool:
    """Whether an open file has this name and no other file has taken its place."""
    try:
        return os.path.samestat(os.fstat(opened.fileno()), file.stat())
    except FileNotFoundError:
        return False
