"""Training jobs: every method runs; a killed job resumes bit for bit; public updates cannot see
private tokens.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from confide import models
from confide.data.partition_files import load_partition, write_partitions
from confide.dp.ledger import Ledger, settings_digest
from confide.errors import InputError
from confide.files.io import read_jsonl, sha256
from confide.methods import METHODS
from confide.models.batches import Batch
from confide.specs import LSTMSpec, PrivacySpec, ReadSpec, RecipeSpec, TrainSpec
from confide.stages.train import train
from confide.text import tokenizer as tokenizers
from confide.train.job import Job
from confide.train.metrics import COSTS
from confide.types import Partition, View
from tests.stages.killing import killed
from tests.terms import TERMS

RECIPE = RecipeSpec(
    lr=0.01,
    batch_size=8,
    noisy_batch_size=10,
    epochs=3,
    physical_batch_size=6,
    regulariser_weight=0.5,
)
TWICE = ("jft", "behind_cover", "atdp")  # first without noise, then with it
TRAINED = [name for name in METHODS if name != "untouched"]
PRIVACY = PrivacySpec(noise_multiplier=0.8, max_grad_norm=0.5)


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    tokenizers.save(tokenizers.train_bpe(["hello there, what is it? 0123456789"] * 3, 270), path)
    return path


def partition(seed: int = 0, private_ids: int = 0) -> Partition:
    """60 points of random tokens by five authors and nobody, every third private, whose tokens
    `private_ids` shifts.
    """
    source = np.random.default_rng(seed)
    lengths = source.integers(2, 9, 60)
    starts = np.concatenate([[0], lengths.cumsum()]).astype(np.int64)
    private = np.arange(60) % 3 == 0
    marks = np.repeat(private, lengths)
    ids = source.integers(3, 260, starts[-1]).astype(np.int32)
    ids = np.where(marks, 3 + (ids - 3 + private_ids) % 257, ids).astype(np.int32)
    split = np.where(np.arange(60) < 48, 0, np.where(np.arange(60) < 54, 1, 2)).astype(np.uint8)
    view = View(ids, starts, marks)
    owner = np.arange(60, dtype=np.int32) % 6 - 1
    domain = np.arange(60, dtype=np.int32) % 2
    return Partition(
        view, view, marks, private, np.zeros(60, bool), split, domain, owner, ("air", "mail")
    )


def files(folder: Path, data: Partition) -> dict[str, Path]:
    paths = {name: folder / f"{name}.safetensors" for name in ("original", "redacted")}
    write_partitions([data], **paths)
    return paths


def outputs(folder: Path) -> dict[str, Path]:
    names = (
        "model.safetensors",
        "config.json",
        "metrics.jsonl",
        "ledger.jsonl",
        "epochs.safetensors",
    )
    return {"checkpoint": folder / "checkpoint"} | {
        Path(name).stem: folder / name for name in names
    }


def history(ledger: Path) -> list[str]:
    """Lines of a ledger but for the last: that names the weights, which sums in another order move
    by their last bits.
    """
    return ledger.read_text().splitlines()[:-1]


def spec(method: str, **changes: Any) -> TrainSpec:
    model = LSTMSpec(kind="lstm", embedding=6, hidden=6, dropout=0.1)
    settings = {
        "privacy": PRIVACY,
        "checkpoint_every": 4,
        "domains": ["air"] if method == "domain_only" else None,
    } | changes
    return TrainSpec(
        data=TERMS, run="a/g0-s0", method=method, model=model, recipe=RECIPE, **settings
    )


def run(
    folder: Path, vocabulary: Path, wanted: TrainSpec, data: Partition | None = None
) -> dict[str, Path]:
    folder.mkdir(exist_ok=True)
    made = outputs(folder)
    train(wanted, **files(folder, data or partition()), tokenizer=vocabulary, **made)
    return made


def test_an_untouched_model_is_its_start_and_its_ledger_has_no_update(tmp_path, vocabulary):
    made = run(tmp_path, vocabulary, spec("untouched"))
    *_, row = read_jsonl(made["metrics"])
    assert row["step"] == 0 and row["valid_ppl"] > 1 and row["loss"] is None
    ledger = Ledger.load(made["ledger"].read_text())
    assert ledger.releases() == [] and ledger.events("data")[0]["pools"] == {}
    torch.manual_seed(spec("untouched").seed)
    tokenizer = tokenizers.load(vocabulary)
    start = models.build(spec("untouched").model, tokenizer.vocab_size, tokenizer.bos_id)
    stored = load_file(made["model"])
    assert all(torch.equal(stored[name], weight) for name, weight in start.stored().items())


@pytest.mark.parametrize("delta", [1e-2, 5e-2])
def test_a_delta_that_gives_a_text_away_is_said(delta, tmp_path, vocabulary, capsys):
    """Of 48 training points."""
    privacy = PRIVACY.model_copy(update={"delta": delta})
    run(tmp_path, vocabulary, spec("dpsgd", privacy=privacy))
    said = "privacy.delta 0.05 is no less than 1 / 48, where that is the number of its points"
    assert (said in " ".join(capsys.readouterr().err.split())) is (delta > 1 / 48)


@pytest.mark.parametrize("method", TRAINED)
def test_every_method_writes_weights_metrics_and_a_valid_ledger(
    method: str, tmp_path: Path, vocabulary: Path
) -> None:
    made = run(tmp_path, vocabulary, spec(method))
    rows = list(read_jsonl(made["metrics"]))
    assert [row["epoch"] for row in rows] == list(range(1, 7 if method in TWICE else 4))
    assert all(row["valid_ppl"] > 1 and row["valid_ppl_private"] > 1 for row in rows)
    ledger = Ledger.load(made["ledger"].read_text())
    assert sum(release.count for release in ledger.releases()) == rows[-1]["step"]
    if method in (
        "nonprivate",
        "redacted",
        "domain_only",
        "dpsgd",
        "jft",
        "behind_cover",
    ):  # three passes, or twice three
        drawn = method in ("dpsgd", "jft", "behind_cover")
        passes = 6 if method in TWICE else 3
        assert rows[-1]["passes"] == pytest.approx(passes, rel=0.1 if drawn else 1e-9)
    assert not (tmp_path / "checkpoint" / "state.safetensors").exists()


@pytest.mark.parametrize("method", TRAINED)
@pytest.mark.parametrize("killed_after", [1, 6, 13])
def test_killed_job_resumes_to_the_same_bytes(
    method: str,
    killed_after: int,
    tmp_path: Path,
    vocabulary: Path,
) -> None:
    whole = run(tmp_path / "whole", vocabulary, spec(method))
    last = (
        min(killed_after, 8) if method == "domain_only" else killed_after
    )  # which makes nine updates
    killed(last, lambda: run(tmp_path / "killed", vocabulary, spec(method)))
    torch.manual_seed(12345)
    resumed = run(tmp_path / "killed", vocabulary, spec(method))
    for name in ("model", "ledger", "config"):
        assert resumed[name].read_bytes() == whole[name].read_bytes()
    for one, other in zip(
        read_jsonl(resumed["metrics"]), read_jsonl(whole["metrics"]), strict=True
    ):
        spent = dict.fromkeys(COSTS, 0)
        assert one | spent == other | spent


@pytest.mark.nightly
@pytest.mark.slow
def test_process_killed_outright_resumes_to_the_same_bytes(
    tmp_path: Path, vocabulary: Path
) -> None:
    long = spec("crt", checkpoint_every=1).model_copy(
        update={"recipe": RECIPE.model_copy(update={"epochs": 40})}
    )
    whole = run(tmp_path / "whole", vocabulary, long)
    folder = tmp_path / "killed"
    folder.mkdir()
    made = outputs(folder)
    read = files(folder, partition()) | {"tokenizer": vocabulary}
    flags = [part for name, path in (made | read).items() for part in (f"--{name}", str(path))]
    command = [
        sys.executable,
        "-m",
        "confide.cli",
        "train",
        "--spec",
        long.model_dump_json(),
        *flags,
    ]
    environment = os.environ | {
        "OMP_NUM_THREADS": str(torch.get_num_threads())
    }  # sums are the same for equal numbers
    job = subprocess.Popen(command, env=environment)
    state = made["checkpoint"] / "state.safetensors"
    while job.poll() is None and not (state.exists() and read_values(state)["done"] >= 30):
        time.sleep(0.01)
    job.kill()
    assert job.wait() == -signal.SIGKILL and not made["model"].exists()
    assert subprocess.run(command, env=environment, check=False).returncode == 0
    for name in ("model", "ledger"):
        assert made[name].read_bytes() == whole[name].read_bytes()


def read_values(state: Path) -> dict[str, Any]:
    with safe_open(state, "numpy") as file:
        return json.loads(file.metadata()["values"])["parts"]["job"]


def test_checkpoint_of_another_configuration_is_not_continued(
    tmp_path: Path, vocabulary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = run(tmp_path / "fresh", vocabulary, spec("dpsgd", seed=1))
    step = Job.run
    monkeypatch.setattr(
        Job,
        "run",
        lambda self, s: (
            step(self, s) if self.done < 9 else (_ for _ in ()).throw(KeyboardInterrupt)
        ),
    )
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "used", vocabulary, spec("dpsgd", seed=0))
    monkeypatch.setattr(Job, "run", step)
    assert (tmp_path / "used" / "checkpoint" / "state.safetensors").exists()
    again = run(tmp_path / "used", vocabulary, spec("dpsgd", seed=1))
    assert again["model"].read_bytes() == fresh["model"].read_bytes()


def test_a_checkpoint_of_other_training_code_is_one_clear_error(
    tmp_path: Path, vocabulary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("confide.stages.train.code_hash", lambda *_: "0123456789ab")
        patched.setattr("confide.stages.train.snapshots.join", stopped)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path, vocabulary, spec("dpsgd"))
    state = tmp_path / "checkpoint" / "state.safetensors"
    before = state.read_bytes()
    with pytest.raises(InputError, match=r"state\.safetensors: .*\(0123456789ab, this is"):
        run(tmp_path, vocabulary, spec("dpsgd"))
    assert state.read_bytes() == before  # nothing is lost
    assert not outputs(tmp_path)["model"].exists()


def waited(opened: IO[Any], shown: Path) -> bool:
    """In place of a lock that another job had until now."""
    return True


def other_code(folder: Path, patched: pytest.MonkeyPatch) -> None:
    patched.setattr("confide.stages.train.code_hash", lambda *_: "0123456789ab")


def lost(folder: Path, patched: pytest.MonkeyPatch) -> None:
    outputs(folder)["config"].unlink()


def replaced(folder: Path, patched: pytest.MonkeyPatch) -> None:
    shutil.copy(outputs(folder)["epochs"], outputs(folder)["model"])


def never_waited(folder: Path, patched: pytest.MonkeyPatch) -> None:
    patched.setattr("confide.train.checkpoint.lock", lambda *_, **__: False)


@pytest.mark.parametrize("change", [None, lost, replaced, other_code, never_waited])
def test_a_job_that_waited_for_one_like_it_keeps_what_that_wrote(
    tmp_path: Path,
    vocabulary: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Path, pytest.MonkeyPatch], None] | None,
) -> None:
    """A second training has other noise: who saw both models knows more than one ledger says."""
    wanted = spec("dpsgd", noise_seed=None)
    first = run(tmp_path, vocabulary, wanted)["model"].read_bytes()
    monkeypatch.setattr("confide.train.checkpoint.lock", waited)
    if change is not None:
        change(tmp_path, monkeypatch)
    second = run(tmp_path, vocabulary, wanted)["model"].read_bytes()
    assert (second == first) is (change is None)


def test_what_is_kept_is_of_this_very_job(
    tmp_path: Path, vocabulary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not of another one, and not of one that began after it and was stopped."""
    wanted = spec("dpsgd", noise_seed=None)
    run(tmp_path, vocabulary, wanted)
    monkeypatch.setattr("confide.train.checkpoint.lock", waited)
    other = run(tmp_path, vocabulary, spec("crt", noise_seed=None))["model"].read_bytes()
    left_by_a_killed_job(tmp_path, vocabulary, monkeypatch, noise_seed=None)
    assert not (tmp_path / "checkpoint" / "finished.json").exists()
    assert run(tmp_path, vocabulary, wanted)["model"].read_bytes() != other


