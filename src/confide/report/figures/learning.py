"""Learning curves (Selective-DP Figure 7 and its notebook): validation perplexity per epoch.

All, public and private tokens, never one share of the tokens without the others: what is protected
is learned late or not at all, and few tokens are private.
"""

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from confide.report.figures import style
from confide.report.figures.frame import Drawn, Shown, figure
from confide.report.figures.series import Series
from confide.report.results import Result
from confide.report.seeds import mean_of

PANELS = {  # field of an epoch -> what it is over
    "valid_ppl": "all tokens",
    "valid_ppl_public": "public tokens",
    "valid_ppl_private": "private tokens (gold secrets)",
}


LINES = "Lines: mean over {} seeds; shaded: from the least to the largest."


@figure("Learning curves")
def learning(shown: Shown) -> Drawn:
    """One row per corpus, a panel per share of the tokens, a curve per row of the sample sheet."""
    rows = shown.series
    drawn, grid = style.panels(style.WIDTH, 0.2 + 2.9 * len(rows), len(rows), len(PANELS))
    for line, (name, row) in zip(grid, rows.items(), strict=True):
        for axes, (field, title) in zip(line, PANELS.items(), strict=True):
            _panel(axes, row, shown.gamma, field)
            axes.set_title(f"{name}: {title}")
            axes.set_xlabel("epoch")
        line[0].set_ylabel("validation perplexity (log scale)")
    caption = (
        "Perplexity of held-out original text, nothing masked, after each epoch; lower is better, "
        "and scales differ. Methods that depend on the screening policy: simulated miss rate "
        f"γ = {shown.gamma:g}, or the nearest that was run. "
        f"{shown.averaged(LINES)} An epoch is one "
        "pass over what a method trains on, so that methods spend different numbers of updates on "
        "it. Low perplexity on private tokens can mean memorised secrets as well as learned "
        "formats; read it beside the attacks."
    )
    return drawn, caption, shown.handles()


def curve(runs: list[Result], field: str) -> dict[int, list[float]]:
    """The seeds' numbers of a field by epoch; epochs without a number are left out."""
    by_epoch: dict[int, list[float]] = {}
    for result in runs:
        for epoch in result.epochs:
            if (value := getattr(epoch, field)) is not None:
                by_epoch.setdefault(epoch.epoch, []).append(value)
    return dict(sorted(by_epoch.items()))


def _panel(axes: Axes, drawn: list[Series], gamma: float, field: str) -> None:
    """Curves with a marker at about every sixth epoch, at other epochs for each series."""
    for number, series in enumerate(drawn):
        points = curve(series.at(gamma), field)
        if not points:
            continue
        epochs = list(points)
        every = max(1, len(epochs) // 6)
        marks = series.marks(markersize=5, markevery=(number % every, every))
        low, high = (list(map(end, points.values())) for end in (min, max))
        axes.fill_between(epochs, low, high, color=series.look.color, alpha=0.18, linewidth=0)
        axes.plot(epochs, list(map(mean_of, points.values())), **marks)
    if not axes.lines:
        style.say(axes, "no such tokens")
        return
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    style.plain_log(axes, "y")
