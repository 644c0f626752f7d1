"""`python dying.py POINT confide-arguments...`: run confide, and kill -9 it at one exact point of
its own.

POINT is `call:N`, the N-th call of one of confide's functions; `rename:N`, where the N-th file is
about to get its final name, which then is written to half; or `never`, which says how many of both
there were. The last line on stderr says what was met.
"""

import importlib
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import confide.files.io
from confide.cli import main

PACKAGE = str(Path(confide.files.io.__file__).parent)
PASSED_OVER = "codehash"  # nine calls of ten, and nothing happens there


def run(kind: str, point: int, arguments: list[str]) -> int:
    """Status of confide, if it lives to have one."""
    counts = {"call": 0, "rename": 0}

    def look(frame: FrameType, event: str, function: Any) -> None:
        found = None
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(PACKAGE) and PASSED_OVER not in file:
            found = "call"
        elif event == "c_call" and function is os.replace:
            found = "rename"
        if found is not None:
            counts[found] += 1
            if found == kind and counts[found] == point:
                die(frame, found)

    importlib.import_module(f"confide.stages.{arguments[0]}")
    sys.setprofile(look)
    status = main(arguments)
    sys.setprofile(None)
    print(f"alive after {counts['call']} calls and {counts['rename']} renames", file=sys.stderr)
    return status


def die(frame: FrameType, found: str) -> None:
    """Say where, leave half of a file that was about to be renamed, and end as if by kill -9."""
    place = f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_name}"
    if found == "rename":
        temporary = frame.f_locals["temporary"]
        os.truncate(temporary, os.path.getsize(temporary) // 2)
        place = str(frame.f_locals["path"].name)
    print(f"killed at {place}", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    kind, _, number = sys.argv[1].partition(":")
    sys.exit(run(kind, int(number or 0), sys.argv[2:]))