def stopped(*_: object) -> None:
    raise KeyboardInterrupt


def went_on(*_: object) -> None:
    raise AssertionError("the job went on from what is damaged")


def test_damaged_checkpoint_is_one_clear_error(tmp_path: Path, vocabulary: Path) -> None:
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "state.safetensors").write_bytes(b"\x10\x00\x00")
    with pytest.raises(InputError, match=r"state\.safetensors: damaged checkpoint"):
        run(tmp_path, vocabulary, spec("crt"))
    assert not outputs(tmp_path)["model"].exists()


def left_by_a_killed_job(
    folder: Path, vocabulary: Path, monkeypatch: pytest.MonkeyPatch, **changes: Any
) -> TrainSpec:
    """What a job leaves that is killed when all but its outputs is done."""
    wanted = spec("dpsgd", **changes)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("confide.stages.train.snapshots.join", stopped)
        run(folder, vocabulary, wanted)
    return wanted


@pytest.mark.parametrize("part", ["weights", "values"])
def test_a_flipped_bit_of_a_checkpoint_is_one_clear_error(
    tmp_path: Path, vocabulary: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    wanted = left_by_a_killed_job(tmp_path, vocabulary, monkeypatch)
    state = tmp_path / "checkpoint/state.safetensors"
    content = bytearray(state.read_bytes())
    place = len(content) - 1 if part == "weights" else content.index(b"noise_multiplier") + 20
    content[place] ^= 1
    state.write_bytes(content)
    with pytest.raises(InputError, match=r"state\.safetensors: damaged checkpoint"):
        run(tmp_path, vocabulary, wanted)
    assert not outputs(tmp_path)["model"].exists()


@pytest.mark.parametrize("damage", ["gone", "a flipped bit"])
def test_damaged_weights_of_an_epoch_are_one_clear_error(
    tmp_path: Path, vocabulary: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    wanted = left_by_a_killed_job(tmp_path, vocabulary, monkeypatch, every_epoch=True)
    weights = tmp_path / "checkpoint/epoch-1.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.unlink()
    if damage != "gone":
        weights.write_bytes(content)
    monkeypatch.setattr("confide.stages.train.run", went_on)
    with pytest.raises(InputError, match=r"checkpoint: epoch-1\.safetensors is missing or damaged"):
        run(tmp_path, vocabulary, wanted)
    assert not outputs(tmp_path)["epochs"].exists()


def test_system_entropy_gives_other_noise_each_time_and_a_seed_the_same(
    tmp_path: Path, vocabulary: Path
) -> None:
    seeded = [
        run(tmp_path / str(i), vocabulary, spec("dpsgd"))["model"].read_bytes() for i in range(2)
    ]
    assert seeded[0] == seeded[1]
    fresh = [
        run(tmp_path / f"f{i}", vocabulary, spec("dpsgd", noise_seed=None))["model"].read_bytes()
        for i in range(2)
    ]
    assert fresh[0] != fresh[1]


def test_crt_public_updates_do_not_depend_on_private_tokens(
    tmp_path: Path, vocabulary: Path
) -> None:
    """With the noisy updates silenced (no noise, no step), weights are the same whatever the
    private points say.
    """
    quiet = RECIPE.model_copy(update={"noisy_lr": 1e-30})
    made = []
    for shift in (0, 5):
        wanted = spec("crt").model_copy(update={"recipe": quiet})
        made.append(run(tmp_path / str(shift), vocabulary, wanted, partition(private_ids=shift)))
    weights = [path["model"].read_bytes() for path in made]
    assert weights[0] == weights[1]
    original = [
        load_partition(tmp_path / s / "original.safetensors", tmp_path / s / "redacted.safetensors")
        for s in "05"
    ]
    assert not np.array_equal(original[0].original.ids, original[1].original.ids)


def test_calibrated_noise_keeps_the_target(tmp_path: Path, vocabulary: Path) -> None:
    from confide.dp.accounting.price import epsilon

    wanted = spec("crt", privacy=PrivacySpec(epsilon=2.0, delta=1e-3, max_grad_norm=0.5))
    ledger = Ledger.load(run(tmp_path, vocabulary, wanted)["ledger"].read_text())
    noisy = [release for release in ledger.releases() if release.step.noisy]
    spent = epsilon(noisy, 1e-3, "replace_one", "pld")
    assert 1.9 < spent <= 2.0


def test_ablation_without_redaction_reads_and_records_the_original_view(
    tmp_path: Path, vocabulary: Path
) -> None:
    ledger = Ledger.load(run(tmp_path, vocabulary, spec("crt", redact=False))["ledger"].read_text())
    assert {release.step.view for release in ledger.releases()} == {"original"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "magic"}, "method = 'magic'"),
        ({"privacy": None}, "privacy"),
        ({"recipe": RECIPE.model_copy(update={"noisy_batch_size": 500})}, "noisy_batch_size = 500"),
        ({"privacy": PrivacySpec(epsilon=1e-9, delta=1e-15)}, "epsilon = 1e-09"),
    ],
)
def test_impossible_settings_are_one_clear_error(
    changes: dict[str, Any], message: str, tmp_path: Path, vocabulary: Path
) -> None:
    with pytest.raises(InputError, match=message):
        run(tmp_path, vocabulary, spec("crt").model_copy(update=changes))
    assert not outputs(tmp_path)["model"].exists()


