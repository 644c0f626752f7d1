"""CITATION.cff and the workflow catalog's file say what is so."""

import re
import tomllib

import yaml
from pages import ROOT

CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_citation_is_of_this_version_and_has_what_the_format_demands() -> None:
    assert str(CITATION["cff-version"]) == "1.2.0"
    assert CITATION["message"] and CITATION["authors"] == [{"name": "The confide developers"}]
    assert (CITATION["title"], CITATION["version"], CITATION["license"]) == tuple(
        PROJECT[key] for key in ("name", "version", "license")
    )


def test_the_papers_that_the_readme_links_to_are_cited_by_their_authors() -> None:
    cited = {reference["url"]: reference for reference in CITATION["references"]}
    assert len(cited) == 4 and cited.keys() <= set(
        re.findall(r"\((https://[^)]+)\)", (ROOT / "README.md").read_text())
    )
    page = (ROOT / "docs/papers.md").read_text()
    for reference in cited.values():
        assert reference["type"] == "conference-paper" and 2021 <= reference["year"] <= 2023
        assert f"[{reference['title']}]({reference['url']})" in page
        (names,) = re.findall(rf"^(.*), \[{re.escape(reference['title'])}\]", page, flags=re.M)
        assert re.split(r", | and ", names) == [
            author["family-names"] for author in reference["authors"]
        ]


def test_the_catalog_file_promises_a_report_and_no_software_deployment() -> None:
    usage = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    assert usage["mandatory-flags"]["flags"] is None and usage["report"] is True
    assert usage["software-stack-deployment"] == {
        "conda": False,
        "singularity": False,
        "singularity+conda": False,
    }
    rules = "".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
    assert "conda:" not in rules and "container:" not in rules and "report(" in rules
