"""What leaderboards are made of, and that they take part of nothing else."""

from pathlib import Path

import pytest
import yaml

from confide.config import jobs, studies
from confide.config.params import FILE, load
from confide.errors import InputError

ROOT = Path(__file__).parents[2]
EPSILONS = {"eps1", "eps3", "eps8"}


@pytest.fixture(scope="module")
def params():
    return load(ROOT / FILE)


@pytest.fixture
def tiny(tmp_path):
    """The tiny parameters with some leaderboards."""

    def written(**leaderboards):
        values = yaml.safe_load((ROOT / "tests/params.tiny.yaml").read_text())
        file = tmp_path / "params.yaml"
        file.write_text(yaml.safe_dump(values | {"leaderboards": leaderboards}))
        return file

    return written


@pytest.mark.parametrize(
    "name, listed, message",
    [
        ("leaderboard", ["tiny", "tinny"], "leaderboards.leaderboard.1 = 'tinny': is not defined"),
        ("leaderboard", ["tiny", "tiny"], "leaderboards.leaderboard"),
        ("leaderboard", [], "leaderboards.leaderboard"),
        ("train", ["tiny"], "a name begins with leaderboard"),
    ],
)
def test_a_leaderboard_that_cannot_be_is_refused_in_one_line(tiny, name, listed, message):
    with pytest.raises(InputError) as error:
        load(tiny(**{name: listed}))
    assert message in str(error.value) and "\n" not in str(error.value)


def test_no_run_of_another_study_is_named_by_a_row_of_a_leaderboard(params):
    """Its noise would be another: a row that is alike and has a shorter name gives a job its."""
    ranked = {study for listed in params.leaderboards.values() for study in listed}
    others = jobs.runs_of(params, [name for name in params.studies if name not in ranked])
    assert not [run for run in others if run.startswith("lead_")]
    assert not ranked & {*params.select, *params.papers}


def test_every_method_is_there_at_every_budget(params):
    for study in (name for listed in params.leaderboards.values() for name in listed):
        rows = [params.runs[name] for name in params.studies[study].runs]
        budgets: dict[tuple, set] = {}
        for row in rows:
            covered = params.policies[params.datasets[row.dataset].policy].kind == "cover"
            budgets.setdefault((row.method, covered, row.dedup), set()).add(row.privacy)
        noiseless = {"redacted", "untouched"}
        assert noiseless <= {method for method, *_ in budgets}
        noised = {key: found for key, found in budgets.items() if key[0] not in noiseless}
        assert set(map(frozenset, noised.values())) == {frozenset(EPSILONS)}
        ours = {(method, dedup) for method, covered, dedup in noised if covered}
        methods = {"jft", "schedule"} | (
            {"selective"} if params.models[row.model].kind == "lstm" else set()
        )
        assert ours == {("behind_cover", True)}
        assert {method for method, covered, _ in noised if not covered} == {
            "dpsgd",
            "crt",
            *methods,
        }
        assert {row.gammas[0] for row in rows} == {0.0, 0.1}
        seeds = 2 if rows[0].model == "smollm2" else 5
        trained = [row for row in rows if row.method != "untouched"]
        assert {len(row.seeds) for row in trained} == {seeds}


def test_only_a_cover_is_one(params):
    for study in studies.leaderboard(params, "leaderboard").panels:
        for run in studies.panel(params, study).runs:
            assert run.covered is ("_cover_" in run.name), run.name
            # the values of public text stand behind the same cover
            assert run.covered is run.dataset.removesuffix("_values").endswith("_covered")


def test_a_cover_says_which_points_are_private(params):
    """Deduplication masks later copies of private points: with all private, of harmless ones."""
    for name, dataset in params.datasets.items():
        if params.policies[dataset.policy].kind == "cover":
            assert dataset.conservative == dataset.policy, name
