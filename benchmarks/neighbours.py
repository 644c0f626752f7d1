"""Speed and memory of the neighbour test on the simulated corpus of params.yaml, start-up included,
on one core.

    python benchmarks/neighbours.py

Each figure is the median of whole `confide neighbours` processes. Beside it: how long the three
data stages take on the complete corpus, which is what one neighbour would cost without the local
rerun.
"""

import os

os.environ |= {"RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from machine import machine

from confide.config import jobs, params
from confide.files.io import read_json
from confide.provenance.terms import digest_of_specs
from confide.specs import NeighboursSpec, Params

ROOT = Path(__file__).parents[1]
GAMMA = 0.1
MEASURED = """
import os, resource, sys, time
began = time.perf_counter()
status = os.spawnvp(os.P_WAIT, sys.executable, [sys.executable, "-m", "confide.cli", *sys.argv[1:]])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
sys.exit(status)
"""


def confide(stage: str, spec: str, **paths: Path | str) -> list[float]:
    """Wall seconds, processor seconds and peak MiB of one command, in a process of its own."""
    flags = [part for name, path in paths.items() for part in (f"--{name}", str(path))]
    command = [sys.executable, "-c", MEASURED, stage, "--spec", spec, *flags]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return [float(number) for number in done.stdout.split()]


def prepare(wanted: Params, dialogues: int, folder: Path) -> None:
    """Points with canaries, and the public tokenizer."""
    sources = jobs.sources(wanted)
    corpus = sources["sim-turn"].corpus
    sizes = corpus.sizes.model_copy(update={"train": dialogues})
    larger = sources["sim-turn"].model_copy(
        update={"corpus": corpus.model_copy(update={"sizes": sizes})}
    )
    confide("split", larger.model_dump_json(), output=folder / "raw")
    confide("split", sources["public-turn"].model_dump_json(), output=folder / "public")
    planting = {
        "points": folder / "raw",
        "output": folder / "points",
        "canaries": folder / "canaries",
    }
    confide("plant", jobs.canaries(wanted, "sim").model_dump_json(), **planting)
    confide(
        "tokenizer",
        wanted.tokenizers["bpe"].model_dump_json(),
        points=folder / "public",
        output=folder / "tokenizer",
    )


def complete(wanted: Params, folder: Path) -> float:
    """Wall seconds of dedup, redact and partition on all points."""
    points = {"points": folder / "points"}
    at = {name: folder / name for name in ("copies", "spans", "tokenizer", "original", "redacted")}
    redaction = jobs.redaction(wanted, "sim", GAMMA)
    parted = {"policies": digest_of_specs(redaction), **points, **at}
    parts = [
        confide("dedup", "{}", **points, output=at["copies"]),
        confide("redact", redaction.model_dump_json(), **points, output=at["spans"]),
        confide("partition", jobs.partition(wanted, "sim", True).model_dump_json(), **parted),
    ]
    return sum(part[0] for part in parts)


def measure(spec: NeighboursSpec, folder: Path, rounds: int) -> dict[str, Any]:
    """Medians over the rounds, and what was found."""
    paths = {
        "points": folder / "points",
        "tokenizer": folder / "tokenizer",
        "output": folder / "neighbours.json",
    }
    found = [confide("neighbours", spec.model_dump_json(), **paths) for _ in range(rounds)]
    wall, processor, peak = (statistics.median(column) for column in zip(*found, strict=True))
    result = read_json(paths["output"])
    shown = {
        name: result[name]
        for name in ("secrets", "sampled", "census", "gamma", "gamma_upper", "delta2_upper")
    }
    return {"seconds": wall, "processor_seconds": processor, "peak_mib": peak} | shown


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=Path(__file__).with_suffix(".json"))
    arguments = parser.parse_args()
    wanted = params.load(ROOT / "params.yaml")
    report: dict[str, Any] = {
        "hardware": machine("numpy", "orjson", "tokenizers"),
        "gamma": GAMMA,
        "cases": {},
    }
    for dialogues in (wanted.corpora["sim"].sizes.train, 10 * wanted.corpora["sim"].sizes.train):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            prepare(wanted, dialogues, folder)
            once = complete(wanted, folder)
            for sample in (1_000, 10**9):
                spec = jobs.neighbours(wanted, "sim", GAMMA, True).model_copy(
                    update={"sample": sample}
                )
                row = {"complete_stages_seconds": once} | measure(spec, folder, arguments.rounds)
                report["cases"][
                    f"{dialogues} dialogues, {'all' if sample > 1_000 else sample} secrets"
                ] = row
                print(dialogues, row, flush=True)
    arguments.output.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
