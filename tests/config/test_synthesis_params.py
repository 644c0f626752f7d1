"""What params.yaml may ask models to write, and the jobs that follow from it."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from confide.config import jobs, studies
from confide.config.params import validated
from confide.errors import InputError

TINY = Path(__file__).parents[1] / "params.tiny.yaml"


def config(**row: Any) -> dict[str, Any]:
    """The tiny study, in which one row's model writes."""
    found: dict[str, Any] = yaml.safe_load(TINY.read_text())
    found["synthesis"] = {"few": {"texts": {"count": 5}, "templates": "public"}}
    found["synthesis"]["more"] = {"texts": {"count": 9}}
    found["runs"]["dpsgd"] |= {"synthesis": "few"} | row
    return found


def test_a_row_that_writes_is_measured_and_no_other() -> None:
    params = validated(config(), [])
    runs = jobs.runs_of(params, ["tiny"])
    measured = {name for name, run in runs.items() if "worth" in jobs.outcomes(run)}
    assert measured == {"dpsgd/g0-s0"}
    rows = {run.name: run.attacks for run in studies.study(params, "tiny").runs}
    assert set(jobs.OF_TEXTS) <= set(rows["dpsgd"]) and "worth" not in rows["crt"]
    assert jobs.synthetic(params, runs["dpsgd/g0-s0"]).texts.count == 5


def test_the_gate_holds_the_audit_of_texts_of_a_row_that_writes_and_of_no_other() -> None:
    runs = studies.gate(validated(config(), []), "tiny").runs
    audits: dict[str, list[str | None]] = {}
    for run in runs:
        audits.setdefault(run.run, []).append(run.audit)
    assert audits["dpsgd/g0-s0"] == ["game", "text_audit"]
    assert audits["crt/g0.1-s0"] == ["game"]
    alone = studies.gate(validated(config(attacks=[]), []), "tiny").runs
    assert [run.audit for run in alone if run.run == "dpsgd/g0-s0"] == ["text_audit"]


def test_what_is_written_changes_no_training_and_rows_still_share_it() -> None:
    plain = config()
    del plain["runs"]["dpsgd"]["synthesis"]
    trained = [
        jobs.training(params, jobs.runs_of(params, ["tiny"])["dpsgd/g0-s0"])
        for params in (validated(config(), []), validated(plain, []))
    ]
    assert trained[0] == trained[1]
    both = config()
    both["runs"]["dpsgd_again"] = plain["runs"]["dpsgd"]
    both["studies"]["tiny"]["runs"].append("dpsgd_again")
    runs = jobs.runs_of(validated(both, []), ["tiny"])
    assert "dpsgd_again/g0-s0" not in runs
    assert "worth" in jobs.outcomes(runs["dpsgd/g0-s0"])


def test_one_training_writes_one_kind_of_texts() -> None:
    both = config()
    both["runs"]["dpsgd_again"] = both["runs"]["dpsgd"] | {"synthesis": "more"}
    with pytest.raises(InputError, match=r"another row of the same training .* writes few"):
        validated(both, [])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"few": {"texts": {"count": 5, "mix": [{"prompt": "My"}]}}}, "public_mix: true declares"),
        ({"few": {"texts": {"count": 5}, "templates": "sim"}}, "templates are of a dataset with"),
        ({"few": {"texts": {"count": 5}, "templates": "nobody"}}, "is not defined under datasets"),
        ({"few": {"texts": {"count": 0}}}, "greater than or equal to 1"),
        ({"other": {"texts": {"count": 5}}}, "few.*is not defined under synthesis"),
    ],
)
def test_what_cannot_be_is_one_line(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        validated(config() | {"synthesis": change}, [])


@pytest.mark.parametrize("name", jobs.OF_TEXTS)
def test_names_of_their_files_are_taken(name: str) -> None:
    found = config()
    found["attacks"][name] = {"kind": "exposure"}
    with pytest.raises(InputError, match="this name is taken"):
        validated(found, [])
