"""Learning curves (Selective-DP Figure 7 and its notebook): validation perplexity per epoch, all,
public and private tokens.

Never one share of the tokens without the others: what is protected is learned late or not at all,
and few tokens are private.
"""

from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from confide.report.figures.series import Series, averaged, chosen_gamma, corpora, group
from confide.report.figures.style import figure, legend, plain_log, say, title
from confide.report.results import Result
from confide.specs import ReportSpec

PANELS = {  # field of an epoch -> what it is over
    "valid_ppl": "all tokens",
    "valid_ppl_public": "public tokens",
    "valid_ppl_private": "private tokens (gold secrets)",
}


class Curve(NamedTuple):
    """A quality after each epoch, over the seeds."""

    epochs: list[int]
    mean: list[float]
    low: list[float]
    high: list[float]


def learning(spec: ReportSpec, results: list[Result]) -> Figure:
    """One row per corpus, a panel per share of the tokens, a curve per row of the sample sheet."""
    names = corpora(results)
    gamma = chosen_gamma(spec.gamma, results)
    drawn = figure(12.4, 1.6 + 3.3 * len(names))
    grid = drawn.subplots(len(names), len(PANELS), squeeze=False)
    for line, name in zip(grid, names, strict=True):
        for axes, (field, words) in zip(line, PANELS.items(), strict=True):
            _panel(axes, group(results, name), gamma, field)
            axes.set_title(f"{name}: {words}", loc="left")
            axes.set_xlabel("epoch")
        line[0].set_ylabel("validation perplexity (log scale)")
    seeds = len({result.run.seed for result in results})
    caption = (
        "Perplexity of held-out original text, nothing masked, after each epoch; lower is better, and scales differ. "
        f"Methods that depend on the screening policy: simulated miss rate γ = {gamma:g}, or the nearest that was run. "
        f"{averaged(seeds, 'Lines: mean over {} seeds; shaded: their range.')} An epoch is one pass "
        "over what a method trains on, so that methods spend different numbers of updates on it. Low perplexity on private "
        "tokens can mean memorised secrets as well as learned formats; read it beside the attacks."
    )
    title(drawn, f"Learning curves — {spec.title}", caption)
    legend(drawn, [series.handle() for series in group(results)])
    return drawn


def curve(series: Series, gamma: float, field: str) -> Curve:
    """Mean and range over seeds of a field of the epochs that any seed has; epochs without a number
    are left out.
    """
    found: dict[int, list[float]] = {}
    for result in series.at(gamma):
        for epoch in result.epochs:
            if (value := getattr(epoch, field)) is not None:
                found.setdefault(epoch.epoch, []).append(value)
    epochs = sorted(found)
    each = [found[epoch] for epoch in epochs]
    return Curve(
        epochs, [sum(v) / len(v) for v in each], [min(v) for v in each], [max(v) for v in each]
    )


def _panel(axes: Axes, drawn: list[Series], gamma: float, field: str) -> None:
    """Curves with a marker at about every sixth epoch, at other epochs for each series."""
    for number, series in enumerate(drawn):
        own = curve(series, gamma, field)
        if not own.epochs:
            continue
        every = max(1, len(own.epochs) // 6)
        axes.fill_between(
            own.epochs, own.low, own.high, color=series.look.color, alpha=0.18, linewidth=0
        )
        axes.plot(
            own.epochs, own.mean, **series.marks(markersize=5, markevery=(number % every, every))
        )
    if not axes.lines:
        say(axes, "no such tokens")
        return
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    plain_log(axes, "y")
