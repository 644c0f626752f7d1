"""Several processes that make every update of one model together, each reading its part.

torchrun starts them (`confide train --processes 2`). All draw the same batches and the same noise
from the same streams, each computes every n-th example, and sums are added up before anything is
done with them. So the sum, what is drawn and the ledger are those of one process, weights stay the
same in all without being sent, and one process has nothing to do here.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch import Tensor

from confide.errors import InputError
from confide.runtime.launch import LAUNCHED

# For the slowest to come to where all meet; a process that ends is noticed at once.
TIMEOUT = timedelta(hours=2)
# What gloo says where the other end has gone.
CLOSED = ("Connection closed by peer", "Connection reset by peer", "Broken pipe")


class Lost(RuntimeError):
    """Another process has ended, or cannot be reached."""


@dataclass(frozen=True, slots=True)
class Group:
    """This process among those that train one model; by default it is alone.

    Then nothing here does anything.
    """

    rank: int = 0
    size: int = 1
    device: str = "cpu"

    @property
    def first(self) -> bool:
        """The process that writes files and talks."""
        return self.rank == 0

    @property
    def part(self) -> slice:
        """Which of a batch's examples, in order of length, this process computes.

        Each process has as many, of like lengths.
        """
        return slice(self.rank, None, self.size)

    @property
    def parts(self) -> list[slice]:
        """The parts of all processes, in their order."""
        return [slice(rank, None, self.size) for rank in range(self.size)]

    def sum(self, tensors: Iterable[Tensor]) -> None:
        """Replace tensors by their sums over all processes, in every process the same bits."""
        if self.size == 1:
            return
        # what is sent is memory, whatever its layout
        pairs = [(tensor, tensor.contiguous()) for tensor in tensors]
        with _together():
            for work in [
                torch.distributed.all_reduce(buffer, async_op=True) for _, buffer in pairs
            ]:
                work.wait()
        for tensor, buffer in pairs:
            if buffer is not tensor:
                tensor.copy_(buffer)

    def scattered(self, rows: Tensor) -> Tensor:
        """This process's share of the rows (n size, ...) of a sum over all processes: (n, ...)."""
        share = rows.new_empty(len(rows) // self.size, *rows.shape[1:])
        with _together():
            torch.distributed.reduce_scatter(share, list(rows.contiguous().chunk(self.size)))
        return share

    def gathered(self, rows: Tensor) -> Tensor:
        """The rows (n, ...) of every process, one after the other: (n size, ...)."""
        parts = [torch.empty_like(rows) for _ in range(self.size)]
        with _together():
            torch.distributed.all_gather(parts, rows.contiguous())
        return torch.cat(parts)

    def same(self, number: int) -> int:
        """The first process's number, of at most 128 bits."""
        if self.size == 1:
            return number
        buffer = torch.tensor(
            list(number.to_bytes(16, "big")), dtype=torch.uint8, device=self.device
        )
        with _together():
            torch.distributed.broadcast(buffer, 0)
        return int.from_bytes(bytes(buffer.tolist()), "big")

    def wait(self) -> None:
        """Until all processes have come here."""
        if self.size > 1:
            with _together():
                torch.distributed.barrier()

    def check(self, weights: Iterable[Tensor], history: str) -> None:
        """InputError unless weights and history are the same in all of them, bit for bit."""
        if self.size == 1:
            return
        digest = hashlib.sha256(history.encode())
        for tensor in weights:
            digest.update(tensor.detach().cpu().numpy().tobytes())
        if not self._all_have(digest.digest()):
            message = "no longer have the same weights or the same ledger"
            raise InputError(message, key="processes", value=self.size)

    def check_files(self, fingerprint: str) -> None:
        """InputError unless all of them read files of the same digests: the ledger names one text,
        and each process computes a part of every batch from the text that it has read itself.
        """
        if self.size > 1 and not self._all_have(hashlib.sha256(fingerprint.encode()).digest()):
            message = "have read different files: put them where all nodes see the same ones"
            raise InputError(message, key="processes", value=self.size)

    def _all_have(self, digest: bytes) -> bool:
        """Whether a digest is the same in all processes."""
        ours = torch.tensor(list(digest), dtype=torch.uint8, device=self.device)
        digests = [torch.empty_like(ours) for _ in range(self.size)]
        with _together():
            torch.distributed.all_gather(digests, ours)
        return all(torch.equal(other, ours) for other in digests)


ALONE = Group()


@contextmanager
def joined(device: str) -> Iterator[Group]:
    """The group that this process was started in, until it is left.

    A process that was started alone is one of its own.

    Where several processes fail, one raises the InputError and the others just end.
    """
    size = int(os.environ["WORLD_SIZE"]) if LAUNCHED in os.environ else 1
    if size == 1:
        yield ALONE
        return
    store, rank, size = next(torch.distributed.rendezvous("env://", timeout=TIMEOUT))
    try:
        if device != "cpu":
            _take_gpu(device, int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"]))
        meeting = {"store": store, "rank": rank, "world_size": size, "timeout": TIMEOUT}
        torch.distributed.init_process_group("gloo" if device == "cpu" else "nccl", **meeting)
        yield Group(rank, size, device)
    except (InputError, Lost) as error:
        if store.add("failed", 1) > 1:
            raise SystemExit(2) from None
        raise InputError(str(error)) from None
    except RuntimeError as error:  # of torch's own exchange of divided weights
        if not any(phrase in str(error) for phrase in CLOSED):
            raise
        store.add("failed", 1)
        raise SystemExit(2) from None
    torch.distributed.destroy_process_group()


def _take_gpu(device: str, place: int, processes: int) -> None:
    """Let "cuda" be a GPU of this process's own."""
    if device != "cuda":
        raise InputError(
            "names a GPU, and each process needs one of its own", key="device", value=device
        )
    if processes > torch.cuda.device_count():
        raise InputError(
            f"are more than the {torch.cuda.device_count()} GPUs", key="processes", value=processes
        )
    torch.cuda.set_device(place)


@contextmanager
def _together() -> Iterator[None]:
    try:
        yield
    except RuntimeError:  # gloo's for a closed connection has no type of its own
        raise Lost("another process of this job has ended, or cannot be reached") from None
