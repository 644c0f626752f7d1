"""Training with discrete noise: ledger, resuming, units, refusals; usual noise leaves no trace of
the option.
"""

import copy
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from certified import DELTA, METHODS, certificate, number
from safetensors.numpy import save
from safetensors.torch import load_file

from confide.commands.verify import verify
from confide.dp.ledger import Ledger
from confide.dp.mechanism.discrete import BITS
from confide.dp.mechanism.randomness import Stream
from confide.errors import InputError
from confide.models import build
from confide.specs import PrivacySpec, TrainSpec
from confide.stages import train as stage
from confide.train.job import Job
from tests.stages import test_train_authors
from tests.stages.killing import killed
from tests.stages.test_train import PRIVACY, RECIPE, partition, run, spec, vocabulary

__all__ = ["vocabulary"]

DISCRETE = PRIVACY.model_copy(update={"noise": "discrete_gaussian"})
COORDINATES = 5_000
WEIGHTS = save({"one": np.zeros((40, 100), np.float32), "two": np.zeros(1_000, np.float32)})


def asked(method: str = "dpsgd", **changes: Any) -> TrainSpec:
    return spec(method, **({"privacy": DISCRETE} | changes))


@pytest.mark.parametrize("method", ["dpsgd", "crt"])
def test_a_killed_job_resumes_to_the_same_bytes(
    method: str, tmp_path: Path, vocabulary: Path
) -> None:
    whole = run(tmp_path / "whole", vocabulary, asked(method))
    killed(6, lambda: run(tmp_path / "killed", vocabulary, asked(method)))
    torch.manual_seed(12345)
    resumed = run(tmp_path / "killed", vocabulary, asked(method))
    for name in ("model", "ledger"):
        assert resumed[name].read_bytes() == whole[name].read_bytes()
    usual = run(tmp_path / "usual", vocabulary, spec(method))
    assert usual["model"].read_bytes() != whole["model"].read_bytes()


def test_the_ledger_counts_the_numbers_that_are_noised(tmp_path: Path, vocabulary: Path) -> None:
    made = run(tmp_path, vocabulary, asked("crt"))
    count = sum(weight.numel() for weight in load_file(made["model"]).values())
    for release in Ledger.from_file(made["ledger"]).releases():
        assert release.discrete_coordinates == (count if release.step.noisy else 0)


def test_usual_noise_leaves_no_trace_of_the_option(tmp_path: Path, vocabulary: Path) -> None:
    made = run(tmp_path, vocabulary, spec("dpsgd"))
    assert b"discrete" not in made["ledger"].read_bytes()
    written = json.loads(spec("dpsgd").model_dump_json())["privacy"]
    assert list(written) == [name for name in PrivacySpec.model_fields if name != "noise"]
    assert TrainSpec.model_validate_json(asked().model_dump_json()) == asked() != spec("dpsgd")


def test_pieces_and_order_of_a_batch_do_not_move_a_bit(tmp_path: Path, vocabulary: Path) -> None:
    found = []
    for size in (1, 100):
        wanted = asked().model_copy(
            update={"recipe": RECIPE.model_copy(update={"physical_batch_size": size})}
        )
        found.append(run(tmp_path / str(size), vocabulary, wanted)["model"].read_bytes())
    assert found[0] == found[1]


def noiseless(job: Job) -> None:
    """No noise, and all units drawn."""
    job.gradients.noise.discrete = lambda count, bits: torch.zeros(count, dtype=torch.int64)


@pytest.mark.parametrize("most", [2, None])
def test_an_author_adds_one_clipped_vector(most: int | None) -> None:
    privacy = test_train_authors.PRIVACY.model_copy(update={"noise": "discrete_gaussian"})
    wanted = test_train_authors.asked(expected=12, most=most, privacy=privacy, device="cpu")
    torch.manual_seed(0)
    model = build(wanted.model.model_copy(update={"dropout": 0.0}), 270, 1).train()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    data = test_train_authors.written()
    found = []
    for keep in (np.ones(60, bool), data.owner != 3):
        kept = replace(data, split=np.where(keep, data.split, 2).astype(np.uint8))
        job = Job(
            wanted,
            kept,
            copy.deepcopy(model),
            noise_multiplier=0.8,
            updates={True: 50, False: 0},
            device="cpu",
        )
        job.batches.sample_rate = lambda step: 1.0
        noiseless(job)
        job.gradients.noisy(test_train_authors.STEP)
        found.append(job.gradients.clipper.flat * 12)
    bound = test_train_authors.BOUND
    moved = torch.linalg.vector_norm(found[0] - found[1])
    if most is None:
        assert 0.99 * bound < float(moved) <= bound
    assert torch.linalg.vector_norm(found[0]) > bound


def test_noise_on_recurrent_states_is_refused(tmp_path: Path, vocabulary: Path) -> None:
    recipe = RECIPE.model_copy(update={"private_state": "noise"})
    with pytest.raises(
        InputError, match=r"privacy\.noise = 'discrete_gaussian': is for gradients alone"
    ):
        run(tmp_path, vocabulary, asked("selective").model_copy(update={"recipe": recipe}))


