"""One case: a file is changed, and read under a limit of time; what comes of it, and whether the
message kept the secret.
"""

import contextlib
import io
import random
import signal
import time
import traceback
from pathlib import Path
from typing import NamedTuple

from hostile_corpora import SECRET
from hostile_mutations import MUTATIONS
from hostile_targets import Target

from confide import cli
from confide.errors import Failure, InputError

SECONDS = 60  # of a case, on the clock: other programs may run beside it


class Hang(BaseException):
    """No handler of the code under test takes it for an error of its own."""


class Outcome(NamedTuple):
    """`kind`: accepted, refused, stopped (by the command line, in one line), or what must not be:
    fault, hang, leak.
    """

    kind: str
    seconds: float
    says: str


class Case:
    """The files of a target in a folder of their own, to be changed again and again."""

    def __init__(self, target: Target, folder: Path):
        self.target = target
        self.folder = folder
        self.file = folder / target.file
        self.files = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        if (first := read(target, folder)).kind != "accepted":
            raise AssertionError(f"{target.file}: the valid file is {first.kind}: {first.says}")

    def run(self, source: random.Random) -> Outcome:
        """Change the file, read it, and put everything back."""
        content = MUTATIONS[self.target.kind](source, self.files[self.file])
        if self.target.seal is not None:
            content = self.target.seal(self.folder, content)
        self.file.write_bytes(content)
        outcome = read(self.target, self.folder)
        for path in self.folder.rglob("*"):
            if path.is_file() and path not in self.files:
                path.unlink()
        for path, valid in self.files.items():
            if not path.exists() or path.stat().st_size != len(valid) or path.read_bytes() != valid:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(valid)
        return outcome


def read(target: Target, folder: Path) -> Outcome:
    """What a target's reader makes of its files as they are."""
    printed = io.StringIO()
    begun = time.perf_counter()
    previous = signal.signal(signal.SIGALRM, _late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            target.read(folder)
        kind = "accepted"
        says = ""
    except (InputError, Failure) as error:
        kind = "refused"
        says = str(error)
    except Hang:
        kind = "hang"
        says = traceback.format_exc(limit=-3)
    except BaseException as error:  # a panic of Rust's is no Exception
        if target.stops and isinstance(error, Exception):
            kind = "stopped"
            says = cli.fault(error)
        else:
            kind = "fault"
            says = "".join(traceback.format_exception(error)[-4:])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    if kind in ("accepted", "refused", "stopped") and SECRET in says + printed.getvalue():
        kind = "leak"
    if kind == "refused" and "\n" in says.strip():
        kind = "fault"
    return Outcome(kind, time.perf_counter() - begun, says)


def _late(*_: object) -> None:
    raise Hang
