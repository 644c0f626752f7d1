"""The gate of a study: every certificate against the audit of its model; the study fails where one does not stand."""

from pathlib import Path

from confide.errors import Failure
from confide.gate import NOT_AUDITED, cases, unaudited, write_junit, write_table
from confide.specs import GateSpec


def gate(spec: GateSpec, *, results: Path, output: Path, junit: Path) -> None:
    """Write gate.csv and JUnit XML; Failure names what was refuted, or could not have been.

    A run that makes a finite claim and has no audit is a row of its own and a warning: no failure
    of the study, but such a model is not released.
    """
    found = []
    for run in spec.runs:
        folder = results / "runs" / run.run
        certificate = folder / "certificate.json"
        found += [unaudited(certificate)] if run.audit is None else cases(certificate, folder / f"{run.audit}.json")
    write_junit(junit, found, spec.study)
    write_table(output, found)
    for case in found:
        if case.outcome == NOT_AUDITED:
            print(f"warning: {case.run} is {NOT_AUDITED}: {case.says}")
    if failed := [case for case in found if case.failed]:
        raise Failure("\n".join(f"{case.run} {case.audit} {case.outcome}: {case.says}" for case in failed))
