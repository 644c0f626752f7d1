"""Models of others: their own weights and all of them, or one line that says what is wrong, before
anything is built.
"""

import json
import time

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel

from confide.errors import InputError
from confide.models import build, gpt2, pretrained
from confide.specs import GPT2Spec

TINY = {
    "vocab_size": 40,
    "n_positions": 16,
    "n_embd": 8,
    "n_layer": 2,
    "n_head": 2,
    "bos_token_id": 0,
    "eos_token_id": 0,
}


def given(folder, vocab_size=40, **more):
    return build(GPT2Spec(kind="gpt2", pretrained=str(folder), **more), vocab_size, bos=1)


@pytest.fixture
def folder(tmp_path):
    """A GPT-2 as transformers writes it."""
    torch.manual_seed(0)
    GPT2LMHeadModel(GPT2Config(**TINY)).save_pretrained(tmp_path)
    return tmp_path


def configured(folder, **changes):
    place = folder / "config.json"
    place.write_text(json.dumps(json.loads(place.read_text()) | changes))


def stored(folder, change):
    """The tensors again, after a change of their mapping."""
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


def refused(folder, *words):
    """The message of the error, which names these and is one line."""
    with pytest.raises(InputError) as error:
        given(folder)
    assert all(word in str(error.value) for word in words) and "\n" not in str(error.value), (
        error.value
    )


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("Llama", {"num_key_value_heads": 2}),
        ("Qwen2", {"num_key_value_heads": 2}),
        ("GPTNeoX", {}),
        ("Mistral", {"num_key_value_heads": 2}),
        ("OPT", {"word_embed_proj_dim": 8, "ffn_dim": 16}),
    ],
)
def test_a_model_of_another_kind_is_refused_by_what_it_is(tmp_path, name, sizes):
    sizes = sizes | {
        "vocab_size": 40,
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
    }
    more = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
    config = getattr(transformers, f"{name}Config")(**sizes, **more)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path)
    refused(tmp_path, "config.json: model_type = ", config.model_type, "of another kind", "gpt2")
    (tmp_path / "config.json").write_text(json.dumps(TINY | {"model_type": "gpt2"}))
    refused(tmp_path, "model.safetensors: wte.weight: is missing, as no GPT-2 lacks it; there is ")


def test_sizes_and_names_are_those_of_transformers():
    for sizes in (
        TINY,
        TINY | {"n_layer": 3, "n_embd": 12, "n_head": 3, "vocab_size": 5, "n_positions": 7},
    ):
        own = {
            name.removeprefix("transformer."): tuple(one.shape)
            for name, one in GPT2LMHeadModel(GPT2Config(**sizes)).named_parameters()
        }
        assert dict(pretrained.wanted(sizes)) == own


def test_what_other_programs_write_is_read_bit_by_bit(folder):
    """Without a prefix, with masks and a copy of the embedding, in half precision, in several
    files.
    """
    ids = torch.randint(0, 40, (2, 5))
    expected = GPT2LMHeadModel.from_pretrained(folder).eval()(ids).logits
    assert torch.equal(given(folder).eval()(ids), expected)

    def elsewise(tensors):
        for name in list(tensors):
            tensors[name.removeprefix("transformer.")] = tensors.pop(name)
        tensors |= {
            "h.0.attn.bias": torch.ones(1, 1, 16, 16),
            "h.1.attn.masked_bias": torch.tensor(-1e4),
        }
        tensors["lm_head.weight"] = tensors["wte.weight"].clone()

    stored(folder, elsewise)
    assert torch.equal(given(folder).eval()(ids), expected)
    tensors = load_file(folder / "model.safetensors")
    halves = {name: tensor.bfloat16() for name, tensor in tensors.items()}
    (folder / "model.safetensors").unlink()
    first = {name: halves.pop(name) for name in list(halves)[:5]}
    save_file(first, folder / "a.safetensors")
    save_file(halves, folder / "b.safetensors")
    weight_map = dict.fromkeys(first, "a.safetensors") | dict.fromkeys(halves, "b.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    model = given(folder)
    assert all(parameter.dtype == torch.float32 for parameter in model.parameters())
    assert torch.equal(
        model.network.transformer.wpe.weight, tensors["wpe.weight"].bfloat16().float()
    )
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"x": "../a.safetensors"}})
    )
    refused(folder, "weight_map")


