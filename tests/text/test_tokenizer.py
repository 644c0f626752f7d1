"""Tokenizers: ids against the backend, byte lengths against its offsets, specials, and what is
refused.
"""

import itertools
import json
import os
import tarfile
from pathlib import Path

import numpy as np
import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from confide.errors import InputError
from confide.specs import TokenizerSpec
from confide.stages.tokenizer import tokenizer as stage
from confide.text.tokenizer import BOS, END, MASK, PAD, load, save, train_bpe

TEXTS = [
    "Yes, it's 12 o'clock and 345 things happened.",
    "We'll see, they're here!",
    "café 😀 naïve",
    "a  b\n\nc",
] * 5
OURS = train_bpe(TEXTS, 300)


def tiny_gpt2(folder: Path) -> Path:
    """GPT-2's file formats with a handful of merges."""
    from tokenizers import pre_tokenizers

    merges = [("Ġ", "a"), ("t", "h"), ("th", "e"), ("Ġ", "the"), ("1", "2"), ("Ġ", "12")]
    tokens = [
        *sorted(pre_tokenizers.ByteLevel.alphabet()),
        *("".join(pair) for pair in merges),
        END,
    ]
    folder.mkdir(exist_ok=True)
    (folder / "vocab.json").write_text(
        json.dumps({token: index for index, token in enumerate(tokens)})
    )
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges))
    return folder


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gpt2")
    stage(
        TokenizerSpec(kind="gpt2", source=str(tiny_gpt2(folder))), output=folder / "tokenizer.json"
    )
    return load(folder / "tokenizer.json")


@pytest.fixture(params=["ours", "gpt2"])
def either(request):
    return OURS if request.param == "ours" else request.getfixturevalue("gpt2")


ascii_text = st.text(st.characters(max_codepoint=127), max_size=40)
PIECES = (MASK, "é", "😀", " 12", "'s", "'ll", " ", "\n", "\x1c", "\x85", "²", "ab", "<", "_")
wild_text = st.lists(st.sampled_from(PIECES)).map("".join)


@given(ascii_text | wild_text)
@example("a \x1c\x1d b\x0b\x0c !!<MASK>!!")
def test_words_give_the_ids_of_the_backend(text):
    assert OURS.encode(text) == OURS.backend.encode(text, add_special_tokens=False).ids


@given(text=ascii_text | wild_text)
def test_words_give_the_ids_of_the_backend_for_gpt2(gpt2, text):
    assert gpt2.encode(text) == gpt2.backend.encode(text, add_special_tokens=False).ids


@given(wild_text | ascii_text)
def test_tokens_tile_the_bytes_of_the_text(text):
    ids, offsets = OURS.encode_batch([text])[0]
    edges = np.concatenate([[0], np.cumsum(OURS.lengths[ids])]) if ids else np.zeros(1, int)
    assert edges[-1] == len(text.encode())
    character = [i for i, c in enumerate(text) for _ in c.encode()]  # of each byte
    assert offsets == [(character[a], character[b - 1] + 1) for a, b in itertools.pairwise(edges)]


@given(text=wild_text | ascii_text)
def test_decode_inverts_encode(text):
    assert OURS.decode(OURS.encode(text)) == text


def test_our_special_ids_and_single_digits():
    assert (OURS.pad_id, OURS.bos_id, OURS.mask_id) == (0, 1, 2)
    assert OURS.vocab_size == len(OURS.lengths) <= 300
    assert [OURS.decode([token]) for token in OURS.encode("12 345")] == [
        "1",
        "2",
        " ",
        "3",
        "4",
        "5",
    ]


def test_mask_is_one_token_whatever_stands_beside_it(either):
    mask = either.mask_id
    space = either.encode(" ")
    dot = either.encode(".")
    assert either.encode(" <MASK>.") == [*space, mask, *dot]
    assert either.encode("<MASK><MASK>") == [mask, mask]
    assert either.encode("a<MASK>") == [*either.encode("a"), mask]


@pytest.mark.parametrize("literal", [BOS, PAD, END, "<mask>", "< MASK>"])
def test_other_specials_in_a_text_are_ordinary_text(either, literal):
    ids = either.encode(f"x {literal} y")
    assert not {either.pad_id, either.bos_id, either.mask_id} & set(ids)
    assert either.decode(ids) == f"x {literal} y"
    assert len(ids) > 4


