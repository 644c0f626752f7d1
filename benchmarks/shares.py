"""Deduplication, redaction and tokenization as one job and as several, of which each has a share.

    python benchmarks/shares.py --mb 100 --shares 4

Every job is a process of its own, one after the other, so that its processor time is what it would
be on a node of its own. `ratio` is the time of the slowest share and of what puts the shares
together, over the time of one job; with N shares it would be 1/N, were nothing lost. The text is
that of `data_stages.py`. That the bytes are those of one job is checked.
"""

import argparse
import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from data_stages import alone, corpus, flags_of, jobs
from machine import machine

from confide.files.io import sha256
from confide.text.digests import BLOCK

MADE = ("output", "original", "redacted")  # flags of what the two stages write
GATHERED = {"originals": "original", "redacteds": "redacted", "owners": "owners"}  # by flag


def concatenated(parts: list[Path], made: dict[str, Path]) -> dict[str, float]:
    """Seconds of what `cat` does."""
    began = time.process_time()
    with open(made["output"], "wb") as out:
        for part in parts:
            with open(part, "rb") as file:
                shutil.copyfileobj(file, out, 1 << 20)
    return {"cpu_seconds": time.process_time() - began, "peak_mb": 0.0}


def gathered(folder: Path, shares: list[str], made: dict[str, Path]) -> dict[str, float]:
    """Seconds and memory of `confide gather`."""
    flags = [word for view, path in made.items() for word in (f"--{view}", str(path))]
    for flag, kind in GATHERED.items():
        flags += [f"--{flag}", *(str(folder / f"{share}.{kind}") for share in shares)]
    return alone("gather", flags)


def compared(
    name: str, spec: dict[str, Any], paths: dict[str, Path], folder: Path, shares: list[str]
) -> dict[str, Any]:
    """One stage as one job and as several, whose bytes are the same."""
    made = {flag: path for flag, path in paths.items() if flag in MADE}
    one = alone(name, flags_of(name, spec, paths, 1))
    whole = {flag: sha256(path) for flag, path in made.items()}
    rows = []
    for share in shares:
        own = {flag: folder / f"{share}.{flag}" for flag in made}
        flags = [*flags_of(name, spec, paths | own, 1), "--share", share]
        if name == "partition":
            flags += ["--owners", str(folder / f"{share}.owners")]
        rows.append(alone(name, flags))
    if name == "redact":
        together = concatenated([folder / f"{share}.output" for share in shares], made)
    else:
        together = gathered(folder, shares, made)
    assert {flag: sha256(path) for flag, path in made.items()} == whole, name
    slowest = max(row["cpu_seconds"] for row in rows) + together["cpu_seconds"]
    ratio = slowest / one["cpu_seconds"]
    return {"one_job": one, "shares": rows, "together": together, "ratio": ratio}


def deduplicated(
    spec: dict[str, Any], paths: dict[str, Path], folder: Path, shares: list[str]
) -> dict[str, Any]:
    """Deduplication as one job and as several, in three steps, and megabytes that each moves."""
    points = paths["points"]
    output = paths["output"]
    one = alone("dedup", flags_of("dedup", spec, paths, 1))
    whole = sha256(output)
    key = folder / "key"
    key.write_bytes(os.urandom(BLOCK))
    steps: dict[str, list[dict[str, float]]] = {"digests": [], "repeats": [], "copies": []}
    written: dict[str, list[Path]] = {
        step: [folder / f"{share}.{step}" for share in shares] for step in steps
    }
    given = {
        "digests": ["--spec", json.dumps(spec), "--key", str(key)],
        "repeats": ["--digests", *map(str, written["digests"])],
        "copies": ["--repeats", *map(str, written["repeats"])],
    }
    for step, rows in steps.items():
        for number, (share, file) in enumerate(zip(shares, written[step], strict=True)):
            flags = ["--points", str(points), "--share", share, "--output", str(file), *given[step]]
            if step == "copies":
                flags += ["--digests", str(written["digests"][number])]
            rows.append(alone(step, flags))
    together = concatenated(written["copies"], {"output": output})
    assert sha256(output) == whole, "dedup"
    sizes = {step: sum(file.stat().st_size for file in written[step]) / 1e6 for step in steps}
    text = points.stat().st_size / 1e6
    moved = {
        "digests": text + sizes["digests"],
        "repeats": sizes["digests"] + sizes["repeats"],
        "copies": text + sizes["repeats"] + sizes["copies"],
    }
    slowest = sum(max(row["cpu_seconds"] for row in rows) for rows in steps.values())
    ratio = (slowest + together["cpu_seconds"]) / one["cpu_seconds"]
    return {
        "one_job": one,
        "steps": {
            step: {"shares": rows, "moved_mb": moved[step], "written_mb": sizes[step]}
            for step, rows in steps.items()
        },
        "together": together,
        "ratio": ratio,
    }


def measure(megabytes: float, count: int, folder: Path) -> dict[str, Any]:
    """Time and memory of each stage, as one job and as several."""
    size = corpus(megabytes, folder)
    stages = {name: (spec, paths) for name, spec, paths in jobs(folder, "turn")}
    alone("split", flags_of("split", *stages["split"], 1))
    shares = [f"{number + 1}-of-{count}" for number in range(count)]
    found: dict[str, Any] = {"dedup": deduplicated(*stages["dedup"], folder, shares)}
    print(f"dedup      {size:6.0f} MB in {count} shares: {found['dedup']['ratio']:.2f}", flush=True)
    for name in ("redact", "partition"):
        found[name] = compared(name, *stages[name], folder, shares)
        ratio = found[name]["ratio"]
        print(f"{name:10} {size:6.0f} MB in {count} shares: {ratio:.2f}", flush=True)
    return {"megabytes": size, "shares": count, "stages": found}


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
