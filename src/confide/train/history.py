"""What the ledger is told of training: every update right after it was made, and nothing else."""

from dataclasses import replace
from typing import Any

from confide.dp.ledger import Ledger
from confide.dp.mechanism.randomness import digest
from confide.errors import InputError
from confide.train.batches import Batches
from confide.train.dealing import correlation_of
from confide.train.gradients import Gradients
from confide.train.planning import hands_on
from confide.types import Release, Step


class History:
    """Keeps the ledger of a job, by what its batches and gradients really did."""

    def __init__(self, batches: Batches, gradients: Gradients) -> None:
        self.batches = batches
        self.gradients = gradients
        self.ledger = Ledger()

    def add(self, step: Step) -> None:
        """Record an update; at the end of a pass that hands states on also these."""
        noise = self.gradients.noise
        self.ledger.append(self.release(step), digest(noise) if step.noisy else None)
        states = self.gradients.states
        if hands_on(step) and not self.batches.left:
            shown = states.release(self.batches.partition)
            if shown is not None:
                self.ledger.append(shown, digest(states.noise))

    def release(self, step: Step) -> Release:
        """What the ledger says of one such update."""
        spec = self.batches.spec
        step = step if spec.redact else replace(step, view="original")
        if not step.noisy:
            return Release(step=step, count=1)
        return Release(
            step=step,
            sample_rate=self.batches.sample_rate(step),
            noise_multiplier=self.gradients.noise_multiplier * step.noise_scale,
            max_grad_norm=spec.protection.max_grad_norm,
            count=1,
            discrete_coordinates=self.gradients.coordinates,
            correlation=correlation_of(
                spec.recipe, self.batches.units(step), self.gradients.sequence
            ),
        )

    def state(self) -> dict[str, Any]:
        """State for a checkpoint."""
        return {"ledger": self.ledger.dump()}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint's state, after the gradients did; InputError where they do not
        go on where the ledger ends.
        """
        self.ledger = Ledger.load(state["ledger"])
        drawn = self.ledger.states(updates_only=True)
        if drawn and drawn[-1] != digest(self.gradients.noise):
            raise InputError(
                "the checkpoint's noise does not continue that of its ledger; "
                "delete it to start over"
            )
