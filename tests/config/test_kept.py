"""What follows from parameters is worked out once for each object, and forgotten with it."""

import gc
import weakref
from pathlib import Path

import pytest

from confide.config.kept import kept
from confide.config.params import load
from confide.specs import Params

FILE = Path(__file__).parents[2] / "params.yaml"


@pytest.fixture
def params() -> Params:
    return load(FILE)


@pytest.fixture
def counted():
    """A function that is kept, and the names that it was called with."""
    calls = []

    @kept
    def selected(params: Params, name: str) -> list[str]:
        calls.append(name)
        return [*params.select, name]

    return selected, calls


def test_each_name_is_asked_for_once(params, counted):
    selected, calls = counted
    for name in ("a", "b", "a", "b"):
        assert selected(params, name) == [*params.select, name]
    assert calls == ["a", "b"]


def test_other_parameters_have_results_of_their_own(params, counted):
    selected, calls = counted
    others = params.model_copy(update={"select": ["other"]})
    assert selected(params, "a") != selected(others, "a") == ["other", "a"]
    assert calls == ["a", "a"]


def test_results_end_with_the_parameters(params, counted):
    selected, _ = counted
    others = params.model_copy(update={"select": ["other"]})
    selected(others, "a")
    ended = weakref.ref(others)
    del others
    gc.collect()
    assert ended() is None
    again = params.model_copy(update={"select": ["another"]})  # may stand where the others stood
    assert selected(again, "a") == ["another", "a"]
