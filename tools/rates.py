"""Make `src/confide/advisor/rates.csv` anew: what jobs of the default study took, by kind.

    python tools/rates.py RUN [RUN ...]

The first RUN is a folder in which the default study was built on a quiet machine; others may hold
studies of other sizes, too. Attacks are told apart by what they are in params.yaml. What data
stages take for more text is from benchmarks/prices.json, and stands here as it is there. What a
study takes for each of its runs is a line through all studies of these folders.
"""

import csv
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from statistics import median

import numpy as np
from scipy.optimize import nnls

from confide.advisor.forecast import STARTS, parted, tokens_read
from confide.advisor.rates import (
    AMOUNTS,
    BENCHMARKS,
    COLUMNS,
    IMPORT,
    OF_RUNS,
    OF_TEXT,
    OF_TOKENS,
    RATES,
    TOKEN,
    Cost,
    Rate,
    importing,
    kind_of,
    read_benchmark,
)
from confide.advisor.rehearsal import Text, rehearse
from confide.config import jobs
from confide.config.params import load
from confide.runtime.workflow_log import FOLDER, progress
from confide.text.tokenizer import load as load_tokenizer

PRICES = Path("benchmarks/prices.json")
MODEL = "nonprivate/g0-s0"
BY_RUNS = ("study", "gate")  # kinds of jobs that read all runs of a study


def main(folders: list[Path]) -> None:
    """Write the file."""
    prices = json.loads(PRICES.read_text())["stages"]
    rates = {}
    for kind, costs in taken(folders[0]).items():
        more = {name: prices[kind][f"per_{name}"] for name in OF_TEXT} if kind in prices else {}
        rates[kind] = Rate(
            seconds=median(cost.seconds for cost in costs),
            memory_mb=max(cost.memory_mb for cost in costs),
            more=more,
        )
    for kind in BY_RUNS:
        rates[kind] = by_runs(rates[kind], list(sizes_of_studies(folders, kind)))
    text, per_token = default_text(folders[0])
    starting = importing()
    rates["evaluate"] = by_tokens(rates["evaluate"], text, STARTS * starting)
    rates |= {IMPORT: Rate(seconds=starting), TOKEN: Rate(seconds=per_token)}
    with open(RATES, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*COLUMNS, *(f"per_{name}" for name in AMOUNTS)])
        writer.writerows(row_of(kind, rate) for kind, rate in sorted(rates.items()))


def taken(folder: Path) -> dict[str, list[Cost]]:
    """What the jobs took that Snakemake's logs of a folder name, by kind."""
    attacks = {name: attack.kind for name, attack in load().attacks.items()}
    found = defaultdict(list)
    for log in (folder / FOLDER).glob("*.log"):
        for job, _ in progress(log.read_text(errors="replace").splitlines()).done:
            if job.benchmark is not None and (folder / job.benchmark).is_file():
                found[kind_of(job, attacks)].append(read_benchmark(folder / job.benchmark))
    return found


def sizes_of_studies(folders: list[Path], kind: str) -> Iterator[tuple[int, float]]:
    """Runs of each study that was made, and seconds that a job of this kind took for it."""
    for folder in folders:
        with chdir(folder):
            params = load()
            for file in sorted((BENCHMARKS / kind).glob("*.tsv")):
                runs = jobs.runs_of(params, [file.stem])
                yield len(runs), read_benchmark(file).seconds


def by_runs(rate: Rate, sizes: list[tuple[int, float]]) -> Rate:
    """A rate by the runs of a study: the line, which never falls, of least squares."""
    runs, seconds = np.array(sizes).T
    (start, slope), _ = nnls(np.column_stack([np.ones(len(runs)), runs]), seconds)
    return rate._replace(seconds=float(start), more={OF_RUNS: float(slope)})


def by_tokens(rate: Rate, text: Text, start: float) -> Rate:
    """A rate by the tokens that are read: what is left of the time once it has started."""
    start = min(start, rate.seconds)
    price = (rate.seconds - start) / tokens_read(text) * 1000
    return rate._replace(seconds=start, more={OF_TOKENS: price})


def default_text(folder: Path) -> tuple[Text, float]:
    """Text of the default study, and seconds that a model takes to read a token of it."""
    with chdir(folder):
        params = load()
        run = jobs.runs_of(params, params.select)[MODEL]
        text = parted(run)
        tokenizer = load_tokenizer(Path("data/tokenizers/bpe.json"))
        spec = jobs.training(params, run)
    assert text is not None
    rehearsal = rehearse(spec, text, tokenizer.vocab_size, tokenizer.bos_id)
    assert rehearsal is not None
    return text, rehearsal.per_token


def row_of(kind: str, rate: Rate) -> list[str]:
    """A row of rates.csv; blank is what does not count, or is nothing."""
    numbers = (rate.seconds, rate.memory_mb, *(rate.more.get(name, 0.0) for name in AMOUNTS))
    return [kind, *(f"{number:.3g}" if number else "" for number in numbers)]


if __name__ == "__main__":
    main([Path(folder) for folder in sys.argv[1:]])
