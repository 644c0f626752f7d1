"""Write docs/benchmarks.md from the JSON files beside this script: every figure of the page is a
measured one.

python benchmarks/table.py
"""

from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Any

import orjson

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "benchmarks.md"
INTRODUCTION = """# Benchmarks

Read this to know what privacy costs in time and memory, before you choose a model, a batch size or
a machine.

Ratios are medians of those within rounds. Peak memory is above what the libraries need.
`python benchmarks/table.py` writes this page from `benchmarks/*.json`;
[benchmarks/README.md](../benchmarks/README.md) has the rest.
"""
CASES = {
    "gpt2": "GPT-2, 4 layers of width 256, tied, vocabulary 4,096, batch 32, length 128",
    "lstm": "LSTM, embedding and hidden size 200, vocabulary 8,000, batch 32, length 64",
    "gpt2-small": "GPT-2 small, bfloat16, vocabulary 50,257, batch 64, length 512",
}
CONTENDERS = {
    "plain": "not private, ours",
    "usual": "not private, torch's or transformers' own",
    "clipped and noised": "**clipped and noised**",
    "discrete noise": "clipped and noised, of integers (`noise: discrete_gaussian`)",
    "loop over examples": "one backward pass per example",
    "Opacus hooks": "Opacus hooks",
    "Opacus ghost": "Opacus ghost",
}


def load(name: str) -> dict[str, Any] | None:
    path = HERE / f"{name}.json"
    return orjson.loads(path.read_bytes()) if path.exists() else None


def table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    yield "| " + " | ".join(header) + " |"
    yield "|" + "---|" * len(header)
    yield from ("| " + " | ".join(row) + " |" for row in rows)
    yield ""


def times(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}×"


def hardware(found: dict[str, Any]) -> str:
    about = found["hardware"]
    versions = ", ".join(
        f"{name} {about[name]}"
        for name in ("torch", "opacus", "transformers", "tokenizers", "orjson")
        if name in about
    )
    device = about.get("gpu") or f"{about['cores']} cores of {about['cpu']}"
    return f"Measured on {device}; {versions}; load {about['load']:.1f}."


def steps(name: str, heading: str, command: str) -> Iterator[str]:
    """The tables of one clipping.json."""
    found = load(name)
    if found is None:
        return
    yield from (f"## {heading}", "", f"`{command}`. {hardware(found)}", "")
    for case, title in CASES.items():
        if case not in found["cases"]:
            continue
        rows = found["cases"][case]
        yield from (f"**{title}**", "")
        lines = []
        for contender, label in CONTENDERS.items():
            if contender not in rows:
                continue
            row = rows[contender]
            if "refused" in row:
                lines.append((label, "refuses", "", ""))
                continue
            median = f"{row['milliseconds']:,.0f} ms" if "milliseconds" in row else "–"
            lines.append((label, median, times(row.get("ratio")), f"{row['peak_mib']:,.0f} MiB"))
        yield from table(("step", "median", "ratio", "peak memory"), lines)


def pretrained() -> Iterator[str]:
    """Updates of a pretrained model, with adapters and whole, and its texts."""
    found = load("pretrained")
    if found is None:
        return
    case = found["case"]
    yield from (
        "## A pretrained model",
        "",
        f"`python benchmarks/pretrained.py`. {hardware(found)}",
        "",
        f"{case['folder']}, batch {case['batch']}, length {case['length']}:",
        "",
    )
    header = ("update", "median", "ratio", "peak memory")
    lines = []
    for way in ("adapters", "whole"):
        for name, row in sorted(
            found["cases"][way].items(), key=lambda item: item[1].get("ratio", inf)
        ):
            if "refused" in row:
                lines.append((f"{way}, {name}", "refuses", "", ""))
                continue
            median = f"{row['milliseconds']:,.0f} ms"
            memory = f"{row['peak_mib']:,.0f} MiB"
            lines.append((f"{way}, {name}", median, times(row["ratio"]), memory))
    yield from table(header, lines)
    rows = [
        (f"texts, {name}", f"{row['milliseconds']:,.0f} ms", times(row["ratio"]))
        for name, row in found["cases"]["texts"].items()
    ]
    yield from table(("eight texts of 32 tokens", "median", "ratio"), rows)


def selective() -> Iterator[str]:
    found = load("selective")
    if found is None:
        return
    yield from (
        "## An epoch of Selective-DPSGD, states reset",
        "",
        f"`python benchmarks/selective.py`. {hardware(found)}",
        "",
    )
    rows = sorted(found["cases"]["lstm"].items(), key=lambda item: item[1]["ratio"])
    yield from table(
        ("epoch", "median", "ratio", "peak memory"),
        [
            (
                name,
                f"{row['milliseconds'] / 1000:.1f} s",
                times(row["ratio"]),
                f"{row['peak_mib']:,.0f} MiB",
            )
            for name, row in rows
        ],
    )


POINTS = {"turn": "turns of 54 bytes", "dialogue": "dialogues of 640 bytes, five secrets in each"}
ESTIMATED = 10_000  # megabytes
CORES = 16


def data_stages() -> Iterator[str]:
    """Speed per core and peak memory of each stage at the largest size, and what 10 GB would take
    by that.
    """
    found = load("data_stages")
    if found is None or "cases" not in found:
        return
    yield from ("## Data stages", "", f"`python benchmarks/data_stages.py`. {hardware(found)}", "")
    largest = {
        point: max(sizes.values(), key=lambda case: case["megabytes"])
        for point, sizes in found["cases"].items()
    }
    size = min(case["megabytes"] for case in largest.values())
    yield from (
        f"Speed on one core in MB/s, and peak memory in MB, at {size:,.0f} MB of text:",
        "",
    )
    header = ["stage"]
    for point in largest:
        header += [POINTS[point], "memory"]
    rows = []
    for name in next(iter(largest.values()))["stages"]:
        cells = [name]
        for case in largest.values():
            row = case["stages"][name]
            cells += [f"{row['mb_per_cpu_s']:.1f}", f"{row['peak_mb']:,.0f}"]
        rows.append(tuple(cells))
    yield from table(tuple(header), rows)
    yield from (f"10 GB of such text on {CORES} cores, all stages in turn, on paper:", "")
    rows = [(POINTS[point], *estimate(case)) for point, case in largest.items()]
    yield from table(("text", "minutes", "GB of disk", "GB of memory"), rows)


def estimate(case: dict[str, Any]) -> tuple[str, str, str]:
    """Minutes, disk and memory: time and disk in proportion to the text, memory as it is."""
    times_larger = ESTIMATED / case["megabytes"]
    alone = {name: row for name, row in case["stages"].items() if name in ("plant", "neighbours")}
    shared = sum(row["cpu_seconds"] for name, row in case["stages"].items() if name not in alone)
    seconds = times_larger * (shared / CORES + sum(row["wall_seconds"] for row in alone.values()))
    memory = (
        CORES
        * max(row["peak_mb"] for name, row in case["stages"].items() if name not in alone)
        / 1000
    )
    disk = case["disk_mb"] * times_larger / 1000
    return f"{seconds / 60:.0f}", f"{disk:.0f}", f"{memory:.1f}"


def page() -> str:
    lines = [
        INTRODUCTION,
        *steps("clipping", "An optimizer step, private and not", "python benchmarks/clipping.py"),
        *steps(
            "clipping_gpu", "The same on a GPU", "python benchmarks/clipping.py --case gpt2-small"
        ),
        *pretrained(),
        *selective(),
        *data_stages(),
    ]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