def test_empty_pool_is_one_clear_error(tmp_path: Path, vocabulary: Path) -> None:
    data = partition()
    data.private[:] = False
    with pytest.raises(InputError, match="pool 'private'"):
        run(tmp_path, vocabulary, spec("crt"), data)


def test_the_ledger_opens_with_run_settings_and_what_was_read(
    tmp_path: Path, vocabulary: Path
) -> None:
    wanted = spec("crt").model_copy(
        update={"reads": [ReadSpec(stage="tokenizer", source="bpe", public=False)]}
    )
    ledger = Ledger.from_file(run(tmp_path, vocabulary, wanted)["ledger"])
    assert [line.get("event") for line in ledger.lines()[:2]] == ["start", "data"]
    (start,), (data,), (read,) = (ledger.events(kind) for kind in ("start", "data", "read"))
    assert data["terms"] == wanted.data.model_dump() and data["authors"] is None
    # of pools that nobody draws from no size is told: that of `marked` shows whether a missed
    # secret was masked
    assert data["pools"] == {name: len(partition().pool(name)) for name in ("public", "private")}
    (end,) = ledger.events("end")
    assert end["weights"] == sha256(outputs(tmp_path)["model"])
    assert (start["run"], start["settings"]) == (
        wanted.run,
        settings_digest(wanted.model_dump_json()),
    )
    assert start["noise"] == "recorded" and len(start["code"]) == 12
    assert (read["source"], read["public"], read["digest"]) == ("bpe", False, sha256(vocabulary))
    assert ledger.ended() and len(set(ledger.states())) == len(ledger.states()) == 3


