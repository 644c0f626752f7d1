"""Memory of the process and of the device: what there is, what something takes, and halving a batch
that does not fit.
"""

import ctypes
import resource
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from confide.errors import InputError, is_lack_of_memory
from confide.output.escaping import warn

# malloc.h of glibc
M_TRIM_THRESHOLD = -1
M_TOP_PAD = -2
M_MMAP_THRESHOLD = -3
LARGE = 32 << 20  # bytes: the greatest threshold that glibc takes
# Of control groups, version 2 and 1: limit, use, and statistics.
GROUP_FILES = {
    "": ("memory.max", "memory.current", "memory.stat"),
    "memory": ("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat"),
}
RECLAIMED = "inactive_file "  # bytes of files that are only kept as long as nobody needs them
Result = TypeVar("Result")


class Rows(Protocol):
    """What can be cut into pieces along its examples."""

    @property
    def length(self) -> int: ...

    def __len__(self) -> int: ...

    def split(self, size: int) -> list[Self]: ...


Piece = TypeVar("Piece", bound=Rows)


def keep_pages() -> None:
    """Let glibc keep freed memory, but for what very large tensors leave.

    Fetching fresh pages for every tensor costs as much as the arithmetic. The very large ones, of
    ever other sizes, would leave gaps that fit nothing: a job on SmolLM2 grew by a third.

    Without glibc nothing changes.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(M_MMAP_THRESHOLD, LARGE)
        libc.mallopt(M_TRIM_THRESHOLD, -1)  # never
        libc.mallopt(M_TOP_PAD, 64 << 20)


def peak_mb(device: str) -> float:
    """Megabytes that this process has held at most, of the GPU's memory where it works there."""
    if torch.device(device).type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 1e6
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss, in bytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def free(device: str, root: Path = Path("/")) -> int | None:
    """Bytes that can still be had: of the GPU where `device` is one, else of this machine, and of
    the container that the process is in. None where nobody says.

    `root` is where /proc and /sys are.
    """
    if torch.device(device).type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + unused
    free_bytes = []
    for line in _lines(root / "proc/meminfo"):
        if line.startswith("MemAvailable:"):
            free_bytes.append(int(line.split()[1]) * 1024)
    for folder, names in _groups(root):
        limit, used, cache = (_lines(folder / name) for name in names)
        if limit and limit[0].isdigit() and used:
            given_back = [int(line.split()[1]) for line in cache if line.startswith(RECLAIMED)]
            free_bytes.append(int(limit[0]) - int(used[0]) + sum(given_back))
    return max(0, min(free_bytes)) if free_bytes else None


def _groups(root: Path) -> Iterator[tuple[Path, Sequence[str]]]:
    """Control groups that bound this process, each with its files of limit, use and statistics."""
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        mounted = root / "sys/fs/cgroup" / controllers
        group = mounted / path.lstrip("/")
        for folder in (group, *group.parents):
            if folder.is_relative_to(mounted):
                yield folder, GROUP_FILES[controllers]


def _lines(file: Path) -> list[str]:
    """Of a file of the kernel, none where it is not there."""
    try:
        return file.read_text().splitlines()
    except OSError:
        return []


class _Allocated(TorchDispatchMode):
    """Counts the bytes of all tensors that are made meanwhile, as long as each lives."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.peak = 0
        self.known: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()

    def __torch_dispatch__(
        self,
        function: Callable[..., Any],
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """What the operation returns; views and what it changes in place are nothing new."""
        for argument in tree_leaves((args, kwargs)):
            if isinstance(argument, Tensor):
                self.known.setdefault(argument.untyped_storage(), True)
        result = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor):
                self._count(tensor.untyped_storage())
        return result

    def _count(self, storage: Any) -> None:
        if storage in self.known:
            return
        self.known[storage] = True
        size = storage.nbytes()
        self.now += size
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self._release, size)

    def _release(self, size: int) -> None:
        self.now -= size


def taken(function: Callable[[], object], device: str) -> int:
    """The most bytes of tensors that a call holds at once, beside what was there before."""
    if torch.device(device).type == "cuda":
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        function()
        return torch.cuda.max_memory_allocated(device) - before
    with _Allocated() as counted:
        function()
    return counted.peak


class TooLarge(InputError):
    """One example alone does not fit into memory."""


@contextmanager
def advised(ways: Sequence[str]) -> Iterator[None]:
    """Where memory runs out meanwhile: an InputError in one line, with ways to need less of it."""
    advice = f"; what helps: {', '.join(ways)}" if ways else ""
    try:
        yield
    except TooLarge as error:
        raise InputError(f"{error}{advice}") from None
    except (RuntimeError, MemoryError) as error:
        if not is_lack_of_memory(error):
            raise
        raise InputError(f"out of memory{advice}") from None


class Budget:
    """How much one pass may hold: so many examples, or so many tokens, padding included.

    It starts at `size` examples, or at `tokens` tokens if these are given, and is halved, with a
    message, whenever memory runs out; unless `halves` is False, where others read as many pieces.
    """

    def __init__(self, size: int, tokens: int | None = None, *, halves: bool = True):
        self.size = size
        self.tokens = tokens
        self.halves = halves

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
                if not (self.halves and is_lack_of_memory(error)):
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
            raise TooLarge("one example alone does not fit into memory", key=key)
        if self.tokens is None:
            self.size = (min(self.size, count) + 1) // 2
            most = f"{self.size} examples"
        else:
            self.tokens = (min(self.tokens, count * length) + 1) // 2
            most = f"{self.tokens} tokens"
        warn(f"out of memory: physical batches of at most {most} from here on")
