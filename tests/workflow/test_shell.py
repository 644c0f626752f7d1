"""No name that a user can write is read by a shell: rules quote what they put into commands, and
wildcards take no character that a shell knows.
"""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from project import ROOT

RULES = {path.name: path.read_text() for path in sorted((ROOT / "workflow/rules").glob("*.smk"))}
SHELL = re.compile(r"^ +shell:\n((?: +\".*\"\n?)+)", re.M)
PLACE = re.compile(r"(?<!\{)\{(\w+)(?:\.(\w+))?(:q)?\}")
PATTERN = re.compile(r"^ +(?:\w+=)?(?:\w+\()*\"([^\"]*)\"\)*,$", re.M)  # of an output, a log, ...
OTHERS = {
    "scatteritem",  # Snakemake constrains it itself
    "folder",  # of expand
    "view",
}
BLOCK = re.search(r"^wildcard_constraints:\n((?: +.*\n)+)", RULES["common.smk"], re.M)[1]
CONSTRAINTS = dict(re.findall(r"^ +(\w+)=(.*),$", BLOCK, re.M))
OF_NAMES = '"|".join('  # names of parameters, archives and packages, which have no such characters
INJECTED = "a$(touch INJECTED) b"


@pytest.mark.parametrize("name", RULES)
def test_every_input_of_a_command_is_quoted_and_what_is_not_is_a_flag(name: str) -> None:
    """Flags are joined by shlex; shares and folders of checkpoints are made of wildcards."""
    for rule in re.split(r"\n *(?:use )?rule\b", RULES[name]):
        for kind, key, quoted in PLACE.findall("".join(SHELL.findall(rule))):
            if kind == "params" and not quoted and key not in ("share", "checkpoint"):
                assert re.search(rf"^ +{key}=.*(\bflag\(|_flag\b)", rule, re.M), key
            assert quoted or kind != "input", key


def test_the_search_sees_commands() -> None:
    found = PLACE.findall("".join(SHELL.findall("\n".join(RULES.values()))))
    assert {("params", "raw", ""), ("params", "start_ledgers", "")} <= {*found}
    assert {("params", "folder", ":q"), ("input", "review", ":q")} <= {*found}
    for name, rules in RULES.items():
        assert len(SHELL.findall(rules)) == len(re.findall(r"^ +shell:$", rules, re.M)), name


def test_every_wildcard_is_constrained() -> None:
    found = set()
    for rules in RULES.values():
        for pattern in PATTERN.findall(SHELL.sub("", rules)):
            found |= {key for key, part, _ in PLACE.findall(pattern) if not part}
    assert {"dataset", "run", "package", "archive", "words"} <= found
    assert found - OTHERS <= {*CONSTRAINTS}


@pytest.mark.parametrize(
    "constraint", [one for one in CONSTRAINTS.values() if not one.startswith(OF_NAMES)]
)
def test_no_wildcard_takes_what_a_shell_knows(constraint: str) -> None:
    pattern = constraint.removeprefix("r").strip('"').replace(r"\.", "")
    assert re.fullmatch(r"[\w()\[\]|/?+*-]+", pattern)
    assert "[^" not in pattern


def with_runs(project, *names: str) -> dict[str, Any]:
    """Parameters of these runs alone, without attacks."""
    parameters = yaml.safe_load((project.folder / "params.yaml").read_text())
    runs = {name: parameters["runs"][name] | {"attacks": []} for name in names}
    study = {"title": "Tiny", "runs": [*names], "figures": []}
    return parameters | {"runs": runs, "studies": {"tiny": study}, "attacks": {}, "shadows": {}}


@pytest.mark.slow
def test_names_of_files_run_nothing(fresh, tmp_path: Path) -> None:
    project = fresh.copy(tmp_path / "project")
    (project.folder / INJECTED).write_text("hello there\n")
    (project.folder / f"{INJECTED}.review").write_text("{}\n")
    parameters = with_runs(project, "redacted")
    parameters["corpora"]["sim"] = {"reader": "lines", "path": INJECTED}
    parameters["datasets"]["sim"]["review"] = f"{INJECTED}.review"
    (project.folder / "params.yaml").write_text(yaml.safe_dump(parameters))
    shown = project.snakemake("-np", check=False)
    for flag, path in (("raw", INJECTED), ("review", f"{INJECTED}.review")):
        assert f"--{flag} {shlex.quote(path)} " in shown, shown
    commands = re.findall("confide (?:split|marked|neighbours) --spec .*", shown)
    assert len(commands) == 4  # two corpora are split
    assert "INJECTED" not in re.sub(r"'[^']*'", "", "".join(commands))


@pytest.mark.slow
@pytest.mark.parametrize("key", ["models", "tokenizers"])
def test_a_package_of_another_name_has_no_rule(fresh, tmp_path: Path, key: str) -> None:
    project = fresh.copy(tmp_path / "project")
    parameters = with_runs(project, "nonprivate")
    source = "data/raw/pretrained/$(touch INJECTED)"
    if key == "models":
        parameters["models"]["lstm"] = {"kind": "causal_lm", "pretrained": source}
    else:
        parameters["tokenizers"]["bpe"] = {"kind": "pretrained", "source": source, "public": True}
    (project.folder / "params.yaml").write_text(yaml.safe_dump(parameters))
    shown = project.snakemake("--cores", "1", "--until", "pretrained", check=False)
    assert project.status
    assert source in shown, shown
    assert not (project.folder / "INJECTED").exists()


@pytest.mark.slow
def test_no_rule_makes_what_is_the_users_own(fresh, tmp_path: Path) -> None:
    """Snakemake deletes a rule's output before it makes it again, as `-F` asks for."""
    project = fresh.copy(tmp_path / "project")
    raw = project.folder / "data/raw"
    (raw / "pretrained/mine").mkdir(parents=True)
    (raw / "pretrained/mine/config.json").write_text("{}")
    (raw / "mine.jsonl").write_text('{"text": "hello there"}\n')
    parameters = with_runs(project, "nonprivate")
    parameters["corpora"]["sim"] = {"reader": "lines", "path": "data/raw/mine.jsonl"}
    parameters["tokenizers"]["bpe"] = {
        "kind": "pretrained",
        "source": "data/raw/pretrained/mine",
        "public": True,
    }
    (project.folder / "params.yaml").write_text(yaml.safe_dump(parameters))
    shown = project.snakemake("-Fn", check=False)
    assert "rule split:" in shown, shown
    assert "rule fetch:" not in shown and "rule pretrained:" not in shown
    shown = project.snakemake("-n", "--delete-all-output", check=False)
    assert "mine" not in shown, shown
