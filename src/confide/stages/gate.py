"""The gate of a study: every certificate against the audit of its model; the study fails where one does not stand."""

from pathlib import Path

from confide.errors import Failure
from confide.gate import cases, write_junit, write_table
from confide.specs import GateSpec


def gate(spec: GateSpec, *, results: Path, output: Path, junit: Path) -> None:
    """Write gate.csv and JUnit XML; Failure names what was refuted, or could not have been."""
    found = []
    for run in spec.runs:
        folder = results / "runs" / run.run
        found += cases(folder / "certificate.json", folder / f"{run.audit}.json")
    write_junit(junit, found, spec.study)
    write_table(output, found)
    if failed := [case for case in found if case.failed]:
        raise Failure(*(f"{case.run} {case.audit} {case.outcome}: {case.says}" for case in failed))
