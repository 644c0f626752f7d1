"""Write docs/leaderboard.md from the results of leaderboards, so that no number of it is typed.

    python tools/leaderboard_page.py [--results FOLDER]

The fixed words are in tools/leaderboard_page.jinja. Tables and figures are those that `snakemake
leaderboard` made below FOLDER (results/, if nothing is said): they are copied as they are, with the
day and the commit. Without results nothing is written, and the command ends with 1.
"""

import argparse
import datetime
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from confide.output import templates

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/leaderboard.md"
FIGURES = ROOT / "docs/figures"
BOARDS = {
    "leaderboard": "LSTM and small GPT-2",
    "leaderboard_pretrained": "SmolLM2 with adapters",
}
IMAGE = "](leaderboard.png)"  # in leaderboard.md


class Board(NamedTuple):
    """One leaderboard: its heading, and its figure and tables in Markdown."""

    heading: str
    text: str


def boards(results: Path, figures: str) -> list[Board]:
    """Those whose results are there; `figures`: their folder as seen from the page."""
    found = []
    for name, heading in BOARDS.items():
        file = results / "leaderboards" / name / "leaderboard.md"
        if file.is_file():
            text = file.read_text(encoding="utf-8").replace(IMAGE, f"]({figures}/{name}.png)")
            found.append(Board(heading, text.replace("\n## ", "\n### ").strip()))
    return found


def commit() -> str:
    """The commit of this checkout, and whether files differ from it."""
    words = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def page(found: list[Board], day: str, made_by: str) -> str:
    """The whole page."""
    return templates.filled(__file__, {"boards": found, "day": day, "commit": made_by})


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--results", type=Path, default=ROOT / "results")
    asked = parser.parse_args(arguments)
    found = boards(asked.results, FIGURES.name)
    if not found:
        print(f"{asked.results}/leaderboards: nothing is there; run `snakemake leaderboard` first")
        return 1
    for name in BOARDS:
        image = asked.results / "leaderboards" / name / "leaderboard.png"
        if image.is_file():
            FIGURES.mkdir(exist_ok=True)
            shutil.copyfile(image, FIGURES / f"{name}.png")
    day = datetime.date.today().isoformat()
    PAGE.write_text(page(found, day, commit()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
