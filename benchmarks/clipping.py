"""Price of privacy: one clipped and noised optimizer step beside ordinary ones, Opacus' modes and a
loop over examples.

python benchmarks/clipping.py [--rounds 15] [--case gpt2 lstm wide] python benchmarks/clipping.py
--case gpt2-small --output benchmarks/clipping_gpu.json     # on a GPU

Medians, ratios within rounds, and peak memory of a process of its own. Contenders that take long
run in fewer rounds.
"""

from typing import Any

import torch
from contenders import CASES, CONTENDERS, Case
from machine import machine
from runner import Apart, arguments_of, compared, interleaved, limited_memory, peak_memory, shown

from confide.files.io import write_json

QUICK = (
    "plain",
    "plain, open recurrence",
    "usual",
    "usual, default malloc",
    "clipped",
    "clipped and noised",
)
SLOW = ("discrete noise", "loop over examples", "Opacus hooks", "Opacus ghost", "Opacus functorch")
APART = ("usual, default malloc",)  # malloc's settings are the process'
WIDE = ("plain", "clipped and noised")
LARGE = ("Opacus hooks",)  # in the wide case: memory alone, and no more than LIMIT of it
LIMIT = 16  # GiB


def built(case: Case, names: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, str]]:
    """Steps by name, and why a contender refuses the model."""
    steps = {}
    refusals = {}
    for name in names:
        if (name == "plain, open recurrence" and case.spec.kind != "lstm") or (
            name in APART and case.device != "cpu"
        ):
            continue
        try:
            step = Apart(CONTENDERS[name], case) if name in APART else CONTENDERS[name](case)
            step()  # some refuse only here
            steps[name] = step
        except NotImplementedError as error:
            refusals[name] = str(error)
    return steps, refusals


def timed(case: Case, names: tuple[str, ...], rounds: int) -> dict[str, dict[str, Any]]:
    steps, refusals = built(case, names)
    found: dict[str, dict[str, Any]] = compared(interleaved(steps, rounds), names[0])
    return found | {name: {"refused": reason} for name, reason in refusals.items()}


def measure(case: Case, rounds: int) -> dict[str, dict[str, Any]]:
    """Everything about one case; ratios are to "plain"."""
    wide = case.vocab > 10_000 and case.device == "cpu"
    quick, slow = (WIDE, ()) if wide else (QUICK, SLOW)
    found = timed(case, quick, 3 if wide else rounds)
    if slow:
        found |= {
            name: row for name, row in timed(case, ("plain", *slow), 3).items() if name != "plain"
        }
    for name, row in found.items():
        if "refused" not in row:
            row["peak_mib"] = memory(name, case)
            row["memory_ratio"] = row["peak_mib"] / found["plain"]["peak_mib"]
    if wide:
        for name in LARGE:
            peak = limited_memory(CONTENDERS[name], case, gibibytes=LIMIT)
            found[name] = (
                {"refused": f"needs more than {LIMIT} GiB"} if peak is None else {"peak_mib": peak}
            )
    return found


def memory(name: str, case: Case) -> float:
    """Peak MiB of three steps."""
    if case.device == "cpu":
        return peak_memory(CONTENDERS[name], case)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    step = CONTENDERS[name](case)
    for _ in range(3):
        step()
    return torch.cuda.max_memory_allocated() / 2**20


def main() -> None:
    parser = arguments_of(__file__, __doc__, 15)
    parser.add_argument("--case", nargs="+", choices=list(CASES), default=["gpt2", "lstm", "wide"])
    arguments = parser.parse_args()
    cases = {}
    hardware = machine("torch", "opacus", "transformers") | {"threads": torch.get_num_threads()}
    if torch.cuda.is_available():
        hardware["gpu"] = torch.cuda.get_device_name()
    for name in arguments.case:
        cases[name] = measure(CASES[name], arguments.rounds)
        for contender, row in cases[name].items():
            shown(f"{name}, {contender}", row)
        write_json(arguments.output, {"hardware": hardware, "cases": cases})


if __name__ == "__main__":
    main()
