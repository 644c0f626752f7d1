"""New tokens: no text but a planted one gives them, and a corpus is measured as if they were not
there.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.data.neighbours import Raw, process_of
from confide.data.partition_files import load_partition
from confide.data.redaction import finder_of
from confide.errors import InputError
from confide.files.io import read_json, write_jsonl
from confide.models.generation import pieces
from confide.provenance.terms import digest_of_specs
from confide.specs import (
    CanarySpec,
    DedupSpec,
    NeighboursSpec,
    PartitionSpec,
    RecallSpec,
    RedactSpec,
    TokenizerSpec,
)
from confide.stages.dedup import dedup
from confide.stages.neighbours import neighbours
from confide.stages.partition import partition
from confide.stages.plant import plant
from confide.stages.recall import recall
from confide.stages.redact import redact
from confide.stages.tokenizer import tokenizer as make_tokenizer
from confide.text.planted import NEW_TOKEN, NEW_TOKENS, audit_doc
from confide.text.tokenizer import SMALLEST, from_vocab, load, save, train_bpe
from confide.types import MASK
from tests.points import read_points
from tests.terms import TEXT

TEXTS = ["My code is 12, and it's yours", "café 😀 naïve", "a  b\n\nc"] * 5
COUNT = 30
WORDS = train_bpe(TEXTS, 350, ("USR:",), COUNT)
NEW = set(WORDS.new_tokens.values())

PIECES = st.sampled_from([*NEW_TOKENS[:COUNT], NEW_TOKENS[-1], MASK, "USR:", " 12"])
wild = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=5) | PIECES).map("".join)


@given(wild)
def test_no_text_gives_one(text):
    """Though it may hold the very characters that stand for them: these are bytes like all
    others.
    """
    batch, _ = WORDS.encode_batch([text])[0]
    for ids in (WORDS.encode(text), batch):
        assert not NEW & set(ids) and WORDS.decode(ids) == text
        assert sum(WORDS.lengths[ids]) == len(text.encode())


@given(wild)
def test_planted_text_gives_them_and_the_ordinary_tokens_of_what_stands_between(text):
    ids = WORDS.encode_planted(text)
    expected = [
        [WORDS.new_tokens[part]] if part in WORDS.new_tokens else WORDS.encode(part)
        for part in NEW_TOKEN.split(text)
    ]
    assert ids == [token for some in expected for token in some]
    assert WORDS.decode(ids) == text and sum(WORDS.lengths[ids]) == len(text.encode())


@given(st.text(st.characters(exclude_categories=["Cs", "Co"])))
def test_without_them_planted_text_is_as_any_other(text):
    assert WORDS.encode_planted(text) == WORDS.encode(text)


def test_they_are_tokens_of_their_own_and_count_for_the_size_of_the_vocabulary(tmp_path):
    save(WORDS, tmp_path / "words.json")
    again = load(tmp_path / "words.json")
    assert (
        again.new_tokens
        == WORDS.new_tokens
        == dict(zip(NEW_TOKENS[:COUNT], range(4, 4 + COUNT), strict=True))
    )
    assert again.encode_planted(f"a{NEW_TOKENS[3]}") == WORDS.encode_planted(f"a{NEW_TOKENS[3]}")
    others = {WORDS.pad_id, WORDS.bos_id, WORDS.mask_id, *WORDS.whole.values()}
    assert len(NEW) == COUNT and not NEW & others
    assert (
        train_bpe(TEXTS, 295, ("USR:",), COUNT).vocab_size
        == train_bpe(TEXTS, 290, ("USR:",)).vocab_size + 5
        == 295
    )
    assert pieces(WORDS)[min(NEW)] == NEW_TOKENS[0].encode()
    assert train_bpe(TEXTS, 300).new_tokens == {}
    with pytest.raises(
        InputError, match=f"vocab_size = 300: bytes and special tokens alone take {SMALLEST + 90}"
    ):
        train_bpe(TEXTS, 300, (), 90)


def test_the_stage_reserves_as_many_as_asked(tmp_path):
    write_jsonl(
        tmp_path / "points.jsonl",
        [{"text": f"{text} {NEW_TOKENS[0]}", "split": "train"} for text in TEXTS],
    )
    spec = TokenizerSpec(kind="bpe", corpus="public", vocab_size=340, new_tokens=12)
    make_tokenizer(spec, output=tmp_path / "words.json", points=tmp_path / "points.jsonl")
    made = load(tmp_path / "words.json")
    assert list(made.new_tokens) == NEW_TOKENS[:12]
    assert not set(made.encode(f"My code is {NEW_TOKENS[0]}")) & set(made.new_tokens.values())


def test_a_published_vocabulary_has_none(tmp_path):
    vocab = {
        token: index for index, token in enumerate([*WORDS.backend.get_vocab(), "<|endoftext|>"])
    }
    assert from_vocab(vocab, [], source="test").new_tokens == {}


# The data stages
# --------------------------------------------------------------------------------------------------

REDACTION = RedactSpec(
    policy={"kind": "regex", "patterns": {"code": r"\d+"}}, conservative={"kind": "everything"}
)
AUDITS = {
    "game": {"template": "The access code is {token}!", "count": 14},
    "inclusion": {"template": "The order code was {token}", "count": 16},
}


def corpus(folder):
    """Points with two gold secrets and a text that holds a character which stands for a new token
    in planted text alone.
    """
    texts = [
        "my code is 12",
        f"hello {NEW_TOKENS[0]}",
        "thanks",
        "code Bo",
        *(f"text {'a' * n}" for n in range(9)),
    ]
    spans = {0: (11, 13), 3: (5, 7)}
    rows = [
        {
            "key": f"d{n}:0",
            "text": text,
            "doc": f"d{n}",
            "split": "train",
            "domain": None,
            "owner": None,
            "gold": [[*spans[n], "code", 1.0]] if n in spans else [],
            "canary": None,
        }
        for n, text in enumerate(texts)
    ]
    write_jsonl(folder / "points.jsonl", rows)


def stages(folder, **audits):
    """The stages before training on the corpus with these audits: rows, the partition, recall and
    neighbours.
    """
    corpus(folder)
    at = {
        name: folder / name
        for name in ("planted", "copies", "spans", "words", "original", "redacted")
    }
    save(WORDS, at["words"])
    spec = CanarySpec(count=0, controls=0, **audits)
    where = {
        "points": folder / "points.jsonl",
        "output": at["planted"],
        "canaries": folder / "canaries.json",
    }
    plant(spec, **where, tokenizer=at["words"])
    points = at.pop("planted")
    dedup(DedupSpec(), points=points, output=at["copies"])
    redact(REDACTION, points=points, output=at["spans"])
    policies = digest_of_specs(REDACTION)
    words = at.pop("words")
    partition(PartitionSpec(), points=points, tokenizer=words, policies=policies, **at)
    counted = RecallSpec(text=TEXT, redact=REDACTION, reads=[])
    recall(counted, points=points, spans=at["spans"], output=folder / "recall.json")
    tested = NeighboursSpec(text=TEXT, redact=REDACTION, partition=PartitionSpec(), reads=[])
    neighbours(tested, points=points, tokenizer=folder / "words", output=folder / "neighbours.json")
    found = [
        read_json(folder / name) for name in ("canaries.json", "recall.json", "neighbours.json")
    ]
    return read_points(points), load_partition(at["original"], at["redacted"]), *found


def test_heads_have_a_token_that_nobody_else_has(tmp_path):
    rows, found, canaries, _, _ = stages(tmp_path, **AUDITS)
    sets = canaries["audits"]
    tokens = [token for one in sets.values() for token in one["secrets"]]
    assert len(set(tokens)) == 30 and {one["digits"] for one in sets.values()} == {0}
    holders = {token: [] for token in NEW}
    for index, row in enumerate(rows):
        for token in NEW & set(found.original[index].tolist()):
            holders[token].append(row["doc"])
            assert found.secret[found.original.starts[index] :][
                found.original[index].tolist().index(token)
            ]
    for name, one in sets.items():
        for index, (secret, coin) in enumerate(zip(one["secrets"], one["coins"], strict=True)):
            assert holders[WORDS.new_tokens[secret]] == ([audit_doc(name, index)] if coin else [])
    sentence = next(
        index for index, row in enumerate(rows) if row["text"].startswith("The order code was")
    )
    assert found.original[sentence].tolist()[:-1] == WORDS.encode("The order code was ")
    ordinary = next(index for index, row in enumerate(rows) if row["text"].startswith("hello"))
    assert found.original[ordinary].tolist() == WORDS.encode(rows[ordinary]["text"])
    tails = next(
        index for index, row in enumerate(rows) if row["text"] == f"The access code is {MASK}!"
    )
    assert found.original[tails].tolist() == WORDS.encode(f"The access code is {MASK}!")


def test_they_are_counted_apart_from_what_a_corpus_is_measured_by(tmp_path):
    for name in ("with", "without"):
        (tmp_path / name).mkdir()
    *_, canaries, recall_with, neighbours_with = stages(tmp_path / "with", **AUDITS)
    *_, recall_without, neighbours_without = stages(tmp_path / "without")
    heads = sum(sum(one["coins"]) for one in canaries["audits"].values())
    assert recall_with["planted"]["secrets"] == neighbours_with["planted"]["secrets"] == heads
    assert (
        neighbours_with["planted"]["different"] == heads
        and neighbours_with["planted"]["exposed"] == 0
    )
    shared = (
        "recall",
        "miss_rate",
        "miss_rate_upper",
        "delta2",
        "delta2_upper",
        "labels",
        "multiplicity",
        "worst_label",
    )
    assert [recall_with[key] for key in shared] == [recall_without[key] for key in shared]
    shared = ("gamma", "gamma_upper", "delta2", "delta2_upper", "sampled", "secrets", "worst_label")
    assert [neighbours_with[key] for key in shared] == [neighbours_without[key] for key in shared]
    assert neighbours_with["gamma"] > 0  # of the corpus's own secret that the policy misses


def test_only_the_tools_own_sentences_are_read_as_planted():
    text = f"The order code was {NEW_TOKENS[0]}"
    process = process_of(finder_of(REDACTION), PartitionSpec(), WORDS)
    planted, other = (
        process([Raw(key, text, "train", None, None, [])])
        for key in ("audit-inclusion-0:0", "audit-2024:0")
    )
    assert (
        planted.original[0].tolist() == planted.redacted[0].tolist() == WORDS.encode_planted(text)
    )
    assert other.original[0].tolist() == other.redacted[0].tolist() == WORDS.encode(text)


def test_a_policy_that_masks_one_masks_all_of_it():
    caught = RedactSpec(
        policy={"kind": "regex", "patterns": {"new": f"[{NEW_TOKENS[0]}-{NEW_TOKENS[-1]}]"}},
        conservative=REDACTION.conservative,
    )
    text = f"The order code was {NEW_TOKENS[5]} ok"
    made = process_of(finder_of(caught), PartitionSpec(), WORDS)(
        [Raw("audit-inclusion-5:0", text, "train", None, None, [])]
    )
    assert made.redacted[0].tolist() == WORDS.encode(f"The order code was {MASK} ok")
    flagged = made.original[0][made.original.private[: len(made.original[0])]]
    assert flagged.tolist() == [WORDS.new_tokens[NEW_TOKENS[5]]]


def test_planting_more_than_there_are_is_refused(tmp_path):
    corpus(tmp_path)
    save(WORDS, tmp_path / "words")
    files = {
        "points": tmp_path / "points.jsonl",
        "output": tmp_path / "planted",
        "canaries": tmp_path / "canaries.json",
    }
    many = {"game": AUDITS["game"] | {"count": 20}, "inclusion": AUDITS["inclusion"]}
    with pytest.raises(InputError, match="words: count = 16: has 30 new tokens, 10 of them free"):
        plant(CanarySpec(**many), **files, tokenizer=tmp_path / "words")
    with pytest.raises(InputError, match="tokenizer: is needed: it has the new tokens of canaries"):
        plant(CanarySpec(**AUDITS), **files)
    with pytest.raises(
        InputError, match="template = .*: holds a character that stands for a new token"
    ):
        plant(CanarySpec(template=f"{NEW_TOKENS[0]} {{6}}"), **files)
    for template in ("{token} {6}", "{token}{token}", "{tokens}"):
        with pytest.raises(InputError, match="template = .*: expected exactly one slot"):
            plant(CanarySpec(game={"template": template}), **files, tokenizer=tmp_path / "words")
    assert not (tmp_path / "planted").exists() and not (tmp_path / "canaries.json").exists()


@pytest.mark.parametrize("template", ["{token}", "{token} it was"])
def test_a_sentence_may_consist_of_one_or_begin_with_it(tmp_path, template):
    rows, found, _, _, _ = stages(tmp_path, game={"template": template, "count": 12})
    sentences = [index for index, row in enumerate(rows) if row["doc"].startswith("audit-")]
    first = [int(found.original[index][0]) for index in sentences]
    assert len(sentences) == 12 and all(token in NEW | {WORDS.mask_id} for token in first)
    assert len(NEW & set(first)) == sum(token in NEW for token in first) > 0
    assert np.all(found.private[sentences])


def test_a_text_of_the_corpus_is_no_copy_of_a_planted_one():
    """Were the first replaced, the second would be read in its place, as other tokens."""
    text = f"The order code was {NEW_TOKENS[0]}"
    process = process_of(finder_of(REDACTION), PartitionSpec(), WORDS)
    same = [
        Raw(key, text, "train", None, None, []) for key in ("audit-2024:0", "audit-inclusion-0:0")
    ]
    with pytest.raises(InputError, match="audit-inclusion-0:0.*sentence of an audit canary"):
        process(same)
    assert process(same[::-1]).copy.tolist() == [False, True]
