"""The page of a study's figures, each with its heading and caption; its words: figures.jinja."""

from collections.abc import Mapping

from confide.output import templates
from confide.report.figures.style import Drawing
from confide.specs import ReportSpec


def markdown(spec: ReportSpec, drawn: Mapping[str, Drawing]) -> str:
    """The page in Markdown, to lie beside the images; `drawn`: figures by name."""
    return templates.filled(__file__, {"spec": spec, "drawn": drawn})
