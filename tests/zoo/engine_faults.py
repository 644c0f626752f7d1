"""Faults of one noisy update: clipping, noise, losses, recurrent states."""

from mutation import Fault, both, edit, slip

LOOP, MOVES, NOISE = (
    "clipped_sum_is_that_of_a_loop",
    "one_example_moves_the_sum_by_at_most_2c",
    "noise_is_normal_and_drawn_once_per_step",
)
DISCRETE = "discrete_updates_are_integers_that_hide_a_unit"
UNITS, FITS = "units_are_clipped_whole", "a_batch_that_does_not_fit_counts_once"
STORED, COMPANY = "stored_contributions_never_exceed_c", "an_example_adds_the_same_in_any_company"
TAIL, TRAINS = "noise_reaches_as_far_as_a_gaussian", "every_update_trains"
STATES, BLIND = "states_are_reset_as_in_a_loop", "public_losses_are_blind_to_private_tokens"

FAULTS = [
    # clipping
    slip(
        "no clipping",
        "Gradients are summed as they are.",
        MOVES,
        "confide.dp.mechanism.clipping:PerExampleClipper._scale",
        (
            "(self.max_grad_norm / (slack * norms).clamp(min=1e-300)).clamp(max=1.0)",
            "torch.ones_like(norms)",
        ),
    ),
    slip(
        "clipping per batch",
        "The sum over a batch is clipped to C, not each example.",
        LOOP,
        "confide.dp.mechanism.clipping:PerExampleClipper.add",
        ("self._scale(most)", "self._scale(most.sum().expand_as(most))"),
    ),
    slip(
        "clipping bound ignored",
        "Gradients are clipped to norm 1 whatever C is.",
        MOVES,
        "confide.dp.mechanism.clipping:PerExampleClipper._scale",
        ("self.max_grad_norm", "1.0"),
    ),
    Fault(
        "gradients that are not finite pass",
        "One example with a NaN destroys the sum instead of counting for nothing.",
        MOVES,
        both(
            edit(
                "confide.dp.mechanism.clipping:PerExampleClipper._scale",
                ("torch.where(usable, scale, 0.0)", "scale"),
            ),
            edit(
                "confide.dp.mechanism.gradients:Formed.add_weighted",
                ("clean", "True"),
            ),
            edit(
                "confide.dp.mechanism.gradients:Factored.add_weighted",
                ("not clean", "False"),
            ),
        ),
    ),
    slip(
        "biases left out of the norm",
        "Biases and LayerNorm are trained on, but their gradients do not count when norms are "
        "taken.",
        LOOP,
        "confide.dp.mechanism.clipping:PerExampleClipper.add",
        (
            "[gradient.squares(together) for gradient in gradients.values()]",
            "[gradient.squares(together) for weight, gradient in gradients.items() "
            "if weight.dim() > 1]",
        ),
    ),
    slip(
        "LayerNorm gradient wrong",
        "The weight of a LayerNorm takes the gradient of its input as it was before it was "
        "normalised.",
        LOOP,
        "confide.dp.mechanism.clipping:vectors_of",
        ("normal.reshape_as", "inputs.reshape_as"),
    ),
    slip(
        "tied weight, one use dropped",
        "Of an embedding tied to the output layer only one of the two uses counts.",
        LOOP,
        "confide.dp.mechanism.clipping:PerExampleClipper._take",
        (
            "self.uses.setdefault(weight, []).append(use)",
            "self.uses[weight] = [use]",
        ),
    ),
    slip(
        "tied weight, no cross term",
        "The norms of the two uses of a tied weight are added as if the uses were orthogonal.",
        LOOP,
        "confide.dp.mechanism.gradients:Factored.squares",
        (
            "2 * torch.mul(*grams(use, other)).sum((1, 2))",
            "0 * torch.mul(*grams(use, other)).sum((1, 2))",
        ),
    ),
    slip(
        "repeated tokens count apart",
        "An embedding's norm is taken token by token, as if no token stood twice in a text.",
        LOOP,
        "confide.dp.mechanism.gradients:grams",
        (
            "(one.left.unsqueeze(2) == other.left.unsqueeze(1)).double()",
            "torch.eye(one.left.shape[1]).expand_as(right)",
        ),
    ),
    slip(
        "one row of positions for all examples",
        "Position embeddings are looked up once per batch, so that their gradient belongs to no "
        "example.",
        LOOP,
        "confide.models.gpt2:GPT2Model.hidden",
        (
            "torch.arange(ids.shape[1], device=ids.device).expand(ids.shape)",
            "torch.arange(ids.shape[1], device=ids.device)[None]",
        ),
        ("repeated(positions, ends)", "positions"),
    ),
    slip(
        "accumulator not emptied",
        "A step starts from the clipped sum, and the noise, of the step before.",
        LOOP,
        "confide.dp.mechanism.update:sum_clipped",
        ("clipper.reset()", "pass"),
    ),
    slip(
        "units ignored",
        "Every example of an author is clipped on its own, so that an author counts many times.",
        UNITS,
        "confide.dp.mechanism.update:clipped",
        (
            "clipper.add(lambda: per_example(clipper.model, batch, half) / sizes, units)",
            "clipper.add(lambda: per_example(clipper.model, batch, half) / sizes, None)",
        ),
    ),
    slip(
        "large unit not clipped",
        "An author who does not fit into one pass is summed up, but not clipped.",
        UNITS,
        "confide.dp.mechanism.clipping:PerExampleClipper.add_unit",
        ("part * scale", "self.spare"),
    ),
    slip(
        "a batch that did not fit counts twice",
        "After memory ran out, a part that was divided is summed up again.",
        FITS,
        "confide.runtime.memory:Budget.run",
        (
            "[half for piece in waiting for half in piece.split(self.examples(piece.length))]",
            "[half for piece in [waiting[0], *waiting] "
            "for half in piece.split(self.examples(piece.length))]",
        ),
    ),
    Fault(
        "clipping without slack",
        "The factor C / norm is rounded, and so are norm and product: half of all contributions "
        "end a little above C.",
        STORED,
        both(
            edit(
                "confide.dp.mechanism.clipping:PerExampleClipper.add",
                ("square.most", "square.norms"),
            ),
            edit(
                "confide.dp.mechanism.clipping:PerExampleClipper._scale",
                ("1 + 4 * of_type.eps", "1.0"),
            ),
        ),
    ),
    slip(
        "factor in half precision",
        "The clipping factor is stored in bfloat16: a contribution may be half a per cent above C.",
        STORED,
        "confide.dp.mechanism.clipping:PerExampleClipper._scale",
        ("torch.where(usable, scale, 0.0)", "torch.where(usable, scale, 0.0).bfloat16()"),
    ),
    slip(
        "padding reads foreign weights",
        "A short text is padded with positions that only its longest companion reaches; one bad "
        "weight there silences both.",
        COMPANY,
        "confide.models.gpt2:GPT2Model.hidden",
        ("repeated(positions, ends)", "positions"),
    ),
    slip(
        "slack by company",
        "How far below C a text is clipped depends on how its norm is computed, and that on the "
        "longest text of its batch.",
        COMPANY,
        "confide.dp.mechanism.gradients:gradients_of",
        (
            "Formed((use.left.mT @ use.right).flatten(1), terms)",
            "Formed((use.left.mT @ use.right).flatten(1))",
        ),
    ),
    slip(
        "model left in evaluation mode",
        "After the first evaluation dropout stays off: what trains is another model than the "
        "settings say.",
        TRAINS,
        "confide.train.evaluation:score",
        ("model.train(training)", "pass"),
    ),
    slip(
        "model never put into training mode",
        "A model with adapters, or a pretrained one, is trained as it came: without dropout.",
        TRAINS,
        "confide.stages.train:prepare",
        ("network.to(device).train", "network.to(device).eval"),
    ),
    # noise
    slip(
        "noise of a sum added to a mean",
        "The sum is divided first, and then gets the noise that is meant for the sum.",
        NOISE,
        "confide.dp.mechanism.clipping:PerExampleClipper.finish",
        ("self.flat.div_(expected_batch_size)", ""),
        (
            "self._add(noise, noise_multiplier * self.max_grad_norm)",
            "noise.add(self.flat.div_(expected_batch_size), noise_multiplier * self.max_grad_norm)",
        ),
    ),
    slip(
        "radii of 32 bits",
        "No noise lies beyond 6.8 deviations: in a long training of a large model that shows "
        "which of two texts was there.",
        TAIL,
        "confide.dp.mechanism.randomness:box_muller",
        (
            "(bits[:, 0] & LOW_BITS).double().add_(0.5).mul_(2.0 ** (-63))",
            "(bits[:, 0] >> 31).double().add_(0.5).mul_(2.0 ** (-32))",
        ),
    ),
    slip(
        "no noise",
        "The clipped sum is released as it is.",
        NOISE,
        "confide.dp.mechanism.clipping:PerExampleClipper.finish",
        ("noise_multiplier > 0", "False"),
    ),
    slip(
        "noise divided twice",
        "The noise is divided by the batch size before the sum is.",
        NOISE,
        "confide.dp.mechanism.clipping:PerExampleClipper.finish",
        (
            "noise_multiplier * self.max_grad_norm",
            "noise_multiplier * self.max_grad_norm / expected_batch_size",
        ),
    ),
    slip(
        "noise not scaled by C",
        "The noise multiplier is taken for the standard deviation.",
        NOISE,
        "confide.dp.mechanism.clipping:PerExampleClipper.finish",
        ("noise_multiplier * self.max_grad_norm", "noise_multiplier"),
    ),
    slip(
        "noise drawn once",
        "Every step adds the same noise.",
        NOISE,
        "confide.dp.mechanism.randomness:Noise.add",
        (
            "for part in values.split(BLOCK):\n    ...",
            "self.place = 0\nfor part in values.split(BLOCK):\n    ...",
        ),
    ),
    slip(
        "noise once per physical batch",
        "A logical step in three pieces gets its noise three times, and not what the ledger says.",
        NOISE,
        "confide.dp.mechanism.update:noisy_gradient",
        (
            "sum_clipped(clipper, batches, budget, half, group)",
            (
                "batches = list(batches)\n"
                "sum_clipped(clipper, batches, budget, half, group)\n"
                "for _ in batches:\n"
                "    noise.add(clipper.flat, noise_multiplier * clipper.max_grad_norm)"
            ),
        ),
    ),
    slip(
        "noise on a part only",
        "Only a few coordinates are noised.",
        NOISE,
        "confide.dp.mechanism.clipping:PerExampleClipper.finish",
        (
            "self._add(noise, noise_multiplier * self.max_grad_norm)",
            "noise.add(self.flat[:9], noise_multiplier * self.max_grad_norm)",
        ),
    ),
    slip(
        "one draw for all coordinates",
        "The same number is added to every coordinate: their differences are exact.",
        NOISE,
        "confide.dp.mechanism.clipping:PerExampleClipper.finish",
        (
            "self._add(noise, noise_multiplier * self.max_grad_norm)",
            "self.flat.add_(noise.add(self.flat.new_zeros(1), noise_multiplier * "
            "self.max_grad_norm))",
        ),
    ),
    slip(
        "uniform noise",
        "Noise has the right variance, but not the tails of a Gaussian.",
        NOISE,
        "confide.dp.mechanism.randomness:Noise.add",
        (
            "box_muller(self.pairs((len(part) + 1) // 2))[: len(part)]",
            "(self.uniform(len(part)) - 0.5) * 12**0.5",
        ),
    ),
    # losses and states
    slip(
        "padding in the loss",
        "Where a text is shorter than its companions, its end token is predicted again and again.",
        LOOP,
        "confide.models.batches:padded",
        ("np.full_like(inputs, IGNORE)", "np.full_like(inputs, bos)"),
    ),
    slip(
        "loss over the batch's tokens",
        "An example's loss is divided by the number of tokens of all examples of the batch.",
        LOOP,
        "confide.dp.mechanism.update:per_example",
        ("(batch.targets != IGNORE).sum(1)", "(batch.targets != IGNORE).sum()"),
    ),
    slip(
        "state carried to the next batch",
        "The recurrence starts from the mean state that the batch before left behind.",
        LOOP,
        "confide.models.recurrence:Recurrence.forward",
        (
            "pre.new_zeros(2, batch, width)",
            'pre.new_zeros(2, batch, width) + getattr(weight, "left", 0.0)',
        ),
        (
            "ctx.save_for_backward(weight, keep, activations, cells, squashed, outputs)",
            (
                "weight.left = torch.stack([hidden, cell]).mean(1, keepdim=True)\n"
                "ctx.save_for_backward(weight, keep, activations, cells, squashed, outputs)"
            ),
        ),
    ),
    slip(
        "resets ignored",
        "The recurrent state is not set to zero where public text follows private text.",
        STATES,
        "confide.models.recurrence:Recurrence.forward",
        ("None if keep is None else keep.t().unsqueeze(-1).to(pre.dtype)", "None"),
    ),
    slip(
        "reset missing in the gradient",
        "Per-example gradients of the recurrent weight see the state as if it had not been reset.",
        STATES,
        "confide.dp.mechanism.clipping:PerExampleClipper._record",
        ("previous = previous * inputs[1].unsqueeze(-1)", "pass"),
    ),
    slip(
        "public text read in private state",
        "Selective training reads all text for its public losses, and does not reset the state "
        "after private text.",
        BLIND,
        "confide.models.batches:selected",
        ('tokens == "public" and state == "reset"', "False"),
        ('keep[:, :end] if state == "reset" else None', "None"),
    ),
    slip(
        "private token as a public input",
        "A position counts as public though the token that it reads is private.",
        BLIND,
        "confide.models.batches:private_positions",
        ("predicts | F.pad(predicts[:, :-1], (1, 0))", "predicts"),
    ),
    # discrete noise
    slip(
        "noise of half the steps",
        "Discrete noise is drawn with half the deviation of the grid that gradients are cut to.",
        DISCRETE,
        "confide.dp.mechanism.update:discrete_gradient",
        ("noise.discrete(len(total), BITS)", "noise.discrete(len(total), BITS - 1)"),
    ),
    slip(
        "cut away from zero",
        "A contribution on the grid is rounded up, with nothing that shortens it before.",
        DISCRETE,
        "confide.dp.mechanism.update:in_steps",
        (
            "clipper.flat.mul_((1 - SHORTER) / step).trunc_()",
            "clipper.flat.mul_((1 + 1e-3) / step).ceil_()",
        ),
        (
            "torch.linalg.vector_norm(steps) > longest * (1 - SHORTER / 2)",
            "False",
        ),
    ),
    slip(
        "discrete noise priced as Gaussian",
        "Nothing is paid for how far discrete noise is from the Gaussian that is accounted for.",
        DISCRETE,
        "confide.dp.accounting.price:mechanisms_of",
        ("size * DISTANCE", "0.0"),
    ),
]
