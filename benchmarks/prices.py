"""What a data stage takes for each megabyte, each point and each secret of a corpus.

    python benchmarks/prices.py --mb 10 40

Each stage runs in a process of its own on corpora that differ in size, in the length of their
points (turns, dialogues) and in whether there are secrets, as `data_stages.py` makes them. What it
took is then explained by four prices that are not negative, of least relative error: one for the
start, and one for each amount. `worst` is by how much the prices miss the measurement that they
fit worst. Seconds are of the processor, imports left out.
"""

import os

os.environ |= {"RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}

import argparse
import json
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from data_stages import POINTS, alone, flags_of, jobs, tokenizer, write_lines
from machine import machine
from scipy.optimize import nnls

from confide.files.io import write_json

AMOUNTS = ("mb", "1000_points", "1000_secrets")
BPE = {"kind": "bpe", "corpus": "lines", "public": True}


def measured(megabytes: float, point: str, secrets: bool, folder: Path) -> dict[str, Any]:
    """Amounts of one corpus, and processor seconds and peak memory of every stage on it."""
    from confide.text.tokenizer import save

    save(tokenizer(), folder / "tokenizer.json")
    size = write_lines(megabytes, folder / "raw.jsonl", secrets=secrets)
    stages = {}
    for name, spec, paths in stages_of(folder, point):
        stages[name] = alone(name, flags_of(name, spec, paths, threads=1))
        print(
            f"{point:9} {size:6.1f} MB {name:10} {stages[name]['cpu_seconds']:6.2f} s", flush=True
        )
    amounts = (size, *(count / 1000 for count in counts(folder / "points.jsonl")))
    return {"amounts": dict(zip(AMOUNTS, amounts, strict=True)), "stages": stages}


def stages_of(folder: Path, point: str) -> Iterator[tuple[str, dict[str, Any], dict[str, Path]]]:
    """Stage, specification, paths; in the order in which they run."""
    yield from jobs(folder, point)
    paths = {"points": folder / "points.jsonl", "output": folder / "trained.json"}
    yield "tokenizer", BPE, paths


def counts(points: Path) -> tuple[int, int]:
    """How many points there are, and how many secrets in them."""
    with open(points, "rb") as lines:
        secrets = [len(json.loads(line).get("gold", ())) for line in lines]
    return len(secrets), sum(secrets)


def fitted(amounts: np.ndarray, seconds: np.ndarray) -> tuple[np.ndarray, float]:
    """Prices (1 + A,), that of a start first, by amounts (M, A) and seconds (M,) of measurements.

    Prices are not negative and make the sum of squared relative errors least. Returns the largest
    relative error, too.
    """
    table = np.column_stack([np.ones(len(amounts)), amounts])
    prices, _ = nnls(table / seconds[:, None], np.ones(len(seconds)))
    worst = np.abs(table @ prices / seconds - 1).max()
    return prices, float(worst)


def prices_of(cases: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Prices of every stage, the error that is left, and the largest memory."""
    amounts = np.array([[case["amounts"][name] for name in AMOUNTS] for case in cases])
    found = {}
    for stage in cases[0]["stages"]:
        taken = [case["stages"][stage] for case in cases]
        prices, worst = fitted(amounts, np.array([row["cpu_seconds"] for row in taken]))
        found[stage] = {
            "start": float(prices[0]),
            **{
                f"per_{name}": float(price) for name, price in zip(AMOUNTS, prices[1:], strict=True)
            },
            "worst": worst,
            "peak_mb": max(row["peak_mb"] for row in taken),
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--mb", type=float, nargs="+", default=[10.0, 40.0], help="megabytes of text"
    )
    parser.add_argument("--output", type=Path, default=Path(__file__).with_suffix(".json"))
    arguments = parser.parse_args()
    cases = []
    for megabytes, point, secrets in product(arguments.mb, POINTS, (True, False)):
        with tempfile.TemporaryDirectory() as folder:
            case = measured(megabytes, point, secrets, Path(folder))
        cases.append({"point": point, "secrets": secrets} | case)
    hardware = machine("numpy", "orjson", "safetensors", "tokenizers")
    write_json(arguments.output, {"hardware": hardware, "stages": prices_of(cases), "cases": cases})


if __name__ == "__main__":
    main()