def test_saved_and_loaded_is_the_same(tmp_path):
    save(OURS, tmp_path / "t.json")
    again = load(tmp_path / "t.json")
    assert (again.pad_id, again.bos_id, again.mask_id, again.vocab_size) == (
        0,
        1,
        2,
        OURS.vocab_size,
    )
    assert [again.encode(text) for text in TEXTS] == [OURS.encode(text) for text in TEXTS]
    assert again.encode("<MASK> é <pad>") == OURS.encode("<MASK> é <pad>")


def test_training_is_deterministic_and_ignores_literal_masks():
    masked = [text.replace("it's", f"{MASK} it's") for text in TEXTS]
    assert train_bpe(TEXTS, 300).backend.to_str() == OURS.backend.to_str()
    assert not any(
        "MA" in token for token in train_bpe(masked * 9, 300).backend.get_vocab() if token != MASK
    )


def test_gpt2_ids(gpt2):
    size = 256 + 6 + 1
    assert (gpt2.bos_id, gpt2.mask_id, gpt2.pad_id, gpt2.vocab_size) == (
        size - 1,
        size,
        size + 1,
        size + 2,
    )
    assert [gpt2.decode([token]) for token in gpt2.encode("see the 12")] == [
        "s",
        "e",
        "e",
        " the",
        " 12",
    ]


def test_stage_trains_on_the_train_split_only(tmp_path):
    rows = [
        {"key": "a", "text": "aaaa bbbb " * 9, "split": "train"},
        {"key": "b", "text": "zqzq " * 99, "split": "test"},
    ]
    (tmp_path / "p").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    stage(
        TokenizerSpec(kind="bpe", vocab_size=270), output=tmp_path / "t.json", points=tmp_path / "p"
    )
    vocab = load(tmp_path / "t.json").backend.get_vocab()
    assert "aaaa" in vocab
    assert not any("zq" in token for token in vocab)


def test_stage_reads_an_archive(tmp_path, gpt2):
    folder = tiny_gpt2(tmp_path / "g")
    rows = [
        {"path": f"x/{name}", "text": (folder / name).read_text()}
        for name in ("merges.txt", "vocab.json")
    ]
    (tmp_path / "a").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    stage(
        TokenizerSpec(kind="gpt2", source="archive"),
        output=tmp_path / "t.json",
        archive=tmp_path / "a",
    )
    assert load(tmp_path / "t.json").encode("the 12 <MASK>") == gpt2.encode("the 12 <MASK>")
    (tmp_path / "a").write_bytes(orjson.dumps(rows[0]) + b"\n")
    with pytest.raises(InputError, match=r"vocab\.json"):
        stage(
            TokenizerSpec(kind="gpt2", source="archive"),
            output=tmp_path / "u.json",
            archive=tmp_path / "a",
        )


def test_stage_reads_what_transformers_saved(tmp_path, gpt2):
    from transformers import GPT2Tokenizer

    folder = tiny_gpt2(tmp_path / "g")
    GPT2Tokenizer(str(folder / "vocab.json"), str(folder / "merges.txt")).save_pretrained(
        tmp_path / "h"
    )
    from confide.text.tokenizer import from_hub

    loaded = from_hub(str(tmp_path / "h"))
    assert loaded.encode("see the 12 <MASK>!") == gpt2.encode("see the 12 <MASK>!")


@pytest.mark.parametrize(
    "spec, message",
    [
        ({"kind": "bpe", "vocab_size": 258}, "258"),
        ({"kind": "gpt2"}, "source"),
        ({"kind": "gpt2", "source": "archive"}, "archive"),
    ],
)
def test_unusable_specs_are_refused(tmp_path, spec, message):
    (tmp_path / "p").write_text("")
    with pytest.raises(InputError, match=message):
        stage(TokenizerSpec(**spec), output=tmp_path / "t.json", points=tmp_path / "p")
    assert not (tmp_path / "t.json").exists()


