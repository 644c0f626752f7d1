"""The tables of papers.md: every function and study that they name exists, and everything that the
papers number is in them.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from pages import ROOT

from confide.config.params import load

PAGE = ROOT / "docs/papers.md"
STUDIES = load(ROOT / "params.yaml").studies
NUMBERED: dict[str, dict[str, Iterable[int]]] = {  # what each paper has, by heading
    "Confidentially Redacted Training": {
        "Definition": (1, 2, 3, 4, 9),
        "Proposition": (5, 6, 7),
        "Theorem": (8,),
        "Algorithm": (1,),
        "Figure": range(1, 8),
    },
    "Selective differential privacy": {
        "Definition": range(1, 6),
        "Theorem": (1, 2),
        "Algorithm": (1,),
        "Figure": range(1, 9),
        "Table": range(1, 4),
    },
    "Domain Private Transformers": {
        "Definition": (3, 4),
        "Figure": range(1, 10),
        "Table": range(1, 5),
    },
    "Privacy Regularization": {"Equation": range(1, 5), "Figure": range(1, 5), "Table": (1,)},
}


def tables() -> Iterator[tuple[str, list[list[str]]]]:
    """Heading and rows of cells of every table."""
    heading = ""
    rows = []
    cells = None
    tokens = MarkdownIt().enable("table").parse(PAGE.read_text())
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            heading = tokens[place + 1].content
        elif token.type == "tbody_open":
            rows = []
        elif token.type == "tr_open":
            cells = []
        elif token.type == "td_open":
            cells.append(tokens[place + 1].content)
        elif token.type == "tr_close" and cells:
            rows.append(cells)
        elif token.type == "tbody_close":
            yield heading, rows


TABLES = dict(tables())
ROWS = [(heading, *row) for heading, rows in TABLES.items() for row in rows]


def defined(path: Path) -> set[str]:
    """Names of the functions, classes and constants of a module."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


@pytest.mark.parametrize(("paper", "result", "code"), ROWS)
def test_functions_exist(paper: str, result: str, code: str) -> None:
    place, what = result.split(": ")
    assert place and what
    named = re.findall(r"`([^`]*)`", code)
    assert named or code == "–"
    for one in named:
        file, _, name = one.partition(":")
        assert name in defined(ROOT / "src/confide" / file), one


def numbers(places: list[str], kind: str) -> set[int]:
    """Numbers of the places of a kind, as in "Figures 4 to 7", "Figures 1, 4 and 6" or
    "Definition 3.1".
    """
    found = set()
    for listed in re.findall(
        rf"{kind}s? ((?:\d+(?:\.\d)?[a-c]?(?:, | and | to )?)+)", "; ".join(places)
    ):
        for part in re.split(r", | and ", listed):
            ends = [int(number) for number in re.findall(r"(\d+)(?:\.\d)?", part)]
            found |= set(range(ends[0], ends[-1] + 1)) if ends else set()
    return found


@pytest.mark.parametrize(
    ("paper", "kind"), [(paper, kind) for paper, kinds in NUMBERED.items() for kind in kinds]
)
def test_everything_that_a_paper_numbers_has_a_row(paper: str, kind: str) -> None:
    assert set(NUMBERED[paper][kind]) <= numbers([row[0] for row in TABLES[paper]], kind)


def test_every_study_but_ones_own_belongs_to_a_paper() -> None:
    """The text above a paper's table names studies, and nothing else in code letters."""
    named: set[str] = set()
    for part in PAGE.read_text().split("\n## ")[1:]:
        text = "\n".join(line for line in part.splitlines() if not line.startswith("|"))
        studies = set(re.findall(r"`([^`]*)`", text))
        assert studies, part.splitlines()[0]
        named |= studies
    # Benches are of all papers; a pretrained model, the cover and the leaderboard are of none.
    of_none = {"own", "bench", "bench_gpt2", "cover", "levers", "tuning", "tuning_values"}
    of_none |= {"llm_customersim", "llm_sgd", "successors", "input_only", "shared_noise"}
    of_none |= {name for name in STUDIES if name.startswith(("lead_", "synthetic"))}
    assert STUDIES.keys() - named == of_none
    assert named <= STUDIES.keys()
