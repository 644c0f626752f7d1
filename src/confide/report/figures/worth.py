"""What texts of models are worth against what is certified of their models, and so of them.

The measure is that of a small model which was trained on the texts and is tested on real ones.
"""

from functools import partial
from typing import Any

from confide.report.figures.epsilon_axis import (
    APART,
    HOLLOW,
    Point,
    Row,
    Track,
    any_hollow,
    bayesian_meanings,
    rests_on_no_misses,
    rows_of,
)
from confide.report.figures.frame import Drawn, Shown, figure
from confide.report.figures.series import Series, over_runs
from confide.report.figures.style import DOTTED, INK, entry
from confide.report.results import Meaning, Result

FIELD = "bits_per_character"
COMPARED: dict[str, tuple[str, dict[str, Any]]] = {  # text -> what it is, and its line
    "real": ("the real training text", {"color": INK, "linestyle": DOTTED, "linewidth": 1.2}),
    "redacted": ("the redacted one", {"color": INK, "linestyle": (0, (6, 2)), "linewidth": 1.2}),
    "templates": (
        "a public text with made-up\nvalues, which costs nothing",
        {"color": "#8a8a8a", "linestyle": (0, (1, 1)), "linewidth": 1.6},
    ),
}


def measured(result: Result, text: str = "synthetic") -> float | None:
    """Bits per character of real text, after training on a text."""
    return result.metric("worth", f"{text}_{FIELD}")


def least_missed(results: list[Result]) -> list[Result]:
    """Those of the first dataset whose redacted text has the fewest missed secrets.

    Each dataset and each miss rate has another redacted text.
    """
    first = min(results, key=lambda result: result.run.gamma)
    shared = (first.run.dataset, first.run.gamma)
    return [result for result in results if (result.run.dataset, result.run.gamma) == shared]


@figure(
    "What texts are worth",
    lambda result: measured(result) is not None,
    "no run of this study wrote texts that were measured: `synthesis` of a row asks for them",
)
def worth(shown: Shown) -> Drawn:
    """One row per corpus and meaning of epsilon; panels for 0, finite and infinite."""
    panels = [
        (name, meaning)
        for name, results in shown.corpora.items()
        for meaning in bayesian_meanings(results)
    ]
    compared = {name: _compared(results) for name, results in shown.corpora.items()}
    rows = [
        Row(
            name=name,
            tracks=_tracks(shown.series[name], shown.gamma, meaning),
            epsilon=f"Bayesian confidentiality ε\n{meaning.words}",
            quality="bits per character of real text",
            levels=[(value, COMPARED[text][1]) for text, value in compared[name].items()],
        )
        for name, meaning in panels
    ]
    drawn, _ = rows_of(0.2 + 2.6 * len(rows), rows)
    texts = dict.fromkeys(text for values in compared.values() for text in values)
    legend = [
        *shown.handles(),
        *(entry(label=words, **look) for words, look in map(COMPARED.__getitem__, texts)),
    ]
    caption = (
        "A small LSTM was trained on the texts of each model, with one budget of updates, and "
        "tested on held-out real text; lower is better. What is certified of a model is certified "
        "of its texts. Lines: the same LSTM trained on other texts, the redacted one at the least "
        "simulated miss rate of the study. The numbers themselves read "
        "protected text: no certificate covers this figure. Methods that depend on the policy at "
        f"simulated miss rate γ = {shown.gamma:g}. {HOLLOW * any_hollow(rows)}{shown.averaged()}"
    )
    return drawn, caption, legend


def _compared(results: list[Result]) -> dict[str, float]:
    """What texts of COMPARED are worth that were measured."""
    least = least_missed(results)
    values = {text: over_runs(least, partial(measured, text=text)) for text in COMPARED}
    return {text: value.value for text, value in values.items() if value is not None}


def _tracks(drawn: list[Series], gamma: float, meaning: Meaning) -> list[Track]:
    tracks = []
    for series in drawn:
        runs = series.at(gamma)
        epsilon = over_runs(runs, lambda result: result.bayesian_epsilon)
        value = over_runs(runs, measured)
        if epsilon is None or value is None:
            continue
        if epsilon.value in APART or runs[0].meaning == meaning:
            point = Point(epsilon.value, value)
            tracks.append(Track(series, (point,), hollow=rests_on_no_misses(runs)))
    return tracks
