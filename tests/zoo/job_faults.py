"""Faults of a training job: sampling, normaliser, ledger, resume."""

from mutation import Fault, both, edit, slip

POISSON, UPDATES, LEDGER = (
    "batches_are_poisson_at_the_recorded_rate",
    "updates_are_those_of_the_ledger",
    "ledger_prices_what_ran",
)
HANDED, WHOLE = (
    "states_handed_on_are_clipped_and_in_the_ledger",
    "authors_are_drawn_and_clipped_whole",
)
FRESH, RESUMED = "private_randomness_is_fresh", "resumed_equals_uninterrupted"
SKIP = edit(
    "confide.train.gradients:Gradients.noisy",
    (
        "expected = self.spec.recipe.noisy_batch_size",
        "if not len(chosen):\n"
        "    return self.model.zero_grad()\n"
        "expected = self.spec.recipe.noisy_batch_size",
    ),
)

FAULTS = [
    # sampling
    slip(
        "shuffled batches for Poisson",
        "Batches have a fixed size, and the accountant takes them for Poisson samples.",
        POISSON,
        "confide.dp.mechanism.sampling:poisson",
        (
            "torch.nonzero(source.uniform(size) < sample_rate).flatten()",
            "source.uniform(size).argsort()[: round(size * sample_rate)]",
        ),
    ),
    slip(
        "points drawn in pairs",
        "Two neighbouring points are always in the same batch.",
        POISSON,
        "confide.dp.mechanism.sampling:poisson",
        ("source.uniform(size)", "source.uniform((size + 1) // 2).repeat_interleave(2)[:size]"),
    ),
    slip(
        "drawn more often than recorded",
        "Points are drawn at twice the rate in the ledger.",
        POISSON,
        "confide.train.batches:Batches.poisson",
        ("self.sample_rate(step)", "2 * self.sample_rate(step)"),
    ),
    slip(
        "sample rate of all points",
        "The ledger has the batch size over all points; drawn is from the smaller private pool.",
        POISSON,
        "confide.train.history:History.release",
        (
            "self.batches.sample_rate(step)",
            'self.batches.sample_rate(replace(step, pool="all"))',
        ),
    ),
    slip(
        "accumulation ignored",
        "A batch is summed up in pieces, and the noise is calibrated as if a piece were the batch.",
        LEDGER,
        "confide.train.planning:budgeted",
        (
            "noisy = [step for steps in epochs for step in steps if step.noisy]",
            "noisy = [step for steps in epochs for step in steps if step.noisy]\n"
            'piece = {"noisy_batch_size": spec.recipe.physical_batch_size}\n'
            'spec = spec.model_copy(update={"recipe": spec.recipe.model_copy(update=piece)})',
        ),
    ),
    slip(
        "batches from a constant seed",
        "Which points are read is the same in every run, and known to everybody.",
        FRESH,
        "confide.train.batches:Batches.__init__",
        (
            'Stream(noise_seed, f"{spec.run}: private batches")',
            'Stream(0, f"{spec.run}: private batches")',
        ),
    ),
    slip(
        "batches from the public seed",
        "Which points are read follows from the seed that is published with the run.",
        FRESH,
        "confide.train.batches:Batches.__init__",
        (
            'Stream(noise_seed, f"{spec.run}: private batches")',
            'Stream(spec.seed, f"{spec.run}: private batches")',
        ),
    ),
    slip(
        "noise from the public seed",
        "Noise can be computed, and taken off again, from the seed that is published with the run.",
        FRESH,
        "confide.train.gradients:Gradients.__init__",
        (
            "noise_of(noise_seed, name, device)",
            "noise_of(spec.seed, name, device)",
        ),
    ),
    slip(
        "one noise for all runs",
        "Two models that are trained with one seed have the same noise: their difference has none.",
        FRESH,
        "confide.train.gradients:Gradients.__init__",
        ('f"{spec.run}: noise"', '"noise"'),
    ),
    slip(
        "one keystream for batches and noise",
        "The numbers that choose the batch are the noise, too.",
        FRESH,
        "confide.dp.mechanism.randomness:key_of",
        ('f"{seed}/{name}"', 'f"{seed}"'),
    ),
    slip(
        "one dropout for all",
        "Private batches and exact updates share a generator for dropout: the latter know how "
        "much the former drew.",
        FRESH,
        "confide.train.gradients:Gradients.noisy",
        ("with self._dropout(noisy=True):\n    ...", "if True:\n    ..."),
    ),
    # updates
    slip(
        "divided by the realised batch size",
        "The sum is divided by the number of points drawn, which is private.",
        UPDATES,
        "confide.train.gradients:Gradients.noisy",
        ("self.spec.recipe.noisy_batch_size", "max(1, len(chosen))"),
    ),
    slip(
        "normaliser from the data set's size",
        "The divisor is the size of the pool over the number of batches: it changes when a point "
        "is added.",
        UPDATES,
        "confide.train.gradients:Gradients.noisy",
        (
            "expected = self.spec.recipe.noisy_batch_size",
            "import math\n"
            "batches = math.ceil(1 / self.batches.sample_rate(step))\n"
            "expected = int(self.batches.units(step) / batches)",
        ),
    ),
    Fault(
        "empty batch skipped",
        "An update without points is not made, so no noise hides that there were none.",
        UPDATES,
        SKIP,
    ),
    Fault(
        "empty batch not counted",
        "An update without points is neither made nor recorded.",
        UPDATES,
        both(
            SKIP,
            edit(
                "confide.train.job:Job.run",
                (
                    "self.optimizers.move(noisy=update.noisy)",
                    "if next(self.model.parameters()).grad is None:\n    "
                    "return\nself.optimizers.move(noisy=update.noisy)",
                ),
            ),
        ),
    ),
    slip(
        "less noise than recorded",
        "Updates run with half the noise multiplier in the ledger.",
        UPDATES,
        "confide.train.gradients:Gradients.noisy",
        ("self.noise_multiplier", "self.noise_multiplier / 2"),
    ),
    slip(
        "original text for redacted",
        "Updates read the original view and are recorded as updates on the redacted one.",
        UPDATES,
        "confide.train.batches:Batches.view",
        ('step.view if self.spec.redact else "original"', '"original"'),
    ),
    slip(
        "points of another pool",
        "Noisy updates draw from the first points of all instead of the private pool.",
        UPDATES,
        "confide.train.batches:Batches.pieces",
        ("self.points(step, chosen)", 'self.pools["all"][chosen.numpy()]'),
    ),
    Fault(
        "private batches in the metrics",
        "The log of training shows how many points each private batch had.",
        UPDATES,
        both(
            edit(
                "confide.train.gradients:Gradients.noisy",
                (
                    "with self._dropout(noisy=True):\n    ...",
                    "with self._dropout(noisy=True):\n    ...\n"
                    "return torch.tensor(float(len(chosen)))",
                ),
            ),
            edit(
                "confide.train.gradients:Gradients.of",
                ("self.noisy(step)\nyield step, None", "yield step, self.noisy(step)"),
            ),
        ),
    ),
    # authors
    Fault(
        "points drawn for authors",
        "The ledger says that noise hides authors; points are drawn, and clipped one by one.",
        WHOLE,
        both(
            edit(
                "confide.train.batches:Batches.turn",
                ("self.units(step)", "len(self.pools[step.pool])"),
            ),
            edit(
                "confide.train.batches:Batches.pieces",
                ('step.unit == "author"', "False"),
            ),
        ),
    ),
    slip(
        "an author clipped point by point",
        "Authors are drawn, but each of their points adds a vector of norm C.",
        WHOLE,
        "confide.train.batches:Batches.pieces",
        (
            "replace(self._batch(step, view, piece), units=units)",
            "replace(self._batch(step, view, piece), units=None)",
        ),
    ),
    slip(
        "prolific authors drawn more often",
        "An author is in the batch if any of his points is drawn.",
        WHOLE,
        "confide.train.batches:Batches.poisson",
        (
            "return members[poisson(len(members), self.sample_rate(step), self.sampler)]",
            (
                "chosen = poisson(len(self.pools[step.pool]), self.sample_rate(step), "
                "self.sampler)\n"
                'if step.unit == "author":\n'
                "    drawn_points = set(self.pools[step.pool][chosen.numpy()].tolist())\n"
                "    whose = [bool(drawn_points & set(own.tolist())) for own in "
                "self.authors[step.pool]]\n"
                "    chosen = torch.tensor(whose).nonzero().flatten()\n"
                "return chosen"
            ),
        ),
    ),
    slip(
        "rate of points for authors",
        "The ledger has the rate of one point among all points; drawn are authors.",
        WHOLE,
        "confide.train.history:History.release",
        (
            "self.batches.sample_rate(step)",
            'self.batches.sample_rate(replace(step, unit="point"))',
        ),
    ),
    # ledger
    slip(
        "a step not recorded",
        "Every second update is missing in the ledger.",
        LEDGER,
        "confide.train.job:Job.run",
        (
            "self.history.add(update)",
            "if self.done % 2 == 0:\n    self.history.add(update)",
        ),
    ),
    slip(
        "an exact step recorded as noisy",
        "Updates without noise are in the ledger as if they had some.",
        LEDGER,
        "confide.train.history:History.add",
        (
            "self.ledger.append(self.release(step), digest(noise) if step.noisy else None)",
            "noised = Step(view=step.view, pool=step.pool, noisy=True)\n"
            "self.ledger.append(self.release(noised), digest(noise))",
        ),
    ),
    slip(
        "a noisy step run as exact",
        "Every second noisy update is made without clipping and noise.",
        LEDGER,
        "confide.train.job:Job.run",
        (
            "for update, loss in self.gradients.of(step):\n    ...",
            "self.batches.left.clear()\n"
            "if step.noisy and self.done % 2:\n"
            "    updates = self.gradients.of(step)\n"
            "else:\n"
            "    updates = [(step, self.gradients.exact(step))]\n"
            "for update, loss in updates:\n    ...",
        ),
    ),
    slip(
        "noise calibrated to half the steps",
        "The noise multiplier is chosen for half as many updates as are made.",
        LEDGER,
        "confide.train.planning:budgeted",
        ("count", "count // 2"),
    ),
    slip(
        "private vocabulary called public",
        "The tokenizer was trained on protected text; the ledger says that it was public.",
        LEDGER,
        "confide.provenance.terms:read_before",
        (
            (
                '{"stage": product.stage, "source": product.source, "public": product.public, '
                '"digest": digest}'
            ),
            (
                '{"stage": product.stage, "source": product.source, "public": True, '
                '"digest": digest}'
            ),
        ),
    ),
    slip(
        "recurrent states not recorded",
        "States are noised and handed on, and the ledger does not know.",
        HANDED,
        "confide.train.history:History.add",
        ("if shown is not None:\n    ...", "if False:\n    ..."),
    ),
    slip(
        "one state for two",
        "Of the two states of a layer, hidden and cell, one is counted.",
        HANDED,
        "confide.train.handed_on:state_releases",
        ("2 * spec.model.layers", "spec.model.layers"),
    ),
    slip(
        "states not clipped",
        "Noise for a state of norm C is added to one of any norm.",
        HANDED,
        "confide.dp.mechanism.sequential:released",
        ("exact * scale", "exact"),
    ),
    # resume
    Fault(
        "noise of another place",
        "A resumed job draws its noise from the beginning again, and does not compare it with its "
        "ledger.",
        RESUMED,
        both(
            edit(
                "confide.train.gradients:Gradients.restore",
                ('self.noise.set_state(state["noise"])', "None"),
            ),
            edit(
                "confide.train.history:History.restore",
                ("drawn[-1] != digest(self.gradients.noise)", "False"),
            ),
        ),
    ),
    slip(
        "another job's checkpoint",
        "A job continues whatever checkpoint it finds, with other settings or other noise.",
        RESUMED,
        "confide.train.checkpoint:read",
        ('values["fingerprint"] != fingerprint', "False"),
    ),
    slip(
        "ledger empty after a resume",
        "What was spent before a job was killed is forgotten.",
        RESUMED,
        "confide.train.history:History.restore",
        ('Ledger.load(state["ledger"])', "self.ledger"),
    ),
    Fault(
        "noise repeated after a resume",
        "A resumed job draws the noise of its first updates again.",
        RESUMED,
        both(
            edit(
                "confide.train.gradients:Gradients.state",
                ("self.noise.get_state()", "None"),
            ),
            edit(
                "confide.train.gradients:Gradients.restore",
                ('self.noise.set_state(state["noise"])', "None"),
            ),
        ),
    ),
    Fault(
        "batches repeated after a resume",
        "A resumed job draws the batches of its first updates again.",
        RESUMED,
        both(
            edit(
                "confide.train.batches:Batches.state",
                ("self.sampler.get_state()", "None"),
            ),
            edit(
                "confide.train.batches:Batches.restore",
                ('self.sampler.set_state(state["sampler"])', "None"),
            ),
        ),
    ),
]
