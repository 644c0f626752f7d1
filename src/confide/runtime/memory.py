"""Memory of the process and of the device: keep pages, and halve a batch that does not fit."""

import ctypes
import resource
import sys
from collections.abc import Callable
from typing import Protocol, Self, TypeVar

import torch

from confide.errors import InputError
from confide.output.escaping import warn

# malloc.h of glibc
M_TRIM_THRESHOLD = -1
M_TOP_PAD = -2
M_MMAP_MAX = -4
Result = TypeVar("Result")


class Rows(Protocol):
    """What can be cut into pieces along its examples."""

    @property
    def length(self) -> int: ...

    def __len__(self) -> int: ...

    def split(self, size: int) -> list[Self]: ...


Piece = TypeVar("Piece", bound=Rows)


def keep_pages() -> None:
    """Let glibc keep freed memory; without glibc nothing changes.

    Fetching fresh pages for every large tensor costs as much as the arithmetic.

    Without glibc nothing changes.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(M_MMAP_MAX, 0)
        libc.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
        libc.mallopt(M_TOP_PAD, 64 << 20)


def peak_mb(device: str) -> float:
    """Megabytes that this process has held at most, of the GPU's memory where it works there."""
    if torch.device(device).type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 1e6
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss, in bytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def out_of_memory(error: RuntimeError) -> bool:
    """Whether torch could not allocate, on a GPU or on the CPU."""
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)


class Budget:
    """How much one pass may hold: so many examples, or so many tokens, padding included.

    It starts at `size` examples, or at `tokens` tokens if these are given, and is halved, with a
    message, whenever memory runs out.
    """

    def __init__(self, size: int, tokens: int | None = None):
        self.size = size
        self.tokens = tokens

    def examples(self, length: int) -> int:
        """How many examples of so many tokens one pass may hold: at least one."""
        return self.size if self.tokens is None else max(1, self.tokens // length)

    def run(self, function: Callable[[Piece], Result], batch: Piece) -> list[Result]:
        """Results of a function on consecutive pieces of a batch.

        InputError if a single example does not fit.
        """
        results = []
        waiting = batch.split(self.examples(batch.length))
        while waiting:
            try:
                results.append(function(waiting[0]))
                waiting.pop(0)
                continue
            except RuntimeError as error:
                if not out_of_memory(error):
                    raise
            self._halve(len(waiting[0]), waiting[0].length)
            waiting = [
                half for piece in waiting for half in piece.split(self.examples(piece.length))
            ]
        return results

    def _halve(self, count: int, length: int) -> None:
        """Allow half of what did not fit: `count` examples of `length` tokens."""
        key = "recipe.physical_batch_size" if self.tokens is None else "recipe.physical_tokens"
        if self.examples(length) == 1:
            raise InputError("one example alone does not fit into memory", key=key)
        if self.tokens is None:
            self.size = (min(self.size, count) + 1) // 2
            most = f"{self.size} examples"
        else:
            self.tokens = (min(self.tokens, count * length) + 1) // 2
            most = f"{self.tokens} tokens"
        warn(f"out of memory: physical batches of at most {most} from here on")
