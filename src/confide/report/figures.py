"""Figures by name: each is a function from the study's specification and results to a matplotlib figure."""

from collections.abc import Callable

from matplotlib.figure import Figure

from confide.report.amplification import amplification
from confide.report.author_exposure import author_exposure
from confide.report.author_inference import author_inference
from confide.report.domain_epsilon import domain_epsilon
from confide.report.domain_roc import domain_roc
from confide.report.frontier import frontier
from confide.report.leak import leak
from confide.report.leakage import exposure, group_membership, membership
from confide.report.learning import learning
from confide.report.pareto import pareto
from confide.report.private_ppl import private_ppl
from confide.report.results import Result
from confide.report.roc import roc
from confide.report.schedules import schedules
from confide.report.subgroups import subgroups
from confide.report.tab import tab
from confide.report.tradeoff import tradeoff
from confide.report.train_time import train_time
from confide.report.trajectory import trajectory
from confide.report.utility import utility
from confide.specs import ReportSpec

FIGURES: dict[str, Callable[[ReportSpec, list[Result]], Figure]] = {
    "tradeoff": tradeoff,
    "utility": utility,
    "exposure": exposure,
    "membership": membership,
    "group_membership": group_membership,
    "amplification": amplification,
    "frontier": frontier,
    "pareto": pareto,
    "roc": roc,
    "learning": learning,
    "trajectory": trajectory,
    "private_ppl": private_ppl,
    "leak": leak,
    "domain_epsilon": domain_epsilon,
    "domain_roc": domain_roc,
    "schedules": schedules,
    "author_exposure": author_exposure,
    "tab": tab,
    "subgroups": subgroups,
    "train_time": train_time,
    "author_inference": author_inference,
}
