"""Output layer and its cross-entropy in one.

The memory of the logits is turned into their gradient in place. With z the logits and p =
softmax(z), the gradient of a token's loss is p - onehot(target), so one (tokens, V) buffer serves
for logits, probabilities and gradient, where the usual pair of layers needs three. Per-example
clipping reads the same buffer.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LINE = 16  # floats in a line of the processor's cache
IGNORE = -100  # target of padding and of masked tokens: no loss, no gradient


def linear(hidden: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """F.linear as one matrix product.

    Of hidden states that are not contiguous torch would make one per example.
    """
    rows = hidden.flatten(0, -2)
    logits = into_lines(rows, weight, bias) if fits_lines(rows) else F.linear(rows, weight, bias)
    return logits.unflatten(0, hidden.shape[:-1])


def fits_lines(rows: Tensor) -> bool:
    """Whether a product may be written where we say: on a processor, without autograd or casts."""
    on_cpu = rows.device.type == "cpu" and rows.dtype == torch.float32
    return on_cpu and not torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu")


def into_lines(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """What F.linear gives (N, V), each row beginning at a line of the cache.

    Rows of other lengths, such as GPT-2's 50,257, are written half as fast.
    """
    size = len(weight)
    lines = -(-size // LINE)
    logits = rows.new_empty(len(rows), lines * LINE)[:, :size]
    if bias is None:
        return torch.mm(rows, weight.t(), out=logits)
    return torch.addmm(bias, rows, weight.t(), out=logits)


class CrossEntropy(torch.autograd.Function):
    """Token losses (B, L) from hidden states, weights and targets.

    Takes hidden (B, L, d), weight (V, d), bias (V,) or None, targets (B, L), and logits (B, L, k)
    of k more tokens or None. May be differentiated once; then `logit_grads` (B, L, V + k) of the
    node holds the gradient of the logits.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        more: Tensor | None = None,
    ) -> Tensor:
        logits = linear(hidden, weight, bias)
        ctx.dtype = logits.dtype
        if more is not None:
            logits = torch.cat([logits, more.to(logits.dtype)], -1)
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        labels = targets.clamp(min=0).unsqueeze(-1)
        real = targets != IGNORE
        largest = logits.amax(-1, keepdim=True)
        wanted = logits.gather(-1, labels) - largest
        exponentials = logits.sub_(largest).exp_()
        total = exponentials.sum(-1, keepdim=True)
        ctx.save_for_backward(hidden, weight, labels, real, total)
        if any(ctx.needs_input_grad):
            ctx.logit_grads = exponentials.to(ctx.dtype)
        return torch.where(real, (total.log() - wanted).squeeze(-1), 0.0)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight, labels, real, total = ctx.saved_tensors
        grad = torch.where(real, grad, 0.0).unsqueeze(-1)
        logit_grads = ctx.logit_grads.mul_(grad / total).scatter_add_(
            -1, labels, -grad.to(ctx.dtype)
        )
        wants_hidden, wants_weight, wants_bias, _, wants_more = ctx.needs_input_grad
        more = logit_grads[..., len(weight) :] if wants_more else None
        logit_grads = logit_grads[..., : len(weight)]
        flat = logit_grads.flatten(0, -2)
        inputs = hidden.flatten(0, -2).to(ctx.dtype)
        return (
            logit_grads @ weight.to(ctx.dtype) if wants_hidden else None,
            flat.t() @ inputs if wants_weight else None,
            flat.sum(0) if wants_bias else None,
            None,
            more,
        )


class Head(nn.Module):
    """Output layer; its weight may be tied to an embedding.

    Where the weight is frozen, `more` is a layer that gives the logits of k tokens that follow.
    """

    def __init__(
        self, weight: Tensor, bias: Tensor | None = None, more: nn.Linear | None = None
    ) -> None:
        """weight (V, d) and bias (V,) are parameters."""
        super().__init__()
        self.weight = weight
        self.bias = bias
        self.more = more

    def forward(self, hidden: Tensor, targets: Tensor | None = None) -> Tensor:
        """Logits (B, L, V + k) of hidden (B, L, d), or with targets (B, L) the losses of these.

        Losses are (B, L) in nats, and 0 where the target is IGNORE.
        """
        more = None if self.more is None else self.more(hidden.to(self.more.weight.dtype))
        if targets is not None:
            return CrossEntropy.apply(hidden, self.weight, self.bias, targets, more)
        logits = linear(hidden, self.weight, self.bias)
        return logits if more is None else torch.cat([logits, more.to(logits.dtype)], -1)
