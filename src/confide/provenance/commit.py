"""The commit that a folder of code is from."""

import subprocess
from pathlib import Path

SECONDS = 10  # that git may take


def commit_of(folder: Path) -> str | None:
    """Hash of the last commit that touched the folder; None where git does not know it."""
    return _git(folder, "log -1 --format=%H -- .") or None


def is_changed(folder: Path) -> bool:
    """Whether a file of the folder is not as it was committed."""
    return bool(_git(folder, "--no-optional-locks status --porcelain -- ."))


def _git(folder: Path, words: str) -> str:
    """What git says to these words; nothing where there is no git, or no repository it trusts."""
    command = ["git", "-C", str(folder), *words.split()]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