def test_bpe_without_points_and_bad_files_are_refused(tmp_path):
    with pytest.raises(InputError, match="points"):
        stage(TokenizerSpec(kind="bpe"), output=tmp_path / "t.json")
    with pytest.raises(InputError, match="cannot be read"):
        load(tmp_path / "none.json")
    for content in ("", "{}", '{"model": 3}'):
        (tmp_path / "bad.json").write_text(content)
        with pytest.raises(InputError, match=r"bad\.json"):
            load(tmp_path / "bad.json")
    folder = tiny_gpt2(tmp_path / "g")
    for merges in ("x yy zz\n", "<|endoftext|> a\n"):
        (folder / "merges.txt").write_text(merges)
        with pytest.raises(InputError, match="do not fit together"):
            stage(TokenizerSpec(kind="gpt2", source=str(folder)), output=tmp_path / "t.json")


@pytest.mark.parametrize(
    "change",
    [
        lambda words: words["model"]["merges"].append([MASK, "a"]),  # the backend panics
        lambda words: words["model"].update(continuing_subword_prefix="x" * 9),  # the same
        lambda words: words[
            "added_tokens"
        ].clear(),  # nothing to cut texts at: would recurse without end
        lambda words: words["model"]["vocab"].update(
            a=1 << 40
        ),  # would take memory for all ids before it
    ],
)
def test_words_that_the_backend_would_choke_on_are_refused(tmp_path, change):
    words = json.loads(OURS.backend.to_str())
    change(words)
    (tmp_path / "t.json").write_text(json.dumps(words))
    with pytest.raises(InputError, match=r"t\.json: not a tokenizer"):
        load(tmp_path / "t.json")


@pytest.mark.skipif("CONFIDE_MIRROR" not in os.environ, reason="needs the published GPT-2 files")
def test_published_gpt2_vocabulary(tmp_path):
    with tarfile.open(Path(os.environ["CONFIDE_MIRROR"]) / "gpt2-bpe.tar.xz") as archive:
        for member in archive:
            if (name := Path(member.name).name) in ("vocab.json", "merges.txt"):
                (tmp_path / name).write_bytes(archive.extractfile(member).read())
    stage(TokenizerSpec(kind="gpt2", source=str(tmp_path)), output=tmp_path / "t.json")
    loaded = load(tmp_path / "t.json")
    assert (loaded.bos_id, loaded.mask_id, loaded.pad_id, loaded.vocab_size) == (
        50256,
        50257,
        50258,
        50259,
    )
    assert loaded.encode("Hello world") == [15496, 995]  # as published


CONTROL = ["<_soc_>", "<_eoc_>", "<AIR>", "USR:"]
CONTROLLED = train_bpe(TEXTS, 320, CONTROL)


@pytest.fixture(params=["ours", "gpt2"])
def controlled(request, tmp_path):
    if request.param == "ours":
        save(
            train_bpe([*TEXTS, "<_soc_> <AIR> USR: hello there <_eoc_>"] * 3, 320, CONTROL),
            tmp_path / "t.json",
        )
    else:
        spec = TokenizerSpec(kind="gpt2", source=str(tiny_gpt2(tmp_path)), control=CONTROL)
        stage(spec, output=tmp_path / "t.json")
    return load(tmp_path / "t.json")


def test_control_strings_are_one_token_each_wherever_they_stand(controlled):
    text = "<_soc_> <AIR> USR: the 12<_eoc_> <MASK>"
    ids = controlled.encode(text)
    assert [ids.count(controlled.whole[one]) for one in [*CONTROL, MASK]] == [1] * 5
    assert controlled.decode(ids) == text
    assert controlled.lengths[ids].sum() == len(text.encode())
    first = controlled.whole[CONTROL[0]]
    assert [controlled.whole[one] for one in CONTROL] == list(
        range(first, first + 4)
    )  # in the order given
    for token in CONTROL:
        assert len(controlled.encode(token[:-1])) > 1 and len(controlled.encode(token)) == 1


@given(text=st.lists(st.sampled_from((*PIECES, *CONTROL, "USR", "<AIR"))).map("".join))
def test_words_and_control_strings_give_the_ids_of_the_backend(text):
    made = CONTROLLED
    assert made.encode(text) == made.backend.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize(
    "control", [["<MASK>"], ["a", "ab"], ["x", "x"], ["<pad>!"], ["|end"], ["«é»"]]
)
def test_control_strings_that_cannot_be_told_apart_are_refused(control):
    with pytest.raises(InputError, match="control"):
        train_bpe(TEXTS, 320, control)