def test_warm_start_begins_at_the_given_weights_and_the_ledger_says_so(
    tmp_path: Path, vocabulary: Path
) -> None:
    first = run(tmp_path / "public", vocabulary, spec("nonprivate"))
    frozen = RECIPE.model_copy(update={"noisy_lr": 1e-30})
    wanted = spec("dpsgd", init="public/g0-s0", init_public=True).model_copy(
        update={"recipe": frozen}
    )
    folder = tmp_path / "second"
    folder.mkdir()
    made = outputs(folder)
    start = {"init": first["model"], "init_ledger": first["ledger"]}
    train(wanted, **files(folder, partition()), tokenizer=vocabulary, **made, **start)
    assert made["model"].read_bytes() == first["model"].read_bytes()
    (start,) = Ledger.from_file(made["ledger"]).events("init")
    assert start["source"] == "public/g0-s0"


@pytest.mark.parametrize(
    "given", [{"init"}, {"ledger"}, {"name", "init"}, {"name"}, {"init", "ledger"}]
)
def test_a_start_that_the_ledger_would_not_name_is_refused(
    tmp_path: Path, vocabulary: Path, given: set[str]
) -> None:
    """Else noise after training without privacy would have a finite epsilon."""
    bare = run(tmp_path / "bare", vocabulary, spec("nonprivate"))
    wanted = spec("dpsgd", init="bare/g0-s0" if "name" in given else None)
    start = {
        "init": bare["model"] if "init" in given else None,
        "init_ledger": bare["ledger"] if "ledger" in given else None,
    }
    made = outputs(tmp_path)
    with pytest.raises(InputError, match="a start has a name, weights and a ledger"):
        train(wanted, **files(tmp_path, partition()), tokenizer=vocabulary, **made, **start)
    assert not made["model"].exists()


