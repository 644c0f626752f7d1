"""Training on some domains only, and the weights after every epoch."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from confide import models
from confide.errors import InputError
from confide.train import snapshots
from confide.train.job import Job
from confide.types import View
from tests.stages.test_train import partition, run, spec, vocabulary

__all__ = ["vocabulary"]


def test_points_of_other_domains_are_not_read(tmp_path: Path, vocabulary: Path) -> None:
    """The model is the same bit for bit if the other domain's training points change, and not if
    its own do.
    """
    found = {}
    for name, changed in (("as it was", None), ("other", 1), ("own", 0)):
        data = partition()
        if changed is not None:
            ids = data.original.ids.copy()
            touched = np.repeat(data.domain == changed, np.diff(data.original.starts))
            ids[touched] = 3 + (ids[touched] + 5) % 250
            view = View(ids, data.original.starts, data.original.private)
            data = replace(data, original=view, redacted=view)
        found[name] = run(tmp_path / name, vocabulary, spec("domain_only"), data)[
            "model"
        ].read_bytes()
    assert found["as it was"] == found["other"] != found["own"]


def test_a_run_within_a_domain_needs_one_that_is_there(tmp_path: Path, vocabulary: Path) -> None:
    with pytest.raises(InputError, match=r"domains = 'sea': is not one of .*air, mail"):
        run(tmp_path, vocabulary, spec("nonprivate", domains=["air", "sea"]))
    with pytest.raises(InputError, match=r"domains: are missing"):
        run(tmp_path, vocabulary, spec("domain_only", domains=None))
    with pytest.raises(InputError, match=r"domains = 'air': are for ordinary training alone"):
        run(tmp_path, vocabulary, spec("dpsgd", domains=["air"]))
    held_out = replace(
        partition(), split=np.where(partition().domain == 1, 2, partition().split).astype(np.uint8)
    )
    with pytest.raises(InputError, match=r"domains = 'mail': has no points to train on"):
        run(tmp_path, vocabulary, spec("nonprivate", domains=["mail"]), held_out)


def test_the_weights_after_every_epoch_survive_a_kill_and_the_last_are_the_model(
    tmp_path: Path, vocabulary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = spec("crt", every_epoch=True)
    whole = run(tmp_path / "whole", vocabulary, wanted)
    kept = load_file(whole["epochs"])
    assert {name.partition("/")[0] for name in kept} == {"1", "2", "3"}
    last = {name.partition("/")[2]: value for name, value in kept.items() if name.startswith("3/")}
    final = load_file(whole["model"])
    assert last.keys() == final.keys() and all(
        torch.equal(last[name], final[name]) for name in final
    )
    assert not torch.equal(kept["1/head.weight"], kept["2/head.weight"])
    assert not load_file(run(tmp_path / "without", vocabulary, spec("crt"))["epochs"])
    write = snapshots.write
    step = Job.run

    def then_killed(*arguments: Any) -> None:
        write(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(snapshots, "write", then_killed)
    for _ in range(
        2
    ):  # after the first epoch, and after it again: no checkpoint says that it is over
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path / "killed", vocabulary, wanted)
    monkeypatch.setattr(snapshots, "write", write)
    assert (
        Job.run is step
        and run(tmp_path / "killed", vocabulary, wanted)["epochs"].read_bytes()
        == whole["epochs"].read_bytes()
    )
    assert not list((tmp_path / "killed" / "checkpoint").glob("epoch-*"))


def test_a_kill_while_the_outputs_are_written_loses_no_epoch(
    tmp_path: Path, vocabulary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = spec("crt", every_epoch=True)
    save = models.save

    def killed(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(models, "save", killed)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "killed", vocabulary, wanted)
    monkeypatch.setattr(models, "save", save)
    whole, resumed = (run(tmp_path / name, vocabulary, wanted) for name in ("whole", "killed"))
    for name in ("epochs", "model", "ledger"):
        assert resumed[name].read_bytes() == whole[name].read_bytes()
