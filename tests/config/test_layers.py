"""Stages know nothing of one another, and no training job loads a tracker or a workflow.

That imports between rooms point down only is checked by import-linter (pyproject.toml).
"""

import ast
import os
import subprocess
import sys
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
        path = SRC.joinpath(*module.split("."))
        tree = ast.parse(
            (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_bytes()
        )
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.split(".")[0] for name in names} & {"mlflow", "snakemake", "dvc"}, (
                module
            )


def loaded(statement: str) -> set[str]:
    """Heavy packages that are loaded after a statement."""
    script = f"{statement}; import sys; print(*(name for name in {HEAVY} if name in sys.modules))"
    environment = os.environ | {"PYTHONPATH": str(SRC)}
    return set(
        subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        ).stdout.split()
    )


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


@pytest.mark.parametrize("stage", LIGHT)
def test_data_stages_load_nothing_heavy(stage):
    assert loaded(f"import confide.stages.{stage}") == set()


def test_the_workflow_loads_nothing_heavy():
    assert (
        loaded(
            "import confide.cli, confide.config.params, confide.config.jobs, "
            "confide.provenance.records, confide.provenance.code_hash"
        )
        == set()
    )


def test_training_loads_torch_alone():
    assert loaded("import confide.stages.train") <= {"torch", "transformers"}


def test_every_stage_is_a_rule_a_module_and_a_function():
    rules = "".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
    for name in STAGES:
        assert (SRC / f"confide/stages/{name}.py").is_file()
        assert f"confide {name} " in rules, name
