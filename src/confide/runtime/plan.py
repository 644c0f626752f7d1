"""What Snakemake would do: jobs that are left, or whose results are of other settings or files."""

import subprocess

from confide.errors import Failure
from confide.output.escaping import warn
from confide.runtime import packaged
from confide.runtime.workflow_log import WorkflowJob, planned


def left(*options: str) -> list[WorkflowJob]:
    """The jobs that `confide run` with these options would run, in their order.

    Failure where Snakemake refuses the plan, after it has said why.
    """
    plan = subprocess.run(
        packaged.command(["--dry-run", *options]), capture_output=True, text=True, check=False
    )
    if plan.returncode:
        warn(*plan.stderr.splitlines())
        raise Failure("there is no plan: Snakemake says why above")
    return planned(plan.stdout)
