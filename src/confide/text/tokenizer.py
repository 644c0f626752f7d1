"""Byte-level BPE tokenizers: ours, with every digit a token of its own, and GPT-2's.

<MASK> in a text becomes the mask token, so that a secret masked in the raw text and one that
redaction took out give the same tokens; so do control strings that a tokenizer is made with (of
dialogues: <_soc_>, USR:). Any other special string in a text (<bos>, <pad>, <|endoftext|>) is
ordinary text. A token covers a known number of bytes, from which spans are found.

A pretrained model may bring a vocabulary of SentencePiece instead (`sentencepiece.py`), whose
tokens cover a known number of bytes, too, once it is known which of them begin with a lead.

New tokens are for sentences that audits plant: nothing but `encode_planted` and `packed_planted`
makes them, of no other text.
"""

import re
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from tokenizers import Regex, decoders, models, pre_tokenizers, processors, trainers
from tokenizers import Tokenizer as Backend

from confide.errors import InputError
from confide.files import jsons
from confide.files.io import read_bytes, read_object, write_text
from confide.text.planted import NEW_TOKEN, NEW_TOKENS
from confide.text.sentencepiece import (
    BYTES,
    Sentences,
    as_it_is,
    check_vocabulary,
    lead_of,
    readers,
)
from confide.types import MASK

PAD = "<pad>"
BOS = "<bos>"
END = "<|endoftext|>"
SPECIALS = (PAD, BOS, MASK)  # ids 0, 1, 2 of our own tokenizer
SMALLEST = 256 + len(SPECIALS)  # every byte is a token

# Words of our tokenizer and of GPT-2's ByteLevel; {L} letters, {N} digits. On ASCII text Python's
# re agrees with them.
OURS = r"'(?:[sdmt]|ll|ve|re)| ?{L}+|{N}| ?[^\s{l}{n}]+|\s+(?!\S)|\s+"
GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?{L}+| ?{N}+| ?[^\s{l}{n}]+|\s+(?!\S)|\s+"
WORDS_KEPT = 1 << 18
# in byte-level BPE; other ASCII is as it is
SPELLED = {code: chr(256 + rank) for rank, code in enumerate([*range(33), 127])}


class Words(dict[str, bytes]):
    """Packed token ids of words, encoded on first use; emptied when full."""

    def __init__(self, backend: Backend):
        super().__init__()
        # a third of the time of the backend's `encode`, which cuts the word out first
        self.tokenize = backend.model.tokenize

    def __missing__(self, word: str) -> bytes:
        if len(self) >= WORDS_KEPT:
            self.clear()
        ids = self[word] = packed([token.id for token in self.tokenize(_spelled(word))])
        return ids


def _spelled(word: str) -> str:
    """A word of ASCII as byte-level BPE spells it."""
    # most are printable; `replace` takes a tenth of the time of `translate`
    return word.replace(" ", SPELLED[ord(" ")]) if word.isprintable() else word.translate(SPELLED)


