"""Training with correlated noise: updates against a loop, groups, resuming, refusals, claims."""

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from certified import DELTA, METHODS, append, certificate, number, source_of
from scipy.linalg import toeplitz

from confide.certify.facts import DEALT
from confide.commands.verify import verify
from confide.dp.accounting.banded import inverse_root
from confide.dp.accounting.price import epsilon
from confide.dp.ledger import Ledger
from confide.dp.mechanism.randomness import Stream
from confide.errors import InputError
from confide.specs import BandedNoiseSpec, PrivacySpec, TrainSpec
from confide.train.job import Job
from confide.types import Correlation, Release, Step
from tests.stages import test_train_authors
from tests.stages.killing import killed
from tests.stages.test_train import PRIVACY, RECIPE, run, spec, vocabulary
from tests.stages.test_train_authors import flat, of_author, own_gradient, written

__all__ = ["vocabulary"]

STEP = Step(view="original", pool="all", noisy=True)
SEQUENCE = "5" * 64


def asked(method: str = "dpsgd", bands: int = 3, order: str = "sampled", **changes: Any) -> Any:
    noise = BandedNoiseSpec(kind="banded", bands=bands, order=order)
    recipe = RECIPE.model_copy(update={"noise": noise} | changes.pop("recipe", {}))
    return spec(method, **changes).model_copy(update={"recipe": recipe})


def job_of(wanted: TrainSpec, noise: float = 0.8) -> Job:
    """In float64, with gradients that are mostly clipped."""
    given = {"recipe": wanted.recipe, "privacy": wanted.privacy}
    return test_train_authors.job_of(written(), noise=noise, **given)


@pytest.mark.parametrize("order", ["sampled", "cyclic"])
@pytest.mark.parametrize("unit", ["point", "author"])
def test_updates_are_those_of_a_loop_with_the_dense_inverse(order: str, unit: str) -> None:
    """Who is drawn, clipping, and noise: all by other means, while weights move."""
    privacy = test_train_authors.PRIVACY.model_copy(update={"unit": unit})
    expected = 4 if unit == "author" else 10
    wanted = asked(
        order=order, privacy=privacy, recipe={"noisy_batch_size": expected, "author_points": None}
    )
    job = job_of(wanted)
    data = written()
    step = replace(STEP, unit=unit)
    train = [point for point in range(60) if data.split[point] == 0]
    units = [[point] for point in train]
    if unit == "author":
        units = [[p for p in train if data.owner[p] == one] for one in range(12)]
    groups = 3 if order == "sampled" else math.ceil(len(units) / expected)
    rate = min(1.0, expected * groups / len(units)) if order == "sampled" else 1.0
    seed = wanted.noise_seed
    group = (Stream(seed, "a/g0-s0: groups").uniform(len(units)) * groups).long()
    sampler = Stream(seed, "a/g0-s0: private batches")
    source = Stream(seed, "a/g0-s0: noise")
    size = sum(weight.numel() for weight in job.model.parameters())
    rows = 7
    column = np.zeros(rows)
    column[:3] = [1, 1 / 2, 3 / 8]
    inverse = np.linalg.inv(toeplitz(column, np.zeros(rows)))
    drawn: list[torch.Tensor] = []
    for turn in range(rows):
        members = [place for place in range(len(units)) if int(group[place]) == turn % groups]
        coins = sampler.uniform(len(members)) < rate
        chosen = [place for place, coin in zip(members, coins.tolist(), strict=True) if coin]
        total = torch.zeros(size, dtype=torch.float64)
        for place in chosen:
            total += of_author(job.model, data.original, np.array(units[place]))
        deviation = 0.8 * test_train_authors.BOUND
        drawn.append(source.add(torch.zeros(size, dtype=torch.float64), deviation))
        for weight, one in zip(inverse[turn], drawn, strict=False):
            total += weight * one
        job.gradients.noisy(step)
        found = flat(weight.grad for weight in job.model.parameters()) * expected
        assert (found - total).abs().max() < 1e-10
        job.optimizers.move(noisy=True)
    assert own_gradient(job.model, data.original[0]).norm() > test_train_authors.BOUND


@pytest.mark.parametrize("order", ["sampled", "cyclic"])
def test_nobody_is_read_outside_of_his_turn(order: str) -> None:
    job = job_of(asked(bands=2, order=order, recipe={"noisy_batch_size": 16}))
    groups = 2 if order == "sampled" else 3
    seen: dict[int, list[int]] = {}
    for turn in range(60):
        for unit in job.batches.poisson(STEP).tolist():
            seen.setdefault(unit, []).append(turn)
    assert len(seen) == 48
    for turns in seen.values():
        assert len({turn % groups for turn in turns}) == 1
        if order == "cyclic":
            assert turns == list(range(turns[0], 60, groups))
    sizes = Counter(turn for turns in seen.values() for turn in turns)
    assert np.mean(list(sizes.values())) == pytest.approx(16, abs=2)
    rate = 16 * 2 / 48
    shares = [len(turns) / 30 for turns in seen.values()]
    assert order == "cyclic" or np.mean(shares) == pytest.approx(rate, abs=0.06)


