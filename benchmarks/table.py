"""Write docs/benchmarks.md from the JSON files beside this script: every figure of the page is a
measured one.

python benchmarks/table.py
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "benchmarks.md"
INTRODUCTION = """# Benchmarks

What privacy costs in time and memory, as measured. Contenders take turns, round by round; a ratio is the median of those
within rounds, so that a busy machine disturbs it little; peak memory is that of a process of its own, above the libraries'.
Each table says how to measure it again. `python benchmarks/table.py` writes this page from `benchmarks/*.json`.
"""
CASES = {
    "gpt2": "GPT-2, 4 layers of width 256, tied, vocabulary 4,096, batch 32, length 128 (ratios to the plain step)",
    "lstm": "LSTM, embedding and hidden size 200, vocabulary 8,000, batch 32, length 64 (ratios to the plain step)",
    "wide": "LSTM 200, vocabulary 50,257, batch 64, length 64",
    "gpt2-small": "GPT-2 small, bfloat16, vocabulary 50,257, batch 64, length 512",
}
CONTENDERS = {
    "plain": "plain: not private, our loss head, fastest LSTM kernel",
    "plain, open recurrence": "plain, on the open recurrence that clipping needs",
    "usual": "usual: not private, torch's or transformers' own model and loss",
    "usual, default malloc": "the same in a process whose C library gives pages back, as it does by default",
    "clipped": "clipped",
    "clipped and noised": "**clipped and noised**",
    "discrete noise": "clipped and noised, of integers (`noise: discrete_gaussian`)",
    "loop over examples": "one backward pass per example",
    "Opacus hooks": "Opacus hooks",
    "Opacus ghost": "Opacus ghost",
    "Opacus functorch": "Opacus functorch",
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
    return f"Measured on {device}; {versions}; load {about['load']:.1f} at the start of the report."


def steps(name: str, title: str, command: str) -> Iterator[str]:
    """The tables of one clipping.json."""
    found = load(name)
    if found is None:
        return
    yield from (f"## {title}", "", f"`{command}`. {hardware(found)}", "")
    for case, rows in found["cases"].items():
        yield from (f"**{CASES[case]}**", "")
        lines = []
        for contender, label in CONTENDERS.items():
            if contender not in rows:
                continue
            row = rows[contender]
            if "refused" in row:
                lines.append((label, f"refuses: {row['refused']}", "", "", ""))
                continue
            median = f"{row['milliseconds']:,.0f} ms" if "milliseconds" in row else "–"
            memory = f"{row['peak_mib']:,.0f} MiB"
            lines.append(
                (label, median, times(row.get("ratio")), memory, times(row.get("memory_ratio")))
            )
        yield from table(("step", "median", "time", "peak memory", "memory"), lines)


def growth() -> Iterator[str]:
    found = load("growth")
    if found is None:
        return
    yield from (
        "## Growth of a clipped and noised step",
        "",
        f"`python benchmarks/growth.py`. {hardware(found)}",
        "",
    )
    for case, rows in found["cases"].items():
        lines = [
            (
                f"{name} doubled",
                f"{row['milliseconds']:,.0f} ms",
                times(row["ratio"]),
                times(row["memory_ratio"]),
            )
            for name, row in rows.items()
            if name != "base"
        ]
        yield from (
            f"**{case}**: {rows['base']['milliseconds']:,.0f} ms, {rows['base']['peak_mib']:,.0f} MiB at the start",
            "",
        )
        yield from table(("what", "median", "time", "memory"), lines)


def memory(row: dict[str, float]) -> tuple[str, str]:
    return f"{row['peak_mib']:,.0f} MiB", times(row["memory_ratio"])


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
        ("epoch", "median", "time", "peak memory", "memory"),
        [
            (name, f"{row['milliseconds'] / 1000:.1f} s", times(row["ratio"]), *memory(row))
            for name, row in rows
        ],
    )


def exposure() -> Iterator[str]:
    found = load("exposure")
    if found is None:
        return
    yield from (
        "## Exact exposure of ten canaries",
        "",
        f"`python benchmarks/exposure.py --rounds 5`. {hardware(found)}",
        "",
    )
    rows = {name: row for name, row in found["results"].items() if not name.startswith("stream")}
    header = (
        "model, 10⁶ candidates",
        "all ranked",
        "brute force",
        "ratio",
        "by branch and bound, secrets known by heart",
    )
    lines = []
    for name, row in rows.items():
        seconds = (
            f"{row['unpruned_seconds']:.2f} s",
            f"{row['brute_seconds_extrapolated']:,.0f} s (extrapolated)",
        )
        lines.append(
            (name, *seconds, f"{row['brute_over_unpruned']:.0f}×", f"{row['pruned_seconds']:.2f} s")
        )
    yield from table(header, lines)
    streams = [(name, row) for name, row in found["results"].items() if name.startswith("stream")]
    lines = [
        (
            name.removeprefix("stream-"),
            f"{row['seconds']:.1f} s",
            f"{row['peak_mebibytes']:.0f} MiB",
        )
        for name, row in streams
    ]
    yield from table(("candidates (LSTM 200, V 1,024)", "time", "peak memory of the search"), lines)


POINTS = {
    "turn": "Turns of 54 bytes: the price is per point",
    "dialogue": "Dialogues of 640 bytes, five secrets in each",
}
ESTIMATED = 10_000  # megabytes
CORES = 16


def data_stages() -> Iterator[str]:
    """Speed per core and peak memory of each stage at each size, and what 10 GB would take, from
    the largest size.
    """
    found = load("data_stages")
    if found is None or "cases" not in found:
        return
    yield from (
        "## Data stages, from small to large",
        "",
        f"`python benchmarks/data_stages.py`. {hardware(found)}",
        "",
    )
    yield f"Processes of a stage: {found['threads']}. MB of text per second of processor time, peak memory of the largest."
    yield ""
    for point, sizes in found["cases"].items():
        yield from (f"**{POINTS[point]}**", "")
        stages = next(iter(sizes.values()))["stages"]
        header = ("stage", *(f"{case['megabytes']:,.0f} MB" for case in sizes.values()))
        cells = {
            name: [f"{row['mb_per_cpu_s']:.1f} MB/s, {row['peak_mb']:,.0f} MB" for row in rows]
            for name in stages
            if (rows := [case["stages"][name] for case in sizes.values()])
        }
        yield from table(header, [(name, *row) for name, row in cells.items()])
        yield estimate(max(sizes.values(), key=lambda case: case["megabytes"]))
        yield ""


def estimate(case: dict[str, Any]) -> str:
    """On paper: time and disk in proportion to the text, memory as it is."""
    times_larger = ESTIMATED / case["megabytes"]
    alone = {name: row for name, row in case["stages"].items() if name in ("plant", "neighbours")}
    shared = sum(row["cpu_seconds"] for name, row in case["stages"].items() if name not in alone)
    seconds = times_larger * (shared / CORES + sum(row["wall_seconds"] for row in alone.values()))
    memory = (
        CORES
        * max(row["peak_mb"] for name, row in case["stages"].items() if name not in alone)
        / 1000
    )
    return (
        f"On paper, 10 GB of such text on {CORES} cores: {seconds / 60:.0f} minutes for all stages one after the other, "
        f"{case['disk_mb'] * times_larger / 1000:.0f} GB of disk, {memory:.1f} GB of memory for all processes together."
    )


def page() -> str:
    lines = [
        INTRODUCTION,
        *steps("clipping", "An optimizer step, private and not", "python benchmarks/clipping.py"),
        *steps(
            "clipping_gpu", "The same on a GPU", "python benchmarks/clipping.py --case gpt2-small"
        ),
        *selective(),
        *growth(),
        *exposure(),
        *data_stages(),
    ]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
