"""Studies whose titles, labels, domains and judges somebody else has chosen: figures, tables and
pages say what they are.
"""

import csv
import html
import json
import re
import shutil
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hostile_words import FORMULA, SCRIPT, SPELLED, TITLE, unseen
from matplotlib.text import Text

from confide.output import escaping
from confide.report.figures import style
from confide.report.figures.registry import FIGURES
from confide.report.pages import assessment
from confide.report.pages import certificate as certificates
from confide.report.results import load
from confide.specs import ReportSpec, SummarySpec
from confide.stages.study import study as report
from confide.stages.summary import summary
from studies import certificate
from tests.nightly import nightly

OF_DOMAINS = ("leak", "domain_epsilon", "domain_roc")
OF_AUTHORS = ("author_exposure", "tab", "subgroups", "train_time", "author_inference")
DOMAIN = f"$\\frac{{${SCRIPT}\x1b[2J"
JUDGE = "_$x^{judge}$"
NAMES = {"AIRLINE": DOMAIN, "keywords": JUDGE}


def renamed(value):
    """JSON in which domains and judges have other names."""
    if isinstance(value, dict):
        return {renamed(key): renamed(one) for key, one in value.items()}
    if isinstance(value, list):
        return [renamed(one) for one in value]
    if isinstance(value, str):
        for old, new in NAMES.items():
            value = value.replace(old, new)
    return value


@pytest.fixture(scope="session")
def hostile(study, domain_study, author_study, tmp_path_factory):
    """The three studies in other words: folder and specification."""
    found = {}
    for name, (root, spec) in (
        ("crt", study),
        ("domains", domain_study),
        ("authors", author_study),
    ):
        folder = tmp_path_factory.mktemp("hostile") / name
        shutil.copytree(root, folder)
        for path in folder.rglob("*.json"):
            path.write_text(json.dumps(renamed(json.loads(path.read_text()))))
        runs = [
            run | {"variant": f"{FORMULA} {run['name']}", "model": "$_{"}
            for run in spec.model_dump()["runs"]
        ]
        found[name] = (
            folder,
            ReportSpec.model_validate(spec.model_dump() | {"title": TITLE, "runs": runs}),
        )
    return found


def study_of(figure):
    return "domains" if figure in OF_DOMAINS else "authors" if figure in OF_AUTHORS else "crt"


@pytest.mark.parametrize("name", [*FIGURES][:3] + [nightly(name) for name in [*FIGURES][3:]])
def test_a_figure_shows_words_and_computes_nothing(name, hostile, tmp_path):
    folder, spec = hostile[study_of(name)]
    with style.settings():
        figure = FIGURES[name](spec, load(spec.runs, folder / "results", folder / "models"))
        style.save(figure, tmp_path / name)
        texts = [text for text in figure.findobj(Text) if text.get_text()]
    shown = "\n".join(text.get_text() for text in texts)
    assert (
        not any(text.get_parse_math() for text in texts)
        and not unseen(shown)
        and "mathdefault" not in shown
    )
    assert escaping.visible(TITLE) in figure.heading
    assert escaping.visible(DOMAIN) in shown or name not in OF_DOMAINS
    drawing = (tmp_path / f"{name}.svg").read_text()
    tags = {element.tag for element in ElementTree.fromstring(drawing).iter()}
    assert len(tags) > 3 and not any(tag.endswith("script") for tag in tags) and not unseen(drawing)


@pytest.mark.parametrize("name", ["crt", "domains", "authors"])
def test_tables_of_a_study(name, hostile, tmp_path):
    folder, spec = hostile[name]
    report(spec, results=folder / "results", models=folder / "models", output=tmp_path / "out")
    for path in tmp_path.glob("out/*.csv"):
        rows = list(csv.reader(path.read_text().splitlines()))
        assert len(rows) > 1 and not unseen(path.read_text())
        assert not [cell for row in rows for cell in row if cell.startswith(("=", "+", "@", "\t"))]
    table = (tmp_path / "out/table.md").read_text()
    page = escaping.rendered(table)
    assert (
        not unseen(table)
        and "<script" not in page
        and "javascript:y" not in re.findall('href="([^"]*)"', page)
    )
    assert (
        f"<h1>{html.escape(escaping.visible(TITLE), quote=False).replace(chr(34), '&quot;')}</h1>"
        in page
    )
    if name != "domains":
        assert f"<td>{SPELLED}" in page.replace("=cmd|' /C calc'!A0", "")
    else:
        assert html.escape(escaping.visible(DOMAIN)) in page


def test_the_summary_page_and_the_opening(hostile, tmp_path):
    folder, spec = hostile["crt"]
    paths = {name: tmp_path / name for name in ("claims", "page", "opening")}
    chosen = SummarySpec(studies=[spec.model_copy(update={"study": "crt_customersim"})])
    summary(chosen, results=folder / "results", models=folder / "models", **paths)
    for name in ("page", "opening"):
        text = paths[name].read_text()
        assert "<script" not in text and html.escape(SCRIPT) in text and not unseen(text)
    assert "{" not in paths["opening"].read_text()


@pytest.mark.parametrize("name", ["crt", "domains", "authors"])
def test_the_page_for_an_assessor(name, hostile):
    folder, spec = hostile[name]
    result = load(spec.runs, folder / "results", folder / "models")[0]
    claims = [claim | {"unit": TITLE, "condition": TITLE} for claim in result.certificate["claims"]]
    certified = result.certificate | {"claims": claims, "assumptions": [TITLE]}
    certified |= {"unaccounted": [TITLE], "updates": {TITLE: 3}, "files": {TITLE: []}}
    certified |= {"public_constants": {"pretrained": TITLE}, "release_note": TITLE}
    page = assessment.html(replace(result, certificate=certified))
    assert not unseen(page) and "<script" not in page and "<a " not in page
    assert page.count("</title>") == 1 and page.count(html.escape(SCRIPT)) > 5


def test_the_page_of_a_certificate():
    found = certificate(FORMULA, "crt", 0.1)
    claim = {
        "accountant": TITLE,
        "conversion": TITLE,
        "condition": TITLE,
        "delta": 1e-5,
        "relation": TITLE,
        "unit": TITLE,
    }
    found |= {
        "claims": [claim | {"name": TITLE, "epsilon": 1.0}],
        "policy": {"gamma_upper": None},
        "says": TITLE,
    }
    found |= {
        "release_note": TITLE,
        "unaccounted": [TITLE],
        "updates": {TITLE: 3},
        "assumptions": [TITLE],
    }
    found |= {
        "reads": [{"stage": TITLE, "source": TITLE, "public": True, "digest": TITLE}],
        "warm_start": [{"source": TITLE, "public": True}],
    }
    found |= {
        "public_constants": {TITLE: TITLE},
        "files": {"x": [{"path": TITLE, "sha256": TITLE}]},
    }
    found |= {"code": {"version": TITLE, "train": TITLE}, "ledger_head": TITLE}
    text = certificates.page(found)
    page = certificates.as_html(text, f"Certificate of {TITLE}")
    assert (
        not unseen(text)
        and "<script" not in page
        and page.count("</title>") == 1
        and "<a " not in page
    )
    assert page.count("alert(1)") == text.count("alert(1)") + 1 > 15
    (row,) = [
        line
        for line in text.split("\n")
        if line.startswith("| ") and "alert" in line and "javascript:y" in line
    ][:1]
    assert len(re.findall(r"(?<!\\)\|", row)) == 8