def test_weights_that_are_not_those_of_their_ledger_are_no_start(
    tmp_path: Path, vocabulary: Path
) -> None:
    first = run(tmp_path / "first", vocabulary, spec("nonprivate"))
    other = run(tmp_path / "other", vocabulary, spec("nonprivate", seed=1))
    wanted = spec("dpsgd", init="first/g0-s0")
    start = {"init": other["model"], "init_ledger": first["ledger"]}
    with pytest.raises(InputError, match="not the ones that the ledger beside them ends with"):
        train(
            wanted,
            **files(tmp_path, partition()),
            tokenizer=vocabulary,
            **outputs(tmp_path),
            **start,
        )


def test_what_is_declared_public_has_a_digest_in_the_ledger(
    tmp_path: Path, vocabulary: Path
) -> None:
    model = tmp_path / "entities"
    (model / "parts").mkdir(parents=True)
    (model / "parts/weights").write_text("1")
    reads = [ReadSpec(stage="policy", source="names: entities", public=True, artefact=str(model))]
    wanted = spec("crt").model_copy(update={"reads": reads})
    digests = []
    for content in ("1", "2"):
        (model / "parts/weights").write_text(content)
        (tmp_path / content).mkdir()
        (read,) = Ledger.from_file(run(tmp_path / content, vocabulary, wanted)["ledger"]).events(
            "read"
        )
        digests.append(read["digest"])
    assert len(set(digests)) == 2 and all(len(digest) == 64 for digest in digests)
    shutil.rmtree(model)
    with pytest.raises(InputError, match="is declared public, but was not found"):
        run(tmp_path / "1", vocabulary, wanted)


@pytest.mark.parametrize("method", TRAINED)
def test_a_batch_is_moved_to_the_device_once(
    method: str, tmp_path: Path, vocabulary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is on a GPU cannot be pinned for the way to it; no GPU is needed to see that."""
    moved = []  # kept, so that no other tensor gets the place of one of them

    def to(batch: Batch, device: torch.device) -> Batch:
        assert not any(batch.inputs is known for known in moved)
        there = replace(batch, inputs=batch.inputs.clone())
        moved.append(there.inputs)
        return there

    monkeypatch.setattr(Batch, "to", to)
    run(tmp_path, vocabulary, spec(method))
    assert moved


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("method", TRAINED)
def test_cuda_makes_the_same_ledger(method: str, tmp_path: Path, vocabulary: Path) -> None:
    made = [
        run(tmp_path / device, vocabulary, spec(method, device=device))
        for device in ("cpu", "cuda")
    ]
    first, second = (Ledger.from_file(one["ledger"]) for one in made)
    assert first.releases() == second.releases() and first.epochs() == second.epochs()
    assert all(row["valid_ppl"] > 1 for row in read_jsonl(made[1]["metrics"]))
