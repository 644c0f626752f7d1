"""A file of a run that there is not is refused in one line."""

from pathlib import Path

import pytest

from confide.config import jobs
from confide.config.asked import check_asked
from confide.config.params import load
from confide.errors import InputError

FILE = Path(__file__).parents[2] / "params.yaml"


@pytest.fixture(scope="module")
def params():
    return load(FILE)


@pytest.fixture(scope="module")
def runs(params):
    return jobs.runs_of(params, params.studies)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("models/crtt/g0.1-s0/model.safetensors", "no row crtt under runs; did you mean crt?"),
        ("./models/crt/g0.1-s7", "row crt has no such model; it has g0-s0, g0.1-s0, g0.5-s0"),
        (
            "results/runs/bench_crt/g0.1-s1/certificate.json",
            "row crt_both is trained alike: crt_both/g0.1-s1 is this model, too",
        ),
    ],
)
def test_a_run_that_there_is_not_is_refused_in_one_line(params, runs, target, said):
    with pytest.raises(InputError) as error:
        check_asked(params, runs, ["-n", target])
    assert str(error.value).startswith(f"{target}: ")
    assert said in str(error.value)


def test_a_row_that_no_study_lists_is_named(params):
    with pytest.raises(InputError, match="no study lists row crt"):
        check_asked(params, (), ["models/crt/g0.1-s0/model.safetensors"])


def test_what_is_no_file_of_a_run_is_left_to_snakemake(params, runs):
    known = [f"models/{run}/model.safetensors" for run in runs]
    check_asked(params, runs, [*known, "-n", "study_tiny", "models", "results/runs/crt"])
