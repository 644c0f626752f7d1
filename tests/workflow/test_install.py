"""What an installation needs: pins that run on the oldest Python that is promised, with hashes of
all that is downloaded.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distributions, requires
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

OLDEST = "3.11.2"  # of Debian 12
ROOT = Path(__file__).parents[2]
SRC = ROOT / "src"
ENTRY = re.compile(
    r"^([\w.-]+)==(\S+)(?: ; ([^\n]*?))?((?: \\\n    --hash=sha256:[0-9a-f]{64})*)$", re.M
)
LOCKS = {
    name: ENTRY.findall((ROOT / name).read_text()) for name in ("constraints.txt", "torch.txt")
}
MARKERS = {
    canonicalize_name(name): marker for entries in LOCKS.values() for name, _, marker, _ in entries
}
PINNED = set(MARKERS)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MACHINES = [
    (python, machine) for python in ("3.11", "3.12", "3.13") for machine in ("x86_64", "aarch64")
]
INSTALLED = {
    canonicalize_name(found.name): found.metadata["Requires-Python"] for found in distributions()
}


@pytest.mark.parametrize("name", sorted(PINNED & INSTALLED.keys()))
def test_a_pinned_package_takes_the_oldest_python(name):
    assert SpecifierSet(INSTALLED[name] or "").contains(OLDEST)


def test_what_is_pinned_is_installed():
    assert len(PINNED & INSTALLED.keys()) > 150


def test_no_pattern_of_ours_has_a_possessive_group():
    """Before Python 3.11.5 `(?:...)*+` may match less than it should where the group itself can
    backtrack.
    """
    files = list((ROOT / "src").rglob("*.py"))
    assert len(files) > 200
    assert not [file for file in files if re.search(r"\)[*+?]\+|\(\?>", file.read_text())]


@pytest.mark.parametrize("name", LOCKS)
def test_every_pin_has_the_hashes_of_its_files(name):
    lines = [
        line for line in (ROOT / name).read_text().splitlines() if line and not line.startswith("#")
    ]
    assert (
        sum(1 + hashes.count("--hash") for *_, hashes in LOCKS[name]) == len(lines) > 20
    )  # nothing else stands there
    assert all(hashes for *_, hashes in LOCKS[name])
    torch = {
        entry[0]
        for entry in LOCKS[name]
        if entry[0] == "torch" or entry[0].startswith(("nvidia-", "cuda-", "triton"))
    }
    assert torch == (set() if name == "constraints.txt" else {entry[0] for entry in LOCKS[name]})


def needed(
    requirement: Requirement, environment: dict[str, str], seen: set[tuple[str, str]]
) -> Iterator[str]:
    """Names of a requirement and of all that it requires in turn there, as far as it is installed
    here to be asked.
    """
    name = canonicalize_name(requirement.name)
    yield name
    for extra in ("", *sorted(requirement.extras)):
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        try:
            further = map(Requirement, requires(name) or ())
        except PackageNotFoundError:
            continue
        for one in further:
            if one.marker is None or one.marker.evaluate(environment | {"extra": extra}):
                yield from needed(one, environment, seen)


@pytest.mark.parametrize(("python", "machine"), MACHINES)
def test_the_pins_are_all_that_the_project_needs_on_every_python_and_machine(python, machine):
    environment = default_environment() | {
        "python_version": python,
        "python_full_version": f"{python}.2",
    }
    environment |= {
        "platform_machine": machine,
        "sys_platform": "linux",
        "platform_system": "Linux",
    }
    given = {
        name
        for name, marker in MARKERS.items()
        if not marker or Requirement(f"x; {marker}").marker.evaluate(environment)
    }
    own = PROJECT["dependencies"] + [
        one for extra in ("dev", "docs", "slurm") for one in PROJECT["optional-dependencies"][extra]
    ]
    seen: set[tuple[str, str]] = set()
    wanted = {name for one in own for name in needed(Requirement(one), environment, seen)}
    assert len(wanted) > 200 and wanted - given <= {"pip"}


def test_the_makefile_installs_by_hash_and_nothing_that_is_not_pinned():
    recipe = (ROOT / "Makefile").read_text().partition("$(VENV)/.ok: ")[2].partition("\n\n")[0]
    calls = re.findall(r"\$\$pip .*", recipe)
    assert 'pip="$(VENV)/bin/python -m pip install -q --no-deps"' in recipe and len(calls) == 5
    assert [call for call in calls if "--require-hashes" not in call] == [
        calls[0],
        calls[4],
    ]  # CPU wheels; the project itself
    assert "torch==" in calls[0] and "--no-build-isolation -e ." in calls[4]
    assert (
        "setuptools" in calls[2] and "--no-build-isolation" in calls[3]
    )  # else pip fetches what builds a package unpinned


@pytest.mark.nightly
@pytest.mark.slow
def test_the_bill_of_materials_is_valid_and_lists_what_is_installed(tmp_path):
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    subprocess.run(
        [sys.executable, str(ROOT / "tools/sbom.py"), str(tmp_path / "sbom.json")],
        check=True,
        capture_output=True,
    )
    text = (tmp_path / "sbom.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    found = json.loads(text)
    listed = {
        canonicalize_name(one["name"]): one["version"]
        for one in [found["metadata"]["component"], *found["components"]]
    }
    assert listed == {canonicalize_name(one.name): one.version for one in distributions()} | {
        "confide": PROJECT["version"]
    }
    assert (
        "file:" not in text
        and str(ROOT) not in text
        and all("purl" in one or one["name"] == "confide" for one in found["components"])
    )


@pytest.mark.slow
def test_a_wheel_holds_all_that_the_package_reads(tmp_path):
    build = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(tmp_path)]
    source = tmp_path / "source"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    subprocess.run([*build, str(source)], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    names = ("*.py", "*.csv", "*.jinja", "*.json", "*.yaml", "*.txt")
    kept = {file.relative_to(SRC) for name in names for file in (SRC / "confide").rglob(name)}
    assert len(kept) > 300
    assert all((tmp_path / "installed" / file).is_file() for file in kept)
    words = ["epsilon", "--sample_rate", "0.01", "--noise_multiplier", "1", "--steps", "100"]
    told = subprocess.run(
        [sys.executable, "-m", "confide.cli", *words, "--delta", "1e-5"],
        env=os.environ | {"PYTHONPATH": str(tmp_path / "installed")},
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    assert "replace_one" in told.stdout
