"""All attacks by kind: each is a function from its specification and a target to metrics.

To add one takes one file, and one line here.
"""

from collections.abc import Callable
from typing import Any

from confide.attacks.audits.game import game
from confide.attacks.audits.gradients import gradients
from confide.attacks.authorship.author_inference import author_inference
from confide.attacks.domains.domain_lira import domain_lira
from confide.attacks.domains.leak import leak
from confide.attacks.exposure.context_exposure import context_exposure
from confide.attacks.exposure.exposure import exposure
from confide.attacks.exposure.extraction import extraction
from confide.attacks.exposure.sequence_exposure import sequence_exposure
from confide.attacks.exposure.tab import tab
from confide.attacks.membership.lira import lira
from confide.attacks.membership.membership import membership
from confide.attacks.target import Target

ATTACKS: dict[str, Callable[[Any, Target], dict[str, Any]]] = {
    "author_inference": author_inference,
    "context_exposure": context_exposure,
    "domain_lira": domain_lira,
    "exposure": exposure,
    "extraction": extraction,
    "game": game,
    "gradients": gradients,
    "leak": leak,
    "lira": lira,
    "membership": membership,
    "sequence_exposure": sequence_exposure,
    "tab": tab,
}
