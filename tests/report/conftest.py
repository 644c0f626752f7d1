"""The studies that the tests of reports read, each written once."""

from pathlib import Path

import pytest

from confide.report.figures import style
from confide.report.results import load
from confide.report.verdicts.evidence import Study
from confide.specs import ReportSpec
from studies import DPT, write_study


@pytest.fixture(scope="session")
def study(tmp_path_factory) -> tuple[Path, ReportSpec]:
    root = tmp_path_factory.mktemp("study")
    return root, write_study(root)


@pytest.fixture(scope="session")
def domain_study(tmp_path_factory) -> tuple[Path, ReportSpec]:
    root = tmp_path_factory.mktemp("domains")
    return root, write_study(root, methods=DPT, gammas=(0.0,))


@pytest.fixture(scope="session")
def author_study(tmp_path_factory) -> tuple[Path, ReportSpec]:
    from authored import write_authors  # which takes certificates from here

    root = tmp_path_factory.mktemp("authors")
    return root, write_authors(root, seeds=2)


@pytest.fixture(scope="session")
def results(study):
    """The study as it is loaded."""
    root, spec = study
    return load(spec.runs, root / "results", root / "models")


@pytest.fixture
def settings():
    """The settings that figures are drawn in."""
    with style.settings():
        yield


@pytest.fixture
def base(study, results):
    """CRT's study: rows nonprivate, redacted, dpsgd, crt, selective."""
    return Study(study[1], results)
