"""Behind a cover: first exact updates on text in which whatever may be secret is covered, then
noised ones on the text itself (docs/cover.md).

The order of updates is that of JFT. What makes it another method is the policy: a cover hides what
*may* be secret, so that the share of secrets that exact updates see is small and is measured, and
what it hides no secret decides. It is at its best with made-up values in place of masks (`fill` of
the dataset), since a model of masks unlearns what values look like, and with deduplication.

Guarantees: for a secret that the cover hides whole the noisy updates alone; epsilon = infinity for
one that it does not.
"""

from collections.abc import Iterator

from confide.methods.jft import jft
from confide.methods.plan import Plan
from confide.types import Step


def behind_cover(plan: Plan) -> Iterator[list[Step]]:
    """`epochs` of ordinary training on the covered text, then `noisy_epochs` of DP-SGD on the
    original text.
    """
    yield from jft(plan)