@pytest.mark.parametrize(("method", "bands"), [("dpsgd", 4), ("crt", 2), ("schedule", 3)])
@pytest.mark.parametrize("order", ["sampled", "cyclic"])
@pytest.mark.parametrize("killed_after", [6, 9])
def test_a_killed_job_goes_on_to_the_same_bytes(
    method: str, bands: int, order: str, killed_after: int, tmp_path: Path, vocabulary: Path
) -> None:
    wanted = asked(method, bands, order)
    whole = run(tmp_path / "whole", vocabulary, wanted)
    killed(killed_after, lambda: run(tmp_path / "killed", vocabulary, wanted))
    torch.manual_seed(12345)
    resumed = run(tmp_path / "killed", vocabulary, wanted)
    for name in ("model", "ledger"):
        assert resumed[name].read_bytes() == whole[name].read_bytes()


def test_with_the_systems_entropy_a_killed_job_keeps_its_sequence(
    tmp_path: Path, vocabulary: Path
) -> None:
    wanted = asked(noise_seed=None)
    killed(6, lambda: run(tmp_path, vocabulary, wanted))
    ledger = Ledger.from_file(run(tmp_path, vocabulary, wanted)["ledger"])
    (name,) = ledger.sequences()
    (other,) = Ledger.from_file(run(tmp_path / "other", vocabulary, wanted)["ledger"]).sequences()
    assert name != other


def test_a_ledger_has_what_ran_and_usual_noise_leaves_no_trace(
    tmp_path: Path, vocabulary: Path
) -> None:
    made = run(tmp_path / "banded", vocabulary, asked("crt", bands=2))
    noised = [one for one in Ledger.from_file(made["ledger"]).releases() if one.noisy]
    assert {one.correlation and one.correlation.coefficients for one in noised} == {(1.0, 0.5)}
    assert {one.sample_rate for one in noised} == {1.0}  # 16 points, twice ten
    usual = run(tmp_path / "usual", vocabulary, spec("crt"))
    assert b"correlation" not in usual["ledger"].read_bytes()
    assert '"noise":{' not in spec("crt").model_dump_json()
    assert TrainSpec.model_validate_json(asked().model_dump_json()) == asked()


def test_one_band_is_the_training_that_there_was(tmp_path: Path, vocabulary: Path) -> None:
    one = run(tmp_path / "one", vocabulary, asked(bands=1))
    usual = run(tmp_path / "usual", vocabulary, spec("dpsgd"))
    assert one["model"].read_bytes() == usual["model"].read_bytes()


@pytest.mark.parametrize("order", ["sampled", "cyclic"])
def test_a_target_epsilon_is_met(order: str, tmp_path: Path, vocabulary: Path) -> None:
    wanted = asked(bands=4, order=order, privacy=PrivacySpec(epsilon=3.0, delta=DELTA))
    releases = Ledger.from_file(run(tmp_path, vocabulary, wanted)["ledger"]).releases()
    assert 3.0 * (1 - 2e-3) <= epsilon(releases, DELTA) <= 3.0


DISCRETE = PRIVACY.model_copy(update={"noise": "discrete_gaussian"})


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (asked(bands=6), r"recipe\.noise\.bands = 6: is more than the 5 updates of one pass"),
        (asked("crt", bands=3), r"recipe\.noise\.bands = 3: is more than the 2 updates"),
        (asked(privacy=DISCRETE), r"recipe\.noise = .*discrete noise was asked for"),
        (asked(recipe={"noisy_filter": "spectral"}), r"leave out recipe\.noise"),
        (asked("selective", recipe={"private_state": "noise"}), r"one kind alone"),
        (asked("selective", recipe={"private_state": "published"}), r"recipe\.noise"),
    ],
)
def test_what_cannot_be_is_refused(
    wanted: TrainSpec, message: str, tmp_path: Path, vocabulary: Path
) -> None:
    with pytest.raises(InputError, match=message):
        run(tmp_path, vocabulary, wanted)
    assert not (tmp_path / "ledger.jsonl").exists()


def banded(method: str, bands: int, separation: int, **changes: Any) -> list[Any]:
    """Updates of a made-up run, with correlated noise."""
    correlation = Correlation(
        coefficients=inverse_root(bands), separation=separation, sequence=SEQUENCE
    )
    noised = {"correlation": correlation} | changes
    return [replace(one, **noised) if one.noisy else one for one in METHODS[method]]


RECIPE_OF = {"epochs": 3, "batch_size": 64, "noisy_batch_size": 16}


