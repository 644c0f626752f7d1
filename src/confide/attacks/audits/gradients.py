"""A white-box audit: coins are guessed from the noised updates themselves.

These are made again by the code that trained the model. The run's ledger says which noised updates
it made. Each is made once more by the same functions, from a Poisson batch through clipping to
noise, on examples whose gradients nobody could overlook (Nasr et al. 2023; Steinke et al. 2023,
section 6): before clipping far too long, afterwards exactly as long as clipping allows, each in a
direction of its own. In the set `replacement` a coin decides which of two opposite gradients a
record has, in the set `inclusion` whether it is there at all. A coin's score is the log-likelihood
ratio of what the updates hold in its record's direction, the best that an attacker can do who sees
all of them.

It tells whether clipping, sampling and noise do what the ledger says of them, at a strength that no
attack on a finished model has. It does not look at the model's own layers or weights. Recurrent
states that were released are left out.
"""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from confide.attacks.audits.game import against_coins
from confide.attacks.target import Target
from confide.dp.accounting.pairs import Pair, loss
from confide.dp.ledger import Ledger, updates_of
from confide.dp.mechanism.clipping import PerExampleClipper
from confide.dp.mechanism.correlated import Correlated
from confide.dp.mechanism.randomness import Stream, noise_of
from confide.dp.mechanism.sampling import dealt, poisson
from confide.dp.mechanism.update import discrete_gradient, noisy_gradient
from confide.errors import InputError
from confide.models.batches import Batch
from confide.models.head import Head
from confide.models.language_model import Encoder
from confide.runtime.memory import Budget
from confide.specs import GradientsSpec
from confide.types import Release

# what a bound is compared with: the relation and the unit of a claim
CLAIMS = {
    "replacement": ("replace_one", "record"),
    "inclusion": ("add_or_remove", "record"),
}
STEEP = 1e4  # of a loss in its record's direction: its gradient's length before it is clipped
PIECE = 256  # examples of one pass
COLUMNS = 128  # records of the linear layer, whose inputs are written out


