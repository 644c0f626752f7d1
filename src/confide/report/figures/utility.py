"""Test perplexity of every method: overall, on public and on private tokens, all side by side."""

from matplotlib.axes import Axes

from confide.report.figures import style
from confide.report.figures.frame import Drawn, Shown, figure
from confide.report.figures.series import Series, mark, name_rows, over_runs, row_heights

PANELS = {  # field of an evaluation -> what it is over
    "ppl": "all tokens",
    "ppl_public": "public tokens",
    "ppl_private": "private tokens",
}


@figure("Utility")
def utility(shown: Shown) -> Drawn:
    """One dot per method and panel, whiskers over seeds; one row of panels per corpus."""
    rows = shown.series
    heights = row_heights(rows.values())
    height = 0.38 * sum(heights) + 0.9 * len(rows)
    drawn, grid = style.panels(style.WIDTH, height, len(rows), len(PANELS), height_ratios=heights)
    for line, (name, row) in zip(grid, rows.items(), strict=True):
        for axes, (field, title) in zip(line, PANELS.items(), strict=True):
            first = axes is line[0]
            _panel(axes, row, shown.gamma, field)
            axes.set_title(f"{name}: {title}" if first else title)
            axes.tick_params(axis="y", length=0, labelleft=first)
        line[1].set_xlabel("test perplexity (log scale)")
    caption = (
        "Held-out original text, nothing masked; lower is better. Private tokens: gold secrets. "
        "Methods that depend on the "
        f"screening policy at simulated miss rate γ = {shown.gamma:g} (or the nearest that was "
        f"run, then named). {shown.averaged()} Low perplexity on private tokens can mean memorised "
        "secrets as well as learned formats; read it beside the attacks."
    )
    return drawn, caption, []


def _panel(axes: Axes, row: list[Series], gamma: float, field: str) -> None:
    ppl = [over_runs(series.at(gamma), lambda result: result.evaluation[field]) for series in row]
    if not any(ppl):
        style.say(axes, "no such tokens")
        return
    places = name_rows(axes, [_named(series, gamma) for series in row])
    for place, series, point in zip(places, row, ppl, strict=True):
        if point is None:
            edge = axes.get_yaxis_transform()
            axes.text(0.02, place, "no such tokens", transform=edge, fontsize=7.5, va="center")
            continue
        mark(axes, series, point, place)
        label = f"{point.value:,.3g}" if point.value < 1000 else f"{point.value:,.0f}"
        style.beside(axes, label, point.value, place, (7, 3.5))
    axes.margins(x=0.25)
    style.plain_log(axes, "x")
    axes.grid(axis="y", color="#f3f3f3")


def _named(series: Series, gamma: float) -> str:
    nearest = series.nearest(gamma)
    return series.label if nearest == gamma or series.flat() else f"{series.label}, γ = {nearest:g}"
