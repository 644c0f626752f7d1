"""The code hash sees what Python would run differently, and nothing else."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from confide.provenance import code_hash as codehash

FILES = {
    "pack/__init__.py": "",
    "pack/top.py": '"""Doc."""\nfrom pack import part\nfrom pack.deep.leaf import value\n\n\n'
    "def f():\n    return value\n",
    "pack/part.py": "import os\n\n\ndef g():\n    from . import lazy\n    return lazy.x\n",
    "pack/lazy.py": "x = 1\n",
    "pack/deep/__init__.py": "from .. import base\n",
    "pack/deep/leaf.py": "value = 3  # a comment\n",
    "pack/base.py": "y = 1\n",
    "pack/other.py": "z = 1\n",
}
HANDING_ON = ["confide.specs"]
REACHED = ["pack", "pack.base", "pack.deep", "pack.deep.leaf", "pack.lazy", "pack.part", "pack.top"]


@pytest.fixture
def root(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def fresh(root: Path, module: str = "pack.top") -> str:
    """Hash without what earlier calls parsed."""
    codehash.read.cache_clear()
    codehash.imports.cache_clear()
    return codehash.code_hash(root, module)


def test_closure_follows_relative_lazy_and_package_imports(root):
    assert sorted(codehash.closure(root, "pack.top")) == REACHED


@pytest.mark.parametrize(
    "name", ["top", "part", "lazy", "deep/__init__", "deep/leaf", "base", "__init__"]
)
def test_a_change_anywhere_in_the_closure_counts(root, name):
    before = fresh(root)
    path = root / f"pack/{name}.py"
    path.write_text(path.read_text() + "\nextra = 1\n")
    assert fresh(root) != before


@pytest.mark.parametrize("ending", codehash.DATA)
def test_a_data_file_beside_a_module_of_its_name_counts_and_no_other_does(root, ending):
    before = fresh(root)
    (root / f"pack/elsewhere{ending}").write_text("a,b\n")
    assert fresh(root) == before
    (root / f"pack/lazy{ending}").write_text("a,b\n")
    with_data = fresh(root)
    (root / f"pack/lazy{ending}").write_text("a,c\n")
    assert len({before, with_data, fresh(root)}) == 3


def test_every_data_file_of_the_package_counts_and_is_installed():
    """What is no code lies beside the module that reads it, and in setuptools' package-data."""
    package = Path(codehash.__file__).parents[1]
    data = [
        path
        for path in package.rglob("*")
        if path.is_file()
        and path.suffix not in (".py", ".typed")
        and path.parent.name != "__pycache__"
    ]
    project = tomllib.loads((package.parents[1] / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["package-data"]["confide"]
    assert len(data) >= 4
    for path in data:
        assert path.suffix in codehash.DATA and path.with_suffix(".py").is_file(), path
        assert any(path.relative_to(package).match(pattern) for pattern in patterns), path


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# a comment", "# another"),
        ("value = 3", "value  =  3"),
        ("value = 3", "value = 3\n\n\n"),
        ("value", '"""Doc."""\nvalue'),
    ],
)
def test_comments_docstrings_and_layout_do_not_count(root, old, new):
    before = fresh(root)
    path = root / "pack/deep/leaf.py"
    path.write_text(path.read_text().replace(old, new, 1))
    assert fresh(root) == before


@pytest.mark.parametrize(
    ("old", "new"), [("3", "4"), ("3", "'3'"), ("3", "None"), ("value = 3", "value = 3; del value")]
)
def test_values_count(root, old, new):
    before = fresh(root)
    path = root / "pack/deep/leaf.py"
    path.write_text(path.read_text().replace(old, new, 1))
    assert fresh(root) != before


def test_a_string_that_is_no_docstring_counts(root):
    path = root / "pack/lazy.py"
    path.write_text("x = 1\ny = 'a'\n")
    before = fresh(root)
    path.write_text("x = 1\ny = 'b'\n")
    assert fresh(root) != before


def test_moving_code_between_blocks_counts(root):
    path = root / "pack/lazy.py"
    path.write_text("if True:\n    x = 1\n    y = 2\n")
    before = fresh(root)
    path.write_text("if True:\n    x = 1\ny = 2\n")
    assert fresh(root) != before


def test_an_unrelated_module_does_not_count(root):
    before = fresh(root)
    (root / "pack/other.py").write_text("z = 2\n")
    assert fresh(root) == before


def test_closure_holds_all_that_an_import_really_loads():
    """Oracle: the package's modules in sys.modules after importing the stage."""
    src = Path(codehash.__file__).parents[2]
    script = (
        "import confide.stages.redact, sys; "
        "print(*(m for m in sys.modules if m.split('.')[0] == 'confide'))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(src)},
    )
    reached = codehash.closure(src, "confide.stages.redact")
    # what a package hands on that no name stands for is loaded, and nothing of it is used
    handing_on = [name for name in HANDING_ON if name in loaded.stdout.split()]
    unused = frozenset().union(*(codehash.closure(src, name) for name in handing_on))
    assert handing_on and set(loaded.stdout.split()) <= reached | unused


