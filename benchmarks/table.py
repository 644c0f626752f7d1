"""Write docs/benchmarks.md from the JSON files beside this script: every figure of the page is a
measured one.

python benchmarks/table.py
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from math import inf
from pathlib import Path
from typing import Any

import orjson

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "benchmarks.md"
INTRODUCTION = """# Benchmarks

Read this to know what privacy costs in time and memory, before you choose a model or a machine.

Of optimizer steps times are medians, and memory is the peak above what the libraries need; of data
stages times are of single runs, and memory includes libraries. `python benchmarks/table.py` writes
this page from `benchmarks/*.json`. [benchmarks/README.md](../benchmarks/README.md) has more.
"""
CASES = {
    "gpt2": "GPT-2, 4 layers of 256, vocabulary 4,096, batch 32, length 128",
    "lstm": "LSTM 200, vocabulary 8,000, batch 32, length 64",
    "gpt2-small": "GPT-2 small, bfloat16, batch 64, length 512",
}
MODELS = {"gpt2": "GPT-2", "lstm": "LSTM 200"}
CONTENDERS = {
    "plain": "not private",
    "usual": "the library's own",
    "clipped and noised": "**clipped and noised**",
    "discrete noise": "clipped and noised, of integers (`noise: discrete_gaussian`)",
    "loop over examples": "example by example",
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
    return about.get("gpu") or f"{about['cores']} cores of {about['cpu']}"


def steps(name: str, heading: str, command: str) -> Iterator[str]:
    """The cases of one clipping.json, and a table of all of them."""
    found = load(name)
    if found is None:
        return
    cases = {case: rows for case, rows in found["cases"].items() if case in CASES}
    yield from (f"## {heading}", "", f"`{command}`, {hardware(found)}:", "")
    for case, rows in cases.items():
        median = rows["plain"]["milliseconds"]
        yield f"- {CASES[case]}: {median:,.0f} ms without privacy"
    yield ""
    header = ["step"]
    for case in cases:
        model = CASES[case].partition(",")[0]
        header += [f"{model}, time", f"{model}, MiB"]
    lines = []
    for contender, label in CONTENDERS.items():
        if any(contender in rows for rows in cases.values()):
            measured = (time_and_memory(rows.get(contender, {})) for rows in cases.values())
            lines.append((label, *chain(*measured)))
    yield from table(tuple(header), lines)


def time_and_memory(row: dict[str, Any]) -> tuple[str, str]:
    """Two cells of a contender: how often the ordinary step's time it takes, and its memory."""
    if "refused" in row:
        return "refuses", "–"
    memory = f"{row['peak_mib']:,.0f}" if "peak_mib" in row else "–"
    return times(row.get("ratio")), memory


def head() -> Iterator[str]:
    """What it is worth that rows of logits begin at lines of the cache."""
    found = load("head")
    if found is None:
        return
    yield from (
        "### The output layer",
        "",
        f"`python benchmarks/head.py`, {hardware(found)}. Losses and gradients where rows of "
        "logits begin at lines of the processor's cache, against rows that follow at once:",
        "",
    )
    rows = [
        (f"{int(vocabulary):,}", times(case["rows at lines"]["ratio"]))
        for vocabulary, case in found["cases"].items()
    ]
    yield from table(("vocabulary", "time"), rows)


def pretrained() -> Iterator[str]:
    """Updates of a pretrained model, with adapters and whole, and its texts."""
    found = load("pretrained")
    if found is None:
        return
    case = found["case"]
    yield from (
        "## A pretrained model",
        "",
        f"`python benchmarks/pretrained.py`, {hardware(found)}:",
        "",
        f"{case['folder']}, batch {case['batch']}, length {case['length']}:",
        "",
    )
    header = ("update", "ms", "tokens/s", "ratio", "MiB")
    tokens = case["batch"] * case["length"]
    lines = []
    for way in ("adapters", "whole"):
        for name, row in sorted(
            found["cases"][way].items(), key=lambda item: item[1].get("ratio", inf)
        ):
            if "refused" in row:
                lines.append((f"{way}, {name}", "refuses", "", "", ""))
                continue
            median = f"{row['milliseconds']:,.0f}"
            speed = f"{1000 * tokens / row['milliseconds']:,.0f}"
            memory = f"{row['peak_mib']:,.0f}"
            lines.append((f"{way}, {name}", median, speed, times(row["ratio"]), memory))
    yield from table(header, lines)
    rows = [
        (f"texts, {name}", f"{row['milliseconds']:,.0f}", times(row["ratio"]))
        for name, row in found["cases"]["texts"].items()
    ]
    yield from table(("32 texts of 32 tokens", "ms", "ratio"), rows)


