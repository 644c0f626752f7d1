"""What a figure was measured on: hardware, load and versions, to stand in every result file."""

import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any


def machine(*packages: str) -> dict[str, Any]:
    """CPU, cores, load average of the last minute, Python and the versions of the given
    packages.
    """
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "cpu": models[0] if models else platform.machine(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }
