"""Jobs as Snakemake writes them, read back."""

from confide.runtime.workflow_log import events, planned, progress

PLAN = """\
Building DAG of jobs...
Job stats:
job      count
-----  -------
split        1
gate_a       1
all          1
total        3

[Mon Nov 23 16:57:27 2026]
rule split:
    input: raw.csv
    output: data/work/a b/points.jsonl, data/c.json
    log: logs/split/a.log
    jobid: 3
    benchmark: logs/benchmarks/split/a.tsv
    reason: Missing output files: x; Input files updated by another job: output: y
    wildcards: source=public-turn, gamma=0.5
    resources: tmpdir=/tmp
[Mon Nov 23 16:57:27 2026] Group job study (jobs in lexicogr. order):

    [Mon Nov 23 16:57:28 2026]
    rule gate_a:
        input: data/c.json
        output: gate.csv
        log: logs/gate.log
        jobid: 5

    Submitted.
[Mon Nov 23 16:57:27 2026]
localrule all:
    input: gate.csv
    jobid: 0
"""
RUN = """\
Job stats:
job      count
-----  -------
split        2
train        1
total        3

[Mon Nov 23 10:00:00 2026]
localrule split:
    output: a
    log: logs/a.log
    jobid: 1
[Mon Nov 23 10:00:00 2026]
localrule train:
    output: b
    log: logs/b.log
    jobid: 2
[Mon Nov 23 10:01:30 2026]
Finished jobid: 1 (Rule: split)
1 of 3 steps (33%) done
[Mon Nov 23 10:01:40 2026]
Error in rule train:
    message: None
    jobid: 2
    output: b
    log: logs/b.log (check log file(s) for error details)
    shell:
        confide train
[Mon Nov 23 10:02:00 2026]
localrule split:
    output: c
    log: logs/c.log
    jobid: 4
""".splitlines()
AGAIN = """\
[Mon Nov 23 10:03:00 2026]
localrule train:
    output: b
    log: logs/b.log
    jobid: 2
[Mon Nov 23 10:03:30 2026]
Finished jobid: 2 (Rule: train)
""".splitlines()


def test_a_plan_lists_jobs_with_what_they_read_and_write():
    split, gate = planned(PLAN)
    assert split.rule == "split" and split.number == 3 and split.inputs == ("raw.csv",)
    assert split.outputs == ("data/work/a b/points.jsonl", "data/c.json")
    assert split.benchmark == "logs/benchmarks/split/a.tsv" and split.logs == ("logs/split/a.log",)
    assert split.wildcards == {"source": "public-turn", "gamma": "0.5"}
    assert split.title == "split public-turn 0.5"
    assert gate.rule == "gate_a" and gate.number == 5 and gate.outputs == ("gate.csv",)


def test_a_log_says_what_runs_what_is_done_and_what_failed():
    state = progress(RUN)
    assert state.total == {"split": 2, "train": 1}
    assert [(job.rule, seconds) for job, seconds in state.done] == [("split", 90.0)]
    assert [job.logs for job in state.failed.values()] == [("logs/b.log",)]
    assert list(state.running) == [4]


def test_a_later_attempt_that_comes_to_an_end_is_no_failure():
    state = progress([*RUN, *AGAIN])
    assert not state.failed and [job.rule for job, _ in state.done] == ["split", "train"]
    running = progress([*RUN, *AGAIN[:-2]])
    assert list(running.running) == [4, 2] and list(running.failed) == [2]


def test_a_group_fails_with_the_logs_of_all_its_jobs():
    lines = [
        "[a date]",
        "Error in group data:",
        "    jobs:",
        "        rule split:",
        "            jobid: 4",
        "            log: logs/split/a.log (check log file(s) for error details)",
        "        rule plant:",
        "            jobid: 5",
        "            log: logs/a b.log, logs/c.log (check log file(s) for error details)",
        "[a date]",
        "rule train:",
        "    jobid: 6",
        "    log: logs/train.log (check log file(s) for error details)",
        "Finished jobid: 4 (Rule: split)",
    ]
    failed = progress(lines).failed
    assert [job.logs for job in failed.values()] == [("logs/a b.log", "logs/c.log")]


def test_other_text_is_no_job():
    assert not list(events(["", "rule of thumb", "    jobid: 3", "Finished", "x" * 9999]))
