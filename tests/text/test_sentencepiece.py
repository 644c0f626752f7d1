"""Vocabularies of SentencePiece: nothing of a text is lost, tokens tile it, and they are those of
transformers; what would lose something is refused.
"""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend
from transformers import PreTrainedTokenizerFast

from confide.attacks.exposure.candidates import Sentence, _single_digits, encoded
from confide.attacks.membership.members import Candidate, tokens_of
from confide.data.partitioning import Row, build
from confide.errors import InputError
from confide.models.generation import pieces
from confide.text.chat_template import ChatTemplate, Message
from confide.text.tokenizer import (
    MASK,
    Tokenizer,
    beginning_with,
    from_folder,
    load,
    save,
)
from tests.chat_templates import CHATS
from tests.sentencepieces import SHAPES, TEXTS, sentencepiece_folder

CONTROL = ("<|user|>", "<|end|>")
PARTS = [" ", "  ", "▁", "a", "my", "4711", "é", "😀", "\n", "\x00", "<0x41>", "<s>", "</s>", MASK]
texts = st.one_of(
    st.text(),
    st.lists(st.sampled_from([*PARTS, *CONTROL, "\n\n", "\ufeff", "the order"])).map("".join),
)
# without what is spelled or matched otherwise here: it is in the documentation
ordinary = st.lists(
    st.sampled_from(["my", "code", "4711", "é", "😀", "order,", "\n", "\t", "<", "of it"]),
    min_size=1,
).map(" ".join)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {
        shape: sentencepiece_folder(
            shape,
            tmp_path_factory.mktemp(shape),
            words=("\n\n", "▁▁", "<0x42>"),
            special=CONTROL,
        )
        for shape in SHAPES
    }


@pytest.fixture(scope="module")
def words(folders: dict[str, Path]) -> dict[str, Tokenizer]:
    return {
        shape: from_folder(folder, source=shape, control=CONTROL)
        for shape, folder in folders.items()
    }


shapes = st.sampled_from(sorted(SHAPES))


@given(shape=shapes, text=texts)
@example(shape="llama", text=" a")
@example(shape="mistral", text="▁ ▁")
@example(shape="always", text=f"{MASK} {MASK}a")
@example(shape="gemma", text="  <0x41><0x42>")
@settings(max_examples=120, deadline=None)
def test_nothing_of_a_text_is_lost(shape: str, text: str, words: dict[str, Tokenizer]) -> None:
    own = words[shape]
    ids = np.array(own.encode(text), np.int64)
    assert own.decode(ids) == text
    starts = np.array([0, len(ids)])
    edges = np.append(0, own.sizes(ids, starts).cumsum())
    content = text.encode()
    spelled = pieces(own)
    assert edges[-1] == len(content)
    for token, (start, end) in zip(ids.tolist(), pairwise(edges.tolist()), strict=True):
        # what is not of the text is a lead, one blank
        assert (
            spelled[token].removeprefix(b" " * (len(spelled[token]) - end + start))
            == (content[start:end])
        )
        assert len(spelled[token]) - (end - start) in (0, 1)
    ((same, offsets),) = own.encode_batch([text])
    assert same == ids.tolist() == own.encode_all([text])[0]
    for (first, last), (start, end) in zip(offsets, pairwise(edges.tolist()), strict=True):
        assert len(text[:first].encode()) <= start
        assert end <= len(text[:last].encode()) or start == end


@given(shape=shapes, text=ordinary)
@settings(max_examples=60, deadline=None)
def test_tokens_are_those_of_transformers(
    shape: str, text: str, words: dict[str, Tokenizer], folders: dict[str, Path]
) -> None:
    theirs = Backend.from_file(str(folders[shape] / "tokenizer.json"))
    assert words[shape].encode(text) == theirs.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("shape", SHAPES)
def test_tokens_of_a_conversation_are_those_of_transformers(shape: str, tmp_path: Path) -> None:
    """Control strings and what stands between them; in Phi-3's template."""
    template = CHATS["phi3"].template.replace("eos_token", "'</s>'")
    folder = sentencepiece_folder(
        shape,
        tmp_path,
        special=("<|system|>", "<|user|>", "<|assistant|>", "<|end|>"),
        chat_template=template,
    )
    chat = ChatTemplate(folder)
    own = from_folder(folder, source=shape, control=chat.control)
    talk = [Message("user", "my code is 4711"), Message("assistant", "tell me  more\nof it")]
    text = chat.rendered(talk).text
    theirs = PreTrainedTokenizerFast.from_pretrained(folder)
    assert theirs.apply_chat_template([one._asdict() for one in talk], tokenize=False) == text
    assert own.encode(text) == theirs(text, add_special_tokens=False)["input_ids"]
    assert own.decode(own.encode(text)) == text


@pytest.mark.parametrize("shape", SHAPES)
def test_saved_and_exported(shape: str, words: dict[str, Tokenizer], tmp_path: Path) -> None:
    own = words[shape]
    save(own, tmp_path / "tokenizer.json")
    again = load(tmp_path / "tokenizer.json")
    text = f"my ▁ code <|user|> is{MASK} 4711"
    assert again.encode(text) == own.encode(text) and again.decode(own.encode(text)) == text
    assert (again.lengths == own.lengths).all()
    exported = beginning_with(own)
    for ordinary_text in TEXTS:
        ids = exported.encode(ordinary_text).ids
        assert ids == [own.bos_id, *own.encode(ordinary_text)]
        if "\n\n" not in ordinary_text:  # after what is matched whole, theirs keeps the lead
            assert exported.decode(ids[1:], skip_special_tokens=False) == ordinary_text


