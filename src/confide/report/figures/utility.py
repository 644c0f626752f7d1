"""Test perplexity of every method: overall, on public and on private tokens, never one without the
others.
"""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from confide.report.figures.series import Series, averaged, chosen_gamma, corpora, group
from confide.report.figures.style import INK, figure, plain_log, say, title
from confide.report.results import Result
from confide.specs import ReportSpec

PANELS = (
    ("ppl", "all tokens"),
    ("ppl_public", "public tokens"),
    ("ppl_private", "private tokens (gold secrets)"),
)


def utility(spec: ReportSpec, results: list[Result]) -> Figure:
    """One dot per method and panel, whiskers over seeds; one row of panels per corpus."""
    names = corpora(results)
    gamma = chosen_gamma(spec.gamma, results)
    rows = [group(results, name) for name in names]
    heights = [max(len(row), 2) for row in rows]
    drawn = figure(10.6, 1.7 + 0.42 * sum(heights) + 0.5 * len(rows))
    grid = drawn.subplots(len(names), 3, squeeze=False, gridspec_kw={"height_ratios": heights})
    for line, name, series in zip(grid, names, rows, strict=True):
        for axes, (key, words) in zip(line, PANELS, strict=True):
            _panel(axes, series, gamma, key)
            axes.set_title(f"{name}: {words}" if axes is line[0] else words, loc="left")
            axes.tick_params(axis="y", length=0, labelleft=axes is line[0])
            axes.set_xlabel("test perplexity (log scale)")
    seeds = len({result.run.seed for result in results})
    caption = (
        "Held-out original text, nothing masked; lower is better. "
        f"Methods that depend on the screening policy at simulated miss rate γ = {gamma:g} "
        f"(or the nearest that was run, then named). {averaged(seeds, 'Mean and range over {} seeds.')} "
        "Low perplexity on private tokens can mean memorised secrets as well as learned formats; read it beside the attacks."
    )
    title(drawn, f"Utility — {spec.title}", caption)
    return drawn


def _panel(axes: Axes, drawn: list[Series], gamma: float, key: str) -> None:
    rows = range(len(drawn), 0, -1)
    found = [
        [value for result in series.at(gamma) if (value := result.evaluation[key]) is not None]
        for series in drawn
    ]
    if not any(found):
        say(axes, "no such tokens")
        return
    for row, series, values in zip(rows, drawn, found, strict=True):
        if not values:
            axes.text(
                0.02,
                row,
                "no such tokens",
                transform=axes.get_yaxis_transform(),
                fontsize=7.5,
                va="center",
            )
            continue
        mean = sum(values) / len(values)
        axes.plot([min(values), max(values)], [row, row], color=series.look.color, linewidth=1.3)
        axes.plot([mean], [row], **series.marks(linestyle="", markersize=7))
        words = f"{mean:,.3g}" if mean < 1000 else f"{mean:,.0f}"
        axes.annotate(
            words, (mean, row), (7, 3.5), textcoords="offset points", fontsize=7.8, color=INK
        )
    axes.set_ylim(0.4, len(drawn) + 0.6)
    axes.set_yticks(list(rows), [_named(series, gamma) for series in drawn])
    axes.margins(x=0.25)
    plain_log(axes, "x")
    axes.grid(axis="y", color="#f3f3f3")


def _named(series: Series, gamma: float) -> str:
    own = series.at(gamma)[0].run.gamma
    return series.label if own == gamma or series.flat() else f"{series.label}, γ = {own:g}"
