"""Write docs/leaderboard.md from the panels of leaderboards, so that no number of it is typed.

    python tools/leaderboard_page.py [--results FOLDER] [--machine WORDS]

The fixed words are in tools/leaderboard_page.jinja. Panels that `snakemake leaderboard` made below
FOLDER (results/, if nothing is said) are kept in docs/results/leaderboard/, with the day, the
commit and the machine, and so are the trials of `snakemake tuning tuning_values`. Of a panel that
was made in part, the seeds that it lacks stay as they were kept: where settings changed under their
names, delete its file first. Verdicts, tables and figures are made of all that is kept there, on
whichever machine that was run; panels that are missing are named. Without any nothing is written,
and the command ends with 1.
"""

import argparse
import datetime
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from results_page import RANKED, read, write

from confide.config import jobs, studies
from confide.config.params import FILE, Params, load
from confide.files.io import write_json
from confide.output import templates
from confide.report.leaderboard import panels
from confide.stages.leaderboard import leaderboard

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/leaderboard.md"
FIGURES = ROOT / "docs/figures"
KEPT = RANKED
DATES = "dates.csv"
COLUMNS = ("study", "date", "commit", "machine")
BOARDS = {
    "leaderboard": "LSTM and small GPT-2",
    "leaderboard_pretrained": "SmolLM2 with adapters",
}
IMAGE = "](leaderboard.png)"  # in leaderboard.md
PANEL = "\n## "  # there, before each panel
DEEPER = "\n### "


class Board(NamedTuple):
    """One leaderboard: its figure and its tables in Markdown, and panels that were not run yet."""

    heading: str
    figure: str
    tables: str
    missing: list[str]


class Tuned(NamedTuple):
    """The trials of a method of a model on a corpus: validation perplexity of each, and which was
    the best.
    """

    corpus: str
    model: str
    method: str
    scores: list[str]
    best: dict[str, str]  # its line of the file


def keep(results: Path, machine: str) -> None:
    """Keep what was made, and say when, where and from which commit a panel is that is new."""
    trials = [path for name in jobs.TRIALS if (path := results / f"{name}.csv").is_file()]
    made_panels = sorted((results / "leaderboards/panels").glob("*.json"))
    if trials or made_panels:
        KEPT.mkdir(parents=True, exist_ok=True)
    for made in trials:
        shutil.copyfile(made, KEPT / made.name)
    dates = {row["study"]: row for row in read(KEPT / DATES)}
    for made in made_panels:
        kept = KEPT / made.name
        part = panels.read(made)
        earlier = panels.read(kept) if kept.is_file() else []
        rows = panels.joined(part, earlier)
        if rows == earlier:
            continue
        write_json(kept, panels.file_of(rows))
        told = {"commit": commit(), "machine": machine}
        if rows != part:  # some seeds are of before
            told = {name: both(dates[made.stem][name], value) for name, value in told.items()}
        today = datetime.date.today().isoformat()
        dates[made.stem] = {"study": made.stem, "date": today} | told
    if dates:
        write(KEPT / DATES, list(COLUMNS), [dates[study] for study in sorted(dates)])


def both(first: str, second: str) -> str:
    """Two words, or one that is the same."""
    return first if first == second else f"{first}; {second}"


def commit() -> str:
    """The commit of this checkout, and whether files differ from it."""
    words = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def boards(params: Params) -> list[Board]:
    """Those of which a panel was kept, with their figures beside those of other pages."""
    found = []
    absent = []
    for name, heading in BOARDS.items():
        spec = studies.leaderboard(params, name)
        there = {
            study: title
            for study, title in spec.panels.items()
            if (KEPT / f"{study}.json").is_file()
        }
        if not there:
            absent.append(f"{heading} ({', '.join(spec.panels.values())})")
            continue
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / name
            leaderboard(spec.model_copy(update={"panels": there}), panels=KEPT, output=made)
            text = (made / "leaderboard.md").read_text(encoding="utf-8")
            FIGURES.mkdir(exist_ok=True)
            shutil.copyfile(made / "leaderboard.png", FIGURES / f"{name}.png")
        figure, _, tables = text.replace(IMAGE, f"]({FIGURES.name}/{name}.png)").partition(PANEL)
        missing = [title for study, title in spec.panels.items() if study not in there]
        missing += [words for study in there if (words := changed(params, study))]
        tables = f"{PANEL}{tables}".replace(PANEL, DEEPER).strip()
        found.append(Board(heading, figure.strip(), tables, missing))
    if found:
        found[-1].missing.extend(absent)
    return found


def changed(params: Params, study: str) -> str:
    """The rows of a panel that was kept that are not as params.yaml has them now; "" for none."""
    wanted = studies.panel(params, study)
    now = [panels.measured(runs, {}, {}, wanted.delta) for runs in panels.by_row(wanted)]
    kept = panels.read(KEPT / f"{study}.json")
    other = {(row.asked, row.seeds) for row in now} ^ {(row.asked, row.seeds) for row in kept}
    names = sorted({row.name for row in now + kept if (row.asked, row.seeds) in other})
    title = params.studies[study].title
    return f"{title}: {', '.join(names)} (added, left out or changed since)" if names else ""


def tuned(name: str) -> list[Tuned]:
    """The trials of a study by corpus, model and method, in the order of its file."""
    rivals: dict[tuple[str, str, str], list[dict[str, str]]] = {}
    for row in read(KEPT / f"{name}.csv"):
        rivals.setdefault((row["corpus"], row["model"], row["method"]), []).append(row)
    return [
        Tuned(
            corpus,
            model,
            method,
            scores=[f"{float(row['valid_ppl']):.4g}" for row in trials],
            best=next(row for row in trials if row["best"] == "True"),
        )
        for (corpus, model, method), trials in rivals.items()
    ]


def page(params: Params) -> str | None:
    """The whole page; None where no panel was kept."""
    found = boards(params)
    if not found:
        return None
    titles = {name: study.title for name, study in params.studies.items()}
    values = {"boards": found, "dates": read(KEPT / DATES), "titles": titles}
    values |= {name: tuned(name) for name in jobs.TRIALS}
    return templates.filled(__file__, values)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--results", type=Path, default=ROOT / "results")
    parser.add_argument("--machine", default="unknown", help="what the models were trained on")
    asked = parser.parse_args(arguments)
    keep(asked.results, asked.machine)
    text = page(load(ROOT / FILE))
    if text is None:
        print(f"{asked.results}/leaderboards/panels: nothing is there; run `snakemake leaderboard`")
        return 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
