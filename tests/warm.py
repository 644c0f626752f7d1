"""Programs as copies of one process that has imported their libraries already: most jobs of the
tiny study take longer to import torch than to do anything.

Only what others have written is imported beforehand. A copy imports the package by itself, from
where its own environment says; its files, folder, umask and environment are its caller's. But it is
no child of its caller: a test that kills programs starts usual ones.
"""

import gc
import importlib
import json
import os
import runpy
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

OF_JOBS = (
    "pydantic",
    "scipy.optimize",
    "scipy.special",
    "scipy.stats",
    "sklearn.feature_extraction.text",
    "sklearn.linear_model",
    "torch",
    "torch._dynamo",  # which every optimizer imports
)
OF_SNAKEMAKE = (
    "jinja2",
    "pydantic",
    "scipy.special",
    "smart_open",
    "snakemake.cli",
    "snakemake.report.html_reporter",
)
FAULT = 3  # status of a program that was killed
WATCH = 1.0  # seconds after which the first process looks whether anybody can still ask it


@contextmanager
def warm(
    folder: Path, modules: Sequence[str], environment: dict[str, str]
) -> Iterator[tuple[str, ...]]:
    """The beginning of a command that does what `python -m` does, for as long as the context lasts.

    It is done by copies of a process that has the environment and has imported the modules. The
    folder, which must have a short name, is for its own files.
    """
    address = str(folder / "warm.socket")
    own = environment | {"TORCHINDUCTOR_CACHE_DIR": str(folder / "torchinductor")}
    command = [sys.executable, __file__, "serve", address, *modules]
    with subprocess.Popen(command, env=own, stdout=subprocess.PIPE) as first:
        try:
            assert first.stdout is not None and first.stdout.readline() == b"ready\n"
            yield (sys.executable, "-I", "-S", __file__, "ask", address)
        finally:
            first.terminate()


def ask(address: str, command: list[str]) -> int:
    """Have a copy run a module with its arguments; its status."""
    umask = os.umask(0)
    os.umask(umask)
    request = {
        "command": command,
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "umask": umask,
    }
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        socket.send_fds(connection, [b"\n"], [0, 1, 2])
        connection.sendall(json.dumps(request).encode())
        connection.shutdown(socket.SHUT_WR)
        status = connection.recv(1)
    return status[0] if status else FAULT


def serve(address: str, modules: list[str]) -> None:
    """Import modules, and answer each request with a copy of this process."""
    for module in modules:
        importlib.import_module(module)
    gc.freeze()
    parent = os.getppid()
    copies = 0
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(os.cpu_count() or 1)
        listener.settimeout(WATCH)
        print("ready", flush=True)
        while os.getppid() == parent:
            while copies and os.waitpid(-1, os.WNOHANG)[0]:
                copies -= 1
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            if os.fork() == 0:
                listener.close()
                answer(connection)
            connection.close()
            copies += 1


def answer(connection: socket.socket) -> None:
    """Become the process that was asked for, say its status, end."""
    status = FAULT
    try:
        connection.setblocking(True)
        _, files, _, _ = socket.recv_fds(connection, 1, 3)
        with connection.makefile("rb") as sent:
            request = json.loads(sent.read())
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        os.chdir(request["folder"])
        os.umask(request["umask"])
        os.environ.clear()
        os.environ.update(request["environment"])
        sys.dont_write_bytecode = "PYTHONDONTWRITEBYTECODE" in os.environ
        sys.path[0:1] = os.environ["PYTHONPATH"].split(os.pathsep)
        module, *arguments = request["command"]
        sys.argv = [module, *arguments]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        connection.sendall(bytes([status]))
        os._exit(status)


if __name__ == "__main__":
    if sys.argv[1] == "ask":
        sys.exit(ask(sys.argv[2], sys.argv[3:]))
    serve(sys.argv[2], sys.argv[3:])
