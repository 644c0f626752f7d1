"""Privacy regularisers (Mireshghallah et al. 2021): the state after a text shall not tell who wrote
it.

Each makes the Rows that an update reads, leaves the gradient of a batch in .grad, and has a state
of its own that is part of the checkpoint. Texts without an author take no part in it.

Guarantees: none (epsilon = infinity).
"""

import numpy as np

from confide.dp.mechanism.sampling import generator
from confide.errors import InputError
from confide.methods.adversarial import AdversarialOptions
from confide.methods.regularised import RegularisedOptions
from confide.methods.triplet import TripletOptions
from confide.output.escaping import warn
from confide.specs import TrainSpec
from confide.train.regularisers.adversarial import Adversarial
from confide.train.regularisers.pairs import AuthorPairs
from confide.train.regularisers.triplet import Triplet
from confide.types import Partition, RegulariserName

Regulariser = Adversarial | Triplet


def author_classes(partition: Partition) -> np.ndarray:
    """(N,) int64 class of each training point's author among those of the training points, -1 for
    all others.
    """
    pool = partition.pool("all")
    classes = np.full(len(partition.owner), -1, dtype=np.int64)
    owned = pool[partition.owner[pool] >= 0]
    classes[owned] = np.unique(partition.owner[owned], return_inverse=True)[1]
    return classes


def regulariser_of(
    kinds: set[RegulariserName], spec: TrainSpec, partition: Partition, width: int, device: str
) -> Regulariser | None:
    """What the steps of a job need, None if nothing; InputError where the recipe or the corpus does
    not suffice.

    width: of the encoder's states.
    """
    needed = [kind for kind in kinds if kind != "none"]
    if not needed:
        return None
    (kind,) = needed
    weight = RegularisedOptions.of(spec.recipe).regulariser_weight
    if weight is None:
        raise InputError(f"is missing: {spec.method} needs one", key="recipe.regulariser_weight")
    authors = author_classes(partition)
    sizes = np.bincount(authors[authors >= 0])
    if len(sizes) < 2:
        reason = (
            "the corpus names no author"
            if len(sizes) == 0
            else "the training points have one author"
        )
        raise InputError(
            f"needs texts of at least two authors, and {reason}", key="method", value=spec.method
        )
    source = generator(spec.seed, kind)
    if kind == "adversarial":
        options = AdversarialOptions.of(spec.recipe)
        return Adversarial(
            authors,
            width=width,
            hidden=options.discriminator_hidden,
            lr=options.discriminator_lr,
            source=source,
            device=device,
        )
    same_author = TripletOptions.of(spec.recipe).same_author
    single = int((sizes == 1).sum())
    if single and same_author > 0:
        said = f"{single} of {len(sizes)} authors have one training point"
        if single == len(sizes):
            raise InputError(
                f"needs two points of an author: {said}",
                key="recipe.same_author",
                value=same_author,
            )
        warn(f"{said}, which is compared with other authors' alone")
    pairs = AuthorPairs(partition.original, authors, same_author, source)
    return Triplet(pairs, weight, bounded=spec.model.kind == "lstm")
