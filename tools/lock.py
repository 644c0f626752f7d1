"""Pin every package that an installation takes, each with the SHA-256 of its files on PyPI; for a
machine with network.

    python tools/lock.py [--upgrade-package NAME ...]     (`make lock`)

constraints.txt is all but PyTorch; torch.txt is PyTorch as PyPI has it, with NVIDIA's libraries.
They are apart because PyTorch's CPU wheels, which most installations take, lie on another index and
have other hashes. Pins that still fit stay as they are; what another Python or platform needs has a
marker.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
REST = ROOT / "constraints.txt"
TORCH = ROOT / "torch.txt"
OF_TORCH = re.compile(r"(?:torch|triton|nvidia-[\w-]+|cuda-[\w-]+)==")
EXTRAS = ("dev", "docs", "slurm")
HEAD = "# Written by tools/lock.py (`make lock`): do not edit. {}\n"
COMMAND = (
    "uv",
    "pip",
    "compile",
    "pyproject.toml",
    "--universal",
    "--python-version",
    "3.11",
    "--generate-hashes",
)
QUIET = ("--no-annotate", "--no-header", "--quiet")


def entries(text: str) -> list[str]:
    """A pin with its hashes each."""
    lines = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))
    return re.findall(r"^\S.*(?:\n[ ].*)*\n", lines, flags=re.M)


def main() -> int:
    known = "".join(path.read_text() for path in (REST, TORCH) if path.exists())
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "lock.txt"
        found.write_text(known)  # uv prefers these
        extras = [word for extra in EXTRAS for word in ("--extra", extra)]
        subprocess.run(
            [*COMMAND, *QUIET, *extras, "--output-file", str(found), *sys.argv[1:]],
            cwd=ROOT,
            check=True,
        )
        pins = entries(found.read_text())
    of_torch = [pin for pin in pins if OF_TORCH.match(pin)]
    rest = [pin for pin in pins if not OF_TORCH.match(pin)]
    build = "PyTorch as PyPI has it; the Makefile takes the version of its CPU wheels from here."
    for path, words, own in (
        (REST, "All but PyTorch, which torch.txt has.", rest),
        (TORCH, build, of_torch),
    ):
        path.write_text(HEAD.format(words) + "".join(own))
        print(f"{path.name}: {len(own)} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
