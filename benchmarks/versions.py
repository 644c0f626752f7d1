"""The data stages of this version beside those of another one: seconds, bytes written, memory.

    git worktree add --detach /tmp/confide-0.1.0 4f834a3
    python benchmarks/versions.py --base /tmp/confide-0.1.0/src --mb 20

Every stage of either version runs in a process of its own, the two versions in turn, on corpora
made by `data_stages.py`. Seconds are of the processor, imports left out, the least of all rounds:
whoever shares the machine only adds. Each version reads what it wrote itself; a stage whose files
differ from the other's is named in `differ`.
"""

import os

os.environ |= {"RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
from data_stages import POINTS, POLICIES, flags_of, jobs, tokenizer, write_lines
from machine import machine

from confide.files.io import sha256

HERE = Path(__file__).resolve().parent
RUN = "import json, sys; from data_stages import run; print(json.dumps(run(*json.load(sys.stdin))))"
VERSIONS = ("base", "now")
CLOSING = b'{"complete":'  # lines that releases until 0.2 do not write
TOLD = ("doc", "at")  # fields that the key tells, or the form of the file that it is of
EMPTY = (None, [])  # values of fields that later versions leave out
COUNTED = ("recall", "neighbours")  # whose counts both versions write, among other things
# Counts that both versions write under these names.
COUNTS = ("occurrences", "unique", "planted", "pools", "spans", "sampled", "misaligned")


def measured(source: Path, name: str, flags: list[str]) -> dict[str, float]:
    """Processor seconds and peak memory of one stage of the version in `source`."""
    path = os.pathsep.join((str(source), str(HERE)))
    result = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps([name, flags]),
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    if result.returncode:
        raise RuntimeError(f"{name} of {source}: {result.stderr}")
    return json.loads(result.stdout.splitlines()[-1])


def flags_for(version: str, name: str, spec: dict[str, Any], paths: dict[str, Path]) -> list[str]:
    """Flags of a stage; releases until 0.2 do not ask whose findings `partition` reads."""
    flags = flags_of(name, spec, paths, 1)
    if version == "base" and POLICIES in flags:
        place = flags.index(POLICIES)
        del flags[place : place + 2]
    return flags


def written(name: str, paths: dict[str, Path], inputs: set[Path]) -> Iterator[str]:
    """Digests of what a stage wrote; of measurements, their counts."""
    for path in paths.values():
        if path in inputs:
            continue
        if name in COUNTED:
            found = json.loads(path.read_bytes())
            counts = json.dumps([numbers_of(found.get(count)) for count in COUNTS])
            yield hashlib.sha256(counts.encode()).hexdigest()
        else:
            yield digest_of(path)


def numbers_of(count: Any) -> Any:
    """A count, of several by name those that are numbers: later versions say more of some."""
    if not isinstance(count, dict):
        return count
    return {name: number for name, number in count.items() if isinstance(number, int)}


def digest_of(path: Path) -> str:
    """SHA-256 of a file; of lines, of what either version says in them, closing ones left out.

    It is not read at once: a stage's process begins with the peak of this one. What is binary has
    lines of any length, and no closing ones.
    """
    if path.suffix != ".jsonl":
        return sha256(path)
    digest = hashlib.sha256()
    with path.open("rb") as lines:
        for line in lines:
            if not line.startswith(CLOSING):
                digest.update(orjson.dumps(said(orjson.loads(line)), option=orjson.OPT_SORT_KEYS))
    return digest.hexdigest()


def said(row: dict[str, Any]) -> dict[str, Any]:
    """What a line says, if it does not say where a point begins in a file: points have all fields
    until 0.2, then those alone that are not empty, nor told by the key.
    """
    return {name: value for name, value in row.items() if name not in TOLD and value not in EMPTY}


def compare(sources: dict[str, Path], mb: float, point: str, rounds: int, folder: Path) -> Any:
    """Every stage of both versions on `mb` megabytes of text, cut into points."""
    from confide.text.tokenizer import save

    one_for_both = tokenizer()
    raw = folder / "raw.jsonl"
    size = write_lines(mb, raw)
    work = {}
    for version in sources:
        at = folder / version
        at.mkdir()
        save(one_for_both, at / "tokenizer.json")
        os.link(raw, at / "raw.jsonl")
        work[version] = list(jobs(at, point))
    stages: dict[str, Any] = {}
    for index, (name, _, paths) in enumerate(work["now"]):
        seconds: dict[str, list[float]] = {version: [] for version in sources}
        peak = dict.fromkeys(sources, 0.0)
        digests = {}
        for round_ in range(rounds):
            for version in VERSIONS if round_ % 2 else reversed(VERSIONS):
                inputs = {path for path in (folder / version).iterdir() if round_ == 0}
                _, spec, paths = work[version][index]
                found = measured(sources[version], name, flags_for(version, name, spec, paths))
                seconds[version].append(found["cpu_seconds"])
                peak[version] = max(peak[version], found["peak_mb"])
                if round_ == 0:
                    digests[version] = list(written(name, paths, inputs))
        least = {version: min(found) for version, found in seconds.items()}
        stages[name] = {
            "mb_per_s": {version: size / found for version, found in least.items()},
            "seconds": least,
            "ratio": least["base"] / least["now"],
            "peak_mb": peak,
            "same": digests["base"] == digests["now"],
        }
        print(
            f"{point:9} {name:10} {size / least['base']:6.1f} -> {size / least['now']:6.1f} MB/s "
            f"{stages[name]['ratio']:5.2f}x  {peak['base']:4.0f} -> {peak['now']:4.0f} MB  "
            f"{'same' if stages[name]['same'] else 'DIFFERENT'}",
            flush=True,
        )
    total = {
        version: sum(row["seconds"][version] for row in stages.values()) for version in sources
    }
    print(f"{point:9} {'together':10} {total['base'] / total['now']:5.2f}x", flush=True)
    return {"megabytes": size, "stages": stages, "seconds": total}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base", type=Path, required=True, help="src of the other version")
    parser.add_argument("--mb", type=float, default=20.0, help="megabytes of text")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--point", choices=POINTS, nargs="+", default=POINTS)
    parser.add_argument("--output", type=Path, default=Path(__file__).with_suffix(".json"))
    arguments = parser.parse_args()
    sources = {"base": arguments.base.resolve(), "now": HERE.parent / "src"}
    about = machine("numpy", "orjson", "pyarrow", "safetensors", "tokenizers")
    result: dict[str, Any] = {"hardware": about, "cases": {}}
    for point in arguments.point:
        with tempfile.TemporaryDirectory() as folder:
            result["cases"][point] = compare(
                sources, arguments.mb, point, arguments.rounds, Path(folder)
            )
        arguments.output.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
