"""Exact per-example gradient clipping in one forward and one backward pass.

This is book-keeping (Bu et al. 2023): forward hooks keep what each layer read, and hooks on the
layers' outputs see their gradients pass by. Both together determine the per-example gradients
(dp.gradients), so norms and the clipped sum need neither a second backward pass nor a gradient per
example; where these are small, as of adapters, they are formed at once, and nothing else of the
layer is kept. A unit of privacy may be one example or several (an author's: losses added up, then
clipped as one).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils.hooks import RemovableHandle

from confide.dp.mechanism.gradients import (
    Factored,
    Formed,
    Scale,
    Use,
    gradients_of,
    units_of,
)
from confide.dp.mechanism.randomness import BLOCK, Noise
from confide.errors import InputError
from confide.models import trainable
from confide.models.head import Head
from confide.models.language_model import Encoder
from confide.models.recompute import Block, Reading
from confide.models.recurrence import LSTMLayer, Recurrent
from confide.models.sharding import Shards, is_divided, moved
from confide.runtime.parallel import Group

Gradients = dict[nn.Parameter, Formed | Factored]
PART = 1 << 20  # numbers turned into float64 at once
# Of transformers, beside torch's own: Gemma's, which multiplies by a constant, and OPT's positions.
EMBEDDINGS = ("Gemma3TextScaledWordEmbedding", "OPTLearnedPositionalEmbedding")


def is_conv1d(module: nn.Module) -> bool:
    """transformers' Conv1D, a linear layer whose weight is (in, out)."""
    return (
        type(module).__name__ == "Conv1D"
        and type(module).__module__ == "transformers.pytorch_utils"
    )


def supported(module: nn.Module) -> bool:
    """Whether the per-example gradients of a layer's own parameters are known here."""
    if isinstance(module, nn.Embedding):
        plain = module.max_norm is None and not module.scale_grad_by_freq and not module.sparse
        return plain and (type(module) is nn.Embedding or type(module).__name__ in EMBEDDINGS)
    if isinstance(module, nn.LayerNorm):
        return len(module.normalized_shape) == 1
    return type(module) in (nn.Linear, Recurrent, Head) or is_conv1d(module) or is_rms_norm(module)


def is_rms_norm(module: nn.Module) -> bool:
    """One of transformers' RMSNorms: x / rms(x), times the weight or one more than it.

    It is asked for what it makes of some numbers, so that a variant of another kind is none.
    """
    names = type(module)
    if not (names.__name__.endswith("RMSNorm") and names.__module__.startswith("transformers.")):
        return False
    if [name for name, _ in module.named_parameters()] != ["weight"]:
        return False
    weight: Tensor = cast(Layer, module).weight.detach()
    if is_divided(weight):
        weight = cast(Any, weight).full_tensor()
    probe = torch.linspace(-1, 2, weight.numel(), dtype=weight.dtype, device=weight.device)
    with torch.no_grad():
        output = functional_call(module, {"weight": weight}, (probe.view(1, 1, -1),)).flatten()
    normal = normalised(module, probe)
    return any(torch.allclose(output, normal * (weight + more), rtol=1e-3) for more in (0, 1))


def normalised(module: nn.Module, inputs: Tensor) -> Tensor:
    """What a norm makes of its inputs (..., size) before it multiplies by its weight."""
    if isinstance(module, nn.LayerNorm):
        return F.layer_norm(inputs, module.normalized_shape, None, None, module.eps)
    eps = cast(float, getattr(module, "variance_epsilon", getattr(module, "eps", None)))
    return inputs * torch.rsqrt(inputs.square().mean(-1, keepdim=True) + eps)


def is_norm(module: nn.Module) -> bool:
    """Whether a supported layer's weight is a vector."""
    return isinstance(module, nn.LayerNorm) or type(module).__name__.endswith("RMSNorm")


class Layer(nn.Module):
    """What every supported layer has; it stands for their types."""

    weight: nn.Parameter


class Record(NamedTuple):
    """What a layer read, and what it made of it."""

    layer: Layer
    read: Tensor
    output: Tensor