class Directions(Encoder):
    """A language model of one position with a direction of its own for each record.

    The loss on record i has a gradient in the i-th direction only. Most records are rows of an
    embedding, the last ones columns of a linear layer.
    """

    def __init__(self, records: int):
        super().__init__()
        self.rows = records - min(COLUMNS, records // 2)
        self.embedding = nn.Embedding(self.rows + 1, 1, padding_idx=self.rows)
        self.linear = nn.Linear(records - self.rows, 1, bias=False)
        self.head = Head(nn.Parameter(torch.tensor([[STEEP], [-STEEP]]) / 2, requires_grad=False))
        for parameter in (self.embedding.weight, self.linear.weight):
            nn.init.zeros_(parameter)

    def hidden(
        self, inputs: Tensor, keep: Tensor | None = None, ends: Tensor | None = None
    ) -> Tensor:
        """Hidden states (B, 1, 1) of records (B, 1): 0, and a function of one weight alone.

        Nothing is kept, and nothing padded.
        """
        column = torch.arange(self.rows, self.rows + self.linear.in_features, device=inputs.device)
        one_hot = (inputs.unsqueeze(-1) == column).to(self.linear.weight.dtype)
        return self.embedding(inputs.clamp(max=self.rows)) + self.linear(one_hot)

    def gradient(self) -> Tensor:
        """What .grad holds in each record's direction, (records,), after a backward pass."""
        rows = self.embedding.weight.grad
        columns = self.linear.weight.grad
        if rows is None or columns is None:
            raise RuntimeError("no gradient was computed")
        return torch.cat([rows[: self.rows, 0], columns[0]])


def gradients(spec: GradientsSpec, target: Target) -> dict[str, Any]:
    """Bounds and right guesses of both sets.

    A reason stands in their place where the run made no noised update.
    """
    if target.ledger is None:
        raise InputError("needs the ledger of the run", key="attack", value=spec.kind)
    ledger = Ledger.from_file(target.ledger)
    updates = [release for release in updates_of(ledger.releases()) if repeatable(release)]
    metrics: dict[str, Any] = {
        "delta": spec.delta,
        "confidence": spec.confidence,
        "ledger": ledger.head,
        "updates": sum(release.count for release in updates),
    }
    rng = np.random.default_rng(spec.seed)
    coins = {name: rng.random(spec.coins) < 0.5 for name in CLAIMS}
    scores = {}
    if updates:
        device = str(next(target.model.parameters()).device)
        scores = scored(updates, coins, seed=spec.seed, device=device)
    for name, (relation, unit) in CLAIMS.items():
        numbers: dict[str, Any] = {
            "relation": relation,
            "unit": unit,
            "coins": spec.coins,
            "heads": int(coins[name].sum()),
        }
        if updates:
            numbers |= against_coins(spec, scores[name], coins[name])
        else:
            numbers["reason"] = "the run made no noised update"
        metrics |= {f"{name}_{key}": value for key, value in numbers.items()}
    return metrics


def repeatable(release: Release) -> bool:
    """Whether it is of updates that clip, sample and noise gradients."""
    return release.noisy and release.step.state != "published" and release.count > 0


def scored(
    updates: Sequence[Release], coins: dict[str, np.ndarray], *, seed: int, device: str
) -> dict[str, np.ndarray]:
    """Make the updates and score every coin by all of them: scores (m,) by set.

    The records of `replacement` come first, heads and tails alike; those of `inclusion` are there
    where the coin is heads.
    """
    replaced, present = (torch.from_numpy(coins[name]) for name in CLAIMS)
    there = len(replaced) + present.nonzero().flatten()
    records = torch.cat([torch.arange(len(replaced)), there])
    # which target a record has decides to which side its gradient points
    signs = torch.cat([(~replaced).long(), torch.zeros_like(present, dtype=torch.int64)])
    model = Directions(len(replaced) + len(present)).to(device)
    sampler = Stream(seed, "audit of gradients: batches")
    name = "audit of gradients: noise"
    discrete = any(release.discrete_coordinates for release in updates)
    noise = Stream(seed, name) if discrete else noise_of(seed, name, device)
    budget = Budget(PIECE)
    everyone = np.arange(len(signs))
    totals = np.zeros(len(signs))
    sequences: dict[str, Turns] = {}
    clipper = PerExampleClipper(model, max_grad_norm=1.0)
    for release in updates:
        clipper.max_grad_norm = release.max_grad_norm
        expected = release.sample_rate * len(records)
        turns = turns_of(release, sequences, len(signs), seed=seed, device=device)
        if isinstance(noise, Stream) and release.discrete_coordinates:
            update = partial(discrete_gradient, clipper, noise=noise)
        else:
            source = noise if turns is None else turns.noise
            update = partial(noisy_gradient, clipper, noise=source, budget=budget)
        for _ in range(release.count):
            who = records if turns is None else records[turns.group[records] == turns.now]
            chosen = who[poisson(len(who), release.sample_rate, sampler)]
            batches = batch_of(chosen, signs[chosen], by_unit=release.step.unit == "author")
            update(
                batches=batches,
                noise_multiplier=release.noise_multiplier,
                expected_batch_size=expected,
            )
            seen = -model.gradient().double().cpu().numpy() * expected / release.max_grad_norm
            blocks = [Block(everyone, 1.0, seen)] if turns is None else turns.add(seen)
            for block in blocks:
                totals[block.who] += losses(release, block, replaced=len(replaced))
    for turns in sequences.values():
        for block in turns.rest():
            totals[block.who] += losses(turns.release, block, replaced=len(replaced))
    return dict(zip(CLAIMS, np.split(totals, [len(replaced)]), strict=True))


class Block(NamedTuple):
    """What updates hold of some records, each of which adds 1 where it is drawn.

    length: of that contribution, so that noise in what was seen is smaller by that factor.
    """

    who: np.ndarray  # (n,) records
    length: float
    seen: np.ndarray  # (n,) float64


def losses(release: Release, block: Block, *, replaced: int) -> np.ndarray:
    """Log-likelihood ratios (n,) of a block's records, the first `replaced` of all by coins that
    replace one.
    """
    found = np.zeros(len(block.who))
    for replace in (True, False):
        chosen = (block.who < replaced) == replace
        pair = Pair(release.sample_rate, release.noise_multiplier / block.length, replace=replace)
        found[chosen] = loss(pair, block.seen[chosen])
    return found


class Turns:
    """A sequence of updates with correlated noise: whose turn it is, and what they hold of whom.

    Whoever sees Y sees C Y, in which a contribution has `bands` rows, its own alone, and
    independent noise.
    """

    def __init__(self, release: Release, records: int, *, seed: int, device: str) -> None:
        """For so many records; ValueError where the noise of the release is not correlated."""
        if release.correlation is None:
            raise ValueError("noise of these updates is independent")
        self.release = release
        self.separation = release.correlation.separation
        self.coefficients = np.array(release.correlation.coefficients)
        name = f"audit of gradients: {release.correlation.sequence}"
        self.noise = Correlated(noise_of(seed, name, device), release.correlation.coefficients)
        self.group = dealt(records, self.separation, Stream(seed, f"{name}, groups"))
        self.updates = 0
        self.outputs: list[np.ndarray] = []  # the last ones, the last first
        self.rows: list[np.ndarray] = []  # of C Y, that are not in a block yet, the first first

    @property
    def now(self) -> int:
        """The group whose turn the next update is."""
        return self.updates % self.separation

    def add(self, seen: np.ndarray) -> list[Block]:
        """Count an update, by what it holds of each record; blocks that it completes."""
        self.updates += 1
        bands = len(self.coefficients)
        self.outputs = [seen, *self.outputs][:bands]
        used = self.coefficients[: len(self.outputs)]
        self.rows.append(np.tensordot(used, np.array(self.outputs), axes=1))
        return [self._block()] if len(self.rows) == bands else []

    def rest(self) -> Iterator[Block]:
        """Blocks of the last updates, which have fewer rows."""
        while self.rows:
            yield self._block()

    def _block(self) -> Block:
        first = self.updates - len(self.rows)
        used = self.coefficients[: len(self.rows)]
        squared = float(used @ used)
        who = (self.group == first % self.separation).nonzero().flatten().numpy()
        rows = np.array(self.rows)[:, who]
        self.rows.pop(0)
        return Block(who, math.sqrt(squared), used @ rows / squared)


def turns_of(
    release: Release, sequences: dict[str, Turns], records: int, *, seed: int, device: str
) -> Turns | None:
    """The sequence that an update goes on with, or begins; None where its noise is its own."""
    if release.correlation is None:
        return None
    name = release.correlation.sequence
    if name not in sequences:
        sequences[name] = Turns(release, records, seed=seed, device=device)
    return sequences[name]


def batch_of(records: Tensor, targets: Tensor, *, by_unit: bool) -> Iterator[Batch]:
    """The drawn records as one batch, each a unit of its own; nothing where none was drawn."""
    if len(records):
        units = torch.arange(len(records)) if by_unit else None
        yield Batch(records.unsqueeze(1), targets.unsqueeze(1), units=units)
