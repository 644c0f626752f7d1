"""Exact per-example gradient clipping in one forward and one backward pass (book-keeping, Bu et al. 2023).

Forward hooks keep each layer's input; autograd is asked for the gradients of the layers' outputs only. Input and output
gradient of a linear use determine its per-example gradient sum_t g_t a_t^T, so its norm needs no materialised gradient
(<aa^T, gg^T> over L x L Grams, or directly where that is cheaper), and the clipped sum is one weighted contraction.
A weight with several uses (tied embedding and head) gets its cross terms exactly.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from confide.models.lstm import RecurrentLayer


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a weight in a batch: kind "linear" (weight (out, in)), "conv1d" (weight (in, out)) or "embedding"."""

    kind: str
    inputs: Tensor  # (B, L, in), or token ids (B, L) for an embedding
    grads: Tensor  # (B, L, out): gradient of the summed loss with respect to the output


def _is_conv1d(module: nn.Module) -> bool:
    return type(module).__name__ == "Conv1D" and type(module).__module__ == "transformers.pytorch_utils"


def _supported(module: nn.Module) -> bool:
    if isinstance(module, nn.Embedding):
        return module.max_norm is None and not module.scale_grad_by_freq and not module.sparse
    return type(module) in (nn.Linear, nn.LayerNorm, RecurrentLayer) or _is_conv1d(module)


