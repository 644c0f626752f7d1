"""Speed and memory of the leak scanner on one core: secrets in all their forms, looked for in files
that hold none of them.

python benchmarks/scan.py [--rounds 5] [--mb 32]

MB/s are per second of processor time, for 5,000 secrets, with the index ready; `mixture` is the
three kinds of file one after the other. Memory is also that for 100,000 secrets. grep, where there
is one, looks for the secrets as they are in any case: a small part of that work.
"""

import os
import random
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from data_stages import values
from machine import machine
from runner import Step, arguments_of, peak_memory, shown
from safetensors.numpy import save_file

from confide.files.io import write_json
from confide.scan.containers import streams
from confide.scan.search import Searcher

SECRETS = 5000
MANY = 100_000


def secrets(count: int = SECRETS, seed: int = 0) -> dict[int, str]:
    """Names, addresses, phone, order and tracking numbers, and 20 canaries of six digits."""
    rng = random.Random(seed)
    found = dict.fromkeys(f"{number:06d}" for number in rng.sample(range(10**6), 20))
    while len(found) < count:
        found |= dict.fromkeys(value for _, _, value in values(rng) if value)
    return dict(enumerate(list(found)[:count]))


def rows(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Of a file of metrics, without end."""
    while True:
        loss = float(rng.random())
        rank = int(rng.integers(10**5))
        yield {
            "run": "crt/g0.1-s0",
            "epoch": rank % 9,
            "loss": loss,
            "rank": rank,
            "text": "Could you tell me your name, please?",
        }


def lines(rng: np.random.Generator) -> Iterator[bytes]:
    """Of a log, without end."""
    for step, row in enumerate(rows(rng)):
        yield (
            (
                b"2026-11-21 15:%02d:%02d,%03d INFO confide.train step %d loss %.5f Saved "
                b"models/crt/g0.1-s0/model.safetensors\n"
            )
            % ((step // 60 % 60, step % 60, step % 1000, step % 10**5, row["loss"]))
        )


def write_files(folder: Path, megabytes: float) -> dict[str, Path]:
    """One file of each kind, of so many megabytes."""
    rng = np.random.default_rng(0)
    size = int(megabytes * 1e6)
    files = {name: folder / name for name in ("metrics.jsonl", "train.log", "model.safetensors")}
    makers = {
        "metrics.jsonl": (orjson.dumps(row) + b"\n" for row in rows(rng)),
        "train.log": lines(rng),
    }
    for name, maker in makers.items():
        with open(files[name], "wb") as out:
            while out.tell() < size:
                out.write(next(maker))
    save_file(
        {"weight": rng.standard_normal(size // 4).astype(np.float32)}, files["model.safetensors"]
    )
    return files


def scanning(searcher: Searcher, files: list[Path]) -> Step:
    """Search files; a hit would be a false alarm."""

    def step() -> None:
        hits = sum(1 for file in files for stream in streams(file) for _ in searcher.hits(stream))
        if hits:
            raise RuntimeError(f"{hits} false alarms")

    return step


def grepping(grep: str, folder: Path, files: list[Path]) -> Step:
    """The same files by grep, for the secrets as they are."""
    (folder / "secrets").write_text("\n".join(secrets().values()))
    flags = [
        "--count",
        "--text",
        "--fixed-strings",
        "--ignore-case",
        f"--file={folder / 'secrets'}",
    ]

    def step() -> None:
        subprocess.run(
            [grep, *flags, *files], env={"LC_ALL": "C"}, capture_output=True, check=False
        )  # grep gives up early before /dev/null

    return step


def built(files: list[Path], count: int) -> Step:
    """From the secrets on."""
    return scanning(Searcher(secrets(count)), files)


def seconds(step: Step) -> float:
    """Of processor time, here and in programs that were called."""
    begun = sum(os.times()[:4])
    step()
    return sum(os.times()[:4]) - begun


def main() -> None:
    parser = arguments_of(__file__, __doc__, 5)
    parser.add_argument("--mb", type=float, default=32.0, help="megabytes of each kind of file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = write_files(folder, arguments.mb)
        sets = {**{kind: [path] for kind, path in files.items()}, "mixture": list(files.values())}
        searcher = Searcher(secrets())
        contenders = {kind: (scanning(searcher, paths), paths) for kind, paths in sets.items()}
        if grep := shutil.which("grep"):
            contenders["grep"] = (grepping(grep, folder, sets["mixture"]), sets["mixture"])
        found: dict[str, dict[str, float]] = {}
        for kind, (step, paths) in contenders.items():
            taken = [seconds(step) for _ in range(arguments.rounds)]
            megabytes = sum(path.stat().st_size for path in paths) / 1e6
            found[kind] = {
                "seconds": statistics.median(taken),
                "mb_per_s": megabytes / statistics.median(taken),
            }
            shown(kind, found[kind])
        facts = {
            "secrets": SECRETS,
            "patterns": searcher.patterns,
            "megabytes_of_each": arguments.mb,
        }
        facts["build_seconds"] = statistics.median(
            seconds(lambda: Searcher(secrets())) for _ in range(arguments.rounds)
        )
        facts["peak_mib"] = peak_memory(built, sets["mixture"], SECRETS, calls=1)
        facts["many_secrets"] = MANY
        facts["many_peak_mib"] = peak_memory(built, sets["mixture"], MANY, calls=1)
    shown("all", facts)
    write_json(arguments.output, {"hardware": machine("numpy"), **facts, "cases": found})


if __name__ == "__main__":
    main()
