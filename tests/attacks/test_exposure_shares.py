"""Exposure that several jobs count: what one job finds, to the last bit, and no other files."""

from pathlib import Path

import orjson
import pytest
import torch
from torch import nn

from confide.attacks.exposure import blocks, candidates
from confide.attacks.exposure.exposure import exposure, share_of
from confide.attacks.target import Target
from confide.errors import InputError
from confide.files.io import write_json
from confide.specs import ExposureSpec
from tests.attacks.test_exposure import planted

SPEC = ExposureSpec(kind="exposure", chunk=16)
WEIGHTS = "a" * 64


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten blocks of the 10,000 candidates."""
    for module in (blocks, candidates):
        monkeypatch.setattr(module, "BLOCK", 3)


def target_of(
    model: nn.Module, tokenizer, folder: Path, counts: list[Path] | None = None
) -> Target:
    write_json(folder / "canaries.json", planted())
    place = folder / "canaries.json"
    return Target(model, tokenizer, folder, place, counts=counts or (), weights=WEIGHTS)


def counted(target: Target, folder: Path, number: int) -> list[Path]:
    files = []
    for share in range(1, number + 1):
        files.append(folder / f"{share}.json")
        found = share_of(SPEC, target, f"{share}-of-{number}")
        write_json(files[-1], {"weights": WEIGHTS, **found})
    return files


@pytest.mark.parametrize("kind", ["lstm that memorises", "gpt2"])
@pytest.mark.parametrize("name", ["digit_tokenizer", "merging_tokenizer"])
@pytest.mark.parametrize("number", [3, 11])
def test_shares_give_what_one_job_gives(request, make_model, tmp_path, kind, name, number):
    """Of eleven shares of ten blocks one has none."""
    tokenizer = request.getfixturevalue(name)
    model = make_model(kind, tokenizer, double=False)
    target = target_of(model, tokenizer, tmp_path)
    files = counted(target, tmp_path, number)
    found = exposure(SPEC, target_of(model, tokenizer, tmp_path, files))
    assert found == exposure(SPEC, target)
    visited = [orjson.loads(path.read_bytes())["visited"] for path in files]
    assert sum(count > 0 for count in visited) == min(number, 10)


def test_a_model_without_numbers_has_no_ranks(digit_tokenizer, make_model, tmp_path):
    model = make_model("lstm", digit_tokenizer)
    with torch.no_grad():
        model.head.weight.fill_(torch.nan)
    target = target_of(model, digit_tokenizer, tmp_path)
    files = counted(target, tmp_path, 2)
    found = exposure(SPEC, target_of(model, digit_tokenizer, tmp_path, files))
    assert found["exposures"] is None and repr(found) == repr(exposure(SPEC, target))


def test_shares_of_others_are_refused(digit_tokenizer, make_model, tmp_path):
    model = make_model("lstm", digit_tokenizer)
    files = counted(target_of(model, digit_tokenizer, tmp_path), tmp_path, 2)
    honest = orjson.loads(files[1].read_bytes())
    for changes, message in (
        ({"weights": "b" * 64}, "2.json: weights: is of another model"),
        ({"share": "1-of-2"}, "share = '1-of-2': expected 2-of-2"),
        ({"likelier": honest["likelier"][1:]}, "likelier: is not of 10 canaries"),
        ({"likelier": [-1, *honest["likelier"][1:]]}, r"likelier\.0: "),
    ):
        write_json(files[1], honest | changes)
        with pytest.raises(InputError, match=message):
            exposure(SPEC, target_of(model, digit_tokenizer, tmp_path, files))
    budgeted = SPEC.model_copy(update={"evaluations": 100})
    with pytest.raises(InputError, match="evaluations = 100: a budget is of one job"):
        share_of(budgeted, target_of(model, digit_tokenizer, tmp_path), "1-of-2")
