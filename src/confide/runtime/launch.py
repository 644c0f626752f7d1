"""One command in several processes, by torchrun; on several machines, which Slurm's srun reaches.

Its report of a failure is a line here.
"""

import logging
import os
import shutil
import sys
from typing import NoReturn

from confide.errors import InputError
from confide.output.escaping import warn

LAUNCHED = "TORCHELASTIC_RUN_ID"  # in the environment of what torchrun has started
NODES = "CONFIDE_NODES"  # in the environment of what srun has started, one task a node
# Ports at which the nodes of a job meet; jobs that share a node have others.
FIRST_PORT = 20_000
PORTS = 20_000


def launch(processes: int, nodes: int, arguments: list[str]) -> int:
    """Run `confide` with these arguments in so many processes on each node; the exit status.

    Each process has its share of OMP_NUM_THREADS. Several nodes are those of a job of Slurm's.

    All of them end where one does. The one whose failure it was has said why, unless it was killed.
    """
    if processes < 1:
        raise InputError("is not a number of processes", key="processes", value=processes)
    if nodes < 1:
        raise InputError("is not a number of nodes", key="nodes", value=nodes)
    if nodes > 1 and NODES not in os.environ:
        become_srun(processes, nodes, arguments)
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import parse_args, run

    threads = int(os.environ.get("OMP_NUM_THREADS", 1)) // processes
    os.environ["OMP_NUM_THREADS"] = str(max(1, threads))
    logging.disable()  # of this process: torchrun tells of every process that it ends
    torchrun = [f"--nproc-per-node={processes}", *meeting(nodes), "--module", "confide.cli"]
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


def become_srun(processes: int, nodes: int, arguments: list[str]) -> NoReturn:
    """Become Slurm's srun, which runs the same command once on each node of this job.

    InputError outside a job of Slurm's; srun says itself where the job has fewer nodes.
    """
    if "SLURM_JOB_ID" not in os.environ or shutil.which("srun") is None:
        message = "several need a job of Slurm's, and this is none"
        raise InputError(message, key="nodes", value=nodes)
    command = [
        "srun",
        f"--nodes={nodes}",
        f"--ntasks={nodes}",
        "--ntasks-per-node=1",
        f"--cpus-per-task={processes}",
        "--kill-on-bad-exit",  # the tasks of other nodes, where one fails
        *(sys.executable, "-m", "confide.cli", *arguments),
    ]
    os.execvpe("srun", command, os.environ | {NODES: str(nodes)})


def meeting(nodes: int) -> list[str]:
    """Options of torchrun that say where processes meet: at the address of the first node."""
    if nodes == 1:
        return ["--standalone"]
    port = FIRST_PORT + int(os.environ["SLURM_JOB_ID"]) % PORTS
    return [
        f"--nnodes={nodes}",
        f"--node-rank={os.environ['SLURM_NODEID']}",
        f"--master-addr={os.environ['SLURM_LAUNCH_NODE_IPADDR']}",
        f"--master-port={port}",
    ]
