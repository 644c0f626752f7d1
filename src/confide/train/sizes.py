"""Sizes of what a training job draws from.

Torch is loaded where authors are protected or states handed on, and nowhere else: whoever asks what
a method would certify needs none.
"""

from confide.methods.selective import SelectiveOptions
from confide.specs import TrainSpec
from confide.train.planning import Sizes
from confide.train.pools import pool_sizes
from confide.types import Partition


def sizes_of(spec: TrainSpec, partition: Partition) -> Sizes:
    """Sizes as a job's plan and its ledger have them."""
    authors = None
    states = 0
    if spec.privacy is not None and spec.privacy.unit == "author":
        from confide.dp.mechanism.authors import authors_of

        authors = {name: len(points) for name, points in authors_of(partition).items()}
    if SelectiveOptions.of(spec.recipe).private_state == "noise":
        from confide.train.handed_on import state_releases

        states = state_releases(spec, partition)
    return Sizes(pools=pool_sizes(partition), authors=authors, states=states)