def certified(folder: Path, releases: list[Any], bands: int = 4, order: str = "sampled") -> Any:
    noise = {"kind": "banded", "bands": bands, "order": order}
    return certificate(folder, releases, recipe=RECIPE_OF | {"noise": noise})


@pytest.mark.parametrize(
    ("order", "separation", "rate"), [("sampled", 4, 0.2), ("cyclic", 20, 1.0)]
)
def test_claims_are_those_of_what_a_unit_sees(
    order: str, separation: int, rate: float, tmp_path: Path
) -> None:
    value, claims = certified(tmp_path, banded("crt", 4, separation, sample_rate=rate), order=order)
    verify(tmp_path / "certificate.json", root=tmp_path)
    column = math.sqrt(1 + 1 / 4 + 9 / 64 + 25 / 256)
    seen = Release(
        step=STEP,
        sample_rate=rate,
        noise_multiplier=2.0 / column,
        max_grad_norm=1.0,
        count=60 // separation,
    )
    for name, relation in (
        ("record_replace_one_pld", "replace_one"),
        ("record_add_or_remove_pld", "add_or_remove"),
        ("secret_missed", "replace_one"),
    ):
        assert number(claims[name]) == pytest.approx(epsilon([seen], DELTA, relation), rel=1e-9)
        assert DEALT in claims[name]["condition"]
    assert number(claims["secret_caught"]) == 0.0
    assert number(claims["group_after_dedup"]) > 2 * number(claims["secret_missed"]) * 0.9
    assert value["public_constants"]["bands"] == [4]
    assert value["public_constants"]["groups"] == [separation]
    assert value["public_constants"]["pool_sizes"] == ([320] if order == "sampled" else [])
    assert any("noise correlated over 4" in kind for kind in value["updates"])
    assert value["epochs"][-1]["record_epsilon"] == number(claims["record_replace_one_pld"])


@pytest.mark.parametrize("changes", [{"sample_rate": 0.05}, {"sample_rate": 0.1}])
def test_a_ledger_of_other_batches_than_were_asked_for_is_refused(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    certified(tmp_path, banded("crt", 4, 4, **changes))
    with pytest.raises(InputError, match="does not hold the updates that the settings ask for"):
        verify(tmp_path / "certificate.json", root=tmp_path)


@pytest.mark.parametrize(
    "releases",
    [
        METHODS["crt"],
        banded("crt", 3, 4, sample_rate=0.2),
        banded("crt", 4, 5, sample_rate=0.2),
        banded("crt", 4, 320, sample_rate=0.2),
    ],
)
def test_a_ledger_of_other_noise_than_was_asked_for_is_refused(
    releases: list[Any], tmp_path: Path
) -> None:
    certified(tmp_path, releases)
    with pytest.raises(InputError, match="does not hold the updates that the settings ask for"):
        verify(tmp_path / "certificate.json", root=tmp_path)


def test_noise_that_begins_anew_is_refused(tmp_path: Path) -> None:
    releases = banded("crt", 4, 4, sample_rate=0.2)
    last = releases[-1]
    again = replace(last, correlation=replace(last.correlation, sequence="6" * 64))
    certified(tmp_path, [*releases[:-1], again])
    with pytest.raises(InputError, match="began anew within one run"):
        verify(tmp_path / "certificate.json", root=tmp_path)


@pytest.mark.parametrize("sequence", [SEQUENCE, "6" * 64])
def test_a_start_is_added_up_and_one_with_the_same_noise_leaves_no_bound(
    sequence: str, tmp_path: Path
) -> None:
    """Two runs whose noise began with one state: what they drew may be the same, in part."""
    releases = banded("crt", 4, 4, sample_rate=0.2)
    other = replace(releases[-1].correlation, sequence=sequence)
    start = source_of(banded("crt", 4, 4, sample_rate=0.2, correlation=other), dedup=True)
    (tmp_path / "start").write_text(start.dump())
    ledger = Ledger()
    ledger.init("source/g0-s0", public=False, ledger=start.dump())
    for place, release in enumerate(releases):
        append(ledger, release, 1000 + place)
    ledger.epoch(1)
    value, claims = certificate(
        tmp_path,
        [],
        ledger=ledger,
        start_ledgers=[tmp_path / "start"],
        recipe=RECIPE_OF | {"noise": {"kind": "banded", "bands": 4}},
    )
    found = number(claims["record_replace_one_pld"])
    if sequence == SEQUENCE:
        assert value["unaccounted"] == ["the same noise was drawn twice"] and found == math.inf
        return
    assert value["unaccounted"] == []
    both = [replace(releases[-1], count=60, correlation=other), replace(releases[-1], count=20)]
    assert found == pytest.approx(epsilon(both, DELTA), rel=1e-9)
