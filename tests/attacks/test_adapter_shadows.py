"""Shadow models that are adapters of a pretrained model: the attack by their scores catches an
overtrained adapter and nobody else, and a killed job goes on to the same bytes.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from confide import models
from confide.attacks.membership import shadows as files
from confide.attacks.registry import ATTACKS
from confide.attacks.target import Target
from confide.config import jobs
from confide.config.layers import Layer, read_layers
from confide.config.params import check_layers
from confide.errors import InputError
from confide.files.io import write_jsonl
from confide.models import LanguageModel
from confide.models.causal_lm import CausalLM
from confide.specs import AdapterSpec, CausalLMSpec, LiraSpec, ShadowsSpec
from confide.stages import shadows as stage
from confide.stages.gather_shadows import gather_shadows
from confide.stages.shadows import shadows
from confide.text.tokenizer import Tokenizer, from_folder, save
from tests.families import folder_of

MEMBERS = 24
LIRA = LiraSpec(
    kind="lira", shadows="adapters", label="order", limit=MEMBERS, group=6, bootstrap=50, seed=3
)


def rows() -> list[dict[str, Any]]:
    """Points of train and of test, each with an order number that no other has, and one without."""
    numbers = np.random.default_rng(1).permutation(9000)[: 2 * MEMBERS] + 1000
    found: list[dict[str, Any]] = [
        {
            "key": f"{number}:0",
            "text": f"Ann has {number} now",
            "split": "train" if place < MEMBERS else "test",
            "gold": [[8, 12, "order", 1.0]],
        }
        for place, number in enumerate(numbers)
    ]
    return [*found, {"key": "call:0", "text": "call me", "split": "train", "gold": []}]


class Made(NamedTuple):
    """A pretrained model, its tokenizer, points, and the scores of shadow models."""

    folder: Path
    spec: ShadowsSpec
    words: Tokenizer
    output: Path

    @property
    def inputs(self) -> dict[str, Path]:
        return {
            "points": self.folder / "points.jsonl",
            "tokenizer": self.folder / "tokenizer.json",
        }

    def model(self) -> LanguageModel:
        """The base with a fresh adapter."""
        torch.manual_seed(11)
        assert isinstance(self.spec.model, CausalLMSpec)
        return models.build(self.spec.model, self.words.vocab_size, self.words.bos_id).eval()

    def target(self, model: LanguageModel) -> Target:
        used = model.as_used().eval()
        return Target(used, self.words, self.inputs["points"], shadows=self.output)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("shadows")
    base = folder_of("llama", folder / "base", num_hidden_layers=1)
    words = from_folder(base, source="llama", control=["USR:"])
    save(words, folder / "tokenizer.json")
    write_jsonl(folder / "points.jsonl", rows())
    model = CausalLMSpec(
        kind="causal_lm", pretrained=str(base), public=True, adapter=AdapterSpec(rank=6)
    )
    spec = ShadowsSpec(
        model=model,
        label="order",
        limit=MEMBERS,
        models=6,
        epochs=16,
        lr=0.02,
        batch_size=12,
        seed=3,
    )
    found = Made(folder, spec, words, folder / "shadows.safetensors")
    shadows(spec, **found.inputs, output=found.output, checkpoint=folder / "checkpoint")
    return found


def test_what_is_kept(made: Made) -> None:
    """Numbers of the usual form, the digest of the base, and no weights or text."""
    found = files.read(made.output, LIRA)
    assert found.total.shape == (6, 2 * MEMBERS) and found.loss.shape == (16, 6)
    assert (found.seen.sum(0) == 3).all() and (found.count == 4).all()
    assert found.loss[-1].max() < found.loss[0].min() - 1
    assert isinstance(found.spec.model, CausalLMSpec)
    assert found.spec.model.sha256 == made.model().spec.sha256
    assert b"Ann" not in made.output.read_bytes() and made.output.stat().st_size < 20_000
    assert [path.name for path in (made.folder / "checkpoint").iterdir()] == ["lock"]


def test_an_overtrained_adapter_is_caught_and_a_fresh_one_is_not(
    made: Made, fit: Callable[..., None]
) -> None:
    model = made.model()
    before = ATTACKS["lira"](LIRA, made.target(model))
    texts = [row["text"] for row in rows() if row["split"] == "train"]
    fit(model, made.words, texts, 80)
    after = ATTACKS["lira"](LIRA, made.target(model))
    for name in ("auc", "offline_auc"):
        low = before["auc_null_low"]
        high = before["auc_null_high"]
        assert low <= before[name] <= high and after[name] > high
    assert after["auc"] > 0.85 and after["shadow_auc"] > 0.7
    assert before["shadow_auc"] == after["shadow_auc"]
    with pytest.raises(InputError, match="another tokenizer"):
        codes = [f"{value:02d}" for value in range(100)]
        other = from_folder(made.folder / "base", source="llama", control=codes)
        ATTACKS["lira"](LIRA, replace(made.target(model), tokenizer=other))


def test_a_killed_job_goes_on_after_the_last_adapter_to_the_same_bytes(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = made.spec.model_copy(update={"models": 4, "epochs": 2})
    shadows(few, **made.inputs, output=tmp_path / "whole")
    fitted = stage.fit_adapter
    trained: list[str] = []

    def fragile(*arguments: Any, title: str, **options: Any) -> np.ndarray:
        if len(trained) == 2:
            raise KeyboardInterrupt
        trained.append(title)
        return fitted(*arguments, title=title, **options)

    place = {"output": tmp_path / "resumed", "checkpoint": tmp_path / "checkpoint"}
    monkeypatch.setattr(stage, "fit_adapter", fragile)
    with pytest.raises(KeyboardInterrupt):
        shadows(few, **made.inputs, **place)
    assert not place["output"].exists() and trained == ["shadow 1 of 4", "shadow 2 of 4"]
    torch.manual_seed(12345)
    trained.clear()
    shadows(few, **made.inputs, **place)
    assert trained == ["shadow 3 of 4", "shadow 4 of 4"]
    assert place["output"].read_bytes() == (tmp_path / "whole").read_bytes()
    assert not (tmp_path / "checkpoint/state.safetensors").exists()
    trained.clear()  # another specification begins anew
    with pytest.raises(KeyboardInterrupt):
        shadows(few.model_copy(update={"lr": 0.01}), **made.inputs, **place)
    assert trained[0] == "shadow 1 of 4"


def test_shares_of_adapters_give_the_bytes_of_one_job(made: Made, tmp_path: Path) -> None:
    few = made.spec.model_copy(update={"models": 4, "epochs": 1})
    shadows(few, **made.inputs, output=tmp_path / "whole")
    shares = []
    for share in ("1-of-3", "2-of-3", "3-of-3"):
        shares.append(tmp_path / share)
        checkpoint = tmp_path / f"checkpoint {share}"
        shadows(few, **made.inputs, output=shares[-1], share=share, checkpoint=checkpoint)
    gather_shadows(shares=shares, output=tmp_path / "output")
    assert (tmp_path / "output").read_bytes() == (tmp_path / "whole").read_bytes()


@pytest.mark.parametrize("family", ["gpt2", "gpt_neox"])  # tied and untied
def test_a_renewed_model_is_one_that_was_just_built(family: str, tmp_path: Path) -> None:
    folder = folder_of(family, tmp_path / family)
    words = from_folder(folder, source=family, control=["USR:"])
    spec = CausalLMSpec(kind="causal_lm", pretrained=str(folder), adapter=AdapterSpec(rank=2))
    model = models.build(spec, words.vocab_size, words.bos_id)
    assert isinstance(model, CausalLM)
    fresh = {name: value.detach().clone() for name, value in model.stored().items()}
    with torch.no_grad():
        for value in model.stored().values():
            value.add_(1)
    model.renew()
    for name, value in model.stored().items():
        if "lora_A" in name:
            spread = float(value.detach().std())
            assert spread == pytest.approx(float(fresh[name].std()), rel=0.5)
            assert not torch.equal(value, fresh[name])
        else:
            torch.testing.assert_close(value, fresh[name], rtol=0, atol=0)


def test_without_an_adapter_there_is_nothing_to_train(made: Made, tmp_path: Path) -> None:
    whole = made.spec.model.model_copy(update={"adapter": None})
    for wrong in (whole, "smollm2"):
        spec = made.spec.model_copy(update={"model": wrong})
        with pytest.raises(InputError, match="model: needs a model of kind causal_lm with an"):
            shadows(spec, **made.inputs, output=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@cache
def own_layers() -> list[Layer]:
    """The project's own parameters."""
    return read_layers(Path(__file__).parents[2] / "params.yaml")


