"""What a training job will do, from public numbers alone: its steps, their noise, and the releases
of its ledger.

Training carries the plan out, `recommend` prices it, and `verify` holds a ledger against it. No
torch here.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from confide.dp.accounting.calibration import RELATIVE, SMALLEST, calibrate, paid_for
from confide.dp.accounting.price import as_published, epsilon
from confide.dp.ledger import Ledger, updates_of
from confide.dp.mechanism.discrete import BITS, MOST
from confide.errors import InputError
from confide.methods import METHODS
from confide.methods.plan import Plan
from confide.specs import PrivacySpec, RecipeSpec, TrainSpec
from confide.train.dealing import correlation_of, passes_updates, rate_of
from confide.train.obstacles import (
    AUTHORS_DEDUPLICATED,
    CHUNKS_DEDUPLICATED,
    NOISED_FILLED,
    SOME_DOMAINS,
    must_score_all,
    reads_filled,
    relies_on_policies,
)
from confide.train.pools import check_pools
from confide.types import UNNAMED, AnyRelease, PoolName, Release, StateRelease, Step

Epochs = Sequence[Sequence[Step]]
MOST_UPDATES = 20_000_000  # of a ledger that is checked


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Sizes of what a job draws from. They are public by assumption, and its ledger holds those
    that it needs.
    """

    pools: dict[PoolName, int]  # points of each pool
    authors: dict[PoolName, int] | None = None  # authors of each pool; None: noise hides points
    states: int = (
        0  # recurrent states of one point that a pass over public tokens hands on, noised, at most
    )
    coordinates: int = 0  # trained numbers of the model, where its noise is discrete; else 0
    sequence: str = UNNAMED  # of a ledger's correlated noise

    def of(self, epochs: Epochs) -> "Sizes":
        """Only what these steps draw from: how large another pool is, may depend on a secret, and
        how many points there are, on a person whose noise hides all of them. Nobody needs to know.
        """
        steps = {step for epoch in epochs for step in epoch}
        of_points = {step.pool for step in steps if step.unit == "point"}
        pools = {name: size for name, size in self.pools.items() if name in of_points}
        if self.authors is None:
            return replace(self, pools=pools)
        of_authors = {step.pool for step in steps if step.unit == "author"}
        authors = {name: size for name, size in self.authors.items() if name in of_authors}
        return replace(self, pools=pools, authors=authors)

    def units(self, step: Step) -> int:
        """How many units, points or authors, a noisy step draws its batch from."""
        counts = self.pools if step.unit == "point" else self.authors or {}
        return counts[step.pool]


def enumerate_steps(spec: TrainSpec, sizes: Sizes) -> list[list[Step]]:
    """The whole stream of steps, one list per epoch; InputError for a job that cannot run."""
    if spec.method not in METHODS:
        raise InputError(f"is not one of {', '.join(METHODS)}", key="method", value=spec.method)
    method = METHODS[spec.method]
    if method.needs_domains and spec.domains is None:
        raise InputError(f"are missing: {spec.method} needs some", key="domains")
    if sizes.authors is not None and spec.data.dedup:
        raise InputError(AUTHORS_DEDUPLICATED, key="privacy.unit", value="author")
    if spec.pack is not None and spec.data.dedup:
        raise InputError(CHUNKS_DEDUPLICATED, key="pack", value=spec.pack)
    recipe = spec.recipe
    plan = Plan(
        epochs=recipe.epochs,
        noisy_epochs=recipe.noisy_epochs or recipe.epochs,
        batch_size=recipe.batch_size,
        noisy_batch_size=recipe.noisy_batch_size,
        sizes=sizes.pools,
        authors=sizes.authors,
        recipe=recipe,
        seed=spec.seed,
    )
    epochs = list(method(plan))
    kinds = {step for steps in epochs for step in steps}
    if spec.domains is not None and any(map(relies_on_policies, kinds)):
        raise InputError(SOME_DOMAINS, key="domains", value=", ".join(spec.domains))
    if spec.data.learn != "all" and (why := must_score_all(kinds, spec.pack)) is not None:
        raise InputError(f"cannot be: {why}", key="learn", value=spec.data.learn)
    if reads_filled(kinds, fill=spec.data.fill, redact=spec.redact):
        raise InputError(NOISED_FILLED, key="data.fill", value=True)
    tells_apart = any(step.tells_apart for step in kinds)
    if tells_apart and spec.model.kind != "lstm":
        raise InputError(
            f"is no recurrent model, which {spec.method} needs",
            key="model.kind",
            value=spec.model.kind,
        )
    if tells_apart and sizes.authors is not None:
        message = f"{spec.method} tells the tokens of a point apart: its noise protects points"
        raise InputError(message, key="privacy.unit", value="author")
    if discrete(spec) and any(step.state in ("noise", "published") for step in kinds):
        message = "is for gradients alone, and these settings add noise to recurrent states, too"
        raise InputError(message, key="privacy.noise", value=spec.protection.noise)
    if recipe.shard and (why := undivided(spec, kinds)) is not None:
        raise InputError(f"is not there for {why}", key="recipe.shard", value=True)
    check_refinements(recipe, kinds)
    check_pools(kinds, sizes.units, recipe.noisy_batch_size)
    check_bands(spec, kinds, sizes)
    check_weighing(spec, kinds, sizes)
    check_layers(spec, epochs)
    return epochs


