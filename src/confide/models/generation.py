"""Sampling text from a language model, many contexts at once.

There are top-k and nucleus sampling, stop strings, and banned tokens.

Every token is drawn by inverting the distribution function at a uniform number of its own, so that
a text depends on its prompt and its numbers and not on what is generated beside it. Contexts of
similar length share a batch, a prompt is read once for all its samples, and what ends leaves the
batch. GPT-2 keeps keys and values of what it has read, and so do models of transformers, in memory
that has room for all new tokens; the LSTM keeps its state.

Shapes: P prompts, S samples of each, T new tokens at most, n contexts in a batch, V vocabulary.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from confide.errors import InputError
from confide.models.causal_lm import CausalLM
from confide.models.gpt2 import GPT2Model, after_attention
from confide.models.language_model import LanguageModel
from confide.models.lstm import LSTMModel
from confide.specs import SamplingSpec
from confide.text.tokenizer import Tokenizer

ROWS = 128  # contexts in a batch
BYTES = 1 << 29  # keys and values of a batch
SPARSE = 0.75  # a batch of which fewer contexts are still written to is copied without the others


class Generation(NamedTuple):
    """What a model wrote: the text before the first stop, and the tokens wholly before it."""

    ids: list[int]
    text: str
    stopped: bool  # False: cut off after T tokens


@dataclass(frozen=True, slots=True)
class Ending:
    """Where a text ends, and what may not stand in it."""

    pieces: list[bytes]  # (V,) text of each token
    ids: frozenset[int] = frozenset()
    strings: tuple[bytes, ...] = ()
    banned: tuple[int, ...] = ()

    def cut_at(self, text: bytearray, new: int) -> int:
        """Where the earliest stop string that the last `new` bytes complete begins, or -1."""
        places = (
            text.find(string, max(0, len(text) - new - len(string) + 1)) for string in self.strings
        )
        return min((place for place in places if place >= 0), default=-1)


def ending(tokenizer: Tokenizer, strings: Sequence[str] = (), *, masks: bool = False) -> Ending:
    """A text ends at any of these strings or at the end token; padding is not drawn, and <MASK> is
    where `masks` may stand in a text.
    """
    banned = (tokenizer.pad_id,) if masks else (tokenizer.mask_id, tokenizer.pad_id)
    return Ending(
        pieces(tokenizer),
        frozenset({tokenizer.bos_id}),
        tuple(string.encode() for string in strings),
        banned,
    )


def pieces(tokenizer: Tokenizer) -> list[bytes]:
    """The bytes of each token.

    A byte-level vocabulary spells bytes that are not printable by the letters from U+0100 on.
    """
    if tokenizer.sentences is not None:
        return tokenizer.sentences.spelled
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = (byte for byte in range(256) if byte not in printable)
    spelled = {chr(byte): byte for byte in printable} | {
        chr(256 + place): byte for place, byte in enumerate(others)
    }
    vocab = tokenizer.backend.get_vocab(with_added_tokens=True)
    new = tokenizer.new_tokens
    ordered = sorted(vocab, key=vocab.__getitem__)
    return [
        token.encode() if token in new else bytes(spelled[letter] for letter in token)
        for token in ordered
    ]


def uniforms(prompts: int, samples: int, spec: SamplingSpec, source: torch.Generator) -> Tensor:
    """The numbers (P, S, T) float64 that decide all tokens."""
    return torch.rand(prompts, samples, spec.max_new_tokens, dtype=torch.float64, generator=source)


def draw(
    logits: Tensor, numbers: Tensor, spec: SamplingSpec, banned: tuple[int, ...] = ()
) -> Tensor:
    """A token (n,) per row of logits (n, V), drawn at uniform numbers (n,).

    First comes the temperature, then top-k, then the nucleus. Candidates are in the order of their
    ids, so that rounding which swaps two of equal rank changes no choice. Errors:
    FloatingPointError where a probability is not finite.
    """
    logits = logits.index_fill(
        1, torch.tensor(banned, dtype=torch.int64, device=logits.device), -torch.inf
    )
    size = logits.shape[1] - len(set(banned))
    values, ids = logits.topk(min(spec.top_k or size, size))
    weights = ((values - values[:, :1]).double() / spec.temperature).exp()
    if not weights.isfinite().all():
        raise FloatingPointError("the model's probabilities are not finite")
    if spec.top_p < 1:
        likelier = weights.cumsum(1) - weights
        weights = weights.masked_fill(likelier >= spec.top_p * weights.sum(1, keepdim=True), 0.0)
    ids, order = ids.sort(1)
    total = weights.gather(1, order).cumsum(1)
    place = torch.searchsorted(total, numbers[:, None] * total[:, -1:], right=True)
    return ids.gather(1, place.clamp(max=ids.shape[1] - 1))[:, 0]


class LSTMReader:
    """The states of n contexts of an LSTM."""

    def __init__(self, model: LSTMModel, ids: Tensor, lengths: Tensor, rows: Tensor):
        hidden, state = model.resume(ids, lengths, model.start(len(ids)))
        self.model = model
        self.state = model.take(state, rows)
        self.hidden = hidden[torch.arange(len(ids)), lengths - 1][rows]

    def read(self, tokens: Tensor) -> Tensor:
        """One token (n,) more in each context -> hidden (n, d)."""
        hidden, self.state = self.model.advance(self.state, tokens)
        return hidden

    def keep(self, rows: Tensor) -> None:
        """Only these contexts."""
        self.state = self.model.take(self.state, rows)


class GPT2Reader:
    """Keys and values of n contexts of a GPT-2.

    Those of a prompt are there once for all its contexts, those of new tokens once for each.
    """

    def __init__(self, model: GPT2Model, ids: Tensor, lengths: Tensor, rows: Tensor, new: int):
        self.blocks = model.blocks
        self.body = model.network.transformer
        self.heads = model.spec.heads
        # Keys and values of each layer: of prompts (p, heads, L, d / heads), and of new tokens
        # (n, heads, T, d / heads).
        self.past: list[tuple[Tensor, Tensor]] = []
        self.recent: list[tuple[Tensor, Tensor]] = []
        lengths = lengths.to(ids.device)
        width = ids.shape[1]

        def attend(layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            self.past.append((key, value))
            shape = len(rows), self.heads, new, key.shape[3]
            self.recent.append((key.new_empty(shape), key.new_empty(shape)))
            return F.scaled_dot_product_attention(query, key, value, is_causal=True)

        x = self.body.wte(ids) + self.body.wpe.weight[:width]
        last = torch.arange(len(ids), device=ids.device), lengths - 1
        self.hidden = self._through(x, attend)[last][rows]
        behind = torch.arange(width, device=ids.device) >= lengths[:, None]
        self.padding = behind[:, None, None]  # (p, 1, 1, L)
        self.prompt = rows
        self.positions = lengths[rows]
        self.new = 0
        self._seat()

    def read(self, tokens: Tensor) -> Tensor:
        """One token (n,) more in each context -> hidden (n, d)."""
        place = self.new
        self.new = self.new + 1

        def attend(layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            keys, values = self.past[layer]
            new_keys, new_values = self.recent[layer]
            new_keys[:, :, place] = key[:, :, 0]
            new_values[:, :, place] = value[:, :, 0]
            new_keys = new_keys[:, :, : place + 1]
            new_values = new_values[:, :, : place + 1]
            width = keys.shape[2]
            query = query * query.shape[3] ** -0.5
            of_prompt = query[self.seats, :, 0].transpose(1, 2) @ keys.transpose(2, 3)
            of_prompt = of_prompt.masked_fill(self.padding, -torch.inf)
            of_new = (query @ new_keys.transpose(2, 3))[:, :, 0]
            weights = torch.cat([self._rows(of_prompt), of_new], 2).softmax(2)  # (n, heads, L + T)
            prompt = self._rows(weights[self.seats, :, :width].transpose(1, 2) @ values)
            return prompt[:, :, None] + weights[:, :, None, width:] @ new_values

        x = self.body.wte(tokens) + self.body.wpe(self.positions)
        self.positions = self.positions + 1
        return self._through(x[:, None], attend)[:, 0]

    def keep(self, rows: Tensor) -> None:
        """Only these contexts."""
        self.recent = [(keys[rows], values[rows]) for keys, values in self.recent]
        self.prompt = self.prompt[rows]
        self.positions = self.positions[rows]
        self._seat()

    def _seat(self) -> None:
        """Leave out prompts without contexts, and number the contexts of each.

        So every context has a seat; seats (p, s) may be empty.
        """
        used, self.prompt = self.prompt.unique(return_inverse=True)
        if len(used) < len(self.padding):
            self.past = [(keys[used], values[used]) for keys, values in self.past]
            self.padding = self.padding[used]
        counts = self.prompt.bincount()
        order = self.prompt.argsort(stable=True)
        numbers = torch.arange(len(order), device=order.device)
        self.seat = torch.empty_like(order)
        self.seat[order] = numbers - (counts.cumsum(0) - counts)[self.prompt[order]]
        self.seats = order.new_zeros(len(used), int(counts.max()))
        self.seats[self.prompt, self.seat] = numbers

    def _rows(self, seated: Tensor) -> Tensor:
        """What stands in the seats, (p, heads, s, m), context by context (n, heads, m)."""
        return seated.transpose(1, 2)[self.prompt, self.seat]

    def _through(
        self, x: Tensor, attend: Callable[[int, Tensor, Tensor, Tensor], Tensor]
    ) -> Tensor:
        """All blocks, on x (n, l, d)."""
        for number, block in enumerate(self.blocks):
            parts = block.attn.c_attn(block.ln_1(x)).chunk(3, 2)
            query, key, value = (
                part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in parts
            )
            attended = attend(number, query, key, value).transpose(1, 2).flatten(2)
            x = after_attention(block, x, attended)
        return self.body.ln_f(x)


class CausalReader:
    """Keys and values of n contexts of a model of transformers.

    Prompts have their padding on the left, so that what a context has read stands together, as
    models that look back a fixed number of tokens need it.
    """

    def __init__(self, model: CausalLM, ids: Tensor, lengths: Tensor, rows: Tensor, new: int):
        from confide.models.roomy import with_room

        self.model = model
        self.room = new
        width = ids.shape[1]
        behind = width - lengths.to(ids.device)[:, None]  # (p, 1): how far a prompt moves
        places = torch.arange(width, device=ids.device) - behind
        self.mask = (places >= 0).long()
        places = places.clamp(min=0)
        hidden, state = model.read(ids.gather(1, places), places, self.mask)
        self.hidden = hidden[:, -1][rows]
        self.positions = lengths.to(ids.device)[rows]
        self.mask = self.mask[rows]
        self.cache = with_room(model.take(state, rows), new)

    def read(self, tokens: Tensor) -> Tensor:
        """One token (n,) more in each context -> hidden (n, d)."""
        self.mask = F.pad(self.mask, (0, 1), value=1)
        positions = self.positions[:, None]
        hidden = self.model.read_into(self.cache, tokens[:, None], positions, self.mask)
        self.positions = self.positions + 1
        self.room = self.room - 1
        return hidden[:, 0]

    def keep(self, rows: Tensor) -> None:
        """Only these contexts."""
        from confide.models.roomy import state_of, with_room

        self.cache = with_room(self.model.take(state_of(self.cache), rows), self.room)
        self.mask = self.mask[rows]
        self.positions = self.positions[rows]


def reader_of(
    model: LanguageModel, ids: Tensor, lengths: Tensor, rows: Tensor, new: int
) -> LSTMReader | GPT2Reader | CausalReader:
    """A reader of n contexts that go on from prompts ids (p, L), of which lengths (p,) are real.

    rows (n,) names the prompt of each context; `new` is the most tokens that are read after it.
    """
    if isinstance(model, GPT2Model):
        return GPT2Reader(model, ids, lengths, rows, new)
    if isinstance(model, LSTMModel):
        return LSTMReader(model, ids, lengths, rows)
    if isinstance(model, CausalLM):
        return CausalReader(model, ids, lengths, rows, new)
    raise TypeError(f"there is no reader for {type(model).__name__}")


def room(model: LanguageModel, spec: SamplingSpec) -> float:
    """The longest prompt, begin token included, after which there is room for all new tokens."""
    return model.positions - spec.max_new_tokens


@torch.inference_mode()
def generate(
    model: LanguageModel,
    prompts: Sequence[Sequence[int]],
    numbers: Tensor,
    spec: SamplingSpec,
    until: Ending,
) -> list[list[Generation]]:
    """S continuations of each of P prompts, for numbers (P, S, T) of `uniforms`.

    A prompt is token ids without the begin token.

    Errors: InputError where a prompt leaves no room for T tokens; FloatingPointError where
    probabilities are not finite.
    """
    longest = max(map(len, prompts), default=0) + 1
    samples = numbers.shape[1]
    if longest > room(model, spec):
        raise InputError(
            f"a prompt has {longest} tokens, which leaves no room for so many in "
            f"{room(model, spec) + spec.max_new_tokens} positions",
            key="max_new_tokens",
            value=spec.max_new_tokens,
        )
    # By the length of the prompt; equally long ones stay in order.
    order = sorted(range(len(prompts) * samples), key=lambda row: len(prompts[row // samples]))
    written: dict[int, Generation] = {}
    size = _batch(model, longest, samples, spec.max_new_tokens)
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        contexts = [prompts[row // samples] for row in rows]
        chosen = numbers.flatten(0, 1)[rows]
        written |= zip(rows, _continued(model, contexts, chosen, spec, until), strict=True)
    return [
        [written[place + sample] for sample in range(samples)]
        for place in range(0, len(written), samples)
    ]


def _batch(model: LanguageModel, longest: int, samples: int, new: int) -> int:
    """How many contexts go together; all samples of a prompt, where there are not too many."""
    size = ROWS
    if model.cache_bytes:
        # a GPT-2's reader keeps a prompt once for all its samples
        of_prompt = longest // samples if isinstance(model, GPT2Model) else longest
        size = max(1, min(ROWS, BYTES // (model.cache_bytes * (of_prompt + new))))
    return size - size % samples if size > samples else size


def _continued(
    model: LanguageModel,
    prompts: list[Sequence[int]],
    numbers: Tensor,
    spec: SamplingSpec,
    until: Ending,
) -> list[Generation]:
    """A continuation of each of n prompts, for numbers (n, T)."""
    device = model.device
    distinct: dict[tuple[int, ...], int] = {}
    for prompt in prompts:
        distinct.setdefault(tuple(prompt), len(distinct))
    lengths = torch.tensor([len(prompt) + 1 for prompt in distinct])
    ids = np.full((len(distinct), int(lengths.max())), model.bos, dtype=np.int64)
    for tokens_, place in distinct.items():
        ids[place, 1 : len(tokens_) + 1] = tokens_
    rows = torch.tensor([distinct[tuple(prompt)] for prompt in prompts], device=device)
    read = torch.from_numpy(ids).to(device)
    reader = reader_of(model, read, lengths, rows, spec.max_new_tokens)
    hidden = reader.hidden
    numbers = numbers.to(device)
    texts = [Writing(until) for _ in prompts]
    text_of_row = list(range(len(texts)))  # which text each row of the batch belongs to
    for step in range(spec.max_new_tokens):
        tokens = draw(model.head(hidden), numbers[:, step], spec, until.banned)
        for place, token in zip(text_of_row, tokens.tolist(), strict=True):
            texts[place].add(token)
        open_ = [row for row, place in enumerate(text_of_row) if not texts[place].stopped]
        if not open_ or step + 1 == spec.max_new_tokens:
            break
        if len(open_) < SPARSE * len(text_of_row):
            index = torch.tensor(open_, device=device)
            reader.keep(index)
            tokens = tokens[index]
            numbers = numbers[index]
            text_of_row = [text_of_row[row] for row in open_]
        hidden = reader.read(tokens)
    return [text.written() for text in texts]


class Writing:
    """A text that grows token by token, up to its first stop; what comes later is not taken."""

    def __init__(self, until: Ending):
        self.until = until
        self.stopped = False
        self.ids: list[int] = []
        self.bytes = bytearray()

    def add(self, token: int) -> None:
        """One token more.

        Of one that a stop string begins within, the letters before it are text, but it is not kept.
        """
        if self.stopped:
            return
        if token in self.until.ids:
            self.stopped = True
            return
        piece = self.until.pieces[token]
        self.ids.append(token)
        self.bytes += piece
        cut = self.until.cut_at(self.bytes, len(piece))
        if cut >= 0:
            ends = accumulate(len(self.until.pieces[token]) for token in self.ids)
            self.ids = [token for token, end in zip(self.ids, ends, strict=True) if end <= cut]
            self.stopped = True
            del self.bytes[cut:]

    def written(self) -> Generation:
        """The text so far; bytes that are no UTF-8 become U+FFFD."""
        return Generation(self.ids, self.bytes.decode("utf-8", errors="replace"), self.stopped)
