"""Attacks: each is a function from its spec and a target to metrics. Adding one is one file and one line."""

from collections.abc import Callable
from typing import Any

from confide.attacks.domain_lira import domain_lira
from confide.attacks.exposure import exposure
from confide.attacks.game import game
from confide.attacks.leak import leak
from confide.attacks.lira import lira
from confide.attacks.membership import membership
from confide.attacks.target import Target

ATTACKS: dict[str, Callable[[Any, Target], dict[str, Any]]] = {
    "domain_lira": domain_lira,
    "exposure": exposure,
    "game": game,
    "leak": leak,
    "lira": lira,
    "membership": membership,
}
