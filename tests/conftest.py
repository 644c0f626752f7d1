"""Fixtures that several folders of tests share: a copy of the project, and one that has been built
from the tiny parameters.
"""

from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import hypothesis
import pytest
from filelock import FileLock
from project import Project, build, environment_in, project_in
from warm import OF_SNAKEMAKE, warm

from confide.dp.accounting import cross_check

# A busy machine is no fault of the example that it was busy with.
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")

SECONDS = "confide/seconds"  # the key in pytest's cache
SLOW = 10  # seconds that a test marked as slow is taken for


def pytest_configure(config):
    """Keep how long each file of tests takes, for the order in which the next run takes them."""
    if not hasattr(
        config, "workerinput"
    ):  # in the process that starts the others, if there are any
        config.pluginmanager.register(Stopwatch(config), "stopwatch")


class Stopwatch:
    """Adds up the seconds of each file of tests and keeps them in pytest's cache."""

    def __init__(self, config):
        self.cache = getattr(config, "cache", None)
        self.known: dict[str, float] = self.cache.get(SECONDS, {}) if self.cache else {}
        self.measured: Counter[str] = Counter()

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node):
        """Give a process of xdist what is known: all must put the tests into the same order."""
        node.workerinput["seconds"] = self.known

    def pytest_runtest_logreport(self, report):
        """Add a phase of a test to the seconds of its file."""
        self.measured[file_of(report.nodeid)] += report.duration

    def pytest_sessionfinish(self):
        """Lay what was measured over what is known of other files."""
        if self.cache:
            self.cache.set(SECONDS, self.known | self.measured)


def file_of(nodeid: str) -> str:
    """The file of a test, as pytest names it."""
    return nodeid.partition("::")[0]


def pytest_collection_modifyitems(config, items):
    """Files that take long come first, so that processes that take a file each end at about the
    same time.

    How long a file took is known from the run before. Else it counts how many of its tests are
    marked as slow.
    """
    if hasattr(config, "workerinput"):
        known = config.workerinput["seconds"]
    else:
        known = config.pluginmanager.get_plugin("stopwatch").known
    slow = Counter(file_of(item.nodeid) for item in items if item.get_closest_marker("slow"))
    seconds = {file_of(item.nodeid): 0.0 for item in items}
    seconds |= {file: known.get(file, SLOW * slow[file]) for file in seconds}
    items.sort(key=lambda item: -seconds[file_of(item.nodeid)])


@pytest.fixture(scope="session", autouse=True)
def second_opinions():
    """dp_accounting is asked once for the same updates: made-up certificates are mostly alike."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cross_check, "_epsilon", cache(cross_check._epsilon))
        yield


@pytest.fixture(scope="session")
def environment(tmp_path_factory) -> dict[str, str]:
    """Environment of a shell in which the project is installed; nothing of the user's
    configuration.
    """
    return environment_in(tmp_path_factory.mktemp("bin"))


@pytest.fixture(scope="session")
def fresh(tmp_path_factory, environment) -> Iterator[Project]:
    """The project with the tiny parameters and nothing built. Not to be changed: copy it.

    Its Snakemake is a copy of a process that has imported Snakemake.
    """
    project = project_in(tmp_path_factory.mktemp("fresh") / "project", environment)
    with TemporaryDirectory() as folder, warm(Path(folder), OF_SNAKEMAKE, environment) as python:
        project.python = python
        yield project


@pytest.fixture(scope="session")
def built(fresh, tmp_path_factory, worker_id) -> Project:
    """The project with everything built (about a minute), once for all processes of tests. Not to
    be changed: copy it.

    Its jobs are copies of a process that has imported torch.
    """
    own = tmp_path_factory.getbasetemp()
    shared = own if worker_id == "master" else own.parent
    folder = shared / "built/project"
    output = shared / "built/output.txt"
    folder.parent.mkdir(exist_ok=True)
    with FileLock(shared / "built.lock"):
        if not folder.exists():
            output.write_text(build(fresh.copy(folder)))
    project = Project(folder, fresh.environment, fresh.python)
    project.output = output.read_text()
    return project


@pytest.fixture
def project(built, tmp_path) -> Project:
    """A built project that a test may change."""
    return built.copy(tmp_path / "project")