def test_dropout_is_what_the_specification_says(folder):
    configured(folder, resid_pdrop=0.9, attn_pdrop=0.9, embd_pdrop=0.9)
    assert {one.p for one in given(folder).modules() if isinstance(one, torch.nn.Dropout)} == {0.0}
    assert {
        one.p for one in given(folder, dropout=0.2).modules() if isinstance(one, torch.nn.Dropout)
    } == {0.2}


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"n_layer": 3_000_000}, "n_layer"),
        ({"n_layer": 3}, "h.2.attn.c_attn.weight"),
        ({"n_layer": 1}, "h.1."),
        ({"n_layer": -1}, "n_layer"),
        ({"n_layer": 2.0}, "n_layer"),
        ({"n_layer": True}, "n_layer"),
        ({"n_embd": 1 << 30}, "wte.weight"),
        ({"n_embd": 1 << 62}, "n_embd"),
        ({"n_embd": 9}, "n_embd"),
        ({"n_head": 0}, "n_head"),
        ({"n_positions": 1 << 30}, "wpe.weight"),
        ({"vocab_size": (1 << 31) - 1}, "wte.weight"),
        ({"vocab_size": None}, "vocab_size"),
        ({"n_inner": 1 << 30}, "n_inner"),
        ({"activation_function": "relu"}, "activation_function"),
        ({"layer_norm_epsilon": 1.0}, "layer_norm_epsilon"),
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings"),
        ({"add_cross_attention": True}, "add_cross_attention"),
        ({"model_type": ["gpt2"]}, "model_type"),
        ({"model_type": "gpt2\x1b[2J"}, "model_type"),
    ],
)
def test_a_configuration_that_the_weights_do_not_have_is_refused_before_it_is_built(
    folder, changes, key, monkeypatch
):
    configured(folder, **changes)
    monkeypatch.setattr(gpt2, "_config", None)
    begun = time.process_time()
    refused(folder, key)
    assert time.process_time() - begun < 5


def lacking(tensors):
    del tensors["transformer.h.1.mlp.c_fc.bias"]


def of_more(tensors):
    tensors["transformer.h.1.adapter.weight"] = torch.zeros(3)


def of_other_shape(tensors):
    tensors["transformer.ln_f.bias"] = torch.zeros(9)


def of_numbers(tensors):
    tensors["transformer.ln_f.bias"] = torch.zeros(8, dtype=torch.int64)


def twice(tensors):
    tensors["ln_f.bias"] = torch.zeros(8)


def untied(tensors):
    tensors["lm_head.weight"] = torch.ones(40, 8)


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (lacking, "h.1.mlp.c_fc.bias: is missing"),
        (of_more, "transformer.h.1.adapter.weight: is no tensor of a GPT-2"),
        (of_other_shape, "transformer.ln_f.bias: has the shape (9,), by config.json (8,)"),
        (of_numbers, "transformer.ln_f.bias: is of type I64"),
        (twice, "ln_f.bias: stands there twice"),
        (untied, "lm_head.weight: is no copy of the embedding"),
    ],
)
def test_tensors_that_are_not_exactly_those_of_the_model_are_refused(folder, change, key):
    stored(folder, change)
    refused(folder, "model.safetensors", key)


def test_a_header_that_promises_more_than_the_file_is_refused(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    refused(folder, "model.safetensors", "cannot be read as safetensors")


def test_a_name_is_looked_up_at_the_hub(folder, monkeypatch):
    import huggingface_hub

    asked = {}
    monkeypatch.setattr(
        huggingface_hub,
        "snapshot_download",
        lambda name, **more: asked.update(more, name=name) or str(folder),
    )
    assert given("somebody/gpt2").spec.width == 8
    assert asked["name"] == "somebody/gpt2" and not any(
        "bin" in pattern for pattern in asked["allow_patterns"]
    )
