"""Faults of a training job: sampling, normaliser, ledger, resume."""

from mutation import Fault, both, edit

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
    Fault(
        "shuffled batches for Poisson",
        "Batches have a fixed size, and the accountant takes them for Poisson samples.",
        POISSON,
        edit(
            "confide.dp.mechanism.sampling:poisson",
            (
                "torch.nonzero(source.uniform(size) < sample_rate).flatten()",
                "source.uniform(size).argsort()[: round(size * sample_rate)]",
            ),
        ),
    ),
    Fault(
        "points drawn in pairs",
        "Two neighbouring points are always in the same batch.",
        POISSON,
        edit(
            "confide.dp.mechanism.sampling:poisson",
            ("source.uniform(size)", "source.uniform((size + 1) // 2).repeat_interleave(2)[:size]"),
        ),
    ),
    Fault(
        "drawn more often than recorded",
        "Points are drawn at twice the rate in the ledger.",
        POISSON,
        edit(
            "confide.train.batches:Batches.poisson",
            ("self.sample_rate(step)", "2 * self.sample_rate(step)"),
        ),
    ),
    Fault(
        "sample rate of all points",
        "The ledger has the batch size over all points; drawn is from the smaller private pool.",
        POISSON,
        edit(
            "confide.train.history:History.release",
            (
                "self.batches.sample_rate(step)",
                'self.batches.sample_rate(replace(step, pool="all"))',
            ),
        ),
    ),
    Fault(
        "accumulation ignored",
        "A batch is summed up in pieces, and the noise is calibrated as if a piece were the batch.",
        LEDGER,
        edit(
            "confide.train.planning:budgeted",
            (
                "noisy = [step for steps in epochs for step in steps if step.noisy]",
                "noisy = [step for steps in epochs for step in steps if step.noisy]\n"
                'piece = {"noisy_batch_size": spec.recipe.physical_batch_size}\n'
                'spec = spec.model_copy(update={"recipe": spec.recipe.model_copy(update=piece)})',
            ),
        ),
    ),
    Fault(
        "batches from a constant seed",
        "Which points are read is the same in every run, and known to everybody.",
        FRESH,
        edit(
            "confide.train.batches:Batches.__init__",
            (
                'Stream(noise_seed, f"{spec.run}: private batches")',
                'Stream(0, f"{spec.run}: private batches")',
            ),
        ),
    ),
    Fault(
        "batches from the public seed",
        "Which points are read follows from the seed that is published with the run.",
        FRESH,
        edit(
            "confide.train.batches:Batches.__init__",
            (
                'Stream(noise_seed, f"{spec.run}: private batches")',
                'Stream(spec.seed, f"{spec.run}: private batches")',
            ),
        ),
    ),
    Fault(
        "noise from the public seed",
        "Noise can be computed, and taken off again, from the seed that is published with the run.",
        FRESH,
        edit(
            "confide.train.gradients:Gradients.__init__",
            (
                "noise_of(noise_seed, name, device)",
                "noise_of(spec.seed, name, device)",
            ),
        ),
    ),
    Fault(
        "one noise for all runs",
        "Two models that are trained with one seed have the same noise: their difference has none.",
        FRESH,
        edit(
            "confide.train.gradients:Gradients.__init__",
            ('f"{spec.run}: noise"', '"noise"'),
        ),
    ),
    Fault(
        "one keystream for batches and noise",
        "The numbers that choose the batch are the noise, too.",
        FRESH,
        edit(
            "confide.dp.mechanism.randomness:key_of",
            ('f"{seed}/{name}"', 'f"{seed}"'),
        ),
    ),
    Fault(
        "one dropout for all",
        "Private batches and exact updates share a generator for dropout: the latter know how "
        "much the former drew.",
        FRESH,
        edit(
            "confide.train.gradients:Gradients.noisy",
            ("with self._dropout(noisy=True):\n    ...", "if True:\n    ..."),
        ),
    ),
    # updates
    Fault(
        "divided by the realised batch size",
        "The sum is divided by the number of points drawn, which is private.",
        UPDATES,
        edit(
            "confide.train.gradients:Gradients.noisy",
            ("self.spec.recipe.noisy_batch_size", "max(1, len(chosen))"),
        ),
    ),
    Fault(
        "normaliser from the data set's size",
        "The divisor is the size of the pool over the number of batches: it changes when a point "
        "is added.",
        UPDATES,
        edit(
            "confide.train.gradients:Gradients.noisy",
            (
                "expected = self.spec.recipe.noisy_batch_size",
                "import math\n"
                "batches = math.ceil(1 / self.batches.sample_rate(step))\n"
                "expected = int(self.batches.units(step) / batches)",
            ),
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
    Fault(
        "less noise than recorded",
        "Updates run with half the noise multiplier in the ledger.",
        UPDATES,
        edit(
            "confide.train.gradients:Gradients.noisy",
            ("self.noise_multiplier", "self.noise_multiplier / 2"),
        ),
    ),
    Fault(
        "original text for redacted",
        "Updates read the original view and are recorded as updates on the redacted one.",
        UPDATES,
        edit(
            "confide.train.batches:Batches.view",
            ('step.view if self.spec.redact else "original"', '"original"'),
        ),
    ),
    Fault(
        "points of another pool",
        "Noisy updates draw from the first points of all instead of the private pool.",
        UPDATES,
        edit(
            "confide.train.batches:Batches.pieces",
            ("self.points(step, chosen)", 'self.pools["all"][chosen.numpy()]'),
        ),
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
    Fault(
        "an author clipped point by point",
        "Authors are drawn, but each of their points adds a vector of norm C.",
        WHOLE,
        edit(
            "confide.train.batches:Batches.pieces",
            (
                "replace(self._batch(step, view, piece), units=units)",
                "replace(self._batch(step, view, piece), units=None)",
            ),
        ),
    ),
    Fault(
        "prolific authors drawn more often",
        "An author is in the batch if any of his points is drawn.",
        WHOLE,
        edit(
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
    ),
    Fault(
        "rate of points for authors",
        "The ledger has the rate of one point among all points; drawn are authors.",
        WHOLE,
        edit(
            "confide.train.history:History.release",
            (
                "self.batches.sample_rate(step)",
                'self.batches.sample_rate(replace(step, unit="point"))',
            ),
        ),
    ),
    # ledger
    Fault(
        "a step not recorded",
        "Every second update is missing in the ledger.",
        LEDGER,
        edit(
            "confide.train.job:Job.run",
            (
                "self.history.add(update)",
                "if self.done % 2 == 0:\n    self.history.add(update)",
            ),
        ),
    ),
    Fault(
        "an exact step recorded as noisy",
        "Updates without noise are in the ledger as if they had some.",
        LEDGER,
        edit(
            "confide.train.history:History.add",
            (
                "self.ledger.append(self.release(step), digest(noise) if step.noisy else None)",
                "noised = Step(view=step.view, pool=step.pool, noisy=True)\n"
                "self.ledger.append(self.release(noised), digest(noise))",
            ),
        ),
    ),
    Fault(
        "a noisy step run as exact",
        "Every second noisy update is made without clipping and noise.",
        LEDGER,
        edit(
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
    ),
    Fault(
        "noise calibrated to half the steps",
        "The noise multiplier is chosen for half as many updates as are made.",
        LEDGER,
        edit(
            "confide.train.planning:budgeted",
            ("count", "count // 2"),
        ),
    ),
    Fault(
        "private vocabulary called public",
        "The tokenizer was trained on protected text; the ledger says that it was public.",
        LEDGER,
        edit(
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
    ),
    Fault(
        "recurrent states not recorded",
        "States are noised and handed on, and the ledger does not know.",
        HANDED,
        edit(
            "confide.train.history:History.add",
            ("if shown is not None:\n    ...", "if False:\n    ..."),
        ),
    ),
    Fault(
        "one state for two",
        "Of the two states of a layer, hidden and cell, one is counted.",
        HANDED,
        edit(
            "confide.train.handed_on:state_releases",
            ("2 * spec.model.layers", "spec.model.layers"),
        ),
    ),
    Fault(
        "states not clipped",
        "Noise for a state of norm C is added to one of any norm.",
        HANDED,
        edit(
            "confide.dp.mechanism.sequential:released",
            ("exact * scale", "exact"),
        ),
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
    Fault(
        "another job's checkpoint",
        "A job continues whatever checkpoint it finds, with other settings or other noise.",
        RESUMED,
        edit(
            "confide.train.checkpoint:read",
            ('values["fingerprint"] != fingerprint', "False"),
        ),
    ),
    Fault(
        "ledger empty after a resume",
        "What was spent before a job was killed is forgotten.",
        RESUMED,
        edit(
            "confide.train.history:History.restore",
            ('Ledger.load(state["ledger"])', "self.ledger"),
        ),
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
