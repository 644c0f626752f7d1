"""Make a study's tables, figures and pages: what is certified beside what is measured."""

from pathlib import Path

from confide.errors import InputError
from confide.files.io import atomic_folder, write_json
from confide.output.escaping import table_of
from confide.report.figures import style
from confide.report.figures.amplification import rows as amplification_rows
from confide.report.figures.registry import FIGURES
from confide.report.pages import assessment, examples, figures
from confide.report.pages.certificate import as_html
from confide.report.published import quotes
from confide.report.results import load
from confide.report.tables import table as tables
from confide.specs import ReportSpec


def study(spec: ReportSpec, *, results: Path, models: Path, output: Path) -> None:
    """Write the tables and figures of a study (PNG and SVG) to the folder `output`.

    The tables are table.csv, table.md and table.html, summary.json and epochs.csv.

    figures.md has the figures with headings and captions, which are not in the images. Beside them
    amplification.csv with that figure, published.csv where the spec names what to quote,
    examples.md, and of each run a page of facts for whoever assesses its model. All files appear,
    or none does; the same inputs give the same bytes.
    InputError names a missing run's file.
    """
    for name in spec.figures:
        if name not in FIGURES:
            raise InputError(f"is not one of {', '.join(FIGURES)}", key="figures", value=name)
    quoted = quotes(spec.published)
    loaded = load(spec.runs, results, models)
    table = tables.rows(loaded)
    conditions = (result.condition for result in loaded)
    units = (result.meaning.unit for result in loaded)
    texts = {
        "table.csv": table_of(table),
        "table.md": tables.markdown(spec, table, conditions, units),
        "epochs.csv": table_of(tables.epoch_rows(loaded)),
    }
    if spec.examples:
        texts["examples.md"] = examples.markdown(spec, loaded)
    if "amplification" in spec.figures:
        texts["amplification.csv"] = table_of(amplification_rows(spec.amplification))
    if quoted:
        texts["published.csv"] = table_of([quote._asdict() for quote in quoted])
    texts["table.html"] = as_html(texts["table.md"], spec.title, tables.STYLE)
    texts |= assessment.of_each_run(loaded)
    with atomic_folder(output) as folder:
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
        write_json(folder / "summary.json", tables.summary(table))
        with style.settings():
            drawn = {name: FIGURES[name](spec, loaded) for name in spec.figures}
            for name, figure in drawn.items():
                style.save(figure, folder / name)
        (folder / "figures.md").write_text(figures.markdown(spec, drawn), encoding="utf-8")
