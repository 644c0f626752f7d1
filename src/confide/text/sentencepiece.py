"""Vocabularies of SentencePiece as a tokenizer.json has them: BPE of characters, and bytes for what
has no character of its own.

A blank is spelled ▁, and families differ in where they put one more, the lead: before a text,
before each piece of text between tokens that are matched whole, or nowhere. Here a text is read so
that nothing of it is lost: a ▁ in a text is spelled in bytes, since it would else come back as a
blank, and a lead is put before a text that begins with a blank, too, where some families leave it
out. Whatever else a file's normalizer would rewrite is a reason to refuse it.
"""

import re
from array import array
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from tokenizers import Tokenizer as Backend

from confide.errors import InputError

BLANK = "▁"
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
SPELLED = {token: bytes([byte]) for byte, token in enumerate(BYTES)}
Lead = Literal["none", "first", "each"]
METASPACE: dict[str, Lead] = {"never": "none", "first": "first", "always": "each"}
REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": BLANK}
PREPEND = {"type": "Prepend", "prepend": BLANK}
# what families cut a text at once its blanks are spelled: there is none left
CUT = {"type": "Split", "pattern": {"String": " "}}


class Sentences:
    """How such a vocabulary reads a text, and spells it again.

    `spelled`: the bytes of a text that each token stands for, its lead among them.
    """

    def __init__(
        self, backend: Backend, lead: Lead, whole: dict[str, int], borders: re.Pattern[str]
    ) -> None:
        vocab = backend.get_vocab(with_added_tokens=True)
        self.lead = lead
        self.whole = whole
        self.borders = borders
        self.tokenize = backend.model.tokenize
        self.literal = [vocab[BYTES[byte]] for byte in BLANK.encode()]
        self.spelled = [b""] * len(vocab)
        for token, index in vocab.items():
            if token in whole:
                self.spelled[index] = token.encode()
            else:
                usual = token.replace(BLANK, " ").encode()
                self.spelled[index] = SPELLED.get(token, usual)
        self.is_whole = np.zeros(len(vocab), bool)
        self.is_whole[list(whole.values())] = True

    def packed(self, text: str) -> bytes:
        """Token ids of a text, packed."""
        ids: list[int] = []
        for number, part in enumerate(self.borders.split(text)):
            if number % 2:
                ids.append(self.whole[part])
            elif part:
                leads = self.lead == "each" or (self.lead == "first" and number == 0)
                ids += self._piece(part, leads=leads)
        return array("i", ids).tobytes()

    def led(self, ids: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """(T,) bool: tokens that begin with a lead, of texts that begin at starts (N + 1,)."""
        begins = np.zeros(len(ids), bool)
        if self.lead == "none":
            return begins
        begins[starts[:-1][np.diff(starts) > 0]] = True
        if self.lead == "each":
            begins[1:] |= self.is_whole[ids[:-1]]
        return begins & ~self.is_whole[ids]

    def decoded(self, ids: Iterable[int]) -> str:
        """The text of token ids, of which the first begins a text."""
        row = np.fromiter(ids, np.int64)
        led = self.led(row, np.array([0, len(row)]))
        parts = [
            self.spelled[index].removeprefix(b" ") if leads else self.spelled[index]
            for index, leads in zip(row.tolist(), led.tolist(), strict=True)
        ]
        return b"".join(parts).decode("utf-8", "replace")

    def _piece(self, text: str, *, leads: bool) -> list[int]:
        """Token ids of text without anything that is matched whole."""
        ids: list[int] = []
        for number, part in enumerate(text.split(BLANK)):
            if number:
                ids += self.literal
            spelled = part.replace(" ", BLANK)
            if leads and number == 0:
                spelled = BLANK + spelled
            if spelled:
                ids += [token.id for token in self.tokenize(spelled)]
        return ids


def lead_of(described: dict[str, Any], place: Path) -> Lead:
    """Where a file puts a blank; InputError names what else it would do to a text."""
    normalizer = described.get("normalizer")
    steps = normalizer.get("normalizers", [normalizer]) if isinstance(normalizer, dict) else []
    steps = steps if isinstance(steps, list) else [steps]
    cut = described.get("pre_tokenizer")
    for step in steps:
        if step not in (REPLACE, PREPEND):
            raise InputError(
                "rewrites a text, of which something would be lost",
                file=place,
                key="normalizer",
                value=step.get("type") if isinstance(step, dict) else None,
            )
    if isinstance(cut, dict) and cut.get("type") == "Metaspace":
        scheme = cut.get("prepend_scheme", "always" if cut.get("add_prefix_space") else "never")
        if steps or cut.get("replacement") != BLANK or cut.get("split", True):
            message = "cuts a text at blanks, or spells these otherwise"
            raise InputError(message, file=place, key="pre_tokenizer", value="Metaspace")
        if scheme not in METASPACE:
            raise InputError("is unknown", file=place, key="prepend_scheme", value=scheme)
        return METASPACE[scheme]
    uncut = cut is None or (isinstance(cut, dict) and CUT.items() <= cut.items())
    if REPLACE not in steps or not uncut:
        raise InputError(
            "is none of those that SentencePiece's vocabularies have here",
            file=place,
            key="pre_tokenizer",
            value=cut.get("type") if isinstance(cut, dict) else None,
        )
    return "each" if PREPEND in steps else "none"


def check_vocabulary(model: dict[str, Any], place: Path) -> None:
    """InputError where a text that spells a byte, or a blank, would become that byte or nothing."""
    if BLANK not in model["vocab"]:
        raise InputError("lacks the token of a blank", file=place, key="model.vocab", value=BLANK)
    if model.get("ignore_merges") or model.get("end_of_word_suffix"):
        message = "has words that no merges make"
        raise InputError(message, file=place, key="model.ignore_merges")
    merges = model.get("merges")
    for merge in merges if isinstance(merges, list) else [None]:
        pair = merge.split(" ") if isinstance(merge, str) else merge
        if not isinstance(pair, list) or not all(isinstance(part, str) for part in pair):
            raise InputError("are no pairs of tokens", file=place, key="model.merges")
        if (joined := "".join(pair)) in SPELLED:
            message = "is made of a text that only spells it"
            raise InputError(message, file=place, key="model.merges", value=joined)


def as_it_is(token: str) -> bool:
    """Whether a token that is matched whole stands for its own text, not for a blank or a byte."""
    return BLANK not in token and token not in SPELLED


def readers(lead: Lead) -> dict[str, Any]:
    """What a tokenizer.json says of such a lead: how a text is read, and spelled again."""
    decoders: list[dict[str, Any]] = [
        {"type": "Replace", "pattern": {"String": BLANK}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ]
    if lead != "none":
        decoders.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    steps = [PREPEND, REPLACE] if lead == "each" else [REPLACE]
    steps_by_name: dict[str, Any] = {
        "normalizer": {"type": "Sequence", "normalizers": steps},
        "pre_tokenizer": None,
        "decoder": {"type": "Sequence", "decoders": decoders},
    }
    if lead == "first":
        steps_by_name["normalizer"] = None
        cut = {"type": "Metaspace", "replacement": BLANK, "prepend_scheme": "first"}
        steps_by_name["pre_tokenizer"] = cut | {"split": False}
    return steps_by_name
