"""Methods: each is a stream of Steps, one list per epoch, from public numbers alone.

Adding one is one file, which also declares the method's options, and one line here.
"""

import inspect
import types
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from confide.methods.adversarial import AdversarialOptions, adversarial
from confide.methods.atdp import ATDPOptions, atdp
from confide.methods.behind_cover import behind_cover
from confide.methods.crt import crt
from confide.methods.dpsgd import dpsgd
from confide.methods.jft import jft
from confide.methods.nonprivate import nonprivate
from confide.methods.plan import Options, Plan
from confide.methods.redacted import redacted
from confide.methods.sa_adp import sa_adp
from confide.methods.schedule import ScheduleOptions, schedule
from confide.methods.selective import SelectiveOptions, selective
from confide.methods.triplet import TripletOptions, triplet
from confide.methods.untouched import untouched
from confide.spec_base import Spec
from confide.types import POOLS, Step

Recipe = TypeVar("Recipe", bound=Spec)


@dataclass(frozen=True, slots=True)
class Method:
    """How a model is trained, and what a row of the sample sheet must or may say for it."""

    steps: Callable[[Plan], Iterator[list[Step]]]  # one list per epoch
    options: type[Options] = Options  # its own fields of a recipe
    needs_domains: bool = False  # the row must name the domains that are read
    needs_cover: bool = False  # the policy of the row's dataset must be a cover
    unprotected: bool = False  # nothing masked, nothing noised: what others are held against
    masked: bool = False  # every update reads redacted text

    def __call__(self, plan: Plan) -> Iterator[list[Step]]:
        return self.steps(plan)

    def kinds(self, recipe: Spec) -> set[Step]:
        """The kinds of steps that it makes with a recipe's options, whatever the sizes."""
        plan = Plan(
            epochs=10,
            noisy_epochs=10,
            batch_size=1,
            noisy_batch_size=1,
            sizes=dict.fromkeys(POOLS, 100),
            recipe=recipe,
        )
        return {step for steps in self.steps(plan) for step in steps}


UNTOUCHED = "untouched"  # the method that trains nothing

METHODS: dict[str, Method] = {
    "nonprivate": Method(nonprivate, unprotected=True),
    "redacted": Method(redacted, masked=True),
    "dpsgd": Method(dpsgd),
    "crt": Method(crt),
    "selective": Method(selective, SelectiveOptions),
    "jft": Method(jft),
    "schedule": Method(schedule, ScheduleOptions),
    "behind_cover": Method(behind_cover, needs_cover=True),
    # Kabra and Elenberg 2023, section 5.2: nothing of other domains is read
    "domain_only": Method(nonprivate, needs_domains=True),
    "triplet": Method(triplet, TripletOptions),
    "adversarial": Method(adversarial, AdversarialOptions),
    "atdp": Method(atdp, ATDPOptions),
    "sa_adp": Method(sa_adp),
    UNTOUCHED: Method(untouched),
}


def with_options(recipe: type[Recipe]) -> type[Recipe]:
    """The class of a recipe with the options of all METHODS as further fields, in their order.

    TypeError where two of these classes declare a field of one name.
    """
    kinds = {method.options: None for method in METHODS.values()}  # a set that keeps their order
    last = [kind for kind in kinds if not any(kind in other.__mro__[1:] for other in kinds)]
    named = {"__module__": recipe.__module__, "__doc__": recipe.__doc__}
    bases = (*reversed(last), recipe)
    combined = types.new_class(recipe.__name__, bases, exec_body=lambda body: body.update(named))
    parents = [cls for cls in combined.__mro__[1:] if issubclass(cls, Spec)]
    declared = Counter(name for cls in parents for name in inspect.get_annotations(cls))
    if twice := [name for name, count in declared.items() if count > 1]:
        raise TypeError(f"declared twice in a recipe: {', '.join(twice)}")
    return combined
