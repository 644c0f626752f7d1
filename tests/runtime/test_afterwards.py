"""What stands below a run that succeeded."""

import os
import time
from pathlib import Path

from confide.runtime.afterwards import SUMMARY, tell


def touched(file: Path, when: float) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    os.utime(file, (when, when))


def test_prepare_alone_leads_to_prices_and_all_else_to_results(tmp_path, capsys):
    started = time.time()
    recall = tmp_path / "data/work/mine/g0/recall.json"
    touched(recall, started - 9)
    tell(tmp_path, started)
    assert capsys.readouterr().out == ""
    touched(recall, started + 1)
    tell(tmp_path, started)
    assert "confide recommend" in capsys.readouterr().out
    touched(tmp_path / SUMMARY, started - 9)  # of an earlier run
    tell(tmp_path, started)
    assert "confide recommend" in capsys.readouterr().out
    touched(tmp_path / SUMMARY, started + 2)
    touched(tmp_path / "results/studies/own/assessment_a.html", started + 2)
    tell(tmp_path, started)
    shown = capsys.readouterr().out
    assert "All results" in shown and "results/studies/own/assessment_*.html" in shown
    assert "recommend" not in shown