def test_so_little_noise_that_integers_could_overflow_is_refused(
    tmp_path: Path, vocabulary: Path
) -> None:
    privacy = DISCRETE.model_copy(update={"noise_multiplier": 48 * 2.0 ** (BITS - 61) * 0.99})
    with pytest.raises(
        InputError, match=r"privacy\.noise_multiplier = .*is too little for discrete noise"
    ):
        run(tmp_path, vocabulary, asked(privacy=privacy))


def test_noise_comes_from_the_cipher_on_any_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("confide.train.gradients.noise_of", lambda **_: None)
    job = Job(
        asked(),
        partition(),
        build(asked().model, 270, 1),
        noise_multiplier=0.8,
        updates={True: 1, False: 0},
        device="cpu",
    )
    assert isinstance(job.gradients.noise, Stream)


def test_a_target_epsilon_is_met_with_the_distance(tmp_path: Path, vocabulary: Path) -> None:
    seen, usual = [], stage.noise_for

    def noted(*given: Any) -> float:
        seen.append(given[2].coordinates)
        return usual(*given)

    stage.noise_for = noted
    try:
        made = run(
            tmp_path, vocabulary, asked(privacy=PrivacySpec(epsilon=3.0, noise="discrete_gaussian"))
        )
    finally:
        stage.noise_for = usual
    assert seen == [sum(weight.numel() for weight in load_file(made["model"]).values())]


def noised(method: str = "crt", coordinates: int = COORDINATES) -> list[Any]:
    return [
        replace(one, discrete_coordinates=coordinates if one.step.noisy else 0)
        for one in METHODS[method]
    ]


def certified(
    folder: Path, coordinates: int = COORDINATES, **given: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    privacy = {"noise_multiplier": 2.0, "noise": "discrete_gaussian"}
    return certificate(
        folder,
        noised(coordinates=coordinates),
        **({"privacy": privacy, "weights": WEIGHTS} | given),
    )


def test_a_certificate_of_discrete_noise_holds_at_nearly_the_same_epsilon(tmp_path: Path) -> None:
    for name in ("usual", "discrete"):
        (tmp_path / name).mkdir()
    _, usual = certificate(tmp_path / "usual", METHODS["crt"])
    value, found = certified(tmp_path / "discrete")
    verify(tmp_path / "discrete/certificate.json", root=tmp_path / "discrete")
    for name in usual:
        assert number(found[name]) == number(usual[name]) or (
            number(usual[name]) * (1 - 1e-7)
            <= number(found[name])
            < number(usual[name]) * (1 + 1e-3)
        )
    assert 0 < number(found["record_replace_one_pld"]) < math.inf and DELTA == 8e-5
    assert value["public_constants"]["discrete_coordinates"] == [COORDINATES]
    assert any("discrete Gaussian noise" in kind for kind in value["updates"])
    assert not any("floats for real numbers" in one for one in value["assumptions"])
    assert any(
        "floats for real numbers" in one
        for one in certificate(tmp_path / "usual", METHODS["crt"])[0]["assumptions"]
    )


def test_a_ledger_with_another_count_than_the_weights_is_refused(tmp_path: Path) -> None:
    for count in (1, COORDINATES - 1, 10**18):
        with pytest.raises(
            InputError,
            match=rf"ledger: discrete_coordinates = {count}: .*their file holds {COORDINATES}",
        ):
            certified(tmp_path, count)
    lora = {"kind": "gpt2", "lora_rank": 2}
    certified(tmp_path, 100, model=lora)
    with pytest.raises(InputError, match="discrete_coordinates"):
        certified(tmp_path, COORDINATES + 1, model=lora)
    with pytest.raises(InputError, match="cannot be read as safetensors"):
        certified(tmp_path, weights=b"model")


@pytest.mark.parametrize(
    ("releases", "privacy"),
    [
        (METHODS["crt"], {"noise_multiplier": 2.0, "noise": "discrete_gaussian"}),
        (noised(), {"noise_multiplier": 2.0}),
        (
            [*noised()[:-1], replace(noised()[-1], discrete_coordinates=0)],
            {"noise_multiplier": 2.0, "noise": "discrete_gaussian"},
        ),
    ],
)
def test_other_noise_than_was_asked_for_is_refused(
    tmp_path: Path, releases: list[Any], privacy: dict[str, Any]
) -> None:
    certificate(tmp_path, releases, privacy=privacy, weights=WEIGHTS)
    with pytest.raises(InputError, match="discrete_coordinates.*the noise that was asked for"):
        verify(tmp_path / "certificate.json", root=tmp_path)


def test_a_line_that_was_altered_is_refused(tmp_path: Path) -> None:
    certified(tmp_path)
    path = tmp_path / "ledger"
    path.write_text(
        path.read_text().replace(
            f'"discrete_coordinates":{COORDINATES}', '"discrete_coordinates":5001', 1
        )
    )
    with pytest.raises(InputError, match="was altered"):
        Ledger.from_file(path)


@pytest.mark.parametrize("value", [-1, True, 2.0, "5"])
def test_a_count_that_is_none_is_no_event(value: Any) -> None:
    with pytest.raises(ValueError, match="discrete"):
        Ledger().append(replace(noised()[-1], discrete_coordinates=value), "0" * 64)
    with pytest.raises(ValueError, match="discrete"):
        Ledger().append(replace(noised()[0], discrete_coordinates=5))
