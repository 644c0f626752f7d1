"""Hold every certificate of a study against its model's audit; fail where one does not stand."""

from pathlib import Path

from confide.certify.gate import (
    NOT_AUDITED,
    SKIPPED,
    Case,
    cases,
    unaudited,
    write_junit,
    write_table,
)
from confide.errors import Failure
from confide.files.io import write_text
from confide.output.escaping import say
from confide.report.pages import gate as pages
from confide.specs import GateSpec


def gate(
    spec: GateSpec, *, results: Path, output: Path, junit: Path, html: Path | None = None
) -> None:
    """Write gate.csv, JUnit XML and a page for people.

    Failure names what was refuted, or could not have been.

    A run that makes a finite claim and has no audit is a row of its own and a warning: no failure
    of the study, but such a model is not released.
    """
    all_cases: list[Case] = []
    for name in dict.fromkeys(run.run for run in spec.runs):
        folder = results / "runs" / name
        audits = [run.audit for run in spec.runs if run.run == name and run.audit is not None]
        certificate = folder / "certificate.json"
        of_run = [case for audit in audits for case in cases(certificate, folder / f"{audit}.json")]
        if all(case.outcome == SKIPPED for case in of_run):
            of_run.append(unaudited(certificate))
        all_cases += of_run
    write_junit(junit, all_cases, spec.study)
    write_table(output, all_cases)
    if html is not None:
        write_text(html, pages.page(spec.study, all_cases))
    for case in all_cases:
        if case.outcome == NOT_AUDITED:
            say(f"warning: {case.run} is {NOT_AUDITED}: {case.says}")
    if failed := [case for case in all_cases if case.failed]:
        raise Failure(*(f"{case.run} {case.audit} {case.outcome}: {case.says}" for case in failed))
