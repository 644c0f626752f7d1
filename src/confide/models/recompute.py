"""Blocks of a transformer whose activations are computed again in the backward pass (Chen et al.
2016): gradient checkpointing.

Of a block only what it read is kept. When its gradient is wanted it reads that once more, with the
same dropout, and gives up all of it again before the block below does. Per-example clipping watches
this second reading: whatever it needs of a block, it takes there.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor, nn

from confide.errors import InputError

if TYPE_CHECKING:
    from confide.models.language_model import LanguageModel
    from confide.models.sharding import Shards

KEY = "recipe.gradient_checkpointing"
Reading = Callable[[Tensor], Tensor]  # hidden states (B, L, d) that a block makes of others


class Watcher(Protocol):
    """Who wants to see what the layers of a block do."""

    def entered(self, hidden: Tensor) -> Tensor:
        """What a block reads instead of hidden states that no gradient is wanted of."""

    def first(self, reading: Reading, hidden: Tensor) -> Tensor:
        """The block's first reading, of which nothing is kept."""

    def second(self, reading: Reading, hidden: Tensor) -> Tensor:
        """Its second one, which the gradient goes through."""

    def gradient(self, output: Tensor, hidden: Tensor, grad: Tensor) -> Tensor:
        """The gradient of hidden from that of what the block has made of it."""


class Block:
    """How one block runs while its model trains."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.watcher: Watcher | None = None
        self.shards: Shards | None = None

    def __call__(self, function: Callable[..., Tensor], hidden: Tensor, *rest: Any) -> Tensor:
        """What `function`, the block's own forward, makes of hidden states and what has none."""
        if not torch.is_grad_enabled():
            return function(hidden, *rest)
        if self.watcher is not None and not hidden.requires_grad:
            hidden = self.watcher.entered(hidden)
        weights = [weight for weight in self.module.parameters() if weight.requires_grad]
        if self.watcher is not None:
            weights = []
        return Recomputed.apply(self, lambda read: function(read, *rest), hidden, *weights)


class Recomputed(torch.autograd.Function):
    """A block's reading of hidden states (B, L, d), as a function of these and of its weights."""

    @staticmethod
    def forward(ctx: Any, block: Block, reading: Reading, hidden: Tensor, *weights: Tensor) -> Any:
        ctx.block = block
        ctx.reading = reading
        ctx.weights = weights
        ctx.circumstances = Circumstances(hidden.device)
        ctx.save_for_backward(hidden)
        if block.watcher is not None:
            return block.watcher.first(reading, hidden)
        return reading(hidden)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (grad,) = grads
        hidden = ctx.saved_tensors[0].detach().requires_grad_()
        watcher = ctx.block.watcher
        with torch.enable_grad(), ctx.circumstances.again():
            output = ctx.reading(hidden) if watcher is None else watcher.second(ctx.reading, hidden)
        if watcher is not None:
            return None, None, watcher.gradient(output, hidden, grad)
        of_hidden, *of_weights = torch.autograd.grad(
            output, [hidden, *ctx.weights], grad, allow_unused=True
        )
        shards = ctx.block.shards
        if shards is not None and shards.of_blocks[ctx.block]:
            shards.collect(ctx.block, of_weights)
            return None, None, of_hidden, *(None for _ in of_weights)
        return None, None, of_hidden, *of_weights


class Circumstances:
    """What else a reading depends on: where dropout stands, and whether products are shortened."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.places = [torch.get_rng_state()]
        if device.type == "cuda":
            self.places.append(torch.cuda.get_rng_state(device))
        self.half = torch.is_autocast_enabled(device.type)
        self.kind = torch.get_autocast_dtype(device.type)

    @contextmanager
    def again(self) -> Iterator[None]:
        """They are as they were; afterwards dropout goes on where it stood."""
        devices = [self.device] if self.device.type == "cuda" else []
        autocast = torch.autocast(self.device.type, dtype=self.kind, enabled=self.half)
        with torch.random.fork_rng(devices), autocast:
            torch.set_rng_state(self.places[0])
            if devices:
                torch.cuda.set_rng_state(self.places[1], self.device)
            yield


def recompute(model: "LanguageModel") -> None:
    """Let all blocks of a model be recomputed while it trains.

    InputError for a model that has none.
    """
    if model.spec.kind == "lstm":
        raise InputError("needs a model of blocks (gpt2, causal_lm)", key=KEY, value=True)
    from transformers.modeling_layers import GradientCheckpointingLayer

    for module in model.modules():
        if isinstance(module, GradientCheckpointingLayer):
            layer: Any = module
            layer.gradient_checkpointing = True
            layer._gradient_checkpointing_func = Block(module)
            model.blocks_recomputed.append(layer._gradient_checkpointing_func)
    if not model.blocks_recomputed:
        raise InputError("finds no block in this model", key=KEY, value=True)
