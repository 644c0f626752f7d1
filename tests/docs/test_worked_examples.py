"""The pages that say how to add a part: each is applied to a copy of the project, exactly as it
stands there and with its test in added/, and run.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from pages import ROOT, blocks

from tests.points import read_points

PAGES = {name: ROOT / f"docs/add_{name}.md" for name in ("method", "policy", "attack", "reader")}
TESTS = {  # where the test of a page, added/PAGE.py, belongs
    "method": "tests/methods/test_late_noise.py",
    "policy": "tests/policies/test_luhn.py",
    "attack": "tests/attacks/test_recital.py",
    "reader": "tests/corpora/test_tickets.py",
}
PARTS = ("Snakefile", "workflow", "profiles", "studies", "src", "tests", "pyproject.toml")
PARTS += ("params.yaml", "dvc.yaml")


def changed(text: str, diff: str) -> str:
    """A text after the hunks of a diff, which @@ divides; the lines that a hunk shows must stand
    there exactly once.
    """
    for hunk in re.split(r"^@@\n", diff, flags=re.M):
        lines = hunk.splitlines(keepends=True)
        old, new = ("".join(line[1:] for line in lines if line[0] != sign) for sign in "+-")
        assert ("\n" + text).count("\n" + old) == 1, old
        text = text.replace(old, new)
    return text


def apply(page: Path, folder: Path) -> None:
    """Write the files that a page shows, and change those that it changes."""
    for block in blocks(page, "python", "json", "csv"):
        path = folder / block.title
        assert not path.exists(), path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text)
    for block in blocks(page, "diff"):
        path = folder / block.title
        path.write_text(changed(path.read_text(), block.text))
    path = folder / own_test(page)
    assert not path.exists(), path
    shutil.copy(ROOT / f"tests/docs/added/{name_of(page)}.py", path)


def name_of(page: Path) -> str:
    """What a page adds, as `method`."""
    return page.stem.removeprefix("add_")


def own_test(page: Path) -> str:
    """The file in the project that a page's own test becomes."""
    return TESTS[name_of(page)]


def run(folder: Path, *command: str) -> str:
    """Output of a Python module in the changed project."""
    variables = os.environ | {"PYTHONPATH": str(folder / "src")}
    command = (sys.executable, "-m", *command)
    done = subprocess.run(
        command,
        cwd=folder,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    return done.stdout


def copy(folder: Path) -> Path:
    """A copy of the project without what was built in it."""
    folder.mkdir()
    for name in PARTS:
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name,
                folder / name,
                ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"),
            )
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module", params=PAGES)
def added(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    """A page, and a copy of the project to which it alone was applied."""
    folder = copy(tmp_path_factory.mktemp(request.param) / "project")
    apply(PAGES[request.param], folder)
    return PAGES[request.param], folder


def test_its_code_is_in_house_style(added: tuple[Path, Path]) -> None:
    page, folder = added
    files = [block.title for block in blocks(page, "python", "diff")] + [own_test(page)]
    run(folder, "ruff", "check", *files)
    run(folder, "ruff", "format", "--check", *files)


@pytest.mark.nightly
@pytest.mark.slow
def test_its_own_tests_and_those_over_every_entry_pass(added: tuple[Path, Path]) -> None:
    page, folder = added
    module = Path(blocks(page, "python")[0].title).stem
    run(folder, "confide.config.params", "--write-schema")
    over_entries = [
        "tests/methods",
        "tests/stages/test_train.py",
        "tests/config/test_layers.py",
        "tests/config/test_params.py",
    ]
    run(
        folder,
        "pytest",
        "-q",
        "-m",
        "not slow",
        "-k",
        f"{module} or schema_is_current",
        own_test(page),
        *over_entries,
    )


def merged(page: Path, params: dict[str, Any]) -> None:
    """Add a page's definitions and selections to parameters."""
    (block,) = blocks(page, "yaml")
    for key, value in yaml.safe_load(block.text).items():
        if key == "select":
            params[key] += value
        else:
            assert not params[key].keys() & value.keys()
            params[key] |= value


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project with all pages applied, and all their studies made."""
    folder = copy(tmp_path_factory.mktemp("all") / "project")
    params = yaml.safe_load((ROOT / "tests/params.tiny.yaml").read_text()) | {"select": []}
    for page in PAGES.values():
        apply(page, folder)
        merged(page, params)
        assert [block.text for block in blocks(page, "bash")] == ["snakemake\n"]
    (folder / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))
    run(folder, "snakemake")
    return folder


def result(folder: Path, run: str, name: str) -> dict[str, Any]:
    return json.loads((folder / f"results/runs/{run}/g0-s0/{name}.json").read_text())


@pytest.mark.slow
@pytest.mark.nightly
def test_the_new_method_is_trained_and_priced(built: Path) -> None:
    certificate = result(built, "late", "certificate")
    assert {"exact redacted public", "noisy redacted private"} == set(certificate["updates"])
    assert 2.9 < certificate["headline"]["record_epsilon"] <= 3


@pytest.mark.slow
@pytest.mark.nightly
def test_the_new_policy_redacts(built: Path) -> None:
    certificate = result(built, "cards", "certificate")
    assert (certificate["policy"]["gamma"], certificate["policy"]["secrets"]) == (0, 2)
    assert {claim["name"]: claim["epsilon"] for claim in certificate["claims"]}[
        "secret_caught"
    ] == 0


@pytest.mark.slow
@pytest.mark.nightly
def test_the_new_attack_answers(built: Path) -> None:
    found = result(built, "asked", "recital")
    assert (found["attack"], found["samples"]) == ("recital", 200)
    assert len(found["times"]) == len(found["control_times"]) == 3


@pytest.mark.slow
@pytest.mark.nightly
def test_the_new_reader_is_read_and_trained_on(built: Path) -> None:
    rows = read_points(built / "data/work/tickets-turn/points.jsonl")
    assert [row["doc"] for row in rows] == [f"ticket-{number}" for number in range(1, 6)]
    assert [len(row["gold"]) for row in rows] == [1, 2, 0, 1, 1]
    assert result(built, "tickets", "certificate")["headline"]["record_epsilon"] == "inf"
