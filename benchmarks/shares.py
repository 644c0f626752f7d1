"""Redaction and tokenization as one job and as several, of which each has a share of the points.

    python benchmarks/shares.py --mb 100 --shares 4

Every job is a process of its own, one after the other, so that its processor time is what it would
be on a node of its own. `ratio` is the time of the slowest share and of what puts the shares
together, over the time of one job; with N shares it would be 1/N, were nothing lost. The text is
that of `data_stages.py`. That the bytes are those of one job is checked.
"""

import os

os.environ |= {"RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}

import argparse
import json
import shutil
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from data_stages import dialogues, flags_of, jobs, run, write_lines
from machine import machine

from confide.files.io import sha256

VIEWS = ("original", "redacted")
BEFORE = ("split", "dedup")
GATHERED = {"originals": "original", "redacteds": "redacted", "owners": "owners"}  # by flag


def alone(name: str, flags: list[str]) -> dict[str, float]:
    """Processor and wall seconds and peak memory of a stage in a process of its own."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(run, name, flags).result()


def put_together(parts: list[Path], whole: Path) -> dict[str, float]:
    """Seconds of what `cat` does."""
    began = time.process_time()
    with open(whole, "wb") as out:
        for part in parts:
            with open(part, "rb") as file:
                shutil.copyfileobj(file, out, 1 << 20)
    return {"cpu_seconds": time.process_time() - began, "peak_mb": 0.0}


def measure(megabytes: float, shares: int, folder: Path) -> dict[str, Any]:
    """Time and memory of either stage, as one job and as several."""
    from confide.text.tokenizer import save, train_bpe

    size = write_lines(megabytes, folder / "raw.jsonl")
    texts = (text for turns in dialogues(0.5, seed=1) for text, _ in turns)
    save(train_bpe(texts, 1024), folder / "tokenizer.json")
    stages = {name: (spec, paths) for name, spec, paths in jobs(folder, "turn")}
    for name in BEFORE:
        alone(name, flags_of(name, *stages[name], 1))
    numbers = [f"{number + 1}-of-{shares}" for number in range(shares)]
    found: dict[str, Any] = {}
    for name in ("redact", "partition"):
        spec, paths = stages[name]
        made = {key: paths[key] for key in ("output", *VIEWS) if key in paths}
        one = alone(name, flags_of(name, spec, paths, 1))
        whole = {key: sha256(path) for key, path in made.items()}
        rows = []
        for share in numbers:
            parts = {key: folder / f"{share}.{key}" for key in made}
            flags = [*flags_of(name, spec, paths | parts, 1), "--share", share]
            if name == "partition":
                flags += ["--owners", str(folder / f"{share}.owners")]
            rows.append(alone(name, flags))
        if name == "redact":
            together = put_together(
                [folder / f"{share}.output" for share in numbers], made["output"]
            )
        else:
            flags = []
            for flag, kind in GATHERED.items():
                flags += [f"--{flag}", *(str(folder / f"{share}.{kind}") for share in numbers)]
            flags += [word for view in VIEWS for word in (f"--{view}", str(made[view]))]
            together = alone("gather", flags)
        assert {key: sha256(path) for key, path in made.items()} == whole, name
        slowest = max(row["cpu_seconds"] for row in rows) + together["cpu_seconds"]
        found[name] = {
            "one_job": one,
            "shares": rows,
            "together": together,
            "ratio": slowest / one["cpu_seconds"],
        }
        print(
            f"{name:10} {size:6.0f} MB in {shares} shares: {found[name]['ratio']:.2f}", flush=True
        )
    return {"megabytes": size, "shares": shares, "stages": found}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mb", type=float, default=100.0, help="megabytes of text")
    parser.add_argument("--shares", type=int, default=4)
    parser.add_argument("--output", type=Path, default=Path(__file__).with_suffix(".json"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(arguments.mb, arguments.shares, Path(folder))
    result = {"hardware": machine("numpy", "pyarrow", "safetensors", "tokenizers")} | found
    arguments.output.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