def updates_of_steps(steps: Sequence[Step]) -> dict[bool, int]:
    """How many exact (False) and noisy (True) updates these steps make.

    A step of training as published makes both.
    """
    noisy = sum(step.noisy for step in steps)
    if any(step.state == "published" for step in steps):
        return {True: noisy, False: noisy}
    return {True: noisy, False: len(steps) - noisy}


def undivided(spec: TrainSpec, kinds: Iterable[Step]) -> str | None:
    """For what of a job weights cannot be divided among processes; None if they can.

    All processes must read as many pieces as any of them, which only these reckon with.
    """
    if spec.model.kind != "causal_lm":
        return f"a model of kind {spec.model.kind}, only for causal_lm"
    if spec.privacy is not None and spec.privacy.unit == "author":
        return "noise that protects authors (privacy.unit: author)"
    if discrete(spec):
        return "discrete noise (privacy.noise: discrete_gaussian)"
    if any(step.weighing != "none" for step in kinds):
        return f"noise that goes by the text (method: {spec.method})"
    if any(step.regulariser != "none" for step in kinds):
        return f"regularisers (method: {spec.method})"
    for key in refinements(spec.recipe):
        return f"what recipe.{key} does"
    return None


def check_refinements(recipe: RecipeSpec, kinds: Iterable[Step]) -> None:
    """InputError where what else is done with gradients and weights is not there for a job."""
    if any(map(as_published, kinds)):
        for key in refinements(recipe):
            message = "is not there for training as published"
            raise InputError(message, key=f"recipe.{key}", value=getattr(recipe, key))
    if recipe.precondition and recipe.noisy_filter == "subspace":
        message = "goes by exact gradients as they are, not scaled: leave out recipe.precondition"
        raise InputError(message, key="recipe.noisy_filter", value="subspace")
    if recipe.noise is not None and recipe.noisy_filter == "spectral":
        message = "goes by the size of independent noise: leave out recipe.noise"
        raise InputError(message, key="recipe.noisy_filter", value="spectral")


def check_bands(spec: TrainSpec, kinds: Iterable[Step], sizes: Sizes) -> None:
    """InputError where noise cannot be correlated, or reaches a unit's next update."""
    noise = spec.recipe.noise
    noisy = [step for step in kinds if step.noisy]
    if noise is None or not noisy:
        return
    if discrete(spec):
        message = "is made of Gaussian noise, and discrete noise was asked for (privacy.noise)"
        raise InputError(message, key="recipe.noise", value=noise.kind)
    if len(noisy) > 1 or any(step.state != "reset" for step in kinds):
        message = f"goes with noised updates of one kind alone, and {spec.method} makes others, too"
        raise InputError(message, key="recipe.noise", value=noise.kind)
    most = passes_updates(spec.recipe, sizes.units(noisy[0]))
    if noise.bands > most:
        message = f"is more than the {most} updates of one pass over the {noisy[0].unit}s"
        raise InputError(message, key="recipe.noise.bands", value=noise.bands)


