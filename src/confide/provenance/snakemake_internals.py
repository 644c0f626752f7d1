"""What the workflow uses of Snakemake (9.x) that is not documented, each with its reason.

Nothing else uses it.

`workflow` is the object of that name that Snakemake gives every Snakefile.
"""

import functools
import json
import os
import shlex
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any

from confide.output.escaping import warn

# Fields of a record that are read: when its job began and ended, and digests of what the job read.
FIELDS = ("starttime", "endtime", "input_checksums")


# The process
# -------------------------------------------------------------------------------------------------


def is_main_process(workflow: Any) -> bool:
    """Whether a user has called this Snakemake, and no other Snakemake for a job.

    Reason: results are checked once and not by every job, in which they are being made. There is no
    documented way for a Snakefile to know what it is read for.
    """
    return workflow.is_main_process


def lift_rate_limit(workflow: Any) -> None:
    """Let jobs on this machine start without a limit per second; for `onstart`.

    Reason: the limit, which only clusters need, wakes the scheduler once more per second for each
    job that has ended; after a few hundred jobs that takes a core. `--max-jobs-per-timespan` can
    only be set to another limit, which wakes it as well.
    """
    if workflow.local_exec:
        workflow.scheduler.job_rate_limiter = None


def look_at_functions_once() -> None:
    """Let Snakemake ask Python once, and not for each job, which parameters a function has.

    Reason: it asks before each call of an input function and of a function of `params`, which takes
    a tenth of the time of a large plan. Where Snakemake has no such function any more, nothing
    changes.
    """
    from snakemake import common, rules

    name = "get_function_params"
    if not hasattr(common, name) or getattr(rules, name, None) is not getattr(common, name):
        return
    ask = getattr(common, name)
    answers = functools.cache(ask)

    def answer(function: Any) -> Any:
        """What `ask` says, from memory if the function can be remembered."""
        return answers(function) if isinstance(function, Hashable) else ask(function)

    setattr(common, name, answer)
    setattr(rules, name, answer)


def leave_commands_out(workflow: Any) -> None:
    """Let a plan that shows no shell commands (`-n` without `-p`) put none together.

    Reason: Snakemake puts each command together three times, shown or not, which takes an eighth of
    the time of a large plan. Parameters, of which commands are made, are worked out all the same:
    a plan fails where they do. Where jobs of Snakemake have no such property any more, nothing
    changes.
    """
    from snakemake.jobs import Job

    is_property = isinstance(getattr(Job, "shellcmd", None), property)
    if is_property and not workflow.output_settings.printshellcmds:
        Job.shellcmd = property(lambda job: None)


def tell_of_locks(command: str) -> None:
    """Let a folder that is locked say so in a line, and how it is unlocked.

    command: with which a user unlocks it.

    Reason: with `--quiet all` Snakemake ends without a word. Where it has no such exception any
    more, nothing changes.
    """
    from snakemake import exceptions

    locked = getattr(exceptions, "LockException", None)
    if locked is None:
        return
    usual = locked.__init__

    def begin(error: Any) -> None:
        usual(error)
        warn(
            f"{Path.cwd()}: is locked: another Snakemake works here, or one was killed. Once none "
            f"of its jobs runs any more, `{command}` unlocks it"
        )

    locked.__init__ = begin


def scattered(workflow: Any) -> dict[str, int]:
    """What --set-scatter says: into how many jobs work of some names is divided.

    Reason: Snakemake passes over names that no rule has.
    """
    return dict(workflow.resource_settings.overwrite_scatter)


# Files of parameters
# -------------------------------------------------------------------------------------------------


def named_files(workflow: Any) -> list[Path]:
    """Files that --configfile or a profile names.

    Reason: Snakemake documents only their merged content, and makes that by a reader that runs
    what a template in such a file says.
    """
    return [Path(file) for file in workflow.overwrite_configfiles]


def has_read_them() -> bool:
    """Whether Snakemake reads such files itself, for want of profiles/default."""
    from snakemake.common.configfile import load_configfile
    from snakemake.settings import types

    return types.load_configfile is load_configfile


def replaces_parameters(workflow: Any) -> bool:
    """Whether --replace-workflow-config was given: the files come in place of params.yaml."""
    return workflow.config_settings.replace_workflow_config


def hand_on_to_jobs(workflow: Any, files: Sequence[Path]) -> None:
    """Hand the names of some files to jobs that are Snakemakes of their own.

    They get them as `--config layers=[...]`.

    Reason: such a job gets no profile, so with --configfile it would read the files itself.
    """
    listed = json.dumps([os.path.relpath(file) for file in files])
    settings = workflow.config_settings
    settings.config_args = [*(settings.config_args or []), shlex.quote(f"layers={listed}")]
    settings.configfiles = []


def name_files(workflow: Any, files: Sequence[Path]) -> None:
    """Tell Snakemake's report and archive which files the parameters come from.

    Reason: only `configfile:` does so otherwise, and it would read them.
    """
    workflow.configfiles = [str(file) for file in files]


# Records of jobs
# -------------------------------------------------------------------------------------------------
# Reason: Snakemake finds changed parameters and code through its records alone, and passes over one
# that is missing or damaged: its results would count as up to date. No command of Snakemake's says
# which files have no record, and none shows the digests of what a job has read.


def record(folder: Path, output: str) -> Path:
    """Where Snakemake keeps what it knows of an output.

    That is its name in base64, long ones cut into folders.
    """
    length = os.pathconf(folder, "PC_NAME_MAX") - 1
    name = urlsafe_b64encode(output.encode()).decode()
    pieces = [name[start : start + length] for start in range(0, len(name), length)]
    return folder.joinpath(*(f"@{piece}" for piece in pieces[:-1]), pieces[-1])


def states(folder: Path) -> tuple[Path, Path]:
    """Folders of a project's records, of finished jobs and of those that have begun."""
    return folder / ".snakemake/metadata", folder / ".snakemake/incomplete"


def recorded(metadata: Path) -> Iterator[tuple[str, Path]]:
    """Each output that has a record in a folder of records, with the file of its record."""
    for path in sorted(path for path in metadata.rglob("*") if path.is_file()):
        name = "".join(part.removeprefix("@") for part in path.relative_to(metadata).parts)
        yield urlsafe_b64decode(name).decode(), path
