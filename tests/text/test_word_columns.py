"""Tokens of many texts at once, against those of each text by itself."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from confide.files import arrays
from confide.text.tokenizer import from_vocab, train_bpe
from confide.text.word_columns import laid_out, tokens_of

TEXTS = ["call me at 12 or 345, please", "my name's Ann Lee", "café 😀 ok", "a\n\nb  c"] * 5
OURS = train_bpe(TEXTS, 300, control=["<end>"])
MODEL = json.loads(OURS.backend.to_str())["model"]
VOCAB = {
    token: number
    for number, token in enumerate(
        ["<|endoftext|>", *(name for name in MODEL["vocab"] if not name.startswith("<"))]
    )
}
GPT2 = from_vocab(VOCAB | {"<": len(VOCAB)} if "<" not in VOCAB else VOCAB, [], source="test")
signs = st.text(st.sampled_from("ab Z12345 .,-<\n\t'é"), max_size=20)


@pytest.mark.parametrize("tokenizer", [OURS, GPT2])
@settings(deadline=None, max_examples=150)
@given(
    st.lists(
        signs
        | st.sampled_from(
            ["", " ", "a b", "12345678", "x <MASK> 1", "it's", "a<end>b", "\na b\nc 12\na b\n"]
        ),
        max_size=8,
    )
)
def test_tokens_are_those_of_each_text(tokenizer, texts):
    found = tokens_of(tokenizer, tokenizer.packed, arrays.texts(texts))
    which = np.array([*range(len(texts)), *range(0, len(texts), 2)], np.int64)
    ids, counts = laid_out(found, arrays.integers(which))
    expected = [tokenizer.encode(texts[number]) for number in which]
    assert np.split(ids, np.cumsum(counts)[:-1]) if len(which) else not len(ids)
    assert counts.tolist() == list(map(len, expected))
    assert ids.tolist() == [token for tokens in expected for token in tokens]
