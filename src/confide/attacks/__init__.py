"""Attacks: each is a function from its spec and a target to metrics. Adding one is one file and one line."""

from collections.abc import Callable
from typing import Any

from confide.attacks.author_inference import author_inference
from confide.attacks.domain_lira import domain_lira
from confide.attacks.exposure import exposure
from confide.attacks.game import game
from confide.attacks.gradients import gradients
from confide.attacks.leak import leak
from confide.attacks.lira import lira
from confide.attacks.membership import membership
from confide.attacks.sequence_exposure import sequence_exposure
from confide.attacks.tab import tab
from confide.attacks.target import Target

ATTACKS: dict[str, Callable[[Any, Target], dict[str, Any]]] = {
    "author_inference": author_inference,
    "domain_lira": domain_lira,
    "exposure": exposure,
    "game": game,
    "gradients": gradients,
    "leak": leak,
    "lira": lira,
    "membership": membership,
    "sequence_exposure": sequence_exposure,
    "tab": tab,
}
