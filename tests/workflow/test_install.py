"""What an installation needs: pins that run on the oldest Python that is promised, with hashes of
all that is downloaded.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
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


def test_the_pins_of_the_documented_command_are_those_of_the_lock_without_hashes(tmp_path):
    """pip refuses a wheel of ours beside pins with hashes."""
    page = (ROOT / "docs/index.md").read_text()
    (command,) = re.findall(r"^ *(sed .* constraints\.txt > pins\.txt)$", page, re.M)
    shutil.copy(ROOT / "constraints.txt", tmp_path)
    subprocess.run(["bash", "-c", command], check=True, cwd=tmp_path)
    lines = [line for line in (tmp_path / "pins.txt").read_text().splitlines() if line[0] != "#"]
    found = [Requirement(line) for line in lines]
    assert [(one.name, str(one.specifier)) for one in found] == [
        (name, f"=={version}") for name, version, *_ in LOCKS["constraints.txt"]
    ]
    assert [one.marker is not None for one in found] == [
        bool(marker) for _, _, marker, _ in LOCKS["constraints.txt"]
    ]
    assert "-c pins.txt" in page and "download.pytorch.org/whl/cpu" in page


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


WORKFLOW = ("Snakefile", "params.yaml", "dvc.yaml", "workflow", "profiles", "studies")
CORPUS = ("example", "corpus.jsonl")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(folder)]
    source = folder / "source"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.egg-info"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE", *WORKFLOW):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    subprocess.run([*build, str(source)], check=True, capture_output=True)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A folder with the package as the wheel has it."""
    folder = tmp_path_factory.mktemp("packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def confide(*words: str, packages: Path, folder: Path) -> str:
    """What a command of an unpacked wheel prints, errors among it."""
    done = subprocess.run(
        [sys.executable, "-m", "confide.cli", *words],
        env=os.environ | {"PYTHONPATH": str(packages)},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


@pytest.mark.slow
def test_a_wheel_holds_all_that_the_package_reads(installed, tmp_path):
    names = ("*.py", "*.csv", "*.jinja", "*.json", "*.yaml", "*.txt")
    found = [file for name in names for file in (SRC / "confide").rglob(name)]
    kept = {file.relative_to(SRC) for file in found if file.parent.name != "__pycache__"}
    assert len(kept) > 300
    assert all((installed / file).is_file() for file in kept)
    words = ["epsilon", "--sample_rate", "0.01", "--noise_multiplier", "1", "--steps", "100"]
    told = confide(*words, "--delta", "1e-5", packages=installed, folder=tmp_path)
    assert "replace_one" in told


@pytest.mark.slow
def test_a_wheel_holds_the_workflow_of_the_checkout(installed):
    def files(folder: Path) -> dict[Path, bytes]:
        found = [folder / name for name in WORKFLOW if (folder / name).is_file()]
        found += [path for name in WORKFLOW for path in (folder / name).rglob("*")]
        return {
            path.relative_to(folder): path.read_bytes()
            for path in found
            if path.is_file() and "__pycache__" not in path.parts
        }

    theirs = files(ROOT)
    assert len(theirs) > 40 and files(installed / "confide/_workflow") == theirs


@pytest.mark.slow
def test_a_folder_that_init_made_is_planned_without_a_checkout(installed, tmp_path):
    confide(*CORPUS, packages=installed, folder=tmp_path)
    said = confide("init", "corpus.jsonl", packages=installed, folder=tmp_path)
    steps = "confide run prepare, then confide recommend"
    assert said.endswith(f"written: params.yaml; next: {steps}\n")
    before = {path.name for path in tmp_path.iterdir()}
    planned = confide("run", "-n", "-q", "rules", packages=installed, folder=tmp_path)
    assert "study_own" in planned and "This was a dry-run" in planned
    assert f"{installed / 'confide/_workflow/profiles/default'} for setting" in planned
    assert str(ROOT / "workflow") not in planned and str(ROOT / "Snakefile") not in planned
    assert {path.name for path in tmp_path.iterdir()} - before <= {".snakemake"}


SMALL = {
    "embedding: 64, hidden: 64": "embedding: 16, hidden: 16",
    "epochs: 6": "epochs: 1",
}


@pytest.mark.nightly
@pytest.mark.slow
def test_a_wheel_in_an_environment_of_its_own_goes_from_a_corpus_to_a_release(wheel, tmp_path):
    """What else is installed comes from this environment, but for the package itself."""
    left_out = ("PYTHONPATH", "VIRTUAL_ENV", "SNAKEMAKE_PROFILE")
    known = {name: value for name, value in os.environ.items() if name not in left_out}
    own = tmp_path / "environment"
    venv.create(own, with_pip=False, symlinks=True)
    (packages,) = own.glob("lib/python*/site-packages")
    pip = [sys.executable, "-m", "pip", "--python", str(own / "bin/python"), "install", "-q"]
    subprocess.run([*pip, "--no-deps", "--no-index", str(wheel)], check=True, env=known)
    (packages / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    folder = tmp_path / "mine"
    folder.mkdir()

    def run(*words: str, status: int = 0) -> str:
        done = subprocess.run(
            [str(own / "bin/confide"), *words],
            cwd=folder,
            env=known | {"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == status, done.stdout[-6000:]
        return done.stdout

    assert "`confide init CORPUS`" in run("run", status=2)
    run(*CORPUS)
    assert "next: confide run" in run("init", "corpus.jsonl")
    text = (folder / "params.yaml").read_text()
    for old, new in SMALL.items():
        assert old in text
        text = text.replace(old, new)
    (folder / "params.yaml").write_text(text)
    assert "study_own" in run("run", "-n", "-q", "rules")
    assert "confide run" in run("report", status=2)
    run("run", "--quiet", "all")
    assert "Nothing to be done" in run("run")
    run("report")
    page = (folder / "results/report.html").read_text()
    assert "Certificates" in page and str(ROOT) not in page
    certificate = "results/runs/crt/g0-s0/certificate.json"
    assert "holds for crt/g0-s0" in run("verify", certificate)
    run("release", certificate, "--study", "results/studies/own", "--output", "released")
    (released,) = (folder / "released").rglob("certificate.json")
    assert "holds for crt/g0-s0" in run("verify", str(released.relative_to(folder)))
    assert not (folder / ".git").exists() and not (folder / ".dvc").exists()
