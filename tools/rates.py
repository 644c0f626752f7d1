"""Make `src/confide/advisor/rates.csv` anew: what jobs of the default study took, by kind.

    python tools/rates.py RUN [RUN ...]

Each RUN is a folder in which the default study was built on a quiet machine. Attacks are told
apart by what they are in params.yaml. What data stages take for each megabyte of text is from
benchmarks/data_stages.json, and stands here as it is there.
"""

import csv
import json
import sys
from collections import defaultdict
from contextlib import chdir
from pathlib import Path
from statistics import median

from confide.advisor.forecast import parted
from confide.advisor.rates import (
    COLUMNS,
    IMPORT,
    RATES,
    TOKEN,
    importing,
    kind_of,
    read_benchmark,
)
from confide.advisor.rehearsal import rehearse
from confide.config import jobs
from confide.config.params import load
from confide.runtime.workflow_log import FOLDER, progress
from confide.text.tokenizer import load as load_tokenizer

STAGES = Path("benchmarks/data_stages.json")
MODEL = "nonprivate/g0-s0"


def main(folders: list[str]) -> None:
    """Write the file."""
    attacks = {name: attack.kind for name, attack in load().attacks.items()}
    seconds = defaultdict(list)
    memory = defaultdict(list)
    for folder in map(Path, folders):
        for log in (folder / FOLDER).glob("*.log"):
            for job, _ in progress(log.read_text(errors="replace").splitlines()).done:
                if job.benchmark is None or not (folder / job.benchmark).is_file():
                    continue
                cost = read_benchmark(folder / job.benchmark)
                kind = kind_of(job, attacks)
                seconds[kind].append(cost.seconds)
                memory[kind].append(cost.memory_mb)
    turns = json.loads(STAGES.read_text())["cases"]["turn"]
    largest = turns[max(turns, key=int)]["stages"]
    per_mb = {stage: 1 / speed["mb_per_cpu_s"] for stage, speed in largest.items()}
    first = [[IMPORT, f"{importing():.2f}"], [TOKEN, f"{seconds_per_token(Path(folders[0])):.3g}"]]
    with open(RATES, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows([*row, "", ""] for row in first)
        for kind in sorted(seconds):
            slow = per_mb.get(kind)
            writer.writerow(
                [
                    kind,
                    f"{median(seconds[kind]):.2f}",
                    f"{max(memory[kind]):.0f}",
                    "" if slow is None else f"{slow:.3f}",
                ]
            )


def seconds_per_token(folder: Path) -> float:
    """What a token takes that a model of the default study reads."""
    with chdir(folder):
        params = load()
        run = jobs.runs_of(params, params.select)[MODEL]
        text = parted(run)
        tokenizer = load_tokenizer(Path("data/tokenizers/bpe.json"))
        spec = jobs.training(params, run)
    assert text is not None
    rehearsal = rehearse(spec, text, tokenizer.vocab_size, tokenizer.bos_id)
    assert rehearsal is not None
    return rehearsal.per_token


if __name__ == "__main__":
    main(sys.argv[1:])
