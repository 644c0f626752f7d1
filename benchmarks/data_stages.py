"""Speed, memory and growth of the data stages, each in a process of its own, or in several of a
thread each.

    python benchmarks/data_stages.py --mb 10 100 1000 --threads 1

Disk: about nine times the text, in $TMPDIR: what no later stage reads is deleted. MB/s are per
core: of all processes of a stage, the memory is the largest one's. The text is dialogue: about half
of the turns are set phrases that repeat, half hold random values, so that neither a cache nor its
absence is flattered. MB/s counts the UTF-8 text of all points, not the JSON around it, per second
of processor time, which other programs disturb less than the clock.
"""

import os

os.environ |= {"RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}

import argparse
import json
import random
import resource
import string
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import orjson
from machine import machine

ADDRESS = r"(?=[A-Z0-9])\b\d{1,6}(?: [A-Z0-9][\w.'’-]*){1,9}, [A-Z]{2} \d{5}\b"
NAME = r"(?=[A-Z0-9])\b[A-Z][a-z][\w'’-]*(?: [A-Z][a-z][\w'’-]*)+"
POLICY = {
    "kind": "regex",
    "patterns": {
        "address": ADDRESS,
        "order": r"(?=[A-Z0-9])\b\d{3}-\d{5}-\d{4}\b",
        "phone": r"(?=[A-Z0-9])\b\d{3}[-.]?\d{3}[-.]?\d{4}\b",
        "tracking": r"(?=[A-Z0-9])\b[A-Z0-9]{10}\b",
        "canary": r"(?=[A-Z0-9])\b\d{6}\b",
        "name": NAME,
    },
}
CONSERVATIVE = {
    "kind": "regex",
    "patterns": {
        "digit": r"(?=[A-Z0-9])\d+",
        "capitals": r"(?=[A-Z0-9])[A-Z]{4}",
        "pair": r"(?=[A-Z0-9])\b[A-Z][\w'’-]+ [A-Z][\w'’-]",
        "inner": r"(?=[A-Z0-9])(?<=[^.!?:] )[A-Z][a-z]",
    },
}
PHRASES = (
    "SYS: Hello, this is the help desk. What can I do for you?",
    "USR: I have been waiting for my parcel for days, and nobody answers the phone.",
    "SYS: Could you tell me your name, please?",
    "SYS: And which order is it about?",
    "USR: That was all, many thanks for your help.",
    "SYS: You are welcome. Have a pleasant evening!",
)
POINTS = ["turn", "dialogue"]
POLICIES = "--policies"  # of `confide partition`
WHO = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
SYLLABLES = (
    "an",
    "ber",
    "car",
    "don",
    "el",
    "far",
    "gor",
    "hil",
    "jas",
    "kel",
    "lor",
    "mi",
    "nor",
    "os",
    "per",
    "ros",
    "sten",
)


def word(rng: random.Random) -> str:
    return "".join(rng.choices(SYLLABLES, k=rng.randint(2, 3))).capitalize()


def digits(rng: random.Random, count: int) -> str:
    return "".join(rng.choices(string.digits, k=count))


def values(rng: random.Random) -> Iterator[tuple[str, str, str]]:
    """Label, sentence around a {}, value."""
    yield "name", "USR: Sure, I am {}, as it says on the parcel.", f"{word(rng)} {word(rng)}"
    street = (
        f"{digits(rng, 4)} {word(rng)} Street Suite {digits(rng, 3)} {word(rng)}, DE "
        f"{digits(rng, 5)}"
    )
    yield "address", "USR: It should have come to {}.", street
    yield (
        "phone",
        "USR: You can call me at {} in the afternoon.",
        "-".join((digits(rng, 3), digits(rng, 3), digits(rng, 4))),
    )
    yield (
        "order",
        "USR: The order number is {}.",
        "-".join((digits(rng, 3), digits(rng, 5), digits(rng, 4))),
    )
    yield (
        "tracking",
        "SYS: Here it is: {}. Anything else?",
        "".join(rng.choices(string.ascii_uppercase + string.digits, k=10)),
    )
    yield "note", "USR: My neighbour, a {} by trade, may have it in his {}.", ""


def plain(rng: random.Random, value: str) -> str:
    """Words without a secret, about as long as a value."""
    words = ""
    while len(words) < len(value):
        words += f" {word(rng).lower()}"
    return words.strip()


def dialogues(
    megabytes: float, seed: int = 0, *, secrets: bool = True
) -> Iterator[list[tuple[str, list[Any]]]]:
    """Turns with gold spans, until so much text was made; words stand where secrets are not to."""
    rng = random.Random(seed)
    size = 0
    while size < megabytes * 1e6:
        turns: list[tuple[str, list[Any]]] = []
        for phrase, (label, frame, value) in zip(PHRASES, values(rng), strict=True):
            turns.append((phrase, []))
            if label == "note":
                turns.append((frame.format(word(rng).lower(), word(rng).lower()), []))
            elif not secrets:
                turns.append((frame.format(plain(rng, value)), []))
            else:
                start = frame.index("{}")
                turns.append((frame.format(value), [[start, start + len(value), label, 1.0]]))
        size += sum(len(text.encode()) for text, _ in turns)
        yield turns


def write_lines(megabytes: float, path: Path, *, secrets: bool = True) -> float:
    """Dialogues as a user's own JSONL, one a line; how many megabytes of text they hold."""
    size = 0
    with open(path, "wb") as out:
        for number, turns in enumerate(dialogues(megabytes, secrets=secrets)):
            text = ""
            spans = []
            for turn, gold in turns:
                spans += [
                    [start + len(text), end + len(text), label] for start, end, label, _ in gold
                ]
                text += turn + "\n"
            row = {
                "text": text[:-1],
                "doc": f"train/dial-{number}",
                "split": "train",
                "spans": spans,
            }
            out.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
            size += len(text.encode())
    return size / 1e6


def jobs(folder: Path, point: str) -> Iterator[tuple[str, dict[str, Any], dict[str, Path]]]:
    """Stage, specification, paths; in the order in which they run."""
    at = {
        name: folder / f"{name}.jsonl" for name in ("raw", "planted", "points", "copies", "spans")
    }
    corpus = {"reader": "lines", "path": str(at["raw"])}
    yield "split", {"corpus": corpus, "point": point}, {"output": at["points"]}
    yield (
        "plant",
        {},
        {"points": at["points"], "output": at["planted"], "canaries": folder / "canaries.json"},
    )
    yield "dedup", {}, {"points": at["points"], "output": at["copies"]}
    yield (
        "redact",
        {"policy": POLICY, "conservative": CONSERVATIVE},
        {"points": at["points"], "output": at["spans"]},
    )
    redact = {"policy": POLICY, "conservative": CONSERVATIVE}
    measured = {
        "text": {"dataset": "lines", "corpus": "", "cut": "", "point": point},
        "redact": redact,
        "reads": [],
    }
    yield (
        "recall",
        measured,
        {"points": at["points"], "spans": at["spans"], "output": folder / "recall.json"},
    )
    views = {name: folder / f"{name}.safetensors" for name in ("original", "redacted")}
    inputs = {name: at[name] for name in ("points", "copies", "spans")} | {
        "tokenizer": folder / "tokenizer.json"
    }
    yield "partition", {}, inputs | views
    spec = measured | {"partition": {}, "sample": 200}
    tested = {
        "points": at["points"],
        "tokenizer": folder / "tokenizer.json",
        "output": folder / "neighbours.json",
    }
    yield "neighbours", spec, tested


def run(name: str, flags: list[str]) -> dict[str, float]:
    """One stage in this process and its own: processor and wall seconds without imports, and the
    largest peak memory.
    """
    from confide import cli

    cli.stage(name)
    wall = time.perf_counter()
    began = cpu_seconds()
    cli.run(name, flags)
    return {
        "cpu_seconds": cpu_seconds() - began,
        "wall_seconds": time.perf_counter() - wall,
        "peak_mb": max(resource.getrusage(who).ru_maxrss for who in WHO) / 1024,
    }


def cpu_seconds() -> float:
    """Of this process and those that it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def flags_of(name: str, spec: dict[str, Any], paths: dict[str, Path], threads: int) -> list[str]:
    flags = ["--spec", json.dumps(spec)]
    if name == "partition":
        flags += [POLICIES, policies()]
    for flag, path in paths.items():
        flags += [f"--{flag}", str(path)]
    return flags if threads == 1 else [*flags, "--threads", str(threads)]


def policies() -> str:
    """The digest of what `jobs` has of redaction."""
    from confide.provenance.terms import digest_of_specs
    from confide.specs import RedactSpec

    return digest_of_specs(RedactSpec(policy=POLICY, conservative=CONSERVATIVE))


def alone(name: str, flags: list[str]) -> dict[str, float]:
    """What `run` finds in a process of its own, which may have processes, unlike a Pool's."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(run, name, flags).result()


def tokenizer() -> Any:
    """A tokenizer of other dialogues."""
    from confide.text.tokenizer import train_bpe

    return train_bpe((text for turns in dialogues(0.5, seed=1) for text, _ in turns), 1024)


def corpus(megabytes: float, folder: Path) -> float:
    """Write so much raw text and a tokenizer; how many megabytes it is."""
    from confide.text.tokenizer import save

    save(tokenizer(), folder / "tokenizer.json")
    return write_lines(megabytes, folder / "raw.jsonl")


def sizes(paths: dict[str, Path]) -> dict[str, int]:
    """Bytes of those files that are there."""
    return {flag: path.stat().st_size for flag, path in paths.items() if path.is_file()}


def measure(megabytes: float, point: str, threads: int, folder: Path) -> dict[str, Any]:
    """Run every stage on `megabytes` of text, cut into points, and print a line for each."""
    from confide.files.io import count_lines

    size = corpus(megabytes, folder)
    results: dict[str, Any] = {}
    points = 0
    most = 0.0  # of the disk, after a stage
    listed = list(jobs(folder, point))
    for place, (name, spec, paths) in enumerate(listed, 1):
        before = sizes(paths)
        result = alone(name, flags_of(name, spec, paths, threads))
        written = {flag: size for flag, size in sizes(paths).items() if flag not in before}
        raw = (folder / "raw.jsonl").stat().st_size if name == "split" else 0
        result["read_mb"] = (raw + sum(before.values())) / 1e6
        result["written_mb"] = sum(written.values()) / 1e6
        speeds = {
            f"mb_per_{clock}_s": size / result[f"{clock}_seconds"] for clock in ("cpu", "wall")
        }
        results[name] = result | speeds
        print(
            f"{point:9} {megabytes:6g} MB {name:10} {speeds['mb_per_cpu_s']:8.1f} MB/s per core "
            f"{speeds['mb_per_wall_s']:8.1f} MB/s   {result['peak_mb']:6.0f} MB peak",
            flush=True,
        )
        most = max(most, sum(path.stat().st_size for path in folder.iterdir()) / 1e6)
        if name == "split":
            points = count_lines(paths["output"], 0, paths["output"].stat().st_size)
        later = {path for _, _, read in listed[place:] for path in read.values()}
        for path in set(folder.iterdir()) - later:
            path.unlink()
    return {"megabytes": size, "points": points, "disk_mb": most, "stages": results}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--mb", type=float, nargs="+", default=[10.0, 100.0, 1000.0], help="megabytes of text"
    )
    parser.add_argument("--threads", type=int, default=1, help="processes of a stage")
    parser.add_argument("--point", choices=POINTS, nargs="+", default=POINTS)
    parser.add_argument("--output", type=Path, default=Path(__file__).with_suffix(".json"))
    arguments = parser.parse_args()
    cases: dict[str, Any] = {point: {} for point in arguments.point}
    result = {
        "hardware": machine("numpy", "orjson", "safetensors", "tokenizers"),
        "threads": arguments.threads,
        "cases": cases,
    }
    for megabytes in arguments.mb:
        for point in arguments.point:
            with tempfile.TemporaryDirectory() as folder:
                cases[point][f"{megabytes:g}"] = measure(
                    megabytes, point, arguments.threads, Path(folder)
                )
            arguments.output.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
