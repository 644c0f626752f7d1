"""A fast loader reads what the slow one reads, and leaves every refusal to it."""

from pathlib import Path

import pytest
import yaml

from confide.config import yaml_lines
from confide.errors import InputError

ROOT = Path(__file__).parents[2]
FILES = [ROOT / "params.yaml", ROOT / "dvc.yaml", *sorted((ROOT / "studies").glob("*.yaml"))]
REFUSED = [
    "a: [1, 2\nb: 3",
    "a: b: c\n",
    "\ta: 1",
    "a: *b",
    "a: \x01",
    "a: !!python/object:os.system x",
    "&a [*a]",
    "[" * 5_000,
    "[" * 600 + "]" * 600,
    "x: 2001-99-99",
]


def slow(monkeypatch) -> None:
    monkeypatch.setattr(yaml_lines, "LOADERS", (yaml.SafeLoader,))


def flat(node: yaml.Node) -> list[tuple[str, int, str]]:
    """Every node below one, with its line; keys and values in the order of the file."""
    here = (node.tag, node.start_mark.line, node.value if isinstance(node.value, str) else "")
    parts = [] if isinstance(node.value, str) else node.value
    if isinstance(node, yaml.MappingNode):
        parts = [part for pair in node.value for part in pair]
    return [here, *(one for part in parts for one in flat(part))]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_both_loaders_read_the_same_from_the_same_lines(file, monkeypatch):
    node, value = yaml_lines.compose(file)
    slow(monkeypatch)
    slow_node, slow_value = yaml_lines.compose(file)
    assert value == slow_value and flat(node) == flat(slow_node)


@pytest.mark.parametrize("text", REFUSED, ids=range(len(REFUSED)))
def test_a_refusal_is_that_of_the_slow_loader(text, tmp_path, monkeypatch):
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(InputError) as refused:
        yaml_lines.compose(tmp_path / "bad.yaml")
    slow(monkeypatch)
    with pytest.raises(InputError) as refused_slowly:
        yaml_lines.compose(tmp_path / "bad.yaml")
    assert str(refused.value) == str(refused_slowly.value)


def test_the_fast_loader_is_in_use():
    assert len(yaml_lines.LOADERS) == 2
