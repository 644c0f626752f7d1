"""Shards tile a file at line ends; scattered results come back in order, errors and killed
processes as one line.
"""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.errors import InputError
from confide.files import shards
from confide.files.buckets import Offsets
from confide.files.io import Range, count_lines, line_number, read_lines


@given(
    st.lists(st.sampled_from([b"a", b"", b"b" * 9, "é".encode()]), max_size=12),
    st.booleans(),
    st.integers(1, 20),
)
def test_shards_tile_the_file_at_line_ends(tmp_path_factory, lines, ended, size):
    path = tmp_path_factory.mktemp("t") / "lines"
    path.write_bytes(b"\n".join(lines) + b"\n" * (ended and bool(lines)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "SIZE", size)
        cut = shards.shards(path)
    parts = [list(read_lines(shard)) for shard in cut]
    assert [line for part in parts for line in part] == list(read_lines(path))
    assert b"".join(line for part in parts for _, line in part) == path.read_bytes()
    for shard in cut[:-1]:
        assert shard.end - shard.start >= size
        assert count_lines(path, 0, shard.end) + 1 == line_number(path, shard.end)
    for at, line in read_lines(path):
        assert path.read_bytes()[at:].startswith(line)


def test_shards_may_be_parts_of_the_usual_size(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "SIZE", 40)
    path = tmp_path / "lines"
    path.write_bytes(b"12345678\n" * 9)
    assert [cut.start for cut in shards.shards(path)] == [0, 45]
    assert [cut.start for cut in shards.shards(path, parts=4)] == [0, 18, 36, 54, 72]


@given(
    st.lists(st.lists(st.integers(0, 50), max_size=6).map(sorted), max_size=5),
    st.integers(0, 50),
    st.integers(0, 51),
)
def test_offsets_of_a_stretch(tmp_path_factory, runs, start, end):
    offsets = Offsets(tmp_path_factory.mktemp("t"))
    for run in runs:
        offsets.extend(np.array(run, np.int64))
    every = sorted(place for run in runs for place in run)
    assert offsets.within(Range(None, start, end)).tolist() == [
        place for place in every if start <= place < end
    ]
    assert offsets.within(Range(None, start)).tolist() == [
        place for place in every if start <= place
    ]


@pytest.mark.parametrize("threads", [1, 3])
def test_results_come_in_order_and_few_wait(threads):
    taken = []
    key = os.urandom(8)

    def items():
        for number in range(40):
            taken.append(number)
            yield number

    def make():
        return lambda number: (time.sleep(0.01 * (number % 3)), number, key, os.getpid())

    processes = set()
    for number, result in enumerate(shards.scatter(make, items(), threads)):
        assert result[1:3] == (number, key)  # what is inherited is not sent
        assert len(taken) <= number + 2 * threads
        processes.add(result[3])
    assert (
        number == 39 and (os.getpid() in processes) == (threads == 1) and len(processes) <= threads
    )


def test_what_a_process_makes_is_made_once():
    def make():
        calls = []
        return lambda _: (calls.append(1), len(calls), os.getpid())

    found = list(shards.scatter(make, range(20), 2))
    for process in {row[2] for row in found}:
        assert [count for _, count, pid in found if pid == process] == list(
            range(1, 1 + sum(r[2] == process for r in found))
        )


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("where", ["make", "call"])
def test_an_error_is_raised_as_it_is(threads, where):
    error = InputError("broken", file="points", line=7, key="text")

    def fail(*_):
        raise error

    with pytest.raises(InputError, match="^points:7: text: broken$"):
        list(shards.scatter(fail if where == "make" else lambda: fail, range(9), threads))


def test_a_killed_process_ends_the_rest():
    with pytest.raises(InputError, match="threads = 2: a process was killed"):
        list(shards.scatter(lambda: lambda _: os.kill(os.getpid(), signal.SIGKILL), range(9), 2))


def test_no_threads_are_refused():
    with pytest.raises(InputError, match="threads = 0"):
        list(shards.scatter(lambda: abs, [1], 0))


ENDLESS = r"""
import os, time
from confide.files.shards import scatter
def make():
    return lambda _: os.write(1, b"%d\n" % os.getpid()) and time.sleep(600)
list(scatter(make, range(2), 2))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="processes are told of a death by the kernel")
def test_no_process_outlives_the_one_that_started_it():
    with subprocess.Popen(
        [sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, text=True
    ) as parent:
        try:
            children = [int(parent.stdout.readline()) for _ in range(2)]
        finally:
            parent.kill()
    until = time.monotonic() + 60
    while any(running(pid) for pid in children):
        assert time.monotonic() < until
        time.sleep(0.05)


def running(pid):
    """Whether a process is there and not dead already."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