def check_layers(spec: TrainSpec, epochs: Epochs) -> None:
    """InputError where noised updates cannot train some layers alone."""
    recipe = spec.recipe
    if recipe.noisy_layers is None:
        return
    noisy = [step.noisy for steps in epochs for step in steps]
    if not any(noisy) or all(noisy) or noisy != sorted(noisy):
        message = f"needs exact updates before all noised ones, which {spec.method} does not make"
        raise InputError(message, key="recipe.noisy_layers", value=recipe.noisy_layers)
    others = {
        "recipe.precondition": recipe.precondition,
        "recipe.noisy_filter": recipe.noisy_filter is not None,
        "recipe.gradient_checkpointing": recipe.gradient_checkpointing,
        "privacy.noise: discrete_gaussian": discrete(spec),
    }
    for other, asked in others.items():
        if asked:
            message = f"does not go with {other}"
            raise InputError(message, key="recipe.noisy_layers", value=recipe.noisy_layers)


def check_weighing(spec: TrainSpec, kinds: Iterable[Step], sizes: Sizes) -> None:
    """InputError where noise goes by the text, and what else is asked for does not go with that."""
    if not any(step.weighing != "none" for step in kinds):
        return
    if sizes.authors is not None:
        message = f"{spec.method} weighs the tokens of a point: its noise is for points"
        raise InputError(message, key="privacy.unit", value="author")
    if discrete(spec):
        message = f"is the same for all points, and that of {spec.method} goes by their text"
        raise InputError(message, key="privacy.noise", value=spec.protection.noise)


def refinements(recipe: RecipeSpec) -> list[str]:
    """Keys of what else is done with gradients and weights than optimizers do."""
    asked = {
        "average": recipe.average is not None,
        "precondition": recipe.precondition,
        "noisy_filter": recipe.noisy_filter is not None,
        "noisy_layers": recipe.noisy_layers is not None,
        "noise": recipe.noise is not None,
    }
    return [key for key, wanted in asked.items() if wanted]


def discrete(spec: TrainSpec) -> bool:
    """Whether noise is asked to be discrete."""
    return spec.privacy is not None and spec.privacy.discrete


def noise_for(spec: TrainSpec, epochs: Epochs, sizes: Sizes) -> float:
    """The noise multiplier of the enumerated steps.

    InputError where discrete noise is so little that a sum in steps of its grid could overflow.
    """
    noise_multiplier = asked_noise(spec, epochs, sizes)
    if discrete(spec) and noise_multiplier:
        most = max(sizes.units(step) for steps in epochs for step in steps if step.noisy)
        if most * 2.0**BITS > noise_multiplier * MOST:
            message = f"is too little for discrete noise on the sum of at most {most} contributions"
            raise InputError(message, key="privacy.noise_multiplier", value=noise_multiplier)
    return noise_multiplier


def asked_noise(spec: TrainSpec, epochs: Epochs, sizes: Sizes) -> float:
    """The given noise_multiplier, or the smallest that keeps the enumerated noisy steps within the
    target epsilon.
    """
    noisy = [step for steps in epochs for step in steps if step.noisy]
    if not noisy:
        return 0.0
    target = None if spec.privacy is None else spec.privacy.epsilon
    noise_multiplier = None if spec.privacy is None else spec.privacy.noise_multiplier
    if noise_multiplier is not None and target is None:
        return noise_multiplier
    if target is None or noise_multiplier is not None:
        raise InputError(f"{spec.method} needs either epsilon or noise_multiplier", key="privacy")
    if len({step.pool for step in noisy}) > 1:
        raise InputError(
            "noisy steps on several pools need a given noise_multiplier", key="privacy.epsilon"
        )
    if any(map(as_published, noisy)):
        raise InputError(
            "has no meaning for published training: give noise_multiplier", key="privacy.epsilon"
        )
    privacy = spec.protection
    budget = budgeted(spec, epochs, sizes)
    return calibrate(target, privacy.delta, relation=privacy.relation, **budget)


