# raw -> split -> plant -> dedup, redact -> partition -> train -> certify, evaluate, attack, synthetic -> report
# -> gate, scan -> track
#
# `snakemake` builds what params.yaml selects; `snakemake -n` says what that would be, and why.
# Rules come in the order in which things happen. Each calls one function: rule redact = stages/redact.py = redact().
import atexit
import os
from pathlib import Path

from snakemake.utils import min_version

min_version("9.0")


# There is no `configfile:`, which would run what a template in params.yaml says: common.smk reads that file, and runs nothing.
include: "workflow/rules/common.smk"


# The summary that was made last opens the report.
report: opening() or "workflow/report/workflow.rst"


include: "workflow/rules/policies.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/shares.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/attack.smk"
include: "workflow/rules/synthesis.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/gate.smk"
include: "workflow/rules/scan.smk"
include: "workflow/rules/track.smk"


localrules:
    all,
    fetch,
    prepare,
    train_all,
    attack_all,
    report_all,
    gate_all,
    scan_all,
    all_papers,
    track,


# Before the first job of a run, and in no dry run.
onstart:
    redate(Path.cwd())
    snakemake_internals.lift_rate_limit(workflow)


# After a run that failed or was stopped: what Snakemake still says comes before this.
onerror:
    atexit.register(
        failures.tell, Path.cwd(), [log] if isinstance(log, str) else log, STARTED
    )


# After a run that built something and did not fail.
onsuccess:
    atexit.register(afterwards.tell, Path.cwd(), STARTED)


# Every deliverable is listed: one that only a later file needs would not be missed.
rule all:
    default_target: True
    input:
        rules.prepare.input,
        rules.train_all.input,
        rules.attack_all.input,
        rules.report_all.input,
        rules.gate_all.input,
        rules.scan_all.input,
        rules.track.output,
