"""Rows that ask for one training share its job; all others have streams of their own."""

from itertools import combinations
from pathlib import Path

import pytest

from confide.config import jobs, studies
from confide.config.params import load
from confide.specs import Params

FILE = Path(__file__).parents[2] / "params.yaml"


@pytest.fixture(scope="module")
def params() -> Params:
    return load(FILE)


def with_rows(params: Params, **rows) -> Params:
    return params.model_copy(update={"runs": params.runs | rows})


def differing(params: Params, **changes) -> Params:
    """The parameters with a row `again`, which is crt with some changes, and no rows of others."""
    few = {name: params.runs[name] for name in ("public", "nonprivate", "dpsgd", "crt")}
    again = params.runs["crt"].model_copy(update=changes)
    return params.model_copy(update={"runs": few | {"again": again}})


def test_trainings_share_a_job_exactly_where_their_specifications_agree(params):
    runs = [run for name in params.runs for run in jobs.of_row(params, name)]
    specs = {}
    for run in runs:
        alone = jobs.training(params, run).model_copy(update={"run": ""})
        specs.setdefault(run.run, set()).add(alone.model_dump_json())
    assert all(len(own) == 1 for own in specs.values())
    assert all(one != other for one, other in combinations(specs.values(), 2))


def test_a_row_that_is_alike_reads_the_results_of_the_one_with_the_shortest_name(params):
    first, *others = [run.run for run in jobs.of_row(params, "bench_crt")]
    assert first == "crt/g0.1-s0"
    assert others == [f"crt_both/g0.1-s{seed}" for seed in (1, 2, 3, 4)]
    found = jobs.of_row(
        differing(params, gammas=[0.1, 0.3], label="again", attacks=["exposure"]), "again"
    )
    assert [run.run for run in found] == ["crt/g0.1-s0", "again/g0.3-s0"]
    assert [run.name for run in found] == ["again", "again"]


@pytest.mark.parametrize(
    "changes",
    [
        {"dedup": False},
        {"redact": False},
        {"method": "dpsgd"},
        {"recipe": "noisy"},
        {"model": "gpt2_small"},
        {"dataset": "mine"},
        {"init": None},
        {"seeds": [1]},
        {"gammas": [0.2]},
        {"noise_seed": 1},
        {"noise_seed": None},
        {"trajectory": ["exposure"]},
        {"domains": ["A"]},
        {"privacy": "eps1"},
    ],
)
def test_whatever_changes_the_mechanism_changes_the_name_of_its_noise(params, changes):
    assert {run.home for run in jobs.of_row(differing(params, **changes), "again")} == {"again"}


def test_attacks_of_all_rows_that_share_a_job_are_run_on_it(params):
    own = differing(params, gammas=[0.1], attacks=["updates"])
    study = own.studies["crt_customersim"].model_copy(update={"runs": ["crt", "again"]})
    both = own.model_copy(update={"studies": {"both": study}})
    found = jobs.runs_of(both, ["both"])
    assert set(found["crt/g0.1-s0"].row.attacks) == {*params.runs["crt"].attacks, "updates"}
    gated = [run for run in studies.gate(both, "both").runs if run.run == "crt/g0.1-s0"]
    assert len(gated) == len(set(gated)) == 2  # game, updates


def test_one_seed_of_two_methods_has_the_same_text_canaries_and_coins(params):
    """Seeds make pairs, which differ in the start and the noise; no noise comes twice."""
    seeds = [0, 1, 2]
    rows = {
        name: params.runs[name].model_copy(update={"seeds": seeds})
        for name in ("dpsgd", "redacted", "crt")
    }
    several = with_rows(params, **rows)
    runs = {name: jobs.of_row(several, name) for name in rows}
    names = [run.run for own in runs.values() for run in own]
    assert len(set(names)) == len(names)
    for seed in seeds:
        own = [run for found in runs.values() for run in found if run.seed == seed]
        texts = {jobs.training(several, run).data.cut for run in own}
        assert len(texts) == 1 and {run.row.dataset for run in own} == {"sim"}
        assert {jobs.training(several, run).seed for run in own} == {seed}
    canaries = jobs.canaries(several, "sim")
    assert "seeds" not in type(canaries).model_fields  # of the dataset, whatever the run's seed


def test_a_trajectory_holds_no_text_of_attacks_that_show_some(params):
    """No page has texts of an epoch."""
    again = differing(params, trajectory=["dogo_leak_airline", "exposure"])
    run, *_ = jobs.of_row(again, "again")
    assert params.attacks["dogo_leak_airline"].examples > 0
    assert jobs.attack(again, run, "dogo_leak_airline").attack.examples > 0
    assert jobs.trajectory(again, run).attacks["dogo_leak_airline"].examples == 0
    assert jobs.trajectory(again, run).attacks["exposure"] == params.attacks["exposure"]
