"""Amplification of Bayesian confidentiality by redaction (CRT Figure 6): epsilon against gamma at a
fixed training budget.

A secret drawn from the prior is missed by the policy with probability gamma; only then does the
epsilon' of DP-SGD matter: epsilon = log(1 + gamma (exp(epsilon') - 1)) at delta = gamma delta'.
Beside the published curves stand the honest ones: gamma is only known up to its Clopper-Pearson
bound, and confidentiality replaces a record instead of adding one.
"""

from collections.abc import Callable
from functools import cache, lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy.optimize import brentq

from confide.certify.confidentiality import bayesian_at
from confide.dp.accounting.bounds import clopper_pearson
from confide.dp.accounting.curves import Mechanism, pld_curve, rdp_curve
from confide.dp.accounting.price import Bound, solve
from confide.report.figures.style import FAINT, INK, figure, legend, title
from confide.report.results import Result, plain
from confide.specs import AmplificationSpec, ReportSpec

GRID = np.unique(
    np.concatenate([[0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03], np.linspace(0.05, 1, 20)])
)
COLORS = ("#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")
LINES = ("-", (0, (5, 2)), (0, (1, 1)), (0, (6, 1.5, 1, 1.5)), (0, (3, 1)), (0, (8, 2)))
PUBLISHED = {"epsilon_prime": 1.0, "gamma": 0.1, "epsilon": 0.12}  # CRT section 5.4


class Budget(NamedTuple):
    """One training budget: at sigma, add_or_remove gives epsilon_prime at delta, as the paper
    prices it.
    """

    epsilon_prime: float
    sigma: float
    add_or_remove: Bound
    replace_one: Bound


def budget(spec: AmplificationSpec, epsilon_prime: float) -> Budget:
    """Calibrate the noise by the authors' accounting (Renyi, add-or-remove), price replacement at
    that noise (PLD).
    """

    def bound(sigma: float) -> Bound:
        return Bound(rdp_curve((Mechanism(spec.sample_rate, sigma, spec.steps),)))

    sigma = brentq(
        lambda sigma: solve(bound(sigma), spec.delta) - epsilon_prime, 0.3, 200, rtol=1e-5
    )
    replaced = Bound(pld_curve((Mechanism(spec.sample_rate, sigma, spec.steps),), "replace_one"))
    return Budget(epsilon_prime, sigma, bound(sigma), replaced)


@lru_cache(maxsize=1)
def rows(spec: AmplificationSpec) -> list[dict[str, float]]:
    """All curves as numbers, one row per epsilon_prime and gamma; names end in how gamma and delta
    were treated.

    Bare: gamma as it is; upper: its bound from the labelled sample; scaled: epsilon' at delta /
    gamma.
    """
    found = []
    for epsilon_prime in spec.epsilons:
        own = budget(spec, epsilon_prime)
        read = {
            "epsilon": _reader(own.add_or_remove),
            "replace_one_epsilon": _reader(own.replace_one),
        }
        for gamma in GRID.tolist():
            upper = clopper_pearson(round(gamma * spec.labelled), spec.labelled, spec.confidence)
            row = {
                "epsilon_prime": epsilon_prime,
                "gamma": gamma,
                "gamma_upper": upper,
                "noise_multiplier": own.sigma,
            }
            for name, (suffix, rate) in product(read, (("", gamma), ("_upper", upper))):
                row[f"{name}{suffix}"] = bayesian_at(read[name], spec.delta, rate, divide=False)
                row[f"{name}{suffix}_scaled"] = bayesian_at(
                    read[name], spec.delta, rate, divide=True
                )
            found.append(row)
    return found


def _reader(bound: Bound) -> Callable[[float], float]:
    return cache(lambda delta: solve(bound, delta, relative=1e-5))


def amplification(spec: ReportSpec, results: list[Result]) -> Figure:
    """Three panels: as published; with the bound on gamma that a labelled sample gives; replace-one
    with that bound.
    """
    own = spec.amplification
    table = rows(own)
    drawn = figure(10.6, 4.7)
    line = drawn.subplots(1, 3, sharey=True)
    kinds = (("", "", "as published: add-or-remove, γ known"),
             ("", "_upper", f"γ bounded from {own.labelled} labelled secrets"),
             ("replace_one_", "_upper", "replace-one, γ bounded"))  # fmt: skip
    for axes, (relation, bound, words) in zip(line, kinds, strict=True):
        _panel(axes, own, table, f"{relation}epsilon{bound}")
        axes.set_title(words, loc="left")
    line[0].set_ylabel(f"Bayesian confidentiality ε  (δ = {plain(own.delta)})")
    line[0].set_ylim(0, None)
    if PUBLISHED["epsilon_prime"] in own.epsilons:
        _published(line[0])
    bound = f"one-sided {100 * own.confidence:g} % Clopper-Pearson bound"
    caption = (
        "ε = log(1 + γ(exp ε' - 1)): the budget ε' of DP-SGD matters only with probability γ. Thick: ε' at δ; thin, lower: ε' "
        f"at δ/γ, so that γδ' = δ (the authors' code). Middle: γ replaced by its {bound} when that share of {own.labelled} "
        "hand-labelled secrets was missed. Right: the same noise priced for replacing a record, which is what confidentiality "
        f"asks (PLD; Poisson batches, q = {own.sample_rate:g}, {own.steps} updates). All assume that a conservative policy "
        "misses nothing (δ2 = 0)."
    )
    title(drawn, f"Amplification by redaction — {spec.title}", caption)
    handles = [
        Line2D([], [], color=c, linestyle=s, linewidth=2, label=f"ε' = {e:g}")
        for e, c, s in _styles(own)
    ]
    paper = Line2D(
        [],
        [],
        color=INK,
        marker="*",
        markersize=11,
        linestyle="",
        label="CRT section 5.4:\nε' = 1, γ = 0.1 → 0.12",
    )
    legend(drawn, [*handles, paper])
    return drawn


def _styles(spec: AmplificationSpec) -> list[tuple[float, str, Any]]:
    return [
        (e, COLORS[n % len(COLORS)], LINES[n % len(LINES)]) for n, e in enumerate(spec.epsilons)
    ]


def _panel(axes: Axes, spec: AmplificationSpec, table: list[dict[str, float]], column: str) -> None:
    for epsilon_prime, color, line in _styles(spec):
        own = [row for row in table if row["epsilon_prime"] == epsilon_prime]
        gamma = [row["gamma"] for row in own]
        axes.plot(gamma, [row[column] for row in own], color=color, linestyle=line, linewidth=2)
        axes.plot(
            gamma,
            [row[f"{column}_scaled"] for row in own],
            color=color,
            linestyle=line,
            linewidth=0.9,
        )
    axes.plot([0, 1], [0, 0], color=FAINT, linewidth=0.8)
    axes.set_xlabel("γ, share of secrets that the policy misses")
    axes.set_xlim(0, 1)


def _published(axes: Axes) -> None:
    point = PUBLISHED["gamma"], PUBLISHED["epsilon"]
    axes.plot(
        *point,
        color=INK,
        marker="*",
        markersize=10,
        markeredgecolor="white",
        markeredgewidth=0.8,
        zorder=5,
    )
