"""Files that ask for more than they are: of memory, of depth, of places outside their folder, of
code to run.
"""

import json
import lzma
import struct
import tarfile
from io import BytesIO

import pytest
import torch
from hostile_corpora import SECRET, points_of
from safetensors.torch import save_file

from confide import cli, models
from confide.config.yaml_lines import compose
from confide.corpora.archives import archive
from confide.data.partition_files import load_partition
from confide.errors import InputError
from confide.files import io as files
from confide.files.rows import read_rows
from confide.policies.pipelines import from_bytes, read
from confide.specs import GPT2Spec, LSTMSpec
from confide.stages import fetch
from confide.text import tokenizer


def test_a_line_without_end_is_not_held_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LONGEST", 1000)
    (tmp_path / "own.jsonl").write_text(
        json.dumps({"text": "x" * 900}) + "\n" + json.dumps({"text": SECRET * 100}) + "\n"
    )
    with pytest.raises(InputError, match=r"own\.jsonl:2: is longer than 1000 bytes"):
        points_of(tmp_path, {"reader": "lines", "path": str(tmp_path / "own.jsonl")})


@pytest.mark.parametrize("depth", [500, 5_000, 100_000])
def test_nesting_is_an_error_and_no_overflow(tmp_path, depth):
    path = tmp_path / "deep.json"
    for text in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth):
        path.write_text(text)
        with pytest.raises(InputError):
            list(read_rows(path, "text"))
        with pytest.raises(InputError):
            cli.read_spec([GPT2Spec], f"@{path}")
        with pytest.raises(InputError):
            compose(path)[1] and list(read_rows(path, "text"))


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, "aliases stand for more than"),
        ("a: &a [*a]\n", "alias of what holds it"),
        (
            "a: !!python/object/apply:os.system ['touch hacked']\n",
            "could not determine a constructor",
        ),
        ("a: !!python/name:os.system\n", "could not determine a constructor"),
        ("a: 2020-99-99\n", "malformed YAML"),
        ("a: !!timestamp x\n", "malformed YAML"),
        ("? [a, b]\n: c\n", "malformed YAML"),
        ("a: \x00\n", "malformed YAML"),
    ],
)
def test_yaml_builds_plain_values_alone(tmp_path, text, message, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text(text)
    with pytest.raises(InputError, match=message):
        compose(tmp_path / "params.yaml")
    assert not (tmp_path / "hacked").exists()


def bomb(name, size, mode="w:xz"):
    """A tar of zeros."""
    buffer = BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as tar:
        info = tarfile.TarInfo(name)
        info.size = size
        tar.addfile(info, Zeros())
    return buffer.getvalue()


class Zeros:
    def read(self, size):
        return bytes(size)


def test_archives_that_unpack_to_too_much(tmp_path, monkeypatch):
    """A member is neither read nor kept beyond the limit; all together stop at theirs."""
    monkeypatch.setattr(fetch, "MEMBER_LIMIT", 1 << 20)
    monkeypatch.setattr(fetch, "TOTAL_LIMIT", 1 << 22)
    path = tmp_path / "bomb.tar.xz"
    path.write_bytes(bomb("customersim/train/dial-0.txt", 1 << 21))
    assert len(path.read_bytes()) < 2000
    with pytest.raises(InputError, match="not a regular file of at most 1048576 bytes"):
        fetch._collect(archive("customersim"), fetch._open_tar(path))
    path.write_bytes(bomb("x", 1 << 23))
    with pytest.raises(InputError, match="unpacks to more than"):
        list(fetch._open_tar(path))
    path.write_bytes(lzma.compress(bytes(1 << 20)))
    assert list(fetch._open_tar(path)) == []


@pytest.mark.parametrize("length", [0, 7, 10**6, 10**9, 2**63, 2**64 - 1])
def test_headers_that_promise_too_much(tmp_path, length):
    for name in ("original", "redacted"):
        (tmp_path / name).write_bytes(struct.pack("<Q", length) + b'{"ids":{}}' + bytes(100))
    with pytest.raises(InputError):
        load_partition(tmp_path / "original", tmp_path / "redacted")


@pytest.fixture
def trained(tmp_path):
    spec = LSTMSpec(kind="lstm", embedding=4, hidden=4)
    models.save(models.build(spec, 20, 1), tmp_path / "model.safetensors", tmp_path / "config.json")
    return tmp_path


HUGE = {"embedding": 10**6, "hidden": 10**6}


@pytest.mark.parametrize(
    ("spec", "more"),
    [
        (HUGE, {}),
        (HUGE, {"vocab_size": 2**31 - 1}),
        ({"layers": 10**12}, {}),
        ({}, {"vocab_size": 10**18}),
        ({}, {"bos": 20}),
        ({"hidden": 10**30}, {}),
        ({"kind": "gpt2"}, {}),
        ({"kind": ["lstm"]}, {}),
    ],
)
def test_a_configuration_of_a_trillion_parameters_is_refused_before_it_is_built(
    trained, spec, more, monkeypatch
):
    """Nothing is built outside the device that holds no numbers."""
    config = json.loads((trained / "config.json").read_text())
    config["spec"] |= spec
    (trained / "config.json").write_text(json.dumps(config | more))
    monkeypatch.setattr(models, "load_weights", None)
    with pytest.raises(InputError):
        models.load(trained)


def test_a_trained_model_names_no_other_model(trained):
    config = json.loads((trained / "config.json").read_text())
    config["spec"] = {"kind": "gpt2", "pretrained": "somebody/else"}
    (trained / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match="weights of its own"):
        models.load(trained)


def test_pickled_weights_of_others_are_refused(tmp_path):
    """A folder with pytorch_model.bin alone, whose pickle would run."""
    (tmp_path / "config.json").write_text(
        json.dumps(
            {
                "model_type": "gpt2",
                "n_layer": 1,
                "n_head": 2,
                "n_embd": 4,
                "n_positions": 8,
                "vocab_size": 9,
            }
        )
    )

    class Run:
        def __reduce__(self):
            return open, (str(tmp_path / "hacked"), "w")

    torch.save({"x": Run()}, tmp_path / "pytorch_model.bin")
    with pytest.raises(InputError, match=r"model\.pretrained = .*safetensors") as error:
        models.build(GPT2Spec(kind="gpt2", pretrained=str(tmp_path)), 20, 1)
    assert "\n" not in str(error.value) and not (tmp_path / "hacked").exists()
    save_file({"x": torch.zeros(3)}, tmp_path / "model.safetensors")
    with pytest.raises(InputError, match=r"model\.safetensors: wte\.weight: is missing"):
        models.build(GPT2Spec(kind="gpt2", pretrained=str(tmp_path)), 3, 1)


def test_an_enormous_vocabulary_is_no_tokenizer(tmp_path):
    path = tmp_path / "tokenizer.json"
    tokenizer.save(tokenizer.train_bpe(["hello"], 270), path)
    value = json.loads(path.read_text())
    for index in (2**32 - 1, 2**31, 10**6, 2**64, -1):
        value["model"]["vocab"]["hello"] = index
        path.write_text(json.dumps(value))
        with pytest.raises(InputError, match="not a tokenizer"):
            tokenizer.load(path)


def test_pipelines_may_not_call_back(tmp_path):
    """A pipeline's configuration names registered functions; those that it wants called while it is
    built are refused.
    """
    import spacy

    nlp = spacy.blank("en")
    nlp.config["nlp"]["before_creation"] = {
        "@callbacks": "spacy.copy_from_base_model.v1",
        "tokenizer": "x",
        "vocab": "x",
    }
    (tmp_path / "x.spacy").write_bytes(nlp.to_bytes())
    with pytest.raises(InputError, match="names functions to be called"):
        from_bytes((tmp_path / "x.spacy").read_bytes(), tmp_path / "x.spacy")
    nlp.to_disk(tmp_path / "folder")
    with pytest.raises(InputError, match="names functions to be called"):
        read(str(tmp_path / "folder"))