def laid_over(*, shadow: dict[str, Any], model: str = "smollm2", dataset: str = "llm_sim") -> None:
    """The project's parameters with a row that asks for such shadow models are checked."""
    definitions: dict[str, Any] = {
        "shadows": {"mine": shadow | {"model": model}},
        "attacks": {"mine": {"kind": "lira", "shadows": "mine"}},
        "runs": {
            "llm_nonprivate": {"attacks": ["mine"], "trajectory": ["exposure"], "dataset": dataset}
        },
    }
    check_layers([*own_layers(), Layer("mine", None, definitions)])


def test_shadow_models_that_make_no_sense_are_one_line() -> None:
    laid_over(shadow={"lr": 0.002})
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"shadow": {}}, "shadows.mine.lr = 0.02: is for LSTMs"),
        ({"shadow": {"lr": 0.002, "hidden": 9}}, "shadows.mine.hidden = 9: is of LSTMs"),
        ({"shadow": {"lr": 0.002}, "model": "lstm"}, "needs a model of kind causal_lm"),
        ({"shadow": {"lr": 0.002}, "model": "none"}, "is not defined under models"),
        ({"shadow": {"lr": 0.002}, "dataset": "sim"}, "has other tokens than the tokenizer bpe"),
    ]
    for options, said in wrong:
        with pytest.raises(InputError, match=said) as error:
            laid_over(**options)
        assert "\n" not in str(error.value)
    inline = {"kind": "causal_lm", "pretrained": "x", "adapter": {"rank": 2, "targets": ["q_proj"]}}
    with pytest.raises(InputError, match="shadows.mine.model: expected a name of models"):
        laid_over(shadow={"lr": 0.002}, model=inline)  # type: ignore[arg-type]


def test_the_job_holds_the_model_itself() -> None:
    definitions = {"shadows": {"mine": {"model": "smollm2", "lr": 0.002}}}
    params = check_layers([*own_layers(), Layer("mine", None, definitions)])
    found = jobs.shadow_models(params, "mine")
    assert found.model == params.models["smollm2"]
    assert jobs.shadow_base(params, "mine") == params.models["smollm2"].pretrained
    assert ShadowsSpec.model_validate_json(found.model_dump_json()) == found
    assert all(jobs.shadow_base(params, name) is None for name in set(params.shadows) - {"mine"})