@given(shape=shapes, text=texts, data=st.data())
@settings(max_examples=60, deadline=None)
def test_spans_are_found(shape: str, text: str, data: Any, words: dict[str, Tokenizer]) -> None:
    """A token is marked if it has a byte of a span, in whatever company its text is tokenized."""
    place = st.integers(0, len(text))
    start, end = sorted((data.draw(place), data.draw(place)))
    own = words[shape]
    row = Row(
        text=text,
        redacted=text,
        spans=(),
        gold=[(start, end)],
        private=False,
        split=0,
        domain=None,
        owner=None,
    )
    made = build(own, iter([row._replace(text="", redacted="", gold=()), row, row]))
    spelled = pieces(own)
    found = made.secret[made.original.starts[1] : made.original.starts[2]]
    assert (found == made.secret[made.original.starts[2] :]).all()
    hidden = range(len(text[:start].encode()), len(text[:end].encode()))
    ids = made.original[1].tolist()
    edge = len(text.encode())
    for index in reversed(range(len(ids))):  # from the end, where there are no leads
        begins = own.whole.get(own.token(ids[index - 1])) if index else 0
        size = len(spelled[ids[index]])
        leads = own.sentences is not None and own.sentences.lead
        led = ids[index] not in own.whole.values() and (
            (leads == "first" and index == 0) or (leads == "each" and begins is not None)
        )
        covered = range(edge - size + led, edge)
        inside = hidden.start < edge < hidden.stop  # of a lead alone, which covers nothing
        assert found[index] == (bool(set(covered) & set(hidden)) if covered else inside)
        edge = covered.start
    assert edge == 0


def test_secrets_of_attacks(words: dict[str, Tokenizer]) -> None:
    for own in words.values():
        sentence = Sentence("My ID is: ", " <|end|> ok", 3)
        rows = encoded(own, sentence, np.arange(1000))
        for value in (0, 7, 471, 999):
            (text,) = sentence.texts(np.array([value]))
            expected = own.encode(text)
            while "".join(own.decode(expected)).rstrip("0123456789") == own.decode(expected):
                expected.pop()
            assert rows[value][rows[value] >= 0].tolist() == expected
        candidate = Candidate("4711", "my code 4711 é", 8, 12, member=True)
        view = tokens_of([candidate], own)
        marked = own.decode(view.ids[view.private]).strip()
        assert "4711" in marked


def test_single_digits_are_noticed(words: dict[str, Tokenizer]) -> None:
    """Bytes that are spelled with digits do not hide that each digit is a token."""
    for own in words.values():
        found = _single_digits(own, Sentence("My ID is: ", "", 3))
        assert found is not None
        assert own.decode([*found[0], *found[1]]) == "My ID is: 0123456789"


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "unigram": ({"model": {"type": "Unigram"}}, "model.type = 'Unigram': is no BPE of bytes"),
    "no bytes": ({"model": {"byte_fallback": False}}, "model.type = 'BPE': is no BPE of bytes"),
    "another normalizer": (
        {"normalizer": {"type": "NFKC"}},
        "normalizer = 'NFKC': rewrites a text",
    ),
    "one of several": (
        {"normalizer": {"type": "Sequence", "normalizers": [{"type": "Strip"}]}},
        "normalizer = 'Strip': rewrites a text",
    ),
    "no blank": ({"normalizer": None, "pre_tokenizer": None}, "pre_tokenizer: is none of those"),
    "words": (
        {
            "normalizer": None,
            "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"},
        },
        "pre_tokenizer = 'Metaspace': cuts a text at blanks",
    ),
    "no merges": ({"model": {"merges": None}}, "model.merges: are no pairs of tokens"),
    "odd merges": ({"model": {"merges": [3]}}, "model.merges: are no pairs of tokens"),
    "an odd cut": ({"pre_tokenizer": ["x"]}, "pre_tokenizer: is none of those"),
    "no token of a blank": (
        {"model": {"vocab": {"a": 0}, "merges": []}},
        "lacks the token of a blank",
    ),
    "whole words": ({"model": {"ignore_merges": True}}, "has words that no merges make"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_would_lose_something_is_refused(case: str, tmp_path: Path) -> None:
    changes, message = BAD[case]
    folder = sentencepiece_folder("llama", tmp_path, **changes)
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        from_folder(folder, source="llama")
    assert "tokenizer.json" in str(caught.value)


def test_a_byte_that_text_spells_is_refused(tmp_path: Path) -> None:
    made = sentencepiece_folder("gemma", tmp_path)
    place = made / "tokenizer.json"
    described = json.loads(place.read_text())
    model = described["model"]
    for left, right in (("<", "0"), ("<0", "x"), ("<0x", "4"), ("<0x4", "1"), ("<0x41", ">")):
        for token in (left, right, left + right):
            model["vocab"].setdefault(token, len(model["vocab"]))
        model["merges"].append([left, right])
    place.write_text(json.dumps(described))
    with pytest.raises(InputError, match="is made of a text that only spells it"):
        from_folder(made, source="gemma")