def packed(ids: Iterable[int]) -> bytes:
    """Token ids as int32 of this machine, one after the other."""
    return array("i", ids).tobytes()


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """A loaded tokenizer. Neither `encode` adds begin or end tokens."""

    backend: Backend
    pad_id: int
    bos_id: int  # doubles as the end of a sequence
    mask_id: int
    vocab_size: int
    lengths: np.ndarray  # (V,) int64: bytes of text that each token covers
    words: Words = field(repr=False)
    # strings that are matched in text as one token: <MASK> and the control strings
    whole: dict[str, int]
    # cuts ASCII text into words, or a few digits; None where that is left to the backend
    pattern: re.Pattern[str] | None
    borders: re.Pattern[str]  # finds what is matched whole
    # by the characters that stand for them in planted text
    new_tokens: dict[str, int] = field(default_factory=dict)
    sentences: Sentences | None = None  # of a vocabulary of SentencePiece

    def encode(self, text: str) -> list[int]:
        """Token ids of a text; <MASK> becomes mask_id."""
        return np.frombuffer(self.packed(text), np.int32).tolist()

    def packed(self, text: str) -> bytes:
        """Token ids of a text, packed: for many texts, several times as fast."""
        if self.sentences is not None:
            return self.sentences.packed(text)
        if self.pattern is None or not text.isascii():
            return packed(self.backend.encode(text, add_special_tokens=False).ids)
        if not self.borders.search(text):
            return b"".join(map(self.words.__getitem__, self.pattern.findall(text)))
        parts = self.borders.split(text)  # every second one is a match
        return b"".join(
            packed((self.whole[part],)) if part in self.whole else self.packed(part)
            for part in parts
        )

    def encode_planted(self, text: str) -> list[int]:
        """Token ids of a planted sentence, with characters that stand for new tokens as these."""
        return np.frombuffer(self.packed_planted(text), np.int32).tolist()

    def packed_planted(self, text: str) -> bytes:
        """Token ids of a planted sentence, packed."""
        parts = NEW_TOKEN.split(text) if self.new_tokens else [text]
        new = self.new_tokens
        return b"".join(
            packed((new[part],)) if part in new else self.packed(part) for part in parts
        )

    def encode_batch(self, texts: Sequence[str]) -> list[tuple[list[int], list[tuple[int, int]]]]:
        """Token ids of each text with their character offsets.

        A token inside a character has the whole of it.
        """
        if self.sentences is not None:
            return [self._located(text) for text in texts]
        encodings = self.backend.encode_batch(list(texts), add_special_tokens=False)
        return [(encoding.ids, encoding.offsets) for encoding in encodings]

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text."""
        if self.sentences is not None:
            return [self.encode(text) for text in texts]
        encodings = self.backend.encode_batch_fast(list(texts), add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def sizes(self, ids: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Bytes of text (T,) int64 that tokens (T,) cover, of texts that begin at starts (N + 1,).

        They tile their texts: a lead is no byte of one.
        """
        covered = self.lengths[ids]
        return covered if self.sentences is None else covered - self.sentences.led(ids, starts)

    def _located(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Token ids of a text with their character offsets."""
        ids = np.frombuffer(self.packed(text), np.int32)
        edges = np.append(0, self.sizes(ids, np.array([0, len(ids)])).cumsum())
        widths = np.array([len(character.encode()) for character in text], np.int64)
        ends = widths.cumsum()
        first = np.searchsorted(ends, edges[:-1], side="right")
        last = np.searchsorted(ends - widths, edges[1:], side="left")
        last = np.where(edges[1:] > edges[:-1], last, first)
        return ids.tolist(), list(zip(first.tolist(), last.tolist(), strict=True))

    def token(self, index: int) -> str:
        """A token as the vocabulary spells it."""
        token = self.backend.id_to_token(index)
        if token is None:
            raise ValueError(f"there is no token {index}")
        return token

    def decode(self, ids: Iterable[int]) -> str:
        """Text of token ids; special tokens are spelled out."""
        if self.sentences is not None:
            return self.sentences.decoded(ids)
        return self.backend.decode([int(token) for token in ids], skip_special_tokens=False)


def train_bpe(
    texts: Iterable[str], vocab_size: int, control: Sequence[str] = (), new_tokens: int = 0
) -> Tokenizer:
    """Byte-level BPE with single digits, trained on public texts.

    InputError if bytes and specials do not fit. `control`: strings that become one token each, with
    the ids after the specials, in this order. `new_tokens`: how many follow that no text gives. All
    of them count for `vocab_size`.

    Guarantees: none for its training texts: whole words of them are in the vocabulary.
    """
    check_control(control)
    smallest = SMALLEST + len(control) + new_tokens
    if vocab_size < smallest:
        message = f"bytes and special tokens alone take {smallest}"
        raise InputError(message, key="vocab_size", value=vocab_size)
    backend = Backend(models.BPE())
    backend.pre_tokenizer = _ours()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[*SPECIALS, *control, *NEW_TOKENS[:new_tokens]],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    cut = _borders([MASK, *control])
    parts = (part for text in texts for part in cut.split(text)[::2])
    backend.train_from_iterator(parts, trainer)
    model = orjson.loads(backend.to_str())["model"]
    return _build(model["vocab"], model["merges"], _ours(), control)


def check_control(control: Sequence[str], reserved: Sequence[str] = (*SPECIALS, END)) -> None:
    """InputError for control strings that could not be told apart from others or what is reserved.

    A pretrained model's own end token is no less a control string than others.
    """
    for number, string in enumerate(control):
        others = [*reserved, *control[:number], *control[number + 1 :]]
        if any(string in other or other in string for other in others):
            message = "is part of another token, or has one in it"
            raise InputError(message, key="control", value=string)
        if not string.isascii():
            message = "is not ASCII, as a byte-level decoder needs it"
            raise InputError(message, key="control", value=string)


def from_files(
    vocab: bytes, merges: str, *, source: str | Path, control: Sequence[str] = ()
) -> Tokenizer:
    """GPT-2's tokenizer from its vocab.json and merges.txt.

    <MASK>, <pad> and control strings come after its own ids.
    """
    table = numbered(vocab, source=source)
    lines = [line for line in merges.split("\n") if line and not line.startswith("#version")]
    return from_vocab(table, lines, source=source, control=control)


def numbered(vocab: bytes, *, source: str | Path) -> dict[str, int]:
    """Tokens and their numbers of a vocab.json; InputError where it is none."""
    try:
        table = jsons.loads(vocab)
    except orjson.JSONDecodeError as error:
        message = f"malformed JSON in vocab.json: {error.msg}"
        raise InputError(message, file=source, line=error.lineno) from None
    except (jsons.Repeated, jsons.Nested) as error:
        raise InputError(f"vocab.json: a token {error}", file=source) from None
    if not isinstance(table, dict) or not all(type(index) is int for index in table.values()):
        raise InputError("expected tokens and their numbers in vocab.json", file=source)
    return table


def from_vocab(
    vocab: dict[str, int], merges: list[Any], *, source: str | Path, control: Sequence[str] = ()
) -> Tokenizer:
    """A GPT-2-like byte-level BPE with <MASK>, <pad> and control strings appended.

    <|endoftext|> serves as begin and end.
    """
    check_control(control)
    if END not in vocab or sorted(vocab.values()) != list(range(len(vocab))):
        message = f"not GPT-2's byte-level vocabulary (no {END}, or gaps in the ids)"
        raise InputError(message, file=source)
    vocab = dict(vocab)
    for token in (MASK, PAD, *control):
        vocab.setdefault(token, len(vocab))
    try:
        gpt2 = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
        return _build(vocab, merges, gpt2, control)
    except Exception as error:  # the backend has no exception type of its own
        message = f"vocabulary and merges do not fit together: {error}"
        raise InputError(message, file=source) from None


def from_folder(folder: Path, *, source: str, control: Sequence[str] = ()) -> Tokenizer:
    """A pretrained model's own BPE, of bytes or of SentencePiece; what is new follows its tokens.

    These are bytes that it lacks, <MASK>, <pad> and the control strings. Its end token serves as
    begin and end. Its other special tokens are ordinary text where a text has them. A normalizer is
    left out but for SentencePiece's spelling of blanks, and no token takes blanks beside it, so
    that every byte of a text is in the tokens.
    """
    check_control(control, reserved=(MASK, PAD))
    place = folder / "tokenizer.json"
    described = described_in(folder)
    reading = _reading(described, place)
    is_bytes = reading["decoder"]["type"] == "ByteLevel"
    vocab = vocabulary_of(folder)
    end = end_token(folder)
    if end not in vocab:
        raise InputError("has no end token", file=folder / "tokenizer_config.json", key="eos_token")
    specials = [
        added["content"]
        for added in described["added_tokens"]
        if not added["special"] and added["content"] and (is_bytes or as_it_is(added["content"]))
    ]
    alphabet = pre_tokenizers.ByteLevel.alphabet() if is_bytes else BYTES
    for token in (*alphabet, MASK, PAD, *control):
        vocab.setdefault(token, len(vocab))
    described["added_tokens"] = _matched_whole(dict.fromkeys([*specials, MASK, *control]), vocab)
    described["model"] |= {"vocab": vocab, "dropout": None, "unk_token": None}
    described |= reading | {"truncation": None, "padding": None}
    described["post_processor"] = _ending_in(vocab[end])
    try:
        return _wrap(backend_of(orjson.dumps(described).decode()))
    except Exception as error:  # the backend has no exception type of its own
        reason = str(error).partition("\n")[0][:200]
        raise InputError(f"is no tokenizer that can be read: {reason}", file=place) from None


def _reading(described: dict[str, Any], place: Path) -> dict[str, Any]:
    """What becomes of a text before its merges, and of tokens to be read.

    InputError names a vocabulary in which a text would lose something.
    """
    model = described["model"]
    if model.get("type") == "BPE" and model.get("byte_fallback"):
        check_vocabulary(model, place)
        return readers(lead_of(described, place))
    cut = described.get("pre_tokenizer") or {}
    parts = cut.get("pretokenizers", [cut])
    last = parts[-1] if isinstance(parts, list) and parts else {}
    if model.get("type") != "BPE" or last.get("type") != "ByteLevel":
        raise InputError(
            "is no BPE of bytes, nor one of SentencePiece with byte_fallback",
            file=place,
            key="model.type",
            value=model.get("type"),
        )
    if any(part.get("add_prefix_space") for part in parts):
        raise InputError("puts a space before every text", file=place, key="add_prefix_space")
    decoder = {"type": "ByteLevel", "add_prefix_space": False}
    return {
        "normalizer": None,
        "pre_tokenizer": cut,
        "decoder": decoder | {"trim_offsets": True, "use_regex": True},
    }


def described_in(folder: Path) -> dict[str, Any]:
    """tokenizer.json of a folder; InputError where it lacks a part."""
    place = folder / "tokenizer.json"
    described = read_object(place, "model")
    vocab = described["model"].get("vocab") if isinstance(described["model"], dict) else None
    added = described.setdefault("added_tokens", [])
    if not isinstance(vocab, dict) or not all(
        isinstance(token, dict) and {"content", "id", "special"} <= token.keys() for token in added
    ):
        raise InputError("has no vocabulary of tokens and their numbers", file=place, key="model")
    return described


def vocabulary_of(folder: Path) -> dict[str, int]:
    """Tokens of a pretrained model and their ids, which are 0, 1, 2, ..., without gaps."""
    described = described_in(folder)
    vocab = described["model"]["vocab"] | {
        added["content"]: added["id"] for added in described["added_tokens"]
    }
    if sorted(vocab.values(), key=str) != sorted(range(len(vocab)), key=str):
        message = "has gaps between the numbers of its tokens, or one twice"
        raise InputError(message, file=folder / "tokenizer.json", key="model.vocab")
    return vocab


def end_token(folder: Path) -> str | None:
    """The end token that tokenizer_config.json names."""
    named = read_object(folder / "tokenizer_config.json", "eos_token")["eos_token"]
    return named.get("content") if isinstance(named, dict) else named


def _matched_whole(tokens: Iterable[str], vocab: dict[str, int]) -> list[dict[str, Any]]:
    """How a file names tokens that are matched in text as they are."""
    rest = ("special", "normalized", "single_word", "lstrip", "rstrip")
    return [{"content": token, "id": vocab[token]} | dict.fromkeys(rest, False) for token in tokens]


def _ending_in(index: int) -> dict[str, Any]:
    """A template that puts a token before and after a text.

    It is how a file names its end token.
    """
    probe = Backend(models.BPE())
    probe.post_processor = processors.TemplateProcessing(
        single="<end> $A <end>", special_tokens=[("<end>", index)]
    )
    return orjson.loads(probe.to_str())["post_processor"]


def beginning_with(tokenizer: Tokenizer) -> Backend:
    """The backend as transformers uses it: the begin token stands before every text."""
    backend = Backend.from_str(tokenizer.backend.to_str())
    begin = tokenizer.token(tokenizer.bos_id)
    backend.post_processor = processors.TemplateProcessing(
        single=f"{begin} $A", special_tokens=[(begin, tokenizer.bos_id)]
    )
    return backend


def from_hub(name: str, control: Sequence[str] = ()) -> Tokenizer:
    """A tokenizer from a model's name: a byte-level BPE vocabulary with <|endoftext|>."""
    from transformers import AutoTokenizer

    try:
        source = AutoTokenizer.from_pretrained(name, trust_remote_code=False).backend_tokenizer
    except (OSError, ValueError, AttributeError) as error:
        reason = str(error).partition("\n")[0]
        message = f"tokenizer cannot be loaded: {reason}"
        raise InputError(message, key="source", value=name) from None
    described = orjson.loads(source.to_str())
    model = described["model"]
    cut = described["pre_tokenizer"] or {}
    if model["type"] != "BPE" or cut.get("type") != "ByteLevel":
        raise InputError("not a byte-level BPE tokenizer", key="source", value=name)
    return from_vocab(model["vocab"], model["merges"], source=name, control=control)


def save(tokenizer: Tokenizer, path: Path) -> None:
    """Write tokenizer.json atomically."""
    write_text(path, tokenizer.backend.to_str())


def load(path: Path) -> Tokenizer:
    """Read a tokenizer.json that this module wrote; InputError otherwise."""
    text = read_bytes(path)
    try:
        return _wrap(backend_of(text.decode()))
    except Exception:  # the backend has no exception type of its own
        raise InputError("not a tokenizer of this project", file=path) from None


def backend_of(text: str) -> Backend:
    """A backend from its JSON; ValueError where its ids have gaps.

    It would take memory for all ids up to the largest.
    """
    described = jsons.loads(text)
    model = described["model"]
    ids = {*model["vocab"].values(), *(added["id"] for added in described["added_tokens"])}
    if ids != set(range(len(ids))) or model["continuing_subword_prefix"]:
        raise ValueError("ids with gaps, or words in pieces of another kind")
    _pairs(model["vocab"], model["merges"])
    # what was looked at, should a key have been there twice
    return Backend.from_str(orjson.dumps(described).decode())


def _pairs(vocab: dict[str, int], merges: list[Any]) -> list[tuple[str, str]]:
    """Merges as pairs; ValueError where one makes no token: the backend would panic."""
    pairs = []
    for merge in merges:
        left, right = merge.split(" ") if isinstance(merge, str) else merge
        if left + right not in vocab:
            raise ValueError("a merge that makes no token")
        pairs.append((left, right))
    return pairs


def _ours() -> pre_tokenizers.PreTokenizer:
    pattern = Regex(_spell(OURS, letters=r"\p{L}", digits=r"\p{N}"))
    bytes_ = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return pre_tokenizers.Sequence([pre_tokenizers.Split(pattern, "isolated"), bytes_])


def _spell(pattern: str, *, letters: str, digits: str) -> str:
    sets = {"{L}": f"[{letters}]", "{N}": f"[{digits}]", "{l}": letters, "{n}": digits}
    for placeholder, value in sets.items():
        pattern = pattern.replace(placeholder, value)
    return pattern


def _borders(whole: Iterable[str]) -> re.Pattern[str]:
    """Finds any of some strings, of several at one place the longest."""
    longest = sorted(whole, key=len, reverse=True)
    return re.compile(f"({'|'.join(map(re.escape, longest))})")


def _build(
    vocab: dict[str, int],
    merges: list[Any],
    pre_tokenizer: pre_tokenizers.PreTokenizer,
    control: Sequence[str] = (),
) -> Tokenizer:
    """A tokenizer in which <MASK> and the control strings alone are matched in text as a token."""
    backend = Backend(models.BPE(vocab=vocab, merges=_pairs(vocab, merges)))
    backend.pre_tokenizer = pre_tokenizer
    backend.decoder = decoders.ByteLevel()
    described = orjson.loads(backend.to_str())
    whole = sorted((MASK, *control), key=vocab.__getitem__)
    described["added_tokens"] = _matched_whole(whole, vocab)
    return _wrap(Backend.from_str(orjson.dumps(described).decode()))


def _wrap(backend: Backend) -> Tokenizer:
    """The frozen object around a backend; KeyError or ValueError if it is not one of ours."""
    vocab = backend.get_vocab(with_added_tokens=True)
    described = orjson.loads(backend.to_str())
    kind = described["pre_tokenizer"]
    whole = {added["content"]: added["id"] for added in described["added_tokens"]}
    gpt2 = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
    end = None
    sentences = None
    if described["post_processor"] is not None:
        end = described["post_processor"]["special_tokens"]["<end>"]["ids"][0]
        pattern = None
        if described["model"]["byte_fallback"]:
            lead = lead_of(described, Path("tokenizer.json"))
            sentences = Sentences(backend, lead, whole, _borders(whole))
    elif gpt2.items() <= kind.items():
        pattern = GPT2
    elif kind == orjson.loads(_probe()):
        pattern = OURS
    else:
        raise ValueError("unknown pre-tokenizer")
    if MASK not in whole or "" in whole:
        raise ValueError("<MASK> is no token, or nothing is one")
    cut = None
    if pattern is not None:
        # our digits are tokens one by one, but looked up by up to three
        grouped = pattern.replace("|{N}|", "|{N}{1,3}|")
        cut = re.compile(_spell(grouped, letters="A-Za-z", digits="0-9"), re.ASCII)
    new = {}
    if pattern is OURS:
        ordinary = sorted(vocab.keys() - whole)
        new = {token: vocab[token] for token in ordinary if NEW_TOKEN.fullmatch(token)}
    lengths = np.zeros(len(vocab), np.int64)
    for token, index in vocab.items():
        # each byte is spelled as one character, but for what is matched whole
        lengths[index] = len(token.encode()) if token in whole or token in new else len(token)
    if sentences is not None:
        lengths = np.array(list(map(len, sentences.spelled)), np.int64)
    return Tokenizer(
        backend=backend,
        pad_id=vocab[PAD],
        bos_id=vocab[BOS if BOS in vocab else END] if end is None else end,
        mask_id=vocab[MASK],
        vocab_size=len(vocab),
        lengths=lengths,
        words=Words(backend),
        whole=whole,
        borders=_borders(whole),
        new_tokens=new,
        pattern=cut,
        sentences=sentences,
    )


def _probe() -> bytes:
    """How our own pre-tokenizer is written in a tokenizer.json."""
    backend = Backend(models.BPE())
    backend.pre_tokenizer = _ours()
    return orjson.dumps(orjson.loads(backend.to_str())["pre_tokenizer"])
