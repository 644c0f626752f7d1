"""Write docs/results.md, and the tables of docs/correlated.md, docs/cover.md and docs/synthetic.md,
from the results of studies.

    python tools/results_page.py [--results FOLDER]

The words are in tools/*.jinja, which ask for tables, single numbers and verdicts. What they
ask for is kept under docs/results/, a CSV for each study with one row per run and seed: a study
whose results are in FOLDER (results/, if nothing is said) replaces what is kept of it, the others
stay. A JSON file there has all numbers of a study: `dvc metrics diff` then shows what is no longer
as documented. `--check` writes nothing, and ends with 1 where a page is not what would be written.
"""

import argparse
import csv
import datetime
import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from confide.attacks.exposure.null import null_band
from confide.output import templates
from confide.report.tables.table import Row, cell, table_lines

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "docs/results"
PAGES = {name: ROOT / f"docs/{name}.md" for name in ("results", "correlated", "cover", "synthetic")}
RANKED = KEPT / "leaderboard"  # panels that tools/leaderboard_page.py keeps
ROW = ("name", "method", "gamma", "seed")
DATES = KEPT / "dates.csv"
CLAIMS = KEPT / "claims.csv"
UNTRIED = "–"
CANARIES = 10  # of each model
NOT_RUN = "not run"  # of a claim whose studies have no results in the folder
MACHINE = (".seconds", ".peak_mb")


class Results:
    """What the template may ask for; `asked` collects the columns of each study, `shown` texts
    of models.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.asked: dict[str, dict[str, None]] = {}
        self.shown: dict[str, list[str]] = {}
        self.claims = read(CLAIMS)
        self.dates = {row["study"]: row["date"] for row in read(DATES)}
        made = folder / "summary/claims.csv"
        if made.is_file():
            tried = [row for row in read(made) if row["verdict"] != NOT_RUN]
            self.claims = merged(self.claims, tried)

    def has(self, study: str) -> bool:
        """Whether there are numbers of a study."""
        return any(path.is_file() for path in (self.made(study), KEPT / f"{study}.csv"))

    def made(self, study: str) -> Path:
        return self.folder / "studies" / study / "table.csv"

    def group(self, study: str, name: str, gamma: float | None, column: str) -> list[Row]:
        """The seeds of one row of a study, at one miss rate (None: the only one)."""
        self.asked.setdefault(study, dict.fromkeys(ROW))[column] = None
        source = self.made(study)
        rows = read(source if source.is_file() else KEPT / f"{study}.csv")
        chosen = [
            {column: number(row[column])}
            for row in rows
            if row["name"] == name and (gamma is None or float(row["gamma"]) == gamma)
        ]
        if not chosen:
            raise SystemExit(f"{study}: has no run of {name} at γ = {gamma}")
        return chosen

    def value(self, study: str, name: str, column: str, gamma: float | None = None) -> str:
        """Mean over the seeds, with the half width of its 95 % interval."""
        return cell(self.group(study, name, gamma, column), column)

    def difference(
        self,
        study: str,
        names: tuple[str, str],
        column: str,
        gammas: tuple[float | None, float | None] = (None, None),
    ) -> str:
        """By how much the first row's number is larger than the second's, with its 95 % interval.

        The mean over pairs of equal seeds; SystemExit where a seed has no pair.
        """
        first, second = (
            self.by_seed(study, name, gamma, column)
            for name, gamma in zip(names, gammas, strict=True)
        )
        return paired(study, names, first, second)

    def ahead(self, panel: str, names: tuple[str, str], number: str) -> str:
        """The same of two rows of a leaderboard's panel, of the numbers that it keeps of runs."""
        rows = json.loads((RANKED / f"{panel}.json").read_text())["rows"]
        by_name = {
            row["name"]: {run["seed"]: run["numbers"][number] for run in row["runs"]}
            for row in rows
        }
        return paired(panel, names, *(by_name[name] for name in names))

    def by_seed(
        self, study: str, name: str, gamma: float | None, column: str
    ) -> dict[float, float]:
        """A row's number of each seed."""
        seeds = self.group(study, name, gamma, "seed")
        values = self.group(study, name, gamma, column)
        return {seed["seed"]: value[column] for seed, value in zip(seeds, values, strict=True)}

    def above(
        self, study: str, name: str, column: str, limit: float, gamma: float | None = None
    ) -> str:
        """In how many of the seeds a number is above a limit, such as "1 of 5"."""
        values = [row[column] for row in self.group(study, name, gamma, column)]
        return f"{sum(value > limit for value in values)} of {len(values)}"

    def table(
        self, study: str, columns: dict[str, str], rows: dict[str, tuple[str, float | None]]
    ) -> str:
        """A table in Markdown: headings and columns; labels, names of rows and miss rates."""
        body = [
            [label, *(self.value(study, name, column, gamma) for column in columns.values())]
            for label, (name, gamma) in rows.items()
        ]
        return "\n".join(table_lines(["", *columns], body))

    def examples(self, study: str, labels: dict[str, str], each: int) -> str:
        """Texts that models of a study wrote, their secrets masked: so many of each label."""
        made = self.made(study).with_name("examples.md")
        source = made if made.is_file() else KEPT / f"{study}_examples.txt"
        lines = source.read_text(encoding="utf-8").splitlines()
        self.shown[study] = [line for line in lines if line.startswith("|")]
        table = self.shown[study][:2]
        for label, words in labels.items():
            start = f"| {label} | "
            chosen = [line for line in self.shown[study] if line.startswith(start)][:each]
            table += [f"| {words} | {line.removeprefix(start)}" for line in chosen]
        return "\n".join(table)

    def seeds(self, study: str, name: str) -> int:
        """How many seeds a row has at each miss rate."""
        rows = self.group(study, name, None, "seed")
        return len({row["seed"] for row in rows})

    def date(self, study: str) -> str:
        """When the numbers of a study were kept, or are now."""
        if self.made(study).is_file():
            return datetime.date.today().isoformat()
        return self.dates[study]

    def verdicts(self, claims: dict[str, str], corpora: dict[str, str]) -> str:
        """A table of verdicts in Markdown.

        claims: labels of lines, and claims as they end; corpora: headings, and what claims begin
        with. A claim that was not tried on a corpus has a dash; SystemExit where it was on none.
        """
        verdict = {row["claim"]: row["verdict"] for row in self.claims}
        body = []
        for words, claim in claims.items():
            tried = [f"{corpus}: {claim}" for corpus in corpora.values()]
            if not verdict.keys() & tried:
                raise SystemExit(f"no claim ends so: {claim}")
            body.append([words, *(verdict.get(name, UNTRIED) for name in tried)])
        return "\n".join(table_lines(["", *corpora], body))

    def claim(self, claim: str) -> dict[str, str]:
        """The row of a claim; SystemExit where there is no such claim."""
        for row in self.claims:
            if row["claim"] == claim:
                return row
        raise SystemExit(f"no claim says: {claim}")

    def verdict(self, claim: str) -> str:
        """The verdict on a claim, such as "Not shown:" in bold."""
        return f"**{self.claim(claim)['verdict'].capitalize()}:**"

    def evidence(self, claim: str, words: str) -> str:
        """The number behind some words of a claim's evidence; SystemExit where there is none."""
        evidence = self.claim(claim)["evidence"]
        found = re.search(rf"(?<!\w){re.escape(words)} (-?[\d.,]*\d)", evidence)
        if found is None:
            raise SystemExit(f"no number behind {words}: {evidence}")
        return found[1]

    def keep(self) -> None:
        """Write what the template asked for of the studies whose results are there."""
        KEPT.mkdir(exist_ok=True)
        for study, columns in self.asked.items():
            if self.made(study).is_file():
                rows = read(self.made(study))
                write(KEPT / f"{study}.csv", list(columns), rows)
                self.dates[study] = self.date(study)
        for study, lines in self.shown.items():
            text = "\n".join(lines) + "\n"
            (KEPT / f"{study}_examples.txt").write_text(text, encoding="utf-8")
        write(CLAIMS, list(self.claims[0]) if self.claims else [], self.claims)
        dates = [{"study": study, "date": date} for study, date in sorted(self.dates.items())]
        write(DATES, ["study", "date"], dates)
        for kept in KEPT.glob("*.json"):
            made = self.made(kept.stem).with_name("summary.json")
            if made.is_file():
                kept.write_text(metrics(made))