def budgeted(spec: TrainSpec, epochs: Epochs, sizes: Sizes) -> dict[str, Any]:
    """What the target epsilon has to pay for, as `calibrate` and `paid_for` take it."""
    noisy = [step for steps in epochs for step in steps if step.noisy]
    count = len(noisy) if spec.protection.calibrate == "drawn" else sum(map(len, epochs))
    return {
        "sample_rate": rate_of(spec.recipe, sizes.units(noisy[0])),
        "steps": count,
        "shown": passes_that_hand_on(epochs) * sizes.states,
        "coordinates": sizes.coordinates,
        "correlation": correlation_of(spec.recipe, sizes.units(noisy[0]), sizes.sequence),
    }


def hands_on(step: Step) -> bool:
    """Whether an update on public tokens reads states that private ones left behind, noised."""
    return step.state == "noise" and not step.noisy


def passes_that_hand_on(epochs: Epochs) -> int:
    """How many passes over public tokens hand on recurrent states, noised, after private ones."""
    return sum(any(map(hands_on, steps)) for steps in epochs)


def release_of(spec: TrainSpec, step: Step, *, noise_multiplier: float, sizes: Sizes) -> Release:
    """What a ledger says of one update."""
    step = step if spec.redact else replace(step, view="original")
    if not step.noisy:
        return Release(step=step, count=1)
    return Release(
        step=step,
        sample_rate=rate_of(spec.recipe, sizes.units(step)),
        noise_multiplier=noise_multiplier * step.noise_scale,
        max_grad_norm=spec.protection.max_grad_norm,
        count=1,
        discrete_coordinates=sizes.coordinates,
        correlation=correlation_of(spec.recipe, sizes.units(step), sizes.sequence),
    )


def planned(
    spec: TrainSpec, epochs: Epochs, *, noise_multiplier: float, sizes: Sizes
) -> list[list[AnyRelease]]:
    """The releases of each epoch, those that are alike and consecutive counted together."""
    by_epoch = []
    for steps in epochs:
        releases: list[AnyRelease] = [
            release_of(spec, step, noise_multiplier=noise_multiplier, sizes=sizes) for step in steps
        ]
        handed_on = [place for place, step in enumerate(steps) if hands_on(step)]
        if sizes.states and handed_on:
            shown = StateRelease(
                noise_multiplier=noise_multiplier,
                max_grad_norm=spec.protection.max_grad_norm,
                count=sizes.states,
            )
            releases.insert(handed_on[-1] + 1, shown)
        by_epoch.append(counted(releases))
    return by_epoch


def counted(releases: Iterable[AnyRelease]) -> list[AnyRelease]:
    """Neighbours of one kind as one release, however many lines of a ledger they stood in."""
    merged: list[AnyRelease] = []
    for release in releases:
        if merged and replace(merged[-1], count=release.count) == release:
            merged[-1] = replace(release, count=merged[-1].count + release.count)
        else:
            merged.append(release)
    return merged


def check_length(spec: TrainSpec, sizes: Sizes, *, recorded: int, file: Path) -> None:
    """InputError for a ledger of fewer epochs than are asked for, or of more updates than anybody
    could list: whoever wrote it may want to take all memory.
    """
    recipe = spec.recipe
    if recipe.epochs > recorded:
        message = f"has other epochs than the {recipe.epochs} that were asked for"
        raise InputError(message, file=file, key="epoch", value=recorded)
    texts = sum(sizes.pools.values()) + sum((sizes.authors or {}).values())
    noisy = (recipe.noisy_epochs or recipe.epochs) * texts / recipe.noisy_batch_size
    if recipe.epochs * texts / recipe.batch_size + noisy > MOST_UPDATES:
        raise InputError(
            f"asks for more than {MOST_UPDATES:,} updates", file=file, key="data.pools"
        )


