"""What stands below a run that succeeded."""

import os
import time
from pathlib import Path

from confide.runtime.afterwards import STUDIES, SUMMARY, tell


def touched(file: Path, when: float) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    os.utime(file, (when, when))


def test_prepare_alone_leads_to_prices_and_all_else_to_results(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PWD", str(tmp_path))
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


def test_a_folder_that_the_shell_does_not_stand_in_is_named(tmp_path, capsys, monkeypatch):
    worked = tmp_path / "two words"
    recall = worked / "data/work/mine/g0/recall.json"
    touched(recall, 1)
    for stands, named in ((worked, ""), (tmp_path, f" '{worked}'")):
        monkeypatch.setenv("PWD", str(stands))
        tell(worked, 0)
        assert capsys.readouterr().out.endswith(f"confide recommend{named}\n")
    touched(worked / SUMMARY, 1)
    (worked / STUDIES).mkdir()
    tell(worked, 0)
    shown = capsys.readouterr().out
    assert f"All results: {worked / SUMMARY};" in shown
    assert shown.endswith(f"confide report -d '{worked}'\n")