def test_of_a_package_that_hands_on_names_the_modules_of_these_count(root):
    names = {
        "hub/__init__.py": '"""All."""\nfrom pack.hub.one import a\nfrom .two import b\n',
        "hub/one.py": "a = 1\n",
        "hub/two.py": "b = 2\n",
        "top.py": "from pack.hub import a\n",
    }
    for name, text in names.items():
        (root / "pack" / name).parent.mkdir(exist_ok=True)
        (root / "pack" / name).write_text(text)
    before = fresh(root)
    assert codehash.closure(root, "pack.top") == {"pack", "pack.top", "pack.hub.one"}
    (root / "pack/hub/two.py").write_text("b = 3\n")
    assert fresh(root) == before
    (root / "pack/hub/one.py").write_text("a = 3\n")
    assert fresh(root) != before
    (root / "pack/hub/__init__.py").write_text("from pack.hub.two import b as a\n")
    fresh(root)
    assert {"pack.hub", "pack.hub.two"} <= codehash.closure(root, "pack.top")
    (root / "pack/hub/__init__.py").write_text("from .one import a\nfrom .two import b\nb += 1\n")
    fresh(root)
    assert {"pack.hub", "pack.hub.two"} <= codehash.closure(root, "pack.top")


def test_specs_hand_on_and_training_does_not_depend_on_how_texts_are_asked_for():
    """A change of what a study shows trains nothing anew."""
    src = Path(codehash.__file__).parents[2]
    assert all(codehash.read(src, name).hands_on for name in HANDING_ON)
    others = {"confide.specs.synthesis", "confide.specs.experiments"}
    for stage in ("train", "redact", "partition", "certify"):
        assert not others & codehash.closure(src, f"confide.stages.{stage}")


def test_hashes_are_kept_until_any_file_of_the_package_is_another(root, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    before = codehash.code_hashes(root, "pack.deep")
    assert before == {"leaf": codehash.code_hash(root, "pack.deep.leaf")}
    with monkeypatch.context() as parsing:
        parsing.setattr(codehash, "code_hash", lambda *_: pytest.fail("was worked out again"))
        assert codehash.code_hashes(root, "pack.deep") == before
    leaf = root / "pack/deep/leaf.py"
    leaf.write_text(leaf.read_text().replace("3", "4"))
    after = fresh(root, "pack.deep.leaf")
    assert codehash.code_hashes(root, "pack.deep") == {"leaf": after} != before


@pytest.mark.parametrize(
    "kept",
    [
        "",
        "[]",
        "{}",
        '{"content": 1}',
        '{"content": "CONTENT", "hashes": {}}',
        '{"content": "CONTENT", "hashes": ["leaf"]}',
        "\udcff",
        "[" * 100_000,
    ],
)
def test_hashes_that_were_kept_badly_are_worked_out_again(root, monkeypatch, kept):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    before = codehash.code_hashes(root, "pack.deep")
    [file] = root.glob("pack/deep/__pycache__/code_hashes.*.json")
    content = codehash.content_of(root / "pack")
    file.write_text(kept.replace("CONTENT", content), errors="surrogateescape")
    assert codehash.code_hashes(root, "pack.deep") == before


def test_no_hashes_are_kept_where_python_keeps_no_bytecode(root, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert codehash.code_hashes(root, "pack.deep")
    assert not list(root.rglob("__pycache__"))


def test_a_folder_that_cannot_be_written_to_keeps_no_hashes(root, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (root / "pack/deep/__pycache__").write_text("no folder")
    assert codehash.code_hashes(root, "pack.deep") == {"leaf": fresh(root, "pack.deep.leaf")}


def test_hashes_of_files_that_change_meanwhile_are_not_kept(root, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    contents = iter(["before", "after"])
    monkeypatch.setattr(codehash, "content_of", lambda folder: next(contents))
    assert codehash.code_hashes(root, "pack.deep")
    assert not list(root.rglob("__pycache__"))


def test_a_folder_that_a_link_leads_to_and_an_odd_name_count(root, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "__init__.py").write_text("z = 1\n")
    (root / "pack/linked").symlink_to(elsewhere)
    (root / "pack" / os.fsdecode(b"\xff.txt")).write_text("")
    before = codehash.content_of(root / "pack")
    (elsewhere / "__init__.py").write_text("z = 2\n")
    assert codehash.content_of(root / "pack") != before


def test_a_folder_without_modules_hides_no_module(root):
    before = fresh(root)
    (root / "pack/part/__pycache__").mkdir(parents=True)
    assert fresh(root) == before
