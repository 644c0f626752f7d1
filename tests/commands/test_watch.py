"""`confide watch`: what one look shows."""

import io
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from rich.console import Console

from confide.advisor.rates import read_rates
from confide.commands.watch import before, newest, share_done, view, watch
from confide.errors import InputError
from confide.runtime.workflow_log import FOLDER, TIME_FORMAT, progress

BEGAN = datetime(2026, 11, 23, 10, 0, 0)


def stamp(seconds: float) -> str:
    return f"[{(BEGAN + timedelta(seconds=seconds)).strftime(TIME_FORMAT)}]"


def started(seconds: float, rule: str, number: int, log: str) -> list[str]:
    return [
        stamp(seconds),
        f"localrule {rule}:",
        f"    output: out{number}",
        f"    log: {log}",
        f"    jobid: {number}",
        f"    wildcards: run=a/g0-s{number}",
    ]


def table(**counts: int) -> list[str]:
    rows = [f"{rule}  {count}" for rule, count in counts.items()]
    return [
        "Provided cores: 2 (use --cores)",
        "Job stats:",
        *rows,
        f"total  {sum(counts.values())}",
    ]


def shown(lines: list[str], folder: Path, seconds: float, **typical: float) -> str:
    console = Console(file=io.StringIO(), width=120)
    console.print(view(lines, folder, typical, BEGAN + timedelta(seconds=seconds)))
    return console.file.getvalue()


LINES = [
    *table(train=4, gate_a=1, all=1),
    *started(0, "train", 1, "logs/1.log"),
    *started(0, "train", 2, "logs/2.log"),
    stamp(60),
    "Finished jobid: 1 (Rule: train)",
    *started(60, "train", 3, "logs/3.log"),
]


def test_a_look_shows_all_jobs_each_running_one_and_the_time_left(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/2.log").write_text("a/g0-s2: epoch 3 of 4, 10 updates, 9.1 s\n")
    text = shown(LINES, tmp_path, 90, gate=10.0)
    # one more training of 60 s, a gate, 30 s of the second (a quarter of 90 s is left) and third
    assert "1 of 5 jobs, about" in text
    assert "train a/g0-s2  1.5 minutes" in text and "train a/g0-s3  30 s" in text
    state = progress(LINES)
    second, third = state.running.values()
    now = BEGAN + timedelta(seconds=90)
    assert share_done(second, tmp_path, {}, now) == 0.75
    assert share_done(third, tmp_path, {"train": 60.0}, now) == 0.5
    assert share_done(third, tmp_path, {}, now) is None
    assert "about 65 s left" in text  # (60 + 10 + 30 + 30) / 2


def test_what_is_not_known_is_at_least(tmp_path):
    assert "at least" in shown(LINES, tmp_path, 90)


def test_failures_say_why_and_an_ended_run_has_no_time_left(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/3.log").write_text("confide train: error: no budget\n")
    failed = [
        *LINES,
        stamp(95),
        "Error in rule train:",
        "    jobid: 3",
        "    log: logs/3.log (check log file(s) for error details)",
    ]
    text = shown(failed, tmp_path, 100, gate=10.0)
    assert "1 failed" in text and "logs/3.log: confide train: error: no budget" in text
    assert "ended" in shown([*failed, "Complete log(s): x"], tmp_path, 100)


def test_a_look_without_a_terminal_is_one_look(tmp_path, capsys):
    with pytest.raises(InputError, match="nothing has been run here"):
        watch(folder=tmp_path)
    (tmp_path / FOLDER).mkdir(parents=True)
    for name in ("2026-11-22T100000.snakemake.log", "2026-11-23T100000.snakemake.log"):
        (tmp_path / FOLDER / name).write_text("\n".join(LINES))
    assert newest(tmp_path).name.startswith("2026-11-23")
    watch(folder=tmp_path)
    assert "1 of 5 jobs" in capsys.readouterr().out


def test_jobs_whose_starts_are_not_told_are_counted(tmp_path):
    """As with --quiet rules, which leaves of a job no more than that it is done."""
    lines = [
        *table(split=2, train=2, all=1),
        stamp(10),
        "Finished jobid: 3 (Rule: split)",
        stamp(20),
        "Finished jobid: 4 (Rule: split)",
    ]
    state = progress(lines)
    assert [(job.rule, seconds) for job, seconds in state.done] == [("split", None)] * 2
    text = shown(lines, tmp_path, 30, split=7.0, train=40.0)
    assert "2 of 4 jobs, about 40 s left" in text  # 2 x 40 s on 2 cores


def test_an_older_run_is_not_taken_for_one_that_leaves_no_log(tmp_path, capsys):
    """As with --quiet all: Snakemake's log of that run is empty."""
    (tmp_path / FOLDER).mkdir(parents=True)
    (tmp_path / FOLDER / "2026-11-22T100000.snakemake.log").write_text("\n".join(LINES))
    (tmp_path / FOLDER / "2026-11-23T100000.snakemake.log").touch()
    with pytest.raises(InputError, match="2026-11-23T100000.*is empty.*--quiet"):
        watch(folder=tmp_path)
    assert not capsys.readouterr().out


def test_times_of_this_folder_come_before_those_of_elsewhere(tmp_path):
    folder = tmp_path / "logs/benchmarks/split"
    folder.mkdir(parents=True)
    (folder / "a.tsv").write_text("s\tmax_rss\n4.0\t1\n")
    (folder / "b.tsv").write_text("s\tmax_rss\n6.0\t1\n")
    typical = before(tmp_path)
    assert typical["split"] == 5.0
    assert typical["train"] == read_rates()["train"].seconds