def check_ledger(spec: TrainSpec, ledger: Ledger, sizes: Sizes, file: Path) -> None:
    """InputError unless the ledger holds the updates, and the noise, that these settings ask for,
    epoch by epoch.

    Of training as Selective-DP was published nothing can be planned: how many updates a batch
    makes, its text decides. Nothing finite is claimed of it either.
    """
    sizes = replace(
        sizes,
        coordinates=check_coordinates(spec, ledger, file),
        sequence=check_sequences(ledger, file),
    )
    recorded = ledger.epochs()
    check_length(spec, sizes, recorded=len(recorded), file=file)
    epochs = enumerate_steps(spec, sizes)
    if any(step.state == "published" for steps in epochs for step in steps):
        releases = ledger.releases()
        updates = updates_of(releases)
        if len(updates) < len(releases) or any(
            release.step.state != "published" for release in updates
        ):
            raise InputError(
                "holds updates that training as published does not make", file=file, key="release"
            )
        return
    noise_multiplier = check_noise(spec, ledger, epochs, sizes, file)
    wanted = planned(spec, epochs, noise_multiplier=noise_multiplier, sizes=sizes)
    if [number for number, _ in recorded] != list(range(1, len(wanted) + 1)):
        raise InputError(
            f"has other epochs than the {len(wanted)} that were asked for",
            file=file,
            key="epoch",
            value=len(recorded),
        )
    if sum(release.count for _, releases in recorded for release in releases) != sum(
        release.count for release in ledger.releases()
    ):
        raise InputError("holds updates that belong to no epoch", file=file, key="epoch")
    for (number, releases), expected in zip(recorded, wanted, strict=True):
        if counted(releases) != expected:
            message = f"epoch {number} does not hold the updates that the settings ask for"
            raise InputError(message, file=file, key="release")


def check_sequences(ledger: Ledger, file: Path) -> str:
    """The name of a ledger's correlated noise; InputError where it has several sequences."""
    names = ledger.sequences()
    if len(names) > 1:
        message = "correlated noise began anew within one run"
        raise InputError(message, file=file, key="correlation.sequence")
    return names[0] if names else UNNAMED


def check_coordinates(spec: TrainSpec, ledger: Ledger, file: Path) -> int:
    """How many numbers discrete noise was added to, 0 where it is Gaussian.

    InputError unless it is the noise that was asked for.
    """
    counts = {release.discrete_coordinates for release in ledger.releases() if release.noisy}
    if len(counts) > 1 or any((count > 0) is not discrete(spec) for count in counts):
        kind = spec.privacy.noise if spec.privacy is not None else None
        message = (
            "the noised updates do not all have the noise that was asked for, on as many numbers"
        )
        raise InputError(message, file=file, key="discrete_coordinates", value=kind)
    return max(counts, default=0)


def check_noise(spec: TrainSpec, ledger: Ledger, epochs: Epochs, sizes: Sizes, file: Path) -> float:
    """The ledger's noise multiplier; InputError unless it is the one that was asked for, or that
    the target epsilon needs.
    """
    noisy = [step for steps in epochs for step in steps if step.noisy]
    multipliers = {release.noise_multiplier for release in ledger.releases() if release.noisy}
    if not noisy and not multipliers:
        return 0.0
    wanted = None if spec.privacy is None else spec.privacy.noise_multiplier
    if wanted is not None and any(step.weighing != "none" for step in noisy):
        return wanted  # times a scale, which the planned updates have
    if len(multipliers) != 1 or not noisy or spec.privacy is None:
        raise InputError(
            "holds noised updates of other kinds than were asked for",
            file=file,
            key="noise_multiplier",
        )
    noise_multiplier = multipliers.pop()
    target = spec.privacy.epsilon
    if wanted is not None:
        fits = noise_multiplier == wanted
        setting = f"noise_multiplier = {wanted}"
    else:
        budget = budgeted(spec, epochs, sizes)
        fits = target is not None and meets(target, spec.privacy, noise_multiplier, budget)
        setting = f"epsilon = {target}"
    if fits:
        return noise_multiplier
    raise InputError(
        f"is not the noise that {setting} asks for",
        file=file,
        key="noise_multiplier",
        value=noise_multiplier,
    )


def meets(
    target: float, privacy: PrivacySpec, noise_multiplier: float, budget: dict[str, Any]
) -> bool:
    """Whether a noise multiplier is one that `calibrate` returns for the target epsilon.

    That is enough, and not more than it takes.
    """
    relation = privacy.relation
    spent = epsilon(paid_for(noise_multiplier, **budget), privacy.delta, relation)
    if spent > target:
        return False
    if spent >= target * (1 - 2 * RELATIVE) or noise_multiplier <= 2 * SMALLEST:
        return True
    needed = calibrate(target, privacy.delta, relation=relation, **budget)
    return math.isclose(noise_multiplier, needed)
