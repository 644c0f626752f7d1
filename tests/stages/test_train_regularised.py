"""Training jobs with a privacy regulariser: ordinary ones at lambda = 0, timed and measured per
epoch, refused in one line.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from confide.dp.ledger import Ledger
from confide.errors import InputError
from confide.files.io import read_jsonl
from confide.specs import RecipeSpec, parse
from confide.train.batches import Batches
from confide.train.job import Job
from confide.types import Partition, Step
from tests.stages.test_train import RECIPE, partition, run, spec, vocabulary

__all__ = ["vocabulary"]

KINDS = ["adversarial", "triplet"]


def changed(method: str, **recipe: Any) -> Any:
    return spec(method).model_copy(update={"recipe": RECIPE.model_copy(update=recipe)})


def owned(owner: np.ndarray) -> Partition:
    return replace(partition(), owner=owner.astype(np.int32))


@pytest.mark.parametrize("batching", ["uniform", "author"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("physical", [6, 64])
def test_without_weight_it_is_ordinary_training_bit_for_bit(
    kind: str, batching: str, physical: int, tmp_path: Path, vocabulary: Path
) -> None:
    """With dropout: the discriminator, which learns all the same, draws nothing that the model
    would have drawn.
    """
    given = {"batching": batching, "physical_batch_size": physical}
    plain = run(tmp_path / "plain", vocabulary, changed("nonprivate", **given))[
        "model"
    ].read_bytes()
    made = run(tmp_path / "zero", vocabulary, changed(kind, regulariser_weight=0.0, **given))
    assert made["model"].read_bytes() == plain
    assert run(tmp_path / "some", vocabulary, changed(kind, **given))["model"].read_bytes() != plain
    rows = list(read_jsonl(made["metrics"]))
    assert [row["regulariser"] is None for row in rows] == [kind == "triplet"] * 3


@pytest.mark.parametrize("kind", KINDS)
def test_metrics_say_what_the_regulariser_did_and_the_ledger_that_there_was_one(
    kind: str, tmp_path: Path, vocabulary: Path
) -> None:
    made = run(tmp_path, vocabulary, spec(kind))
    rows = list(read_jsonl(made["metrics"]))
    for row in rows:
        assert (
            row["seconds"] > 0
            and row["cpu_seconds"] > 0
            and row["peak_mb"] > 50
            and row["regulariser"] is not None
        )
        assert ("discriminator_accuracy" in row) == (kind == "adversarial")
    if kind == "adversarial":
        assert all(
            row["regulariser"] > np.log(5) and 0 <= row["discriminator_accuracy"] <= 1
            for row in rows
        )
    releases = Ledger.from_file(made["ledger"]).releases()
    assert [(one.step, one.count) for one in releases] == [
        (Step(view="original", pool="all", noisy=False, regulariser=kind), 6)
    ] * 3


def test_seconds_are_of_training_alone(
    tmp_path: Path, vocabulary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = {"now": 0.0}
    step = Job.run
    monkeypatch.setattr("confide.train.metrics.time.monotonic", lambda: clock["now"])

    def ticking(self: Job, one: Step) -> None:
        clock["now"] += 1
        step(self, one)

    def validation(*given: Any) -> dict[str, float]:
        clock["now"] += 1000
        return {"ppl": 2.0}

    monkeypatch.setattr(Job, "run", ticking)
    monkeypatch.setattr("confide.stages.train.evaluate_points", validation)
    rows = list(read_jsonl(run(tmp_path, vocabulary, spec("nonprivate"))["metrics"]))
    assert [row["seconds"] for row in rows] == [6, 6, 6]


def test_author_batching_hands_out_batches_of_one_author(
    tmp_path: Path, vocabulary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = owned(np.arange(60) // 16)
    seen = []
    drawn = Batches.next_of_pass
    split = data.owner[:48]

    def watched(self: Batches, step: Step, size: int) -> torch.Tensor:
        chosen = drawn(self, step, size)
        seen.append({int(split[point]) for point in chosen})
        return chosen

    monkeypatch.setattr(Batches, "next_of_pass", watched)
    for batching in ("author", "uniform"):
        seen.clear()
        run(tmp_path / batching, vocabulary, changed("triplet", batching=batching), data)
        assert len(seen) == 18 and all(len(authors) == 1 for authors in seen) == (
            batching == "author"
        )


@pytest.mark.parametrize(
    ("method", "recipe", "owner", "message"),
    [
        (
            "adversarial",
            {},
            np.full(60, -1),
            r"^method = 'adversarial': needs texts of at least two authors, .*names no author",
        ),
        (
            "triplet",
            {},
            np.where(np.arange(60) < 48, 4, 5),
            r"^method = 'triplet': needs .*two authors, .*have one author",
        ),
        (
            "triplet",
            {"regulariser_weight": None},
            np.arange(60) % 5,
            r"^recipe.regulariser_weight: is missing: triplet",
        ),
        (
            "triplet",
            {},
            np.arange(60),
            r"^recipe.same_author = 0.5: needs two points of an author: 48 of 48 authors",
        ),
        (
            "nonprivate",
            {"batching": "author"},
            np.full(60, -1),
            r"^recipe.batching = 'author': needs authors",
        ),
    ],
)
def test_impossible_settings_are_one_clear_error(
    method: str,
    recipe: dict[str, Any],
    owner: np.ndarray,
    message: str,
    tmp_path: Path,
    vocabulary: Path,
) -> None:
    with pytest.raises(InputError, match=message):
        run(tmp_path, vocabulary, changed(method, **recipe), owned(owner))
    assert not (tmp_path / "model.safetensors").exists()


def test_a_negative_weight_is_refused() -> None:
    with pytest.raises(InputError, match=r"^regulariser_weight = -0.1: "):
        parse(RecipeSpec, {"regulariser_weight": -0.1})


def test_authors_with_one_point_are_counted(
    tmp_path: Path, vocabulary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    owner = np.where(np.arange(60) < 3, np.arange(60) + 10, np.arange(60) % 2)
    run(tmp_path, vocabulary, spec("triplet"), owned(owner))
    assert "3 of 5 authors have one training point" in capsys.readouterr().err
