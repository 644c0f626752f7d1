"""Fixtures that several folders of tests share: a copy of the project, and one that has been built
from the tiny parameters.
"""

from collections import Counter

import hypothesis
import pytest
from filelock import FileLock
from project import Project, environment_in, homes_in, project_in

# A busy machine is no fault of the example that it was busy with.
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")


def pytest_collection_modifyitems(items):
    """Files with many slow tests come first, so that processes that take a file each end at about
    the same time.
    """
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: -slow[item.path])


@pytest.fixture(scope="session")
def environment(tmp_path_factory) -> dict[str, str]:
    """Environment of a shell in which the project is installed; nothing of the user's
    configuration.
    """
    return environment_in(tmp_path_factory.mktemp("bin"))


@pytest.fixture(scope="session")
def fresh(tmp_path_factory, environment) -> Project:
    """The project with the tiny parameters and nothing built. Not to be changed: copy it."""
    return project_in(tmp_path_factory.mktemp("fresh") / "project", environment)


@pytest.fixture(scope="session")
def built(fresh, tmp_path_factory, worker_id) -> Project:
    """The project with everything built (a minute or two), once for all processes of tests. Not to
    be changed: copy it.
    """
    own = tmp_path_factory.getbasetemp()
    shared = own if worker_id == "master" else own.parent
    folder = shared / "built/project"
    output = shared / "built/output.txt"
    folder.parent.mkdir(exist_ok=True)
    with FileLock(shared / "built.lock"):
        if not folder.exists():
            output.write_text(fresh.copy(folder).snakemake(**homes_in(folder.parent)))
    project = Project(folder, fresh.environment)
    project.output = output.read_text()
    return project


@pytest.fixture
def project(built, tmp_path) -> Project:
    """A built project that a test may change."""
    return built.copy(tmp_path / "project")
