"""Pretrained models of every family against transformers itself, and their gradients against a loop
over examples in float64.
"""

import json

import numpy as np
import pytest
import torch
from torch import nn
from transformers import AutoModelForCausalLM

from confide import models
from confide.dp.mechanism import clipping
from confide.dp.mechanism.clipping import PerExampleClipper, normalised
from confide.dp.mechanism.update import per_example
from confide.errors import InputError
from confide.models import generation
from confide.models.batches import Batch
from confide.models.generation import CausalReader, ending, generate, uniforms
from confide.models.head import IGNORE
from confide.specs import AdapterSpec, CausalLMSpec, SamplingSpec
from confide.text.tokenizer import from_folder
from tests.families import END, FAMILIES, folder_of
from tests.models.test_generation import naive

WAYS = ("full", "adapter")
LENGTHS = (9, 4, 6, 1)


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    return {name: folder_of(name, tmp_path_factory.mktemp(name)) for name in FAMILIES}


@pytest.fixture
def build(folders):
    def make(family, way, **changes):
        options = {"adapter": AdapterSpec(rank=3)} if way == "adapter" else {}
        spec = CausalLMSpec(kind="causal_lm", pretrained=str(folders[family]), **options, **changes)
        words = from_folder(folders[family], source=family, control=["USR:"])
        torch.manual_seed(3)
        model = models.build(spec, words.vocab_size, words.bos_id)
        with torch.no_grad():  # adapters begin at zero, where a wrong gradient would not show
            for parameter in model.parameters():
                if parameter.requires_grad:
                    parameter.add_(torch.randn_like(parameter) / 8)
        return model, words

    return make