def synthesis() -> Iterator[str]:
    """Turns per minute that a model of the default size writes."""
    found = load("synthesis")
    if found is None:
        return
    load_average = found["hardware"]["load"]
    cores = found["hardware"]["cores"]
    busy = ", which other programs kept busy" if load_average > cores else ""
    yield from (
        "## Texts of a trained LSTM 200",
        "",
        f"`python benchmarks/synthesis.py`, {hardware(found)}{busy}. "
        f"{found['settings']['count']:,} turns of a simulated CustomerSim:",
        "",
    )
    rows = [
        (
            name,
            f"{row['turns_per_minute']:,.0f}",
            f"{row['drawn_per_text']:.2f}",
        )
        for name, row in found["cases"].items()
    ]
    yield from table(("one process", "turns a minute", "drawn for each"), rows)


def selective() -> Iterator[str]:
    found = load("selective")
    if found is None:
        return
    yield from (
        "## An epoch of Selective-DPSGD, states reset",
        "",
        f"`python benchmarks/selective.py`, {hardware(found)}:",
        "",
    )
    rows = sorted(found["cases"]["lstm"].items(), key=lambda item: item[1]["ratio"])
    yield from table(
        ("epoch", "seconds", "ratio", "MiB"),
        [
            (
                name,
                f"{row['milliseconds'] / 1000:.1f}",
                times(row["ratio"]),
                f"{row['peak_mib']:,.0f}",
            )
            for name, row in rows
        ],
    )


POINTS = {"turn": "turns of 54 bytes", "dialogue": "dialogues of 640 bytes, five secrets"}


def data_stages() -> Iterator[str]:
    """Speed per core and peak memory of each stage at the largest size, and what 10 GB would take
    by that.
    """
    found = load("data_stages")
    if found is None or "cases" not in found:
        return
    largest = {
        point: max(sizes.values(), key=lambda case: case["megabytes"])
        for point, sizes in found["cases"].items()
    }
    size = min(case["megabytes"] for case in largest.values())
    peak = max(row["peak_mb"] for case in largest.values() for row in case["stages"].values())
    yield from (
        "## Data stages",
        "",
        f"`python benchmarks/data_stages.py`, {hardware(found)}. MB/s on one core, at "
        f"{size:,.0f} MB of text, in at most {peak:,.0f} MB of memory:",
        "",
    )
    rows = [
        (name, *(f"{case['stages'][name]['mb_per_cpu_s']:.1f}" for case in largest.values()))
        for name in next(iter(largest.values()))["stages"]
    ]
    yield from table(("stage", *(POINTS[point] for point in largest)), rows)


def ten_gigabytes() -> Iterator[str]:
    """Every stage once on the largest corpus that was run as a whole."""
    found = load("ten_gigabytes")
    if found is None:
        return
    ((case,),) = (sizes.values() for sizes in found["cases"].values())
    minutes = sum(row["wall_seconds"] for row in case["stages"].values()) / 60
    yield from (
        "### Ten gigabytes, run",
        "",
        "`python benchmarks/data_stages.py --mb 10000 --point dialogue --output "
        f"ten_gigabytes.json`, {hardware(found)}, which other programs kept busy at first. "
        f"{case['points'] / 1e6:.1f} million dialogues, {case['megabytes']:,.0f} MB, one thread: "
        f"{minutes:.0f} minutes, at most {case['disk_mb'] / 1000:.0f} GB of disk between stages:",
        "",
    )
    rows = [
        (name, f"{row['wall_seconds']:.0f}", f"{row['mb_per_cpu_s']:.1f}", f"{row['peak_mb']:.0f}")
        for name, row in case["stages"].items()
    ]
    yield from table(("stage", "seconds", "MB/s on one core", "MB of memory"), rows)


def prices() -> Iterator[str]:
    """What more text costs, by stage."""
    found = load("prices")
    if found is None:
        return
    yield from (
        "### What more text costs",
        "",
        f"`python benchmarks/prices.py`, {hardware(found)}. Seconds of one core that a stage takes "
        "to start, and more for each amount, fitted to corpora of 10 and 40 MB; the last column is "
        "the largest relative error of this fit. `confide forecast` reckons with them:",
        "",
    )
    amounts = ("per_mb", "per_1000_points", "per_1000_secrets")
    rows = [
        (
            stage,
            f"{row['start']:.2f}",
            *(f"{1000 * row[amount]:.3g}" for amount in amounts),
            f"{row['worst']:.0%}",
        )
        for stage, row in found["stages"].items()
    ]
    header = ("stage", "start", "GB", "million points", "million secrets", "error, at most")
    yield from table(header, rows)