def paired(
    source: str, names: tuple[str, str], first: dict[float, float], second: dict[float, float]
) -> str:
    """Mean difference of two rows' numbers by seed, with the half width of its 95 % interval.

    SystemExit where a seed has no pair.
    """
    if first.keys() != second.keys():
        raise SystemExit(f"{source}: {names[0]} and {names[1]} have different seeds")
    pairs = [{"difference": value - second[seed]} for seed, value in first.items()]
    return cell(pairs, "difference")


def metrics(summary: Path) -> str:
    """A study's numbers as JSON, but for those of the machine: what `dvc metrics diff` compares."""
    numbers = json.loads(summary.read_text())
    same = {key: value for key, value in numbers.items() if not key.endswith(MACHINE)}
    return json.dumps(same, indent=1, sort_keys=True) + "\n"


def merged(kept: list[Row], made: list[Row]) -> list[Row]:
    """Claims that were kept, and newer verdicts on them and on others."""
    newer = {(row["paper"], row["claim"]): row for row in made}
    older = [newer.pop((row["paper"], row["claim"]), row) for row in kept]
    return older + list(newer.values())


def number(text: str) -> float | None:
    """A number of a table; None where nothing was measured."""
    return float(text) if text else None


def read(path: Path) -> list[Row]:
    """The rows of a CSV file, of none where it is not there."""
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write(path: Path, columns: list[str], rows: Iterable[Row]) -> None:
    """A CSV file with these columns of the rows."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def page(name: str, results: Results) -> str:
    """A whole page."""
    values = {
        "results": results,
        # the most that canaries are exposed which a model knows nothing of
        "mean_by_chance": null_band("mean", CANARIES)[2],
        "largest_by_chance": null_band("max", CANARIES)[2],
    }
    return templates.filled(str(Path(__file__).with_name(name)), values)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--results", type=Path, default=ROOT / "results")
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args(arguments)
    if asked.check:
        kept = Results(KEPT / "none")
        return int(any(page(name, kept) != file.read_text() for name, file in PAGES.items()))
    results = Results(asked.results)
    for name in PAGES:
        page(name, results)  # asks for the columns
    results.keep()
    for name, file in PAGES.items():
        file.write_text(page(name, results))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