def batch_of(words) -> Batch:
    """Padded examples that have the new tokens in them, as input and as target."""
    rng = np.random.default_rng(5)
    inputs = torch.full((len(LENGTHS), max(LENGTHS)), words.bos_id)
    targets = torch.full_like(inputs, IGNORE)
    for row, length in enumerate(LENGTHS):
        ids = torch.from_numpy(rng.integers(0, words.vocab_size, length))
        ids[length // 2] = words.mask_id
        inputs[row, 1:length] = ids[:-1]
        targets[row, :length] = ids
    return Batch(inputs, targets)


def in_float64(monkeypatch) -> None:
    """transformers' norms compute in float32, whatever they are given; here they do not."""

    def forward(self, hidden):
        more = 1 if type(self).__name__ == "Gemma3RMSNorm" else 0
        return normalised(self, hidden) * (self.weight + more)

    import transformers.models as packages

    for family in ("llama", "mistral", "qwen2", "qwen3", "gemma3", "phi3", "smollm3"):
        module = getattr(getattr(packages, family), f"modeling_{family}")
        for name in vars(module):
            if name.endswith("RMSNorm"):
                monkeypatch.setattr(getattr(module, name), "forward", forward)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("way", WAYS)
def test_clipped_sums_are_those_of_a_loop(family, way, build, monkeypatch):
    in_float64(monkeypatch)
    model, words = build(family, way)
    model = model.double()
    batch = batch_of(words)
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    norms = []
    total = [torch.zeros_like(parameter) for parameter in parameters]
    for row, length in enumerate(LENGTHS):
        alone = Batch(batch.inputs[row : row + 1, :length], batch.targets[row : row + 1, :length])
        loss = per_example(model, alone).sum()
        found = torch.autograd.grad(loss, parameters, allow_unused=True)
        grads = [
            torch.zeros_like(parameter) if grad is None else grad
            for grad, parameter in zip(found, parameters, strict=True)
        ]
        norms.append(torch.sqrt(sum(grad.square().sum() for grad in grads)))
        for place, grad in enumerate(grads):
            total[place] += grad * (0.4 / norms[-1]).clamp(max=1)
    clipper = PerExampleClipper(model, 0.4)
    clipper.reset()
    first = clipper.add(lambda: per_example(model, batch[:2]))
    second = clipper.add(lambda: per_example(model, batch[2:]))
    torch.testing.assert_close(torch.cat([first, second]), torch.stack(norms), rtol=1e-10, atol=0)
    size = sum(map(torch.Tensor.numel, total))
    assert size == len(clipper.flat)
    for ours, theirs in zip(clipper.total, total, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)
    assert all(value.any() for value in total)


@pytest.mark.parametrize("family", FAMILIES)
def test_logits_are_those_of_transformers(family, folders, build):
    words = build(family, "full")[1]
    spec = CausalLMSpec(kind="causal_lm", pretrained=str(folders[family]))
    model = models.build(spec, words.vocab_size, words.bos_id).eval()
    theirs = AutoModelForCausalLM.from_pretrained(folders[family], dtype=torch.float32).eval()
    ids = torch.randint(0, model.source.tokens, (3, 11))
    with torch.no_grad():
        ours = model(ids)[..., : model.source.tokens]
        torch.testing.assert_close(ours, theirs(ids).logits, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_merged_reads_as_it_was_trained(family, build, tmp_path):
    model, _ = build(family, "adapter")
    model.eval()
    ids = torch.randint(0, model.vocab_size, (2, 9))
    models.save(model, tmp_path / "model.safetensors", tmp_path / "config.json")
    stored = models.stored_shapes(tmp_path / "model.safetensors")
    trained = {name for name, value in model.named_parameters() if value.requires_grad}
    assert set(stored) == trained
    loaded = models.load(tmp_path)
    with torch.no_grad():
        torch.testing.assert_close(loaded(ids), model(ids), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_reading_token_by_token_is_reading_at_once(family, build):
    model = build(family, "adapter")[0].merged().eval()
    ids = torch.randint(0, model.vocab_size, (3, 12))
    with torch.no_grad():
        whole = model.hidden(ids)
        state = model.start(3)
        for place in range(ids.shape[1]):
            hidden, state = model.advance(state, ids[:, place])
            torch.testing.assert_close(hidden, whole[:, place], rtol=1e-4, atol=1e-4)
            state = model.take(state, torch.tensor([0, 1, 2]))


@pytest.mark.parametrize("family", FAMILIES)
def test_texts_do_not_depend_on_their_company(family, build):
    model, words = build(family, "full")
    model.eval()
    spec = SamplingSpec(max_new_tokens=6, temperature=1.0)
    prompts = [words.encode("my code is"), words.encode("I"), []]
    numbers = uniforms(3, 2, spec, torch.Generator().manual_seed(1))
    together = generate(model, prompts, numbers, spec, ending(words))
    for place, prompt in enumerate(prompts):
        alone = generate(model, [prompt], numbers[place : place + 1], spec, ending(words))
        assert alone[0] == together[place]


@pytest.mark.parametrize("family", ["llama", "mistral", "opt", "gemma3_text"])
def test_texts_are_those_of_a_naive_loop(family, build, monkeypatch):
    """Each token from a forward pass over all that stands before it; some end early."""
    model, words = build(family, "adapter")
    model = model.merged().eval()
    spec = SamplingSpec(max_new_tokens=9, temperature=1.5, top_k=30)
    prompts = [words.encode("my code is 47"), words.encode("I"), []]
    numbers = uniforms(3, 4, spec, torch.Generator().manual_seed(1))
    until = ending(words, [words.decode([token]) for token in range(40, 90, 4)])
    monkeypatch.setattr(generation, "ROWS", 5)
    found = generate(model, prompts, numbers, spec, until)
    lengths = {len(one.ids) for row in found for one in row}
    assert len(lengths) > 3
    for prompt, row, own in zip(prompts, found, numbers, strict=True):
        assert [(one.ids, one.text) for one in row] == [
            naive(model, prompt, each, spec, until) for each in own
        ]


def test_what_was_read_is_not_copied_for_each_token(build):
    model, words = build("llama", "full")
    ids = torch.randint(0, words.vocab_size, (3, 4))
    reader = CausalReader(model, ids, torch.tensor([4, 2, 3]), torch.tensor([0, 0, 2]), 5)
    layer = reader.cache.layers[0]
    places = [part.data_ptr() for part in (layer.keys, layer.values)]
    with torch.inference_mode():
        for _ in range(2):
            reader.read(torch.tensor([5, 6, 7]))
        assert [part.data_ptr() for part in (layer.keys, layer.values)] == places
        assert layer.keys.shape[2] == 6
        reader.keep(torch.tensor([2]))
        for _ in range(3):
            reader.read(torch.tensor([5]))
        with pytest.raises(RuntimeError):  # there was room for five
            reader.read(torch.tensor([5]))


def test_dropout_is_on_where_it_is_asked_for(build):
    for way, changes in (("full", {"dropout": 0.5}), ("adapter", {"dropout": 0.5})):
        model, words = build("llama", way, **changes)
        batch = batch_of(words)
        model.train()
        assert not torch.equal(per_example(model, batch), per_example(model, batch))
        model.eval()
        assert torch.equal(per_example(model, batch), per_example(model, batch))


def test_frozen_weights_in_bfloat16(build):
    model, words = build("llama", "adapter", frozen_dtype="bfloat16")
    kinds = {value.requires_grad: value.dtype for value in model.parameters()}
    assert kinds == {True: torch.float32, False: torch.bfloat16}
    clipper = PerExampleClipper(model, 1.0)
    clipper.reset()
    norms = clipper.add(lambda: per_example(model, batch_of(words)))
    assert norms.isfinite().all() and clipper.flat.any()


def test_a_norm_of_another_kind_is_none(monkeypatch):
    from transformers.models.llama.modeling_llama import LlamaRMSNorm

    assert clipping.is_rms_norm(LlamaRMSNorm(6)) and not clipping.is_rms_norm(nn.LayerNorm(6))
    monkeypatch.setattr(LlamaRMSNorm, "forward", lambda self, x: x / x.abs().max() * self.weight)
    assert not clipping.is_rms_norm(LlamaRMSNorm(6))


@pytest.mark.parametrize(
    ("file", "change", "said"),
    [
        ("config.json", {"model_type": "bert"}, "is not one of gpt2"),
        ("config.json", {"num_experts": 4}, "mixture of experts"),
        ("config.json", {"auto_map": {"AutoModel": "evil.py"}}, "never run"),
        ("config.json", {"quantization_config": {"bits": 4}}, "quantised"),
        ("config.json", {"num_hidden_layers": 10**6}, "not a number of layers"),
        ("config.json", {"num_hidden_layers": 1}, "is no tensor of a model"),
        ("config.json", {"hidden_size": 48}, "has the shape"),
        ("config.json", {"num_attention_heads": "many"}, "no model that can be built"),
        ("tokenizer_config.json", {"eos_token": "nowhere"}, "end token"),
        ("tokenizer.json", {"model": {"type": "Unigram", "vocab": {}}}, "no BPE of bytes"),
    ],
)
def test_a_folder_that_does_not_fit_is_one_line(file, change, said, tmp_path):
    folder = folder_of("llama", tmp_path / "model")
    place = folder / file
    place.write_text(json.dumps(json.loads(place.read_text()) | change))
    with pytest.raises(InputError, match=said) as error:
        words = from_folder(folder, source="llama")
        models.build(
            CausalLMSpec(kind="causal_lm", pretrained=str(folder)), words.vocab_size, words.bos_id
        )
    assert str(error.value).count("\n") == 0


@pytest.mark.parametrize(
    ("family", "changes", "said"),
    [
        ("gemma3_text", {"use_bidirectional_attention": True}, "looks at later tokens"),
        ("llama", {"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}, "other texts"),
    ],
)
def test_what_sees_more_than_the_past_of_its_own_text_is_refused(family, changes, said, tmp_path):
    folder = folder_of(family, tmp_path / "model")
    place = folder / "config.json"
    config = json.loads(place.read_text())
    if "rope_scaling" in changes:
        config.pop("rope_parameters", None)
    place.write_text(json.dumps(config | changes))
    words = from_folder(folder, source=family)
    with pytest.raises(InputError, match=said):
        models.build(
            CausalLMSpec(kind="causal_lm", pretrained=str(folder)), words.vocab_size, words.bos_id
        )


def test_other_files_than_the_pinned_ones_are_refused(folders):
    spec = CausalLMSpec(kind="causal_lm", pretrained=str(folders["llama"]), sha256="0" * 64)
    with pytest.raises(InputError, match="named by their digest"):
        models.build(spec, 400, 0)


def test_its_own_tokenizer(folders):
    words = from_folder(folders["llama"], source="llama", control=["USR:"])
    text = f"USR: my code is 4711, {END} é <MASK>"
    ids = words.encode(text)
    assert words.decode(ids) == text and words.mask_id in ids and words.bos_id not in ids
    assert words.lengths[ids].sum() == len(text.encode())
    new = [words.mask_id, words.pad_id, words.whole["USR:"]]
    assert min(new) == words.vocab_size - 3
