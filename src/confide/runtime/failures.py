"""The end of a run that failed: every failed job once more, with its reason and its log.

With keep-going a reason may stand hundreds of lines above the end, and with `--quiet` nowhere.
Snakemake's own log names the logs of failed jobs; with `--quiet` it is empty, and then a log of
this run whose last line is an error of `confide` is that of a failed job.
"""

import logging
import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from confide.output.escaping import warn
from confide.runtime.workflow_log import FINISHED, progress

LOGS = "logs"  # folder of the logs of all jobs
REASON = re.compile(r"confide \w+: (?:error|failed|fault): ")
LAST = 1 << 16  # bytes at the end of a log in which its last line is looked for
NO_REASON = (
    "ended before it could say why: it was stopped, or killed (out of memory?), or no space was "
    "left for its log"
)
# What Snakemake says where somebody has stopped it: jobs that were running are then no failures.
STOPPED = re.compile(r"Terminating processes on user request|Will exit after finishing currently")
# What Snakemake says of a job whose outputs a slow file system does not show in time.
UNSEEN_OF = re.compile(r"Job (\d+)  ?completed successfully, but some output files are missing")
UNSEEN = re.compile(r"(.+) \(missing locally, parent dir contents: ")
LATE = "was not there when its job had ended; a slow file system needs a longer --latency-wait"
GO_ON = "What is done stays done, and the same command goes on from here."


def tell_of_full_logs_in_a_line() -> None:
    """Let each log file that cannot be written say so in one line, once.

    Python's own way is a traceback for every message that the file does not take.
    """
    usual = logging.Handler.handleError
    told: set[str] = set()

    def handle_error(handler: logging.Handler, record: logging.LogRecord) -> None:
        error = sys.exc_info()[1]
        file = getattr(handler, "baseFilename", None)
        if file is None or not isinstance(error, OSError):
            usual(handler, record)
        elif file not in told:
            told.add(file)
            warn(f"{os.path.relpath(file)}: cannot be written: {error.strerror}")

    logging.Handler.handleError = handle_error  # type: ignore[assignment, method-assign]


def tell(folder: Path, snakemake_logs: Iterable[str], started: float) -> None:
    """Print which jobs of a run failed and why, or that it was stopped, and how to go on.

    folder: in which Snakemake worked. snakemake_logs: those of the run. started: when it
    began, in seconds since the epoch.
    """
    lines = [line for file in snakemake_logs for line in lines_of(Path(file))]
    logs = failed(folder, lines, started)
    if any(map(STOPPED.match, lines)):
        logs = [log for log in logs if says_why(folder / log)]
    reasons = [f"  {log}: {reason(folder / log)}" for log in logs]
    reasons += [f"  {file}: {LATE}" for file in unseen(lines)]
    if not reasons:
        warn("", f"Stopped. {GO_ON}")
        return
    warn("", "1 job failed:" if len(reasons) == 1 else f"{len(reasons)} jobs failed:")
    warn(*reasons, GO_ON)


def unseen(lines: Iterable[str]) -> list[str]:
    """The first file of each job that had made it, and was not believed.

    lines: of Snakemake's own log. A job that was done in a later attempt is left out.
    """
    files: dict[str, str] = {}
    job = ""
    for line in lines:
        if (complaint := UNSEEN_OF.match(line)) is not None:
            job = complaint[1]
        elif (missing := UNSEEN.match(line)) is not None:
            files.setdefault(job, missing[1])
        elif (finished := FINISHED.match(line)) is not None:
            files.pop(finished[1], None)
    return list(files.values())


def failed(folder: Path, lines: Sequence[str], started: float) -> list[str]:
    """Logs of failed jobs as seen from the folder, in the order of their names.

    lines: of Snakemake's own log.
    """
    ended = [log for log in recent(folder, started) if says_why(folder / log)]
    named = [log for job in progress(lines).failed.values() for log in job.logs]
    return sorted({*named, *ended})


def recent(folder: Path, started: float) -> list[str]:
    """Logs below the folder that were written since then."""
    files = [file for file in (folder / LOGS).rglob("*.log") if file.is_file()]
    return [str(file.relative_to(folder)) for file in files if os.path.getmtime(file) >= started]


def lines_of(file: Path) -> list[str]:
    """The lines of a text; none of one that is not there."""
    if not file.is_file():
        return []
    return file.read_text(encoding="utf-8", errors="replace").splitlines()


def last_line(log: Path) -> str:
    """The last line of a log with anything in it; "" where there is none."""
    if not log.is_file():
        return ""
    with open(log, "rb") as file:
        file.seek(max(0, log.stat().st_size - LAST))
        lines = file.read().decode(errors="replace").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def says_why(log: Path) -> bool:
    """Whether a log ends with an error of `confide`."""
    return REASON.match(last_line(log)) is not None


def reason(log: Path) -> str:
    """Why a job failed, in one line."""
    return last_line(log) if says_why(log) else NO_REASON
