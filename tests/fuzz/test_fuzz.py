"""A short run of every target: hostile files are refused in one line, in bounded time, without text
of the corpus.
"""

import pytest
from hostile_cases import Case
from hostile_targets import TARGETS, built
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.nightly import nightly


@pytest.fixture(scope="session")
def groups(tmp_path_factory):
    """Folders of files that belong together, each built on first use."""
    made = {}

    def folder(group):
        if group not in made:
            made[group] = tmp_path_factory.mktemp("hostile") / "files"
            made[group].mkdir()
            built(group, made[group])
        return made[group]

    return folder


SLOWEST = ": snakemake"  # how targets are called that take a process each


@pytest.mark.parametrize(
    "name", [nightly(name) if name.endswith(SLOWEST) else name for name in TARGETS]
)
def test_hostile_files_are_refused_in_one_line(name, groups):
    """The valid file is accepted, and whatever becomes of a changed one, it is neither a fault, a
    hang nor a leak.
    """
    target = TARGETS[name]
    case = Case(target, groups(target.group))

    @settings(
        derandomize=True,
        max_examples=target.short,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.randoms(use_true_random=False))
    def check(source):
        outcome = case.run(source)
        assert outcome.kind in ("accepted", "refused", "stopped"), outcome.says

    check()


def test_a_target_that_quotes_hangs_or_fails_is_noticed(tmp_path, monkeypatch):
    """The judge itself: a leak, a fault, a hang and a message of two lines are told from a
    refusal.
    """
    from hostile_cases import read
    from hostile_corpora import SECRET
    from hostile_targets import Target

    from confide.errors import Failure, InputError

    def raises(error):
        def reader(folder):
            raise error

        return Target("x", "bytes", "x", reader)

    def endless(folder):
        while True:
            pass

    monkeypatch.setattr("hostile_cases.SECONDS", 0.2)
    assert read(raises(InputError("no")), tmp_path).kind == "refused"
    assert read(raises(InputError(f"no {SECRET}")), tmp_path).kind == "leak"
    assert read(Target("x", "bytes", "x", lambda folder: print(SECRET)), tmp_path).kind == "leak"
    assert read(raises(Failure("one", "two")), tmp_path).kind == "fault"
    assert read(raises(KeyError("x")), tmp_path).kind == "fault"
    assert read(raises(KeyError("x"))._replace(stops=True), tmp_path).kind == "stopped"
    assert read(Target("x", "bytes", "x", endless), tmp_path).kind == "hang"
