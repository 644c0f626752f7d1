"""Keys and values of texts that are being written, for models of transformers.

transformers' own cache copies all that a text has read for each further token. This one has memory
for all tokens from the start and writes each into its place.
"""

from typing import Any, cast

from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer


class RoomyLayer(DynamicLayer):
    """Keys and values (n, heads, t, d / heads) of one layer of a model, with room for more."""

    def __init__(self, keys: Tensor, values: Tensor, room: int):
        """`room`: how many more tokens will be read."""
        super().__init__()
        self.lazy_initialization(keys, values)
        self.memory = _widened(keys, room), _widened(values, room)
        self._fill(keys.shape[2])

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Write the keys and values of further tokens (n, heads, l, d / heads); all so far."""
        start = self.get_seq_length()
        end = start + key_states.shape[2]
        for memory, states in zip(self.memory, (key_states, value_states), strict=True):
            memory[:, :, start:end] = states
        return self._fill(end)

    def _fill(self, length: int) -> tuple[Tensor, Tensor]:
        """Keys and values of the tokens so far."""
        self.keys, self.values = (memory[:, :, :length] for memory in self.memory)
        return self.keys, self.values


def with_room(state: Any, room: int) -> DynamicCache:
    """A cache of the keys and values of each layer of a model, with room for more tokens."""
    cache = DynamicCache()
    cache.layers = [RoomyLayer(keys, values, room) for keys, values in state]
    return cache


def state_of(cache: DynamicCache) -> list[tuple[Tensor, Tensor]]:
    """Keys and values of each layer, (n, heads, t, d / heads)."""
    return [(layer.keys, layer.values) for layer in cast("list[Any]", cache.layers)]


def _widened(states: Tensor, room: int) -> Tensor:
    """A copy of states (n, heads, t, d / heads) in memory for so many more tokens."""
    count, heads, length, width = states.shape
    memory = states.new_empty(count, heads, length + room, width)
    memory[:, :, :length] = states
    return memory
