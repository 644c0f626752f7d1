"""Stages know nothing of one another, and no training job loads a tracker or a workflow.

That imports between rooms point down only is checked by import-linter (pyproject.toml).
"""

import ast
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from confide.cli import STAGES
from confide.provenance.code_hash import closure, imports

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src"
HEAVY = (
    "torch",
    "transformers",
    "mlflow",
    "snakemake",
    "matplotlib",
    "sklearn",
    "opacus",
    "spacy",
    "dvc",
)
MODULES = sorted(
    ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")
    for path in (SRC / "confide").rglob("*.py")
)


def part(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def direct(module: str) -> list[str]:
    """Modules of the package that a module imports."""
    return [
        name for name in imports(SRC, module) if name in MODULES and name not in ("confide", module)
    ]


@pytest.mark.parametrize("stage", STAGES)
def test_stages_do_not_import_each_other(stage):
    others = {f"confide.stages.{name}" for name in STAGES if name != stage}
    assert not others & set(closure(SRC, f"confide.stages.{stage}"))


def test_methods_and_what_is_below_do_not_know_attacks():
    below = [
        name for name in MODULES if part(name) in ("methods", "dp", "models", "policies", "corpora")
    ]
    assert len(below) > 20 and not [
        name for module in below for name in direct(module) if part(name) == "attacks"
    ]


@pytest.mark.parametrize("stage", [name for name in STAGES if name != "track"])
def test_no_stage_mentions_a_tracker_or_a_workflow(stage):
    """Not even in a function: read from the source of all that the stage reaches."""
    for module in closure(SRC, f"confide.stages.{stage}"):
        assert not packages_in(module) & {"mlflow", "snakemake", "dvc"}, module


@cache
def packages_in(module: str) -> frozenset[str]:
    """First names in all import statements of a module."""
    path = SRC.joinpath(*module.split("."))
    tree = ast.parse(
        (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_bytes()
    )
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names.append(node.module or "")
    return frozenset(name.split(".")[0] for name in names)


def loaded(*modules: str) -> dict[str, set[str]]:
    """Heavy packages that are loaded once each module is, one after another in one process."""
    script = f"""
import importlib, sys
for module in {modules}:
    importlib.import_module(module)
    print(module, *(name for name in {HEAVY} if name in sys.modules))
"""
    environment = os.environ | {"PYTHONPATH": str(SRC)}
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    rows = [line.split() for line in done.stdout.splitlines()]
    return {module: set(heavy) for module, *heavy in rows}


LIGHT = [
    "fetch",
    "split",
    "plant",
    "tokenizer",
    "dedup",
    "redact",
    "recall",
    "partition",
    "neighbours",
    "scan",
    "track",
]


def test_data_stages_and_the_workflow_load_nothing_heavy():
    modules = [f"confide.stages.{stage}" for stage in LIGHT]
    modules += ["confide.cli", "confide.config.params", "confide.config.jobs"]
    modules += ["confide.provenance.records", "confide.provenance.code_hash"]
    assert loaded(*modules) == {module: set() for module in modules}


def test_advice_needs_no_torch():
    (heavy,) = loaded("confide.commands.recommend").values()
    assert heavy <= {"matplotlib"}


def test_training_loads_torch_alone():
    (heavy,) = loaded("confide.stages.train").values()
    assert "torch" in heavy <= {"torch", "transformers"}


def test_every_stage_is_a_rule_a_module_and_a_function():
    rules = "".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
    for name in STAGES:
        assert (SRC / f"confide/stages/{name}.py").is_file()
        assert f"confide {name} " in rules, name