class PerExampleClipper:
    """Accumulates clipped gradient sums of a model; holds the hooks and the running sum.

    Raises TypeError at construction for a trainable parameter in a layer whose per-example gradient is not known here.
    Guarantees: the contribution of one example to `total` has norm at most max_grad_norm; an example whose gradient is
    not finite contributes zero and is counted in `nonfinite`.
    """

    def __init__(self, model: nn.Module, max_grad_norm: float):
        self.model, self.max_grad_norm = model, max_grad_norm
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.total = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.nonfinite = 0
        self._records: list[tuple[nn.Module, Tensor, Tensor]] = []
        self._recording = False
        for name, module in model.named_modules():
            if any(parameter.requires_grad for parameter in module.parameters(recurse=False)):
                if not _supported(module):
                    raise TypeError(f"no per-example gradient for layer {name or 'model'} of type {type(module).__name__}")
                module.register_forward_hook(self._record)

    def _record(self, module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        if not self._recording:
            return
        if isinstance(module, RecurrentLayer):  # its gate gradient is that of its input; what it read is h_{t-1}
            previous = F.pad(output.detach()[:, :-1], (0, 0, 1, 0))
            self._records.append((module, previous, inputs[0]))
            return
        if not output.requires_grad:
            output.requires_grad_()
        self._records.append((module, inputs[0].detach(), output))

    def add(self, losses: Callable[[], Tensor]) -> Tensor:
        """Run `losses` () -> (B,), add the clipped gradients to `total`, and return the gradient norms (B,)."""
        self._records.clear()
        for parameter in self.parameters:
            parameter.requires_grad_(False)
        self._recording = True
        try:
            with torch.enable_grad():
                values = losses()
                grads = torch.autograd.grad(values.sum(), [output for _, _, output in self._records])
        finally:
            self._recording = False
            for parameter in self.parameters:
                parameter.requires_grad_(True)
        vectors, matrices = self._collect(grads, len(values))
        squared = sum((vector.square().flatten(1).sum(1) for _, vector in vectors), start=values.new_zeros(len(values)))
        for weight, uses in matrices:
            squared = squared + squared_norms(weight, uses)
        norms = squared.clamp(min=0).sqrt().detach()
        self._accumulate(vectors, matrices, norms)
        self._records.clear()
        return norms

    def reset(self) -> None:
        """Start a new logical step."""
        for value in self.total:
            value.zero_()

    def _collect(
        self, grads: tuple[Tensor, ...], batch: int
    ) -> tuple[list[tuple[Tensor, Tensor]], list[tuple[Tensor, list[Use]]]]:
        """Per-example gradients of vector parameters, and the uses of every matrix parameter."""
        trainable = {id(parameter) for parameter in self.parameters}
        vectors: list[tuple[Tensor, Tensor]] = []
        uses: dict[int, tuple[Tensor, list[Use]]] = {}
        for (module, inputs, _), grad in zip(self._records, grads, strict=True):
            if inputs.shape[0] != batch:
                raise RuntimeError(f"{type(module).__name__} got {inputs.shape[0]} rows for {batch} examples")
            grad = grad.detach()
            if isinstance(module, nn.LayerNorm):
                normal = F.layer_norm(inputs, module.normalized_shape, None, None, module.eps)
                pairs = [(module.weight, grad * normal), (module.bias, grad)]
            else:
                pairs = [(getattr(module, "bias", None), grad)]
                if id(module.weight) in trainable:
                    kind = "embedding" if isinstance(module, nn.Embedding) else "conv1d" if _is_conv1d(module) else "linear"
                    if kind == "embedding" and module.padding_idx is not None:
                        grad = grad * (inputs != module.padding_idx).unsqueeze(-1)
                    uses.setdefault(id(module.weight), (module.weight, []))[1].append(Use(kind, inputs, grad))
            vectors += [(p, g.flatten(1, -2).sum(1)) for p, g in pairs if p is not None and id(p) in trainable]
        return self._merge(vectors), list(uses.values())

    @staticmethod
    def _merge(vectors: list[tuple[Tensor, Tensor]]) -> list[tuple[Tensor, Tensor]]:
        """Sum the per-example gradients of a vector that is used more than once."""
        total: dict[int, list] = defaultdict(list)
        for parameter, grad in vectors:
            total[id(parameter)].append((parameter, grad))
        return [(found[0][0], sum(grad for _, grad in found)) for found in total.values()]

    def _accumulate(self, vectors: list, matrices: list, norms: Tensor) -> None:
        finite = norms.isfinite()
        scale = torch.where(finite, (self.max_grad_norm / norms.clamp(min=1e-12)).clamp(max=1.0), 0.0)
        whole = bool(finite.all())
        self.nonfinite += int((~finite).sum())
        place = {id(parameter): total for parameter, total in zip(self.parameters, self.total, strict=True)}
        for parameter, grad in vectors:
            place[id(parameter)].add_(scale @ (grad if whole else _zero_rows(grad, finite)))
        for weight, uses in matrices:
            for use in uses:
                inputs, grads = use.inputs, use.grads
                if not whole:  # 0 * nan is nan: silence both factors
                    grads = _zero_rows(grads, finite)
                    inputs = inputs if use.kind == "embedding" else _zero_rows(inputs, finite)
                scaled = (grads * scale.view(-1, 1, 1)).flatten(0, 1)
                total = place[id(weight)]
                if use.kind == "embedding":
                    total.index_add_(0, inputs.flatten(), scaled)
                elif use.kind == "linear":
                    total.addmm_(scaled.t(), inputs.flatten(0, 1))
                else:
                    total.addmm_(inputs.flatten(0, 1).t(), scaled)


def _zero_rows(value: Tensor, keep: Tensor) -> Tensor:
    return torch.where(keep.view(-1, *[1] * (value.dim() - 1)), value, 0.0)


def squared_norms(weight: Tensor, uses: list[Use]) -> Tensor:
    """Squared norm (B,) of each example's gradient of one weight, summed over its uses with all cross terms."""
    if len(uses) == 1 and uses[0].kind != "embedding":
        inputs, grads = uses[0].inputs, uses[0].grads
        if 2 * inputs.shape[1] * sum(weight.shape) >= weight.numel():  # long sequences: materialising is cheaper
            return (grads.mT @ inputs).square().sum((1, 2))
    total = sum(inner(use, use) for use in uses)
    return total + 2 * sum(inner(uses[j], use) for i, use in enumerate(uses) for j in range(i))


def inner(one: Use, other: Use) -> Tensor:
    """Per-example inner product (B,) of the gradients that two uses contribute to the same weight."""
    if one.kind != "embedding" and other.kind != "embedding":
        return ((one.inputs @ other.inputs.mT) * (one.grads @ other.grads.mT)).sum((1, 2))
    if one.kind == other.kind:
        same = one.inputs.unsqueeze(2) == other.inputs.unsqueeze(1)
        return (same * (one.grads @ other.grads.mT)).sum((1, 2))
    embedding, linear = (one, other) if one.kind == "embedding" else (other, one)
    ids = embedding.inputs.unsqueeze(1).expand(-1, linear.grads.shape[1], -1)  # (B, L_linear, L_embedding)
    return (linear.grads.gather(2, ids) * (linear.inputs @ embedding.grads.mT)).sum((1, 2))
