"""A trained model, opened by transformers or PEFT alone."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from confide import models
from confide.models.causal_lm import CausalLM
from confide.models.export import export, export_adapter
from confide.specs import AdapterSpec, CausalLMSpec
from confide.text.tokenizer import Tokenizer, from_folder
from tests.families import folder_of
from tests.nightly import nightly

TEXT = "my code is 4711 <MASK> \u00e9"
READ = f"""
import sys
sys.modules["confide"] = None
import torch
from transformers import AutoTokenizer, pipeline
{{opening}}
folder = sys.argv[1]
words = AutoTokenizer.from_pretrained(folder)
model = opened(folder).eval()
ids = words({TEXT!r}, return_tensors="pt").input_ids
with torch.no_grad():
    print(ids[0].tolist(), model(ids).logits[0, -1].sum().item())
made = pipeline("text-generation", model=model, tokenizer=words)("my code", max_new_tokens=3)
print(len(made[0]["generated_text"]) >= len("my code"))
"""
MERGED = (
    "from transformers import AutoModelForCausalLM\nopened = AutoModelForCausalLM.from_pretrained"
)
APART = (
    "from peft import AutoPeftModelForCausalLM\nopened = AutoPeftModelForCausalLM.from_pretrained"
)


def trained(family: str, folder: Path) -> tuple[CausalLM, Tokenizer]:
    """A model with adapters that are not what they began with, saved in folder/run."""
    source = folder_of(family, folder / "source")
    words = from_folder(source, source=family)
    adapter = AdapterSpec(rank=2)
    spec = CausalLMSpec(kind="causal_lm", pretrained=str(source), adapter=adapter)
    torch.manual_seed(1)
    model = CausalLM(spec, words.vocab_size, words.bos_id).eval()
    with torch.no_grad():
        for parameter in models.trainable(model):
            parameter.add_(torch.randn_like(parameter) / 8)
    run = folder / "run"
    run.mkdir()
    models.save(model, run / "model.safetensors", run / "config.json")
    return model, words


def check(opening: str, folder: Path, model: CausalLM, words: Tokenizer) -> None:
    """What others read of the folder gives the model's logits."""
    command = [sys.executable, "-c", READ.format(opening=opening), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder.parent)
    assert done.returncode == 0, done.stderr[-2000:]
    ids, total = done.stdout.splitlines()[0].split("] ")
    wanted = [words.bos_id, *words.encode(TEXT)]
    assert ids == str(wanted).rstrip("]") and done.stdout.splitlines()[1] == "True"
    with torch.no_grad():
        ours = model(torch.tensor([wanted]))[0, -1].sum().item()
    assert ours == pytest.approx(float(total), abs=1e-2)


@pytest.mark.parametrize("family", ["llama", nightly("gpt2")])
def test_transformers_alone_gives_the_same_logits(family: str, tmp_path: Path) -> None:
    model, words = trained(family, tmp_path)
    export(tmp_path / "run", words, tmp_path / "out")
    check(MERGED, tmp_path / "out", model, words)


@pytest.mark.parametrize(
    "family", map(nightly, ["llama", "gpt2", "gpt_neox", "mistral", "gemma3_text", "phi3"])
)
def test_peft_alone_gives_the_same_logits(family: str, tmp_path: Path) -> None:
    """With tied and with untied embeddings, and where these are scaled."""
    model, words = trained(family, tmp_path)
    export_adapter(tmp_path / "run", words, tmp_path / "out")
    assert not [
        path for path in (tmp_path / "out").iterdir() if str(tmp_path) in path.read_text("latin-1")
    ]
    check(APART, tmp_path / "out", model, words)
