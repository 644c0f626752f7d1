"""Methods: each is a stream of Steps, one list per epoch, from public numbers alone. Adding one is
one file and one line.
"""

from collections.abc import Callable, Iterator

from confide.methods.adversarial import adversarial
from confide.methods.crt import crt
from confide.methods.domain_only import domain_only
from confide.methods.dpsgd import dpsgd
from confide.methods.jft import jft
from confide.methods.nonprivate import nonprivate
from confide.methods.plan import Plan
from confide.methods.redacted import redacted
from confide.methods.schedule import schedule
from confide.methods.selective import selective
from confide.methods.triplet import triplet
from confide.types import Step

METHODS: dict[str, Callable[[Plan], Iterator[list[Step]]]] = {
    "nonprivate": nonprivate,
    "redacted": redacted,
    "dpsgd": dpsgd,
    "crt": crt,
    "selective": selective,
    "jft": jft,
    "schedule": schedule,
    "domain_only": domain_only,
    "adversarial": adversarial,
    "triplet": triplet,
}
