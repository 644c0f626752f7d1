"""Words from outside: in each medium they stand there as what they are, and no writer goes around
the functions for it.
"""

import ast
import csv
import html
import io
import json
import re
from pathlib import Path

import pytest
from docutils.core import publish_parts
from hostile_words import FORMULA, SCRIPT, SPELLED, TITLE, unseen
from jinja2 import Environment
from snakemake.io import apply_wildcards

from confide.advisor.page import plain
from confide.certify.gate import Case, write_junit, write_table
from confide.cli import main
from confide.errors import Failure, InputError
from confide.files.io import write_json, write_jsonl
from confide.output import escaping

SRC = Path(__file__).parents[2] / "src/confide"


@pytest.mark.parametrize(
    "text", [TITLE, FORMULA, "\ud800 \x00 \x7f \u2028 \u2066 \U000e0041 \ufeff"]
)
def test_a_line_of_a_terminal_is_one_line_without_controls(text, capsys):
    escaping.say(text, "next")
    shown = capsys.readouterr().out
    assert len(shown.splitlines()) == 2 and not unseen(shown)
    assert escaping.terminal("as it was: é ε ∞ <MASK> 'x'") == "as it was: é ε ∞ <MASK> 'x'"


def test_errors_and_failures_cannot_make_lines_of_their_own():
    error = InputError(
        f"no {FORMULA}", file=Path(f"a{FORMULA}"), line=3, key=FORMULA, value=FORMULA
    )
    assert len(str(error).splitlines()) == 1 and not unseen(str(error)) and SPELLED in str(error)
    failure = Failure(f"path: 1 hits ({FORMULA})", "second")
    assert len(str(failure).splitlines()) == 2 and not unseen(str(failure))


@pytest.mark.parametrize(
    "text", [TITLE, FORMULA, "# a", "a_b _c_ __d__", "&lt; \\& ~~x~~ ![i](u) <http://x.y> 1. b | c"]
)
def test_markdown_prints_words_as_they_are(text):
    for page, tags in (
        (f"# {escaping.markdown(text)}", "h1"),
        (f"| h |\n|---|\n| {escaping.markdown(text)} |", "td"),
    ):
        (inside,) = re.findall(f"<{tags}>(.*)</{tags}>", escaping.rendered(page))
        assert "<" not in inside and html.unescape(inside) == escaping.visible(text).strip()


def test_code_ends_neither_itself_nor_a_cell():
    assert escaping.code("x` | <b>\n") == "`x' ¦ <b>\\n`"


def test_markdown_of_ours_has_no_html_either():
    assert SCRIPT not in escaping.rendered(
        f"before {SCRIPT} after\n\n{SCRIPT}\n\n<div>\n{SCRIPT}\n</div>\n"
    )


def test_cells_are_no_formulas_and_numbers_stay_numbers():
    cells = [
        FORMULA,
        "+1+1",
        "@SUM(A1)",
        "-2+3",
        "\t=1",
        " =1",
        "＝1",
        "-5",
        "+3e-2",
        "-inf",
        -7.5,
        None,
        "plain",
        "a=b",
    ]
    found = next(csv.reader(io.StringIO(escaping.table(cells, []))))
    assert found[7:] == ["-5", "+3e-2", "-inf", "-7.5", "", "plain", "a=b"]
    assert [cell[0] for cell in found[:7]] == ["'", "'", "'", "'", "\\", "'", "'"] and not any(
        map(unseen, found)
    )


def test_snakemake_sees_no_wildcard_and_a_report_no_end_of_a_script():
    shown = escaping.category(TITLE)
    assert (
        apply_wildcards(shown, {}) == shown
        and "</script" not in json.dumps(shown)
        and "<!--" not in escaping.category("<!--")
    )
    assert shown.replace("\u2060", "") == escaping.visible(TITLE)
    spec = json.dumps(
        {"title": TITLE, "pattern": r"[0-9]{3}\{x}\\", "a{b": ["{x}", "{"]}, ensure_ascii=False
    )
    given = escaping.parameter(spec)
    assert json.loads(given) == json.loads(spec) and apply_wildcards(given, {}) == given
    assert SCRIPT not in given and not unseen(given)


def test_the_opening_of_a_report_is_no_template():
    page = escaping.rendered(f"# {escaping.markdown('{{7*7}} {% raise %} {# x #}')}")
    told = publish_parts(
        Environment().from_string(escaping.embedded(page)).render(), writer_name="html"
    )["html_body"]
    assert "{{7*7}} {% raise %} {# x #}" in html.unescape(told)


def test_a_gold_label_forges_no_line_of_a_scan(tmp_path, capsys):
    row = {"key": "a", "text": "I am Mary Smith-Jones.", "gold": [[5, 21, FORMULA, 1.0]]}
    write_jsonl(tmp_path / "points.jsonl", [row])
    write_json(tmp_path / "canaries.json", {})
    (tmp_path / "released").mkdir()
    (tmp_path / "released" / "=1\x1b[2J\nscan: 0 hits").write_text("Mary Smith-Jones")
    inputs = [
        "--points",
        tmp_path / "points.jsonl",
        "--canaries",
        tmp_path / "canaries.json",
        "--files",
        tmp_path / "released",
    ]
    outputs = ["--output", tmp_path / "scan.json", "--table", tmp_path / "scan.csv"]
    assert main(["scan", "--spec", "{}", *map(str, inputs + outputs)]) == 1
    (line,) = [line for line in capsys.readouterr().err.split("\n") if line]
    assert (
        line.startswith("confide scan: failed: ") and line.count(SPELLED) == 2 and not unseen(line)
    )
    _, (path, _, hits, labels) = csv.reader((tmp_path / "scan.csv").read_text().splitlines())
    assert hits == "1" and labels.startswith("'=cmd") and not unseen(path + labels)


def test_a_label_forges_no_line_of_a_screen():
    assert not unseen(plain(FORMULA)) and len(plain(FORMULA)) <= 40


def test_the_gate_writes_words_alone(tmp_path):
    case = Case(
        run=FORMULA,
        audit="game",
        outcome="refuted",
        certified=1.0,
        lower=2.0,
        coins=100,
        rings_2x=0.1,
        rings_3x=0.2,
        rings_5x=0.3,
        weights="0" * 64,
        says=FORMULA,
    )
    write_table(tmp_path / "gate.csv", [case])
    write_junit(
        tmp_path / "gate.xml",
        [case, case._replace(outcome="stands"), case._replace(outcome="skipped")],
        FORMULA,
    )
    assert not unseen((tmp_path / "gate.csv").read_text() + (tmp_path / "gate.xml").read_text())
    assert (tmp_path / "gate.csv").read_text().splitlines()[1].startswith("'=cmd")


BYPASS = {"print", "writer", "MarkdownIt", "escape"}  # of builtins, csv, markdown_it, html
ESCAPING = "output/escaping.py"


def calls(tree: ast.AST) -> set[str]:
    """Names of functions that a module calls: f of f(), and g of csv.g() or html.g()."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found.add(node.func.id)
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
        ):
            found |= (
                {node.func.attr}
                if node.func.value.id in ("csv", "html", "markdown_it", "builtins")
                else set()
            )
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "sys"
        ):
            found |= {"print"} if node.attr == "write" else set()
    return found


def test_nothing_is_printed_or_written_around_these_functions():
    for path in SRC.rglob("*.py"):
        name = str(path.relative_to(SRC))
        around = calls(ast.parse(path.read_bytes())) & {*BYPASS, "DictWriter"}
        if name == ESCAPING:
            assert around == BYPASS, "The search finds them where they are."
        else:
            assert not around, name
