"""How a clipped and noised step grows: time and memory when batch, length, vocabulary or parameters
double.

python benchmarks/growth.py [--rounds 9]
"""

from dataclasses import replace
from typing import Any

from contenders import CASES, Case, noisy
from machine import machine
from runner import arguments_of, compared, interleaved, peak_memory, shown

from confide.files.io import write_json


def doubled(case: Case) -> dict[str, Case]:
    """The case itself and its relatives; parameters double with the layers."""
    more = replace(case, spec=case.spec.model_copy(update={"layers": 2 * case.spec.layers}))
    return {
        "base": case,
        "batch": replace(case, batch=2 * case.batch),
        "length": replace(case, length=2 * case.length),
        "vocabulary": replace(case, vocab=2 * case.vocab),
        "layers": more,
    }


def measure(case: Case, rounds: int) -> dict[str, dict[str, Any]]:
    cases = doubled(case)
    found: dict[str, dict[str, Any]] = compared(
        interleaved({name: noisy(one) for name, one in cases.items()}, rounds), "base"
    )
    for name, row in found.items():
        row["peak_mib"] = peak_memory(noisy, cases[name])
        row["memory_ratio"] = row["peak_mib"] / found["base"]["peak_mib"]
        shown(name, row)
    return found


def main() -> None:
    arguments = arguments_of(__file__, __doc__, 9).parse_args()
    smaller = {
        "gpt2": replace(CASES["gpt2"], batch=16, length=64),
        "lstm": replace(CASES["lstm"], batch=16, length=32),
    }
    cases = {name: measure(case, arguments.rounds) for name, case in smaller.items()}
    write_json(arguments.output, {"hardware": machine("torch", "transformers"), "cases": cases})


if __name__ == "__main__":
    main()
