"""An epoch of Selective-DPSGD (exact steps on public tokens, noisy steps on private ones, states
reset) beside an ordinary one.

    python benchmarks/selective.py [--rounds 5]

Random text of 512 points of 20 to 60 tokens, of which a share lies in private runs of about four
tokens.
"""

from collections.abc import Callable

import numpy as np
import torch
from contenders import BOUND, CASES, SIGMA, adam, model_of
from machine import machine
from runner import arguments_of, compared, interleaved, peak_memory, shown

from confide.dp.mechanism.clipping import PerExampleClipper
from confide.dp.mechanism.randomness import Stream
from confide.dp.mechanism.sampling import generator, poisson, shuffled
from confide.dp.mechanism.update import exact_gradient, noisy_gradient
from confide.files.io import write_json
from confide.models.batches import Batch, by_length, padded, public_counts, selected
from confide.runtime.memory import Budget
from confide.types import View

CASE = CASES["lstm"]
POINTS = 512
RUN = 4
SHARES = (
    0.05,
    0.16,
    0.35,
)  # about: digits of WikiText-2, its entities, a contextual policy (Selective-DP, section 5)


def text(share: float) -> View:
    """Points whose private runs begin where a coin says so."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(20, 61, POINTS)
    starts = np.concatenate([[0], lengths.cumsum()])
    begins = rng.random(starts[-1]) < share / RUN
    private = np.convolve(begins, np.ones(RUN), "full")[: starts[-1]] > 0
    return View(rng.integers(2, CASE.vocab, starts[-1]).astype(np.int32), starts, private)


def exact_epoch(lengths: np.ndarray, cut: Callable[[np.ndarray], Batch]) -> Callable[[], None]:
    """Every point once, in batches of similar length."""
    model = model_of(CASE)
    source = generator(0, "public batches")
    budget = Budget(CASE.batch)
    optimizer = adam(model)

    def epoch() -> None:
        for chosen in shuffled(torch.from_numpy(lengths), CASE.batch, source):
            exact_gradient(model, [cut(chosen.numpy())], None, budget)
            optimizer.step()

    return epoch


def ordinary(view: View) -> Callable[[], None]:
    return exact_epoch(np.diff(view.starts), lambda points: padded(view, points, 1))


def private(view: View) -> Callable[[], None]:
    """One pass, in expectation, over the points that hold a private token, in Poisson batches."""
    model = model_of(CASE)
    sampler = Stream(0, "private batches")
    noise = Stream(0, "noise")
    budget = Budget(2 * CASE.batch)
    optimizer = adam(model)
    clipper = PerExampleClipper(model, BOUND)
    pool = np.flatnonzero(view.marked())

    def epoch() -> None:
        for _ in range(len(pool) // CASE.batch):
            points = pool[poisson(len(pool), CASE.batch / len(pool), sampler).numpy()]
            pieces = by_length(view, points, 2 * CASE.batch)
            batches = [selected(view, piece, 1, "private") for piece in pieces]
            noisy_gradient(clipper, batches, SIGMA, CASE.batch, noise, budget)
            optimizer.step()

    return epoch


def selective(view: View) -> Callable[[], None]:
    """Public and private batches drawn independently."""
    public = exact_epoch(public_counts(view), lambda points: selected(view, points, 1, "public"))
    hidden = private(view)

    def epoch() -> None:
        public()
        hidden()

    return epoch


def main() -> None:
    arguments = arguments_of(__file__, __doc__, 5).parse_args()
    views = {share: text(share) for share in SHARES}
    steps = {"ordinary": ordinary(views[SHARES[0]])}
    steps |= {f"selective, {share:.0%} private": selective(view) for share, view in views.items()}
    found = compared(interleaved(steps, arguments.rounds), "ordinary")
    built = {"ordinary": (ordinary, views[SHARES[0]])}
    built |= {f"selective, {share:.0%} private": (selective, view) for share, view in views.items()}
    for name, (build, view) in built.items():
        found[name]["peak_mib"] = peak_memory(build, view, calls=1)
    for name, row in found.items():
        row["memory_ratio"] = row["peak_mib"] / found["ordinary"]["peak_mib"]
        shown(name, row)
    shares = {
        f"selective, {share:.0%} private": float(view.private.mean())
        for share, view in views.items()
    }
    write_json(
        arguments.output,
        {"hardware": machine("torch"), "cases": {"lstm": found}, "measured_share": shares},
    )


if __name__ == "__main__":
    main()
