"""A search for secrets as a page, the verdict first (search.jinja), and as SARIF, which build
servers read.
"""

from typing import Any
from urllib.parse import quote

from confide.output import templates
from confide.report.pages.certificate import as_html

Json = dict[str, Any]
TITLE = "Files searched for secrets"
MOST = 500  # files without a hit that a page lists
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
RULE = "secret-in-released-file"


def page(report: Json) -> str:
    """HTML of scan.json. Files with a hit come first; of a long list the end is left out."""
    files = sorted(report["files"], key=lambda row: -row["hits"])
    leaking = report["totals"]["leaking_files"]
    shown = files[: leaking + MOST]
    values = {
        "title": TITLE,
        "totals": report["totals"],
        "secrets": report["secrets"],
        "warning": report["warning"],
        "files": shown,
        "left_out": len(files) - len(shown),
    }
    return as_html(templates.filled(__file__, values), TITLE)


def hits_of(label: str, count: int) -> str:
    """What a build server says of a file."""
    if count == 1:
        return f"1 secret of the label {label} stands in this file"
    return f"{count} secrets of the label {label} stand in this file"


def sarif(report: Json, version: str) -> Json:
    """SARIF 2.1.0 of scan.json: a result for each file and label; never a text.

    version: of confide.
    """
    results = [
        {
            "ruleId": RULE,
            "level": "error",
            "message": {"text": hits_of(label, count)},
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": quote(row["path"])}}}],
        }
        for row in report["files"]
        for label, count in sorted(row["labels"].items())
    ]
    text = "A secret of a private dataset stands in a file that is handed out."
    rule = {"id": RULE, "shortDescription": {"text": text}}
    driver = {"name": "confide scan", "version": version, "rules": [rule]}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
