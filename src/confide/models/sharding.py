"""Weights of a model's blocks of which each of several processes keeps a part (FSDP2 of torch).

A block is whole in a process only while it is read, forward or backward. What stands outside of the
blocks, and adapters, every process has whole. The optimizer moves the part that a process keeps.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from confide.runtime.parallel import Group

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor

    from confide.models.language_model import Encoder
    from confide.models.recompute import Block


class Shards:
    """Which weights are divided, by rows (their first dimension), and how to get from parts to
    wholes. Every process of the group must make the same calls.
    """

    def __init__(self, model: "Encoder", group: Group) -> None:
        """Divide the blocks of a model that recomputes them; with adapters what is frozen alone.

        The model goes to the group's device, one block at a time.
        """
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        self.group = group
        self.parts: dict[nn.Parameter, nn.Parameter] = {}  # of a weight what this process keeps
        self.of_blocks: dict[Block, list[nn.Parameter]] = {}
        mesh = init_device_mesh(torch.device(group.device).type, (group.size,))
        adapted = any(".lora_" in name for name, _ in model.named_parameters())
        for block in model.blocks_recomputed:
            trained = {weight for weight in block.module.parameters() if weight.requires_grad}
            fully_shard(
                block.module,
                mesh=mesh,
                reshard_after_forward=True,
                ignored_params=trained if adapted else set(),
            )
            block.shards = self
        model.to(group.device)
        for block in model.blocks_recomputed:
            weights = list(block.module.parameters())
            divided = [weight for weight in weights if weight.requires_grad and not adapted]
            self.of_blocks[block] = divided
            for weight in weights:
                if is_divided(weight):
                    local = cast("DTensor", weight).to_local()
                    self.parts[weight] = nn.Parameter(local, requires_grad=weight.requires_grad)

    def part_of(self, weight: nn.Parameter) -> nn.Parameter:
        """What this process keeps of a weight: some of its rows, in the same memory, or all."""
        return self.parts.get(weight, weight)

    def local(self, whole: Tensor, weight: nn.Parameter) -> Tensor:
        """Of a tensor in the shape of a weight what belongs to this process's part of it."""
        return whole[self.rows(weight)] if weight in self.parts else whole

    def rows(self, weight: nn.Parameter) -> slice:
        """Which rows of a divided weight these are."""
        size = -(-len(weight) // self.group.size)
        start = min(len(weight), self.group.rank * size)
        return slice(start, min(len(weight), start + size))

    def summed(self, whole: Tensor, weight: nn.Parameter) -> Tensor:
        """This process's rows of the sum of tensors in a divided weight's shape, one of each
        process.
        """
        size = -(-len(weight) // self.group.size)
        padded = whole.new_zeros(size * self.group.size, *whole.shape[1:])
        padded[: len(whole)] = whole
        rows = self.rows(weight)
        return self.group.scattered(padded)[: rows.stop - rows.start]

    def whole(self, part: Tensor, weight: nn.Parameter) -> Tensor:
        """All rows of what every process has its own of; what is not divided, as it is."""
        if weight not in self.parts:
            return part
        size = -(-len(weight) // self.group.size)
        padded = part.new_zeros(size, *part.shape[1:])
        padded[: len(part)] = part.detach()
        return self.group.gathered(padded)[: len(weight)]

    def collect(self, block: "Block", grads: Sequence[Tensor | None]) -> None:
        """Add the gradients of a block's weights, those of all processes, to .grad of the parts."""
        for weight, grad in zip(self.of_blocks[block], grads, strict=True):
            part = self.part_of(weight)
            full = torch.zeros(weight.shape, dtype=part.dtype, device=part.device)
            total = self.summed(full if grad is None else grad, weight)
            part.grad = total if part.grad is None else part.grad.add_(total)


def moved(model: "Encoder") -> list[nn.Parameter]:
    """What the optimizer moves: trainable weights, or the parts of them that are here."""
    shards = model.shards
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    return weights if shards is None else [shards.part_of(weight) for weight in weights]


def is_divided(weight: Tensor) -> bool:
    """Whether a process keeps but a part of it."""
    return hasattr(weight, "to_local")


def in_memory(weight: Tensor) -> int:
    """Bytes that this process keeps of a weight."""
    local: Any = weight
    return local.to_local().nbytes if is_divided(weight) else weight.nbytes