class PerExampleClipper:
    """Holds the hooks and the running sum of clipped gradients.

    The sum is `flat` in float64, and `total` are its views in the parameters' shapes. A physical
    batch is summed up in the parameters' own type (`spare`, `piece`), then added to it. Where there
    are `scales`, it is the scaled gradients that are clipped, summed up and noised. Raises
    InputError at construction for a trainable parameter in a layer whose per-example gradient is
    not known here.
    Guarantees: what one unit alone adds to `total` has norm at most max_grad_norm, as it is stored,
    rounding included; a unit whose gradient is not finite contributes zero and is counted in
    `nonfinite`, and so does one whose norm is beyond what can be scaled down.
    """

    def __init__(self, model: Encoder, max_grad_norm: float):
        self.model = model
        self.flattens = getattr(model, "flattens", False)
        self.max_grad_norm = max_grad_norm
        self.parameters = trainable(model)
        self.shards: Shards | None = getattr(model, "shards", None)
        self.moved = self.parameters if self.shards is None else moved(model)
        self.hooks: list[RemovableHandle] = []
        self.names: dict[nn.Module, str] = {}
        self.places: dict[nn.Module, dict[str, nn.Parameter]] = {}  # weights by their names there
        self.ends: list[Record] = []  # outputs whose gradients autograd is asked for
        self.outside: list[Record] = []  # the same, while a block is recomputed
        self.recording = False
        self.blocks: list[Block] = getattr(model, "blocks_recomputed", [])
        # what blocks and heads read, where nothing before is trained
        self.entrances: list[Tensor] = []
        self.batch = 0  # examples of a pass
        self.uses: dict[nn.Parameter, list[Use]] = {}  # of weights that are read several times
        self.left: Counter[nn.Parameter] = Counter()  # how many uses have no gradient yet
        self.gradients: Gradients = {}
        self.scales: dict[nn.Parameter, Scale] = {}  # of gradients, before they are clipped
        for label, module in model.named_modules():
            if any(parameter.requires_grad for parameter in module.parameters(recurse=False)):
                if not supported(module):
                    layer = f"layer {label or 'model'} of type {type(module).__name__}"
                    message = f"{layer} is trainable, but its per-example gradient is not known"
                    raise InputError(message, key="model")
                self.names[module] = label or "model"
                self.places[module] = {
                    name: weight
                    for name, weight in module.named_parameters(recurse=False)
                    if weight.requires_grad
                }
                self.hooks.append(module.register_forward_hook(self._record, with_kwargs=True))
                if isinstance(module, Recurrent | Head):
                    self.hooks.append(module.register_forward_pre_hook(self._reach))
        kinds = {parameter.dtype for parameter in self.parameters}
        if len(kinds) != 1 or not kinds <= {torch.float32, torch.float64}:
            raise InputError(
                "private training wants parameters of one type, float32 or float64", key="model"
            )
        self.flat, self.total = self._buffer(torch.float64)
        self.spare, self.piece = self._buffer(kinds.pop())
        self.nonfinite = torch.zeros((), dtype=torch.int64, device=self.flat.device)

    def _buffer(self, kind: torch.dtype) -> tuple[Tensor, list[Tensor]]:
        """One contiguous run of zeros, and its views in the shapes of the parameters."""
        size = sum(parameter.numel() for parameter in self.moved)
        flat = torch.zeros(size, dtype=kind, device=self.moved[0].device)
        pieces = flat.split([parameter.numel() for parameter in self.moved])
        return flat, [
            piece.view_as(parameter) for piece, parameter in zip(pieces, self.moved, strict=True)
        ]

    def _reach(self, module: Layer, inputs: tuple[Tensor, ...]) -> None:
        """Let autograd go to what a layer reads, from whose gradient that of its weight follows.

        It would not, where nothing before is trained.
        """
        if not self.recording or inputs[0].requires_grad:
            return
        inputs[0].requires_grad_()
        if isinstance(module, Head):
            self.entrances.append(inputs[0])

    def _record(
        self,
        module: Layer,
        inputs: tuple[Tensor, ...],
        named: dict[str, Tensor],
        output: Tensor,
    ) -> None:
        if not self.recording:
            return
        read = inputs[0].detach()
        # its gate gradients are those of its input; what it read is its state before
        if isinstance(module, Recurrent):
            previous = F.pad(output.detach()[:, :-1], (0, 0, 1, 0))
            if len(inputs) > 1 and inputs[1] is not None:
                previous = previous * inputs[1].unsqueeze(-1)
            read = previous
            output = inputs[0]
        elif type(module).__name__ == "OPTLearnedPositionalEmbedding":
            read = named["position_ids"] + cast(int, module.offset)
        if not output.requires_grad:
            output.requires_grad_()
        weight = self._weight(module)
        if weight is not None:
            self.left[weight] += 1
        if output.is_leaf or isinstance(module, Head):
            self.ends.append(Record(module, read, output))
            return
        held = [read]  # and given up with the gradient: the graph lives on until the end
        output.register_hook(lambda grad: self._take(module, held.pop(), grad))

    def _weight(self, module: nn.Module) -> nn.Parameter | None:
        """The trained matrix of a layer."""
        return None if is_norm(module) else self.places[module].get("weight")

    def close(self) -> None:
        """Leave the model alone: another clipper takes over."""
        for hook in self.hooks:
            hook.remove()

    def reset(self) -> None:
        """Start a new logical step."""
        self.flat.zero_()

    def add(self, losses: Callable[[], Tensor], units: Tensor | None = None) -> Tensor:
        """Run `losses` () -> (B,), and add the clipped gradients to `total`.

        Returned are their norms before clipping. Without units every example is one of its own:
        norms (B,). units (B,) int64 numbers the unit of each example from 0 to A - 1, all of whose
        examples are here: norms (A,). Nothing is added where this raises.
        """
        gradients = self._backward(losses)
        together = None if units is None else units_of(units)
        squares = [gradient.squares(together) for gradient in gradients.values()]
        norms = torch.stack([square.norms for square in squares]).sum(0).sqrt()
        most = torch.stack([square.most for square in squares]).sum(0).sqrt()
        scale = self._scale(most)
        self._accumulate(gradients, scale if units is None else scale[units])
        return norms.to(self.spare.dtype)

    def add_unit(self, losses: Iterable[Callable[[], Tensor]]) -> Tensor:
        """Add a single unit that is too large for one pass, and return its norm ().

        Its gradients are summed over passes, then clipped.
        """
        self.spare.zero_()
        for piece in losses:
            grads = torch.autograd.grad(piece().sum(), self.parameters, allow_unused=True)
            for weight, total, grad in zip(self.parameters, self.piece, grads, strict=True):
                if grad is not None:
                    total.add_(self.scales[weight].of(grad) if weight in self.scales else grad)
        parts = [
            torch.linalg.vector_norm(part, dtype=torch.float64) for part in self.spare.split(PART)
        ]
        norm = torch.linalg.vector_norm(torch.stack(parts))
        scale = self._scale(norm.view(1))
        for total, part in zip(self.flat.split(PART), self.spare.split(PART), strict=True):
            total.add_(torch.where(scale > 0, part * scale, 0.0))
        return norm.to(self.spare.dtype)

    def finish(self, noise_multiplier: float, expected_batch_size: float, noise: Noise) -> None:
        """Put (total + N(0, (noise_multiplier C)^2)) / expected_batch_size into .grad.

        There is one draw for all parameters.
        Guarantees: sum and noise meet in float64, and are rounded to the parameters' type once,
        together.
        """
        if noise_multiplier > 0:
            self._add(noise, noise_multiplier * self.max_grad_norm)
        self.flat.div_(expected_batch_size)
        self.spare.copy_(self.flat)
        for parameter, released in zip(self.moved, self.piece, strict=True):
            parameter.grad = released

    def sum_over(self, group: Group) -> None:
        """Add up what the processes of a group have summed; divided weights have been, before."""
        if self.shards is None:
            group.sum([self.flat])
            return
        pairs = zip(self.parameters, self.total, strict=True)
        group.sum([total for weight, total in pairs if not is_divided(weight)])

    def _add(self, noise: Noise, deviation: float) -> None:
        """Add noise to `flat`: of each weight the same that one process alone would have drawn.

        So all of it is drawn in every process, and each keeps what its parts need.
        """
        if self.shards is None:
            noise.add(self.flat, deviation)
            return
        places = self._places()
        drawn = torch.zeros(BLOCK, dtype=torch.float64, device=self.flat.device)
        size = sum(weight.numel() for weight in self.parameters)
        for start in range(0, size, BLOCK):
            block = drawn[: min(BLOCK, size - start)].zero_()
            inside = [
                (max(first, start), min(first + count, start + len(block)), here - first)
                for first, here, count in places
                if first < start + len(block) and first + count > start
            ]
            for first, end, shift in inside:
                block[first - start : end - start] = self.flat[first + shift : end + shift]
            noise.add(block, deviation)
            for first, end, shift in inside:
                self.flat[first + shift : end + shift] = block[first - start : end - start]

    def _places(self) -> list[tuple[int, int, int]]:
        """Runs of numbers that this process keeps: where they begin in one process alone, where
        here, and how many.
        """
        runs = []
        first = here = 0
        for weight, part in zip(self.parameters, self.moved, strict=True):
            before = 0
            if self.shards is not None and is_divided(weight):
                before = self.shards.rows(weight).start * (weight.numel() // len(weight))
            runs.append((first + before, here, part.numel()))
            first += weight.numel()
            here += part.numel()
        return runs

    def _backward(self, losses: Callable[[], Tensor]) -> Gradients:
        """Gradients of the losses (B,) by example, of all parameters in their order.

        Parameters need no gradient from autograd. Every output that is no end of the graph depends
        on one that is, so that its gradient passes by on the way there.
        """
        self.ends.clear()
        self.left.clear()
        self.uses.clear()
        self.gradients = {}
        self._switch(True)
        try:
            with torch.enable_grad():
                values = losses()
                self.batch = len(values)
                outputs = [record.output for record in self.ends]
                grads = torch.autograd.grad(values.sum(), outputs + self.entrances)
            self._take_ends(grads[: len(outputs)])
        finally:
            self._switch(False)
        for weight, uses in self.uses.items():  # no loss depends on what else was made of it
            self.gradients[weight] = gradients_of(weight.shape, uses)
        gradients = self.gradients
        self.gradients = {}
        return {weight: gradients[weight] for weight in self.parameters if weight in gradients}

    def entered(self, hidden: Tensor) -> Tensor:
        """See Watcher: a place for autograd to go to, through all blocks."""
        hidden = hidden.detach().requires_grad_()
        self.entrances.append(hidden)
        return hidden

    def first(self, reading: Reading, hidden: Tensor) -> Tensor:
        """See Watcher: nothing is recorded."""
        self.recording = False
        output = reading(hidden)
        self.recording = True
        return output

    def second(self, reading: Reading, hidden: Tensor) -> Tensor:
        """See Watcher: what layers do is recorded apart from what those outside of blocks did."""
        self.outside = self.ends
        self.ends = []
        return reading(hidden)

    def gradient(self, block_output: Tensor, hidden: Tensor, grad: Tensor) -> Tensor:
        """See Watcher: what was recorded becomes the gradients of the block's weights."""
        outputs = [record.output for record in self.ends]
        of_hidden, *grads = torch.autograd.grad(block_output, [hidden, *outputs], grad)
        self._take_ends(grads)
        self.ends = self.outside
        return of_hidden

    def _switch(self, recording: bool) -> None:
        self.recording = recording
        self.entrances = []
        for block in self.blocks:
            block.watcher = self if recording else None
        for parameter in self.parameters:
            parameter.requires_grad_(not recording)
        for module in self.model.modules():
            if isinstance(module, LSTMLayer):
                module.open = recording

    def _take_ends(self, grads: Sequence[Tensor]) -> None:
        """Take the gradients of the outputs that autograd was asked for."""
        for record, grad in zip(self.ends, grads, strict=True):
            logit_grads = getattr(record.output.grad_fn, "logit_grads", None)
            self._take(record.layer, record.read, grad if logit_grads is None else logit_grads)
        self.ends.clear()

    def _take(self, module: Layer, inputs: Tensor, grad: Tensor) -> None:
        """What one reading by a layer adds to the gradients of its parameters, in their type.

        grad: of its output, or of a head's logits.
        """
        batch = self.batch
        if self.flattens and inputs.dim() == 2 and len(inputs) % batch == 0:
            inputs = inputs.unflatten(0, (batch, -1))
        if len(inputs) != batch:
            layer = f"layer {self.names[module]} of type {type(module).__name__}"
            message = f"{layer} read {len(inputs)} rows for {batch} examples"
            raise InputError(f"{message}: its first dimension must be the example", key="model")
        grad = grad.detach().to(self.spare.dtype)
        grad = row_by_row(grad.reshape(batch, -1, grad.shape[-1]))
        vectors = vectors_of(module, inputs, grad)
        for name, parameter in self.places[module].items():
            if name in vectors:
                before = self.gradients.get(parameter)
                vector = vectors[name]
                if parameter in self.scales:
                    scale = self.scales[parameter]
                    vector = vector * scale.rows * scale.columns
                if isinstance(before, Formed):
                    vector = before.grads + vector
                self.gradients[parameter] = Formed(vector)
        weight = self._weight(module)
        if weight is None:
            return
        use = use_of(module, inputs, grad)
        if weight in self.scales:
            use = use.scaled(self.scales[weight])
        self.uses.setdefault(weight, []).append(use)
        self.left[weight] -= 1
        if self.left[weight]:
            return
        if weight in self.gradients:
            raise InputError("shares weights between blocks", key="recipe.gradient_checkpointing")
        self.gradients[weight] = gradients_of(weight.shape, self.uses.pop(weight))

    def _scale(self, norms: Tensor) -> Tensor:
        """min(1, C / norm) in the parameters' type, and 0, counted, for a norm that is not finite,
        or so large that a scale below the type's normal numbers would be rounded up.

        norms (A,) float64 are what gradients cannot exceed; the scale and a product by it are
        rounded, too, hence the slack.
        """
        of_type = torch.finfo(self.spare.dtype)
        slack = 1 + 4 * of_type.eps
        scale = (self.max_grad_norm / (slack * norms).clamp(min=1e-300)).clamp(max=1.0)
        usable = norms.isfinite() & (scale >= of_type.tiny)
        self.nonfinite += (~usable).sum()
        return torch.where(usable, scale, 0.0).to(self.spare.dtype)

    def _accumulate(self, gradients: Gradients, scale: Tensor) -> None:
        """Add the gradients of this batch, scaled by scale (B,), to `flat`, all or nothing."""
        # on a GPU nobody waits for the answer
        clean = scale.device.type == "cpu" and bool((scale > 0).all())
        self.spare.zero_()
        divided = []
        for parameter, view in zip(self.parameters, self.piece, strict=True):
            if self.shards is not None and is_divided(parameter):
                whole = torch.zeros(parameter.shape, dtype=view.dtype, device=view.device)
                if parameter in gradients:
                    gradients[parameter].add_weighted(whole, scale, clean)
                divided.append(self.shards.summed(whole.double(), parameter))
            elif parameter in gradients:
                gradients[parameter].add_weighted(view, scale, clean)
        for total, part in zip(self.flat.split(PART), self.spare.split(PART), strict=True):
            total.add_(part)
        pairs = zip(self.parameters, self.total, strict=True)
        totals = [total for weight, total in pairs if is_divided(weight)]
        for total, part in zip(totals, divided, strict=True):
            total.add_(part)


def row_by_row(grad: Tensor) -> Tensor:
    """(B, L, size) with its rows one behind the other, gaps between them or none."""
    example, row, number = grad.stride()
    return grad if number == 1 and example == grad.shape[1] * row else grad.contiguous()


def vectors_of(module: nn.Module, inputs: Tensor, grad: Tensor) -> dict[str, Tensor]:
    """Per-example gradients (B, size) of a layer's vectors, by their names there.

    They follow from what it read and its output's gradient (B, L, size).
    """
    vectors = {}
    if getattr(module, "bias", None) is not None:
        vectors["bias"] = grad.sum(1)
    if is_norm(module):
        normal = normalised(module, inputs.to(grad.dtype))
        vectors["weight"] = (grad * normal.reshape_as(grad)).sum(1)
    return vectors


def use_of(module: nn.Module, inputs: Tensor, grad: Tensor) -> Use:
    """How a layer used its weight matrix: what it read, and its output's gradient (B, L, out)."""
    if isinstance(module, nn.Embedding):
        ids = inputs.reshape(len(inputs), -1)
        if module.padding_idx is not None:
            grad = grad * (ids != module.padding_idx).unsqueeze(-1)
        scale = getattr(module, "embed_scale", None)
        return Use(ids, grad if scale is None else grad * scale)
    inputs = inputs.to(grad.dtype).reshape(len(inputs), -1, inputs.shape[-1])
    return Use(inputs, grad) if is_conv1d(module) else Use(grad, inputs)
