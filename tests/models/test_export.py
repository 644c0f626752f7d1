"""A trained model, opened by transformers alone."""

import subprocess
import sys

import pytest
import torch

from confide import models
from confide.models.export import export
from confide.specs import AdapterSpec, CausalLMSpec
from confide.text.tokenizer import from_folder
from tests.families import folder_of
from tests.nightly import nightly

READ = """
import sys
sys.modules["confide"] = None
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, pipeline
folder = sys.argv[1]
words = AutoTokenizer.from_pretrained(folder)
model = AutoModelForCausalLM.from_pretrained(folder).eval()
ids = words("my code is 4711 <MASK> \\u00e9", return_tensors="pt").input_ids
with torch.no_grad():
    print(ids[0].tolist(), model(ids).logits[0, -1].sum().item())
made = pipeline("text-generation", model=model, tokenizer=words)("my code", max_new_tokens=3)
print(len(made[0]["generated_text"]) >= len("my code"))
"""


@pytest.mark.parametrize("family", ["llama", nightly("gpt2")])
def test_transformers_alone_gives_the_same_logits(family, tmp_path):
    source = folder_of(family, tmp_path / "source")
    words = from_folder(source, source=family)
    adapter = AdapterSpec(rank=2)
    spec = CausalLMSpec(kind="causal_lm", pretrained=str(source), adapter=adapter)
    torch.manual_seed(1)
    model = models.build(spec, words.vocab_size, words.bos_id).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter) / 8)
    run = tmp_path / "run"
    run.mkdir()
    models.save(model, run / "model.safetensors", run / "config.json")
    files = export(run, words, tmp_path / "out", "# A model\n")
    assert len({path.stat().st_mode for path in files}) == 1
    command = [sys.executable, "-c", READ, str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    ids, total = done.stdout.splitlines()[0].split("] ")
    wanted = [words.bos_id, *words.encode("my code is 4711 <MASK> é")]
    assert ids == str(wanted).rstrip("]") and done.stdout.splitlines()[1] == "True"
    with torch.no_grad():
        ours = model(torch.tensor([wanted]))[0, -1].sum().item()
    assert ours == pytest.approx(float(total), abs=1e-2)