def growth() -> Iterator[str]:
    """What a clipped and noised step costs where something doubles."""
    found = load("growth")
    if found is None:
        return
    yield from (
        "### A step where something doubles",
        "",
        f"`python benchmarks/growth.py`, {hardware(found)}. Clipped and noised, from a "
        "batch of 16:",
        "",
    )
    cases = found["cases"]
    doubled = [name for name in next(iter(cases.values())) if name != "base"]
    rows = []
    for name in doubled:
        found_for = (case[name] for case in cases.values())
        ratios = ((row["ratio"], row["memory_ratio"]) for row in found_for)
        rows.append((name, *map(times, chain(*ratios))))
    header = chain(*((f"{MODELS[case]}, time", f"{MODELS[case]}, memory") for case in cases))
    yield from table(("doubled", *header), rows)


def plan() -> Iterator[str]:
    """What a large corpus would take on a cluster."""
    found = load("plan")
    if found is None:
        return
    first = found["plans"][0]
    yield from (
        "### A large corpus, on paper",
        "",
        "`python benchmarks/plan.py`. Nothing of this was run: it is what was measured above, "
        f"times the text, on {first['nodes']} nodes of {first['cores']} cores and a file system of "
        f"{first['disk_mb_per_s']:,.0f} MB/s. Hours are a simulated schedule's; none takes less "
        "than *at least*:",
        "",
    )
    rows = [
        (
            f"{1000 * plan['terabytes']:,.0f} GB",
            f"{plan['hours']:.1f}",
            f"{plan['bound_hours']:.1f}",
            f"{plan['core_hours']:,.0f}",
            f"{plan['moved_tb']:.1f}",
            f"{plan['written_tb']:.1f}",
            f"{plan['jobs']}",
        )
        for plan in found["plans"]
    ]
    header = ("turns", "hours", "at least", "core-hours", "TB moved", "TB of disk", "jobs")
    yield from table(header, rows)
    last = found["plans"][-1]
    stages = ", ".join(
        f"{name} {begin:.1f} to {end:.1f}"
        for name, (begin, end) in sorted(last["stages"].items(), key=lambda stage: stage[1])
    )
    yield from (
        f"Hours of {1000 * last['terabytes']:,.0f} GB, by stage: {stages}. Split, plant, recall "
        "and neighbours are one job each; were they divided, too, it would take "
        f"{last['hours_divided']:.1f} hours.",
        "",
    )


def same_files(cases: Iterable[dict[str, Any]]) -> str:
    """In words, whether both versions wrote the same."""
    differ = {name for case in cases for name, row in case["stages"].items() if not row["same"]}
    same = (
        "Both write the same files, but for lines that close shards, and the same counts of recall"
    )
    if differ == {"neighbours"}:
        return f"{same}; neighbours look at another sample of the secrets"
    return f"{same}; other ones of {', '.join(sorted(differ))}" if differ else same


def versions() -> Iterator[str]:
    """The data stages beside those of release 0.1.0."""
    found = load("versions")
    if found is None:
        return
    yield from (
        "### Beside release 0.1.0",
        "",
        f"`python benchmarks/versions.py --base /tmp/confide-0.1.0/src`, {hardware(found)}. MB/s "
        "of the least processor time of some rounds. "
        f"{same_files(found['cases'].values())}:",
        "",
    )
    for point, case in found["cases"].items():
        rows = []
        for name, row in case["stages"].items():
            base, now = (f"{row['mb_per_s'][version]:.1f}" for version in ("base", "now"))
            rows.append((name, base, now, times(row["ratio"]), f"{row['peak_mb']['now']:,.0f}"))
        together = case["seconds"]["base"] / case["seconds"]["now"]
        rows.append(("all together", "", "", times(together), ""))
        head = f"{POINTS[point]}, {case['megabytes']:,.0f} MB"
        yield from table((head, "0.1.0", "now", "ratio", "MiB"), rows)


def page() -> str:
    lines = [
        INTRODUCTION,
        *steps("clipping", "An optimizer step, private and not", "python benchmarks/clipping.py"),
        *steps(
            "clipping_gpu", "The same on a GPU", "python benchmarks/clipping.py --case gpt2-small"
        ),
        *growth(),
        *head(),
        *pretrained(),
        *synthesis(),
        *selective(),
        *data_stages(),
        *ten_gigabytes(),
        *prices(),
        *versions(),
        *plan(),
    ]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
