"""What is said last of a run that failed: against a real Snakemake, and logs by hand."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from confide.runtime import failures

SRC = Path(failures.__file__).parents[2]
SNAKEFILE = """
import atexit
import sys
import time
from pathlib import Path

sys.path.insert(0, {src!r})
from confide.runtime import failures

STARTED = time.time()

rule all:
    input: "good", "again", "bad", "killed"

rule good:
    output: "good"
    log: "logs/good.log"
    shell: "echo confide train: error: of old > {{log}}; echo done > {{log}}; touch {{output}}"

rule again:
    output: "again"
    log: "logs/again.log"
    shell:
        "echo confide train: fault: once > {{log}}; "
        "test -e tried || {{{{ touch tried; exit 1; }}}}; echo > {{log}}; touch {{output}}"

rule bad:
    output: "bad"
    log: "logs/train/bad.log"
    shell: "(echo at work; echo 'confide train: error: no budget') > {{log}}; exit 2"

rule late:
    output: "late/a", "late/b"
    log: "logs/late.log"
    shell: "echo made > {{log}}"

rule killed:
    output: "killed"
    log: "logs/killed.log"
    shell: "(echo at work; kill -9 $$) > {{log}}"

onerror:
    atexit.register(failures.tell, Path.cwd(), log, STARTED)
"""


@pytest.fixture
def project(tmp_path):
    """A folder with rules of which two fail, and an old log that is none of this run."""
    (tmp_path / "Snakefile").write_text(SNAKEFILE.format(src=str(SRC)))
    old = tmp_path / "logs/old.log"
    old.parent.mkdir()
    old.write_text("confide train: error: long ago\n")
    os.utime(old, (1e9, 1e9))
    return tmp_path


def snakemake(folder: Path, *options: str) -> subprocess.CompletedProcess:
    words = [sys.executable, "-m", "snakemake", "--cores", "1", "--keep-going", *options]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True)


def test_failed_jobs_come_last_with_reason_and_log(project):
    done = snakemake(project, "--retries", "1")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-4:] == [
        "2 jobs failed:",
        f"  logs/killed.log: {failures.NO_REASON}",
        "  logs/train/bad.log: confide train: error: no budget",
        failures.GO_ON,
    ]


@pytest.mark.nightly
def test_a_quiet_run_says_it_too(project):
    done = snakemake(project, "bad", "good", "--quiet", "all")
    assert done.stderr.splitlines() == [
        "",
        "1 job failed:",
        "  logs/train/bad.log: confide train: error: no budget",
        failures.GO_ON,
    ]


def test_a_run_that_was_stopped_says_how_to_go_on(tmp_path, capsys):
    failures.tell(tmp_path, [], time.time())
    assert capsys.readouterr().err == f"\nStopped. {failures.GO_ON}\n"


@pytest.mark.nightly
def test_jobs_that_ran_when_it_was_stopped_are_no_failures(project):
    """Ctrl-C reaches Snakemake and its jobs."""
    snakefile = project / "Snakefile"
    text = snakefile.read_text().replace("kill -9 $$", "sleep 100")
    snakefile.write_text(text)
    words = [sys.executable, "-m", "snakemake", "--cores", "1", "killed"]
    running = subprocess.Popen(
        words, cwd=project, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    log = project / "logs/killed.log"
    while not (log.is_file() and log.read_text()) and running.poll() is None:
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGINT)
    assert running.communicate()[1].splitlines()[-1] == f"Stopped. {failures.GO_ON}"
    assert running.returncode == 1


def test_a_log_cannot_write_to_the_terminal(tmp_path, capsys):
    (tmp_path / "logs").mkdir()
    hostile = "confide train: error: \x1b[2J\u202e"
    (tmp_path / "logs/train.log").write_text(hostile + "\n")
    failures.tell(tmp_path, [], 0)
    shown = capsys.readouterr().err
    assert "\x1b" not in shown and "\u202e" not in shown and "\\x1b[2J" in shown


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("confide train: fault: KeyError at stages/train.py:3\n\n  \n", True),
        ("confide train: failed: a finding", True),
        ("confide train: error: mended\nepoch 2\n", False),
        ("", False),
        ("x" * (1 << 17) + "\nconfide gate: failed: late\n", True),
    ],
)
def test_the_last_line_of_a_log_says_why(tmp_path, text, why):
    log = tmp_path / "a.log"
    log.write_text(text)
    assert failures.says_why(log) is why


def test_the_project_tells_when_a_job_fails():
    snakefile = SRC.parent / "Snakefile"
    handler = snakefile.read_text().partition("\nonerror:\n")[2].partition("\n\n")[0]
    assert handler.split()[:2] == ["atexit.register(", "failures.tell,"]


def test_an_output_that_a_slow_file_system_does_not_show_is_named(project):
    done = snakemake(project, "late/a", "good", "--latency-wait", "1")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-3:] == [
        "1 job failed:",
        f"  late/a: {failures.LATE}",
        failures.GO_ON,
    ]


def test_an_output_that_a_later_attempt_has_made_is_not(project):
    lines = [
        "Job 7  completed successfully, but some output files are missing. Missing files after 5",
        "late/a (missing locally, parent dir contents: b)",
        "late/c (missing locally, parent dir contents: b)",
    ]
    assert failures.unseen(lines) == ["late/a"]
    assert failures.unseen([*lines, "Finished jobid: 7 (Rule: late)"]) == []


FULL_LOG = """
import logging
from confide.runtime import failures

failures.tell_of_full_logs_in_a_line()
logger = logging.getLogger("workflow")
logger.addHandler(logging.FileHandler("/dev/full"))
logger.error("one")
logger.error("two")
"""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_log_on_a_full_disk_says_so_in_one_line(tmp_path):
    environment = os.environ | {"PYTHONPATH": str(SRC)}
    words = [sys.executable, "-c", FULL_LOG]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    file = os.path.relpath("/dev/full", tmp_path)
    assert done.stderr == f"{file}: cannot be written: No space left on device\n"
