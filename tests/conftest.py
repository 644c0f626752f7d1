"""Fixtures that several folders of tests share: a copy of the project, and one that has been built from the tiny parameters."""

import hypothesis
import pytest
from project import Project, environment_in, project_in

# A busy machine is no fault of the example that it was busy with.
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")


@pytest.fixture(scope="session")
def environment(tmp_path_factory) -> dict[str, str]:
    """Environment of a shell in which the project is installed; nothing of the user's configuration."""
    return environment_in(tmp_path_factory.mktemp("bin"))


@pytest.fixture(scope="session")
def fresh(tmp_path_factory, environment) -> Project:
    """The project with the tiny parameters and nothing built. Not to be changed: copy it."""
    return project_in(tmp_path_factory.mktemp("fresh") / "project", environment)


@pytest.fixture(scope="session")
def built(fresh, tmp_path_factory) -> Project:
    """The project with everything built (a minute or two). Not to be changed: copy it."""
    project = fresh.copy(tmp_path_factory.mktemp("built") / "project")
    project.output = project.snakemake()
    return project


@pytest.fixture
def project(built, tmp_path) -> Project:
    """A built project that a test may change."""
    return built.copy(tmp_path / "project")
