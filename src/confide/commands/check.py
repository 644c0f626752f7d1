"""`confide audit check CERTIFICATE AUDIT`: whether one certificate stands against one audit."""

from pathlib import Path

from confide.certify.gate import NOT_AUDITED, SKIPPED, cases, write_junit
from confide.errors import Failure
from confide.output.escaping import say


def check(
    certificate: Path, audit: Path, *, texts: Path | None = None, junit: Path | None = None
) -> None:
    """Print each comparison, and write a JUnit file for a build server if asked.

    Failure where the certificate is refuted, or where nothing could have refuted it.

    certificate: of a model, results/runs/RUN/certificate.json.
    audit: what an attack measured of the same model, such as game.json beside it.
    texts: certificate of the texts, FILE.certificate.json, if the audit is text_audit.json.
    junit: file for a build server, with a test case for each comparison.
    """
    compared = list(cases(certificate, audit, texts))
    for case in compared:
        say(f"{case.run} {case.audit}: {case.outcome}: {case.says}")
    if junit is not None:
        write_junit(junit, compared, compared[0].run)
    if all(case.outcome in (SKIPPED, NOT_AUDITED) for case in compared):
        raise Failure("nothing was compared: no finite claim, or nothing that audits it")
    if failed := [case for case in compared if case.failed]:
        raise Failure(*(f"{case.audit} {case.outcome}" for case in failed))
