"""Hold every certificate of a study against its model's audits."""

from pathlib import Path

from confide.certify.gate import (
    BY_TEXTS,
    NOT_AUDITED,
    SKIPPED,
    Case,
    cases,
    settled,
    told_apart,
    unaudited,
    write_junit,
    write_table,
)
from confide.files.io import write_text
from confide.output.escaping import say
from confide.report.pages import gate as pages
from confide.specs import TEXT_AUDIT, GateSpec
from confide.specs.files import CERTIFICATE

STATED = f"synthetic.jsonl.{CERTIFICATE}"  # of a run's texts, in its folder


def gate(
    spec: GateSpec,
    *,
    results: Path,
    output: Path,
    junit: Path,
    html: Path | None = None,
    texts: Path | None = None,
) -> None:
    """Write gate.csv, JUnit XML and a page for people, whatever they say (`stages.passed`).

    texts: folder of all runs' texts, whose certificates name what an audit of texts must be of.

    A run that makes a finite claim and has no audit is a row of its own and a warning: no failure
    of the study, but such a model is not released. An audit of its texts is none of the model,
    which tells more.
    """
    all_cases: list[Case] = []
    warnings: list[str] = []
    for name in dict.fromkeys(run.run for run in spec.runs):
        folder = results / "runs" / name
        audits = [run.audit for run in spec.runs if run.run == name and run.audit is not None]
        certificate = folder / CERTIFICATE
        of_run: list[Case] = []
        for audit in audits:
            stated = None if texts is None or audit != TEXT_AUDIT else texts / name / STATED
            of_run += cases(certificate, folder / f"{audit}.json", stated)
        of_run = settled(of_run)
        of_model = [case for case in of_run if case.audit not in BY_TEXTS]
        if all(case.outcome == SKIPPED for case in of_model):
            of_run.append(unaudited(certificate))
        all_cases += of_run
        if TEXT_AUDIT in audits:
            warning = told_apart(certificate, folder / f"{TEXT_AUDIT}.json")
            warnings += [] if warning is None else [warning]
    write_junit(junit, all_cases, spec.study)
    write_table(output, all_cases)
    if html is not None:
        write_text(html, pages.page(spec.study, all_cases))
    for case in all_cases:
        if case.outcome == NOT_AUDITED:
            warnings.append(f"{case.run} is {NOT_AUDITED}: {case.says}")
        elif case.failed:
            warnings.append(f"{case.run} {case.audit} {case.outcome}: {case.says}")
    for warning in warnings:
        say(f"warning: {warning}")
