"""Who may read what a project holds: its owner.

What others may see is copied out by `confide release`, and by nothing else.

There is no list of secret files that could lack one: every process of the workflow creates files as
0600 and folders as 0700, and the workflow shuts its own folders, whatever other programs keep in
them (objects in DVC's cache are 0444).
"""

import os
from pathlib import Path

from confide.errors import InputError

STATE = ".dvc-state"  # of DVC: it unpickles what lies there
# fmt: off
SHUT = (
    "data", "models", "results", "logs", ".checkpoints", ".snakemake", ".dvc", STATE, "mlruns",
    "mlartifacts",
)
# fmt: on


def private() -> None:
    """From now on this process and its children create what is their owner's alone.

    What they import lies where nobody can wait for it.
    """
    os.umask(0o077)
    for name, value in variables().items():
        os.environ[name] = value


def variables() -> dict[str, str]:
    """Variables that keep a process from importing what somebody else put there.

    torch's compiler, which no stage calls, makes a folder on import: by default one of a known name
    in the system's folder of temporary files, where another user may have put compiled code before.
    Nothing is imported from the folder in which a process works, as `python -m` would: it may be
    somebody else's.
    """
    cache_home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    place = os.environ.get(
        "TORCHINDUCTOR_CACHE_DIR", os.path.join(cache_home, "confide", "torchinductor")
    )
    return {"PYTHONSAFEPATH": "1", "TORCHINDUCTOR_CACHE_DIR": place}


def shut(folder: Path) -> None:
    """Close a project's folders to all but their owner.

    InputError where that is another user.
    """
    for path in [*(folder / name for name in SHUT), *states_in(folder)]:
        try:
            if path.is_dir() and path.stat().st_mode & 0o077:
                path.chmod(0o700)
        except OSError as error:
            raise InputError(
                f"cannot be closed to other users: {error.strerror}", file=path
            ) from None


def check_states(folder: Path) -> None:
    """InputError where another user has put something into the DVC records of a project.

    Changes nothing.
    """
    for state in states_in(folder):
        refuse_planted(state, {os.geteuid(), folder.stat().st_uid})


def states_in(folder: Path) -> list[Path]:
    """DVC's own records of a project: a folder in each folder in which DVC was called."""
    return [
        path
        for depth in ("", "*/", "*/*/")
        for path in folder.glob(f"{depth}{STATE}")
        if path.is_dir()
    ]


def refuse_planted(state: Path, owners: set[int]) -> None:
    """InputError where another user has put something into one folder of DVC's records.

    DVC would run it when it reads them.
    """
    for path in [state, *state.rglob("*")]:
        if path.lstat().st_uid not in owners:
            problem = (
                "belongs to another user, and DVC runs what it holds: "
                f"delete {state}, which is only a cache"
            )
            raise InputError(problem, file=path)
