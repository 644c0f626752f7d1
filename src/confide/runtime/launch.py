"""One command in several processes of this machine, by torchrun.

Its report of a failure is a line here.
"""

import logging
import os

from confide.errors import InputError
from confide.output.escaping import warn

LAUNCHED = "TORCHELASTIC_RUN_ID"  # in the environment of what torchrun has started


def launch(processes: int, arguments: list[str]) -> int:
    """Run `confide` with these arguments in so many processes; the exit status.

    Each has its share of OMP_NUM_THREADS.

    All of them end where one does. The one whose failure it was has said why, unless it was killed.
    """
    if processes < 1:
        raise InputError("is not a number of processes", key="processes", value=processes)
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import parse_args, run

    threads = int(os.environ.get("OMP_NUM_THREADS", 1)) // processes
    os.environ["OMP_NUM_THREADS"] = str(max(1, threads))
    logging.disable()  # of this process: torchrun tells of every process that it ends
    torchrun = ["--standalone", f"--nproc-per-node={processes}", "--module", "confide.cli"]
    try:
        run(parse_args([*torchrun, *arguments]))
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        if failure.exitcode < 0:
            warn(f"confide: error: process {rank} was ended by {failure.signal_name()}")
        return failure.exitcode if failure.exitcode > 0 else 1
    except SignalException as signal:
        return 128 + signal.sigval
    return 0
