"""Control strings of chat templates: the model's own tokens, as transformers has them; and what of
params.yaml cannot be.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml
from transformers import PreTrainedTokenizerFast

from confide.config.params import validated
from confide.errors import InputError
from confide.specs import TokenizerSpec
from confide.stages.tokenizer import tokenizer
from confide.text.chat_template import ChatTemplate, Message
from confide.text.tokenizer import Tokenizer, load
from tests.chat_templates import CHATS, chat_folder
from tests.config.test_params import TINY

TALK = [
    Message("user", "my code is 4711 and é😀\n  I wait"),
    Message("assistant", "please tell me what the price is"),
    Message("user", "ok"),
    Message("assistant", "<|"),
]


def made(folder: Path, source: Path, **changes: Any) -> Tokenizer:
    options = {"kind": "pretrained", "source": str(source), "control": "template"} | changes
    tokenizer(TokenizerSpec(**options), output=folder / "tokenizer.json")
    return load(folder / "tokenizer.json")


@pytest.mark.parametrize("name", CHATS)
def test_tokens_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    source = chat_folder(name, tmp_path / "model")
    words = made(tmp_path, source)
    template = ChatTemplate(source)
    text = template.rendered(TALK).text
    theirs = PreTrainedTokenizerFast.from_pretrained(source)
    assert words.encode(text) == theirs.encode(text, add_special_tokens=False)
    assert words.decode(words.encode(text)) == text
    for string in template.control:
        assert words.encode(string) == [theirs.convert_tokens_to_ids(string)]
    lengths = words.lengths[words.encode(text)]
    assert lengths.sum() == len(text.encode())


def test_a_special_token_that_no_template_writes_is_text(tmp_path: Path) -> None:
    words = made(tmp_path, chat_folder("chatml", tmp_path / "model"))
    assert len(words.encode("<repo_name>")) > 1
    assert len(words.encode("<|im_end|>")) == 1


def test_other_kinds_have_no_template(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="control = 'template': is for kind pretrained"):
        made(tmp_path, tmp_path, kind="gpt2")


def chats() -> dict[str, Any]:
    """The tiny parameters with a dataset of conversations."""
    given = yaml.safe_load(TINY.read_text())
    given["corpora"]["talks"] = {"reader": "messages", "path": "talks.jsonl", "template": "model"}
    given["tokenizers"]["own"] = {"kind": "pretrained", "source": "model", "control": "template"}
    dataset = dict(next(iter(given["datasets"].values())))
    dataset |= {"corpus": "talks", "tokenizer": "own", "point": "dialogue", "canaries": None}
    given["datasets"]["talks"] = dataset
    return given


def test_a_dataset_of_conversations() -> None:
    assert validated(chats(), []).datasets["talks"].corpus == "talks"


@pytest.mark.parametrize(
    ("block", "name", "changes", "message"),
    [
        ("datasets", "talks", {"point": "turn"}, "datasets.talks.point = 'turn': cuts"),
        ("datasets", "talks", {"tokenizer": "bpe"}, "is not that of the chat template of talks"),
        ("tokenizers", "own", {"control": ["<|im_end|>"]}, "is not that of the chat template"),
        ("tokenizers", "own", {"source": "other"}, "is not that of the chat template"),
        ("tokenizers", "bpe", {"corpus": "talks"}, "is of conversations, which only datasets read"),
        ("tokenizers", "bpe", {"control": "template"}, "has no meaning for kind bpe"),
    ],
)
def test_what_cannot_be_is_refused(
    block: str, name: str, changes: dict[str, Any], message: str
) -> None:
    given = chats()
    given[block][name] = given[block][name] | changes
    with pytest.raises(InputError, match=message):
        validated(given, [])
