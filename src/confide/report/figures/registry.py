"""Figures by name: each is a function from a study's specification and results to a figure."""

from collections.abc import Callable

from matplotlib.figure import Figure

from confide.report.figures.amplification import amplification
from confide.report.figures.author_exposure import author_exposure
from confide.report.figures.author_inference import author_inference
from confide.report.figures.domain_epsilon import domain_epsilon
from confide.report.figures.domain_roc import domain_roc
from confide.report.figures.frontier import frontier
from confide.report.figures.leak import leak
from confide.report.figures.leakage import exposure, group_membership, membership
from confide.report.figures.learning import learning
from confide.report.figures.pareto import pareto
from confide.report.figures.private_ppl import private_ppl
from confide.report.figures.roc import roc
from confide.report.figures.schedules import schedules
from confide.report.figures.subgroups import subgroups
from confide.report.figures.tab import tab
from confide.report.figures.tradeoff import tradeoff
from confide.report.figures.train_time import train_time
from confide.report.figures.trajectory import trajectory
from confide.report.figures.utility import utility
from confide.report.results import Result
from confide.specs import ReportSpec

FIGURES: dict[str, Callable[[ReportSpec, list[Result]], Figure]] = {
    figure.__name__: figure
    for figure in (
        tradeoff,
        utility,
        exposure,
        membership,
        group_membership,
        amplification,
        frontier,
        pareto,
        roc,
        learning,
        trajectory,
        private_ppl,
        leak,
        domain_epsilon,
        domain_roc,
        schedules,
        author_exposure,
        tab,
        subgroups,
        train_time,
        author_inference,
    )
}
