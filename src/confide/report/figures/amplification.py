"""Amplification of Bayesian confidentiality by redaction (CRT Figure 6): epsilon against gamma.

The training budget is fixed. A secret drawn from the prior is missed by the policy with probability
gamma; only then does the epsilon' of DP-SGD matter: epsilon = log(1 + gamma (exp(epsilon') - 1)) at
delta = gamma delta'. Beside the published curves stand the honest ones: gamma is only known up to
its Clopper-Pearson bound, and confidentiality replaces a record instead of adding one.
"""

from collections.abc import Callable
from functools import cache, lru_cache
from itertools import cycle, product
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from scipy.optimize import brentq

from confide.certify.confidentiality import bayesian_at
from confide.dp.accounting.bounds import clopper_pearson
from confide.dp.accounting.curves import Mechanism, pld_curve, rdp_curve
from confide.dp.accounting.price import Bound, solve
from confide.report.figures import style
from confide.report.figures.frame import Drawn, Shown, figure
from confide.report.figures.style import FAINT, INK
from confide.report.results import plain
from confide.specs import AmplificationSpec

GRID = np.unique(
    np.concatenate([[0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03], np.linspace(0.05, 1, 20)])
)
COLORS = ("#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")
LINES = ("-", (0, (5, 2)), (0, (1, 1)), (0, (6, 1.5, 1, 1.5)), (0, (3, 1)), (0, (8, 2)))
STAR: dict[str, Any] = {"color": INK, "marker": "*"}
PUBLISHED = {"epsilon_prime": 1.0, "gamma": 0.1, "epsilon": 0.12}  # CRT section 5.4


class Budget(NamedTuple):
    """The noise at which add_or_remove gives epsilon' at delta, as the paper prices it."""

    sigma: float
    add_or_remove: Bound
    replace_one: Bound


def budget(spec: AmplificationSpec, epsilon_prime: float) -> Budget:
    """Calibrate as the authors do (Renyi, add-or-remove); price replacement at that noise (PLD)."""

    def bound(sigma: float) -> Bound:
        return Bound(rdp_curve((Mechanism(spec.sample_rate, sigma, spec.steps),)))

    sigma = brentq(
        lambda sigma: solve(bound(sigma), spec.delta) - epsilon_prime, 0.3, 200, rtol=1e-5
    )
    replaced = Bound(pld_curve((Mechanism(spec.sample_rate, sigma, spec.steps),), "replace_one"))
    return Budget(sigma, add_or_remove=bound(sigma), replace_one=replaced)


@lru_cache(maxsize=1)
def rows(spec: AmplificationSpec) -> list[dict[str, float]]:
    """All curves as numbers, one row per epsilon_prime and gamma.

    Names end in how gamma and delta were treated. Bare: gamma as it is; upper: its bound from the
    labelled sample; scaled: epsilon' at delta / gamma.
    """
    table = []
    for epsilon_prime in spec.epsilons:
        cost = budget(spec, epsilon_prime)
        readers = {
            "epsilon": _reader(cost.add_or_remove),
            "replace_one_epsilon": _reader(cost.replace_one),
        }
        for gamma in GRID.tolist():
            upper = clopper_pearson(round(gamma * spec.labelled), spec.labelled, spec.confidence)
            row = {
                "epsilon_prime": epsilon_prime,
                "gamma": gamma,
                "gamma_upper": upper,
                "noise_multiplier": cost.sigma,
            }
            for name, (suffix, rate) in product(readers, (("", gamma), ("_upper", upper))):
                for end, divide in (("", False), ("_scaled", True)):
                    epsilon = bayesian_at(readers[name], spec.delta, rate, divide=divide)
                    row[f"{name}{suffix}{end}"] = epsilon
            table.append(row)
    return table


def _reader(bound: Bound) -> Callable[[float], float]:
    return cache(lambda delta: solve(bound, delta, relative=1e-5))


@figure("Amplification by redaction")
def amplification(shown: Shown) -> Drawn:
    """Three panels: as published; with gamma bounded by a labelled sample; so for replace-one."""
    spec = shown.spec.amplification
    table = rows(spec)
    drawn, (line,) = style.panels(style.WIDTH, 3.2, 1, 3, sharey=True)
    panels = {
        "epsilon": "as published: add-or-remove, γ known",
        "epsilon_upper": f"γ bounded from {spec.labelled} labelled secrets",
        "replace_one_epsilon_upper": "replace-one, γ bounded",
    }
    for axes, (column, title) in zip(line, panels.items(), strict=True):
        _panel(axes, spec, table, column)
        axes.set_title(title)
    line[0].set_ylabel(f"Bayesian confidentiality ε  (δ = {plain(spec.delta)})")
    line[0].set_ylim(0, None)
    if PUBLISHED["epsilon_prime"] in spec.epsilons:
        edge: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.8}
        star = PUBLISHED["gamma"], PUBLISHED["epsilon"]
        line[0].plot(*star, markersize=10, zorder=5, **STAR | edge)
    bound = f"one-sided {100 * spec.confidence:g} % Clopper-Pearson bound"
    caption = (
        "ε = log(1 + γ(exp ε' - 1)): the budget ε' of DP-SGD matters only with probability γ. "
        "Thick: ε' at δ; thin, lower: ε' at δ/γ, so that γδ' = δ (the authors' code). Middle: γ "
        f"replaced by its {bound} when that share of {spec.labelled} hand-labelled secrets was "
        "missed. Right: the same noise priced for replacing a record, which is what "
        f"confidentiality asks (PLD; Poisson batches, q = {spec.sample_rate:g}, {spec.steps} "
        "updates). All assume that a conservative policy misses nothing (δ2 = 0)."
    )
    legend = [
        style.entry(f"ε' = {epsilon_prime:g}", linewidth=2, **look)
        for epsilon_prime, look in _lines(spec).items()
    ]
    label = "CRT section 5.4:\nε' = 1, γ = 0.1 → 0.12"
    paper = style.entry(label, markersize=11, linestyle="", **STAR)
    return drawn, caption, [*legend, paper]


def _lines(spec: AmplificationSpec) -> dict[float, dict[str, Any]]:
    """Line2D properties by epsilon'."""
    looks = zip(spec.epsilons, cycle(COLORS), cycle(LINES), strict=False)
    return {epsilon: {"color": color, "linestyle": line} for epsilon, color, line in looks}


def _panel(axes: Axes, spec: AmplificationSpec, table: list[dict[str, float]], column: str) -> None:
    for epsilon_prime, line in _lines(spec).items():
        points = [row for row in table if row["epsilon_prime"] == epsilon_prime]
        gamma = [row["gamma"] for row in points]
        for name, width in ((column, 2), (f"{column}_scaled", 0.9)):
            axes.plot(gamma, [row[name] for row in points], linewidth=width, **line)
    axes.plot([0, 1], [0, 0], color=FAINT, linewidth=0.8)
    axes.set_xlabel("γ, share of secrets that the policy misses")
    axes.set_xlim(0, 1)
