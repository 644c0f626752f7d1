"""Keep of a study what a leaderboard compares: what runs certify, are worth, and an audit says.

Such a file is all that verdicts follow from, so that they can be made again without the models.
"""

from pathlib import Path

from confide.files.io import write_json
from confide.report.leaderboard.panels import entries, file_of
from confide.specs import PanelSpec


def panel(spec: PanelSpec, *, results: Path, models: Path, output: Path) -> None:
    """Write a JSON file with a line of numbers for each run.

    Runs that were not made are left out, and a leaderboard names them. InputError for a file that
    is there and damaged.
    """
    write_json(output, file_of(entries(spec, results, models)))
