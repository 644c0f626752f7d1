"""Shadow models of the default study: trained as one stack, and one after the other with the
project's ordinary LSTMModel.

python benchmarks/shadows.py

Both take the same steps on the same batches. In each round a stack of all that are trained at a
time takes STEPS steps, then two ordinary models take theirs with fused AdamW and torch's LSTM, on
`--threads`; times are stretched to all models. All have the vocabulary of the tokens that occur, as
in the stage; "whole vocabulary" is the tokenizer's. "processor" is the time of all processes and
threads together, which programs beside them disturb less. "whole" is what the workflow runs, from
texts to scores, start-up included, with the settings of params.yaml but for --models: one job of
two processes, or with --shares as many jobs of one process, two at a time, and the one that puts
their files together. "peak_mb" is the memory of all of them, what they share counted once.
"""

import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import numpy as np
import psutil
import torch
from machine import machine
from runner import Step, arguments_of, compared, interleaved, shown

from confide.attacks.membership.lira import leave_one_out
from confide.attacks.membership.members import choose, first_occurrences
from confide.attacks.membership.shadows import assignment, holders, read
from confide.attacks.statistics.scoring import view_of
from confide.config import jobs, params
from confide.dp.mechanism.sampling import generator
from confide.files.io import write_json
from confide.models.batches import padded, token_losses
from confide.models.lstm import LSTMModel
from confide.models.stacked import StackedLSTM, own_batches, train
from confide.runtime.memory import keep_pages
from confide.specs import LiraSpec, LSTMSpec, ShadowsSpec
from confide.stages.plant import plant
from confide.stages.shadows import compact, training_set
from confide.stages.split import split
from confide.stages.tokenizer import tokenizer
from confide.text.tokenizer import load
from confide.types import View

ROOT = Path(__file__).parents[1]
SEQUENTIAL = 2  # ordinary models that are timed
STEPS = 100  # of each model; its whole training is 1,350


def corpus(folder: Path, given: params.Params) -> tuple[Path, Path]:
    """Points and tokenizer of the dataset sim."""
    sources = jobs.sources(given)
    for name in ("sim-turn", "public-turn"):
        split(sources[name], output=folder / f"{name}.jsonl")
    tokenizer(
        given.tokenizers["bpe"], points=folder / "public-turn.jsonl", output=folder / "bpe.json"
    )
    plant(
        jobs.canaries(given, "sim"),
        points=folder / "sim-turn.jsonl",
        output=folder / "points.jsonl",
        canaries=folder / "c.json",
    )
    return folder / "points.jsonl", folder / "bpe.json"


def ordinary(model: LSTMModel, view: View, batches: np.ndarray, lr: float) -> None:
    """The usual loop over batches (T, B) of points, -1 where there is none."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.0, fused=True)
    for points in batches:
        batch = padded(view, points[points >= 0], model.bos)
        optimizer.zero_grad()
        (token_losses(model, batch).sum() / (batch.targets >= 0).sum()).backward()
        optimizer.step()


def one_by_one(
    like: LSTMSpec,
    spec: ShadowsSpec,
    view: View,
    size: int,
    bos: int,
    plan: np.ndarray,
    threads: int,
) -> Step:
    """Ordinary models one after the other, on so many threads."""
    models = [LSTMModel(like, size, bos) for _ in range(SEQUENTIAL)]
    batches = plan.reshape(-1, *plan.shape[2:])

    def run() -> None:
        torch.set_num_threads(threads)
        for number, model in enumerate(models):
            ordinary(model, view, batches[:, number], spec.lr)

    return run


def counted(step: Step, found: list[float]) -> Step:
    """The same step, which adds the processor's seconds of this process and its children to
    `found`.
    """

    def run() -> None:
        before = os.times()[:4]
        step()
        found.append(sum(os.times()[:4]) - sum(before))

    return run


def steps(
    spec: ShadowsSpec, points: Path, words: Path, rounds: int, threads: int
) -> dict[str, dict[str, float]]:
    """Sizes of the vocabularies, and milliseconds of STEPS steps of all models, either way.

    On one thread, but for ordinary models.
    """
    rng = np.random.default_rng(0)
    tokens = load(words)
    chosen = choose(
        list(first_occurrences(points, spec.label)), spec.limit, np.random.default_rng(spec.seed)
    )
    seen = assignment(spec.models, len(chosen), rng)
    texts, learns = training_set(
        list(holders(points, spec.label, chosen)), seen, spec.background, rng
    )
    view = view_of([ids for ids, _ in tokens.encode_batch(texts)])
    like = LSTMSpec(kind="lstm", embedding=spec.embedding, hidden=spec.hidden)
    lengths = np.diff(view.starts)
    source = generator(0, "benchmark")
    plan = own_batches(lengths, learns, spec.batch_size, source)[None, :STEPS]
    (short,), bos, size = compact([view], tokens.bos_id)
    stack = StackedLSTM.of([LSTMModel(like, size, bos) for _ in spec.groups[0]])
    together = plan[:, :, : len(stack)]
    own = (short, size, bos, plan)
    whole = (view, tokens.vocab_size, tokens.bos_id, plan)
    contenders: dict[str, Step] = {
        "stacked": lambda: train(stack, short, together, lr=spec.lr, bos=bos),
        "ordinary": one_by_one(like, spec, *own, threads),
        "ordinary, whole vocabulary": one_by_one(like, spec, *whole, threads),
    }
    processor: dict[str, list[float]] = {name: [] for name in contenders}
    seconds = interleaved(
        {name: counted(step, processor[name]) for name, step in contenders.items()}, rounds
    )
    processor = {
        name: found[1:] for name, found in processor.items()
    }  # without the round that warms up
    for name in contenders:
        timed = len(stack) if name == "stacked" else SEQUENTIAL
        for found in (seconds, processor):
            found[name] = [second * spec.models / timed for second in found[name]]
    rows, used = (compared(found, "stacked") for found in (seconds, processor))
    for name, row in rows.items():
        row |= {f"processor_{key}": used[name][key] for key in ("milliseconds", "ratio")}
    return rows | {
        "vocabulary": {"stacked": size, "whole": tokens.vocab_size},
        "steps": {"each": plan.shape[1]},
    }


def command(stage: str, *arguments: str | Path) -> None:
    """A job as the workflow runs it: one thread in each process."""
    program = Path(sys.executable).with_name("confide")
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run([program, stage, *arguments], env=environment, check=True)


def train_all(spec: ShadowsSpec, points: Path, words: Path, output: Path, shares: int) -> None:
    """The shadow models by one job of two processes, or by so many jobs, two at a time."""
    given: list[str | Path] = ["--spec", spec.model_dump_json()]
    given += ["--points", points, "--tokenizer", words]
    if shares == 1:
        command("shadows", *given, "--processes", "2", "--output", output)
        return
    parts = [output.with_name(f"{number + 1}-of-{shares}.safetensors") for number in range(shares)]

    def train_share(part: Path) -> None:
        command("shadows", *given, "--share", part.stem, "--processes", "1", "--output", part)

    with ThreadPoolExecutor(2) as jobs_at_once:
        list(jobs_at_once.map(train_share, parts))
    command("gather_shadows", "--shares", *parts, "--output", output)


def from_texts_to_scores(
    spec: ShadowsSpec, points: Path, words: Path, output: Path, shares: int
) -> dict[str, float]:
    """Seconds and memory of all jobs."""
    memory = Memory()
    memory.start()
    processor: list[float] = []
    begun = time.perf_counter()
    counted(lambda: train_all(spec, points, words, output, shares), processor)()
    seconds = time.perf_counter() - begun
    return {"seconds": seconds, "processor": processor[0], "peak_mb": memory.peak_mb()}


class Memory(Thread):
    """Looks every few seconds at what this process and those that it started hold."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most = 0
        self.over = Event()

    def run(self) -> None:
        while not self.over.wait(3):
            own = psutil.Process()
            held = 0
            for process in (own, *own.children(recursive=True)):
                with suppress(psutil.Error):
                    held += process.memory_full_info().pss
            self.most = max(self.most, held)

    def peak_mb(self) -> float:
        self.over.set()
        self.join()
        return self.most / 1e6


def main() -> None:
    parser = arguments_of(__file__, __doc__, 7)
    parser.add_argument(
        "--threads", type=int, default=1
    )  # beside other programs two wait for each other most of the time
    parser.add_argument("--models", type=int, default=256, help="of the whole stage")
    parser.add_argument("--shares", type=int, default=1, help="jobs that train them")
    options = parser.parse_args()
    keep_pages()
    hardware = machine("torch", "numpy") | {"threads": options.threads}
    given = params.load(ROOT / "params.yaml")
    spec = given.shadows["tiny"]
    with tempfile.TemporaryDirectory() as name:
        points, words = corpus(Path(name), given)
        found = steps(spec, points, words, options.rounds, options.threads)
        for contender, row in found.items():
            shown(contender, row)
        write_json(
            options.output,
            {"hardware": hardware, "results": {"settings": spec.model_dump(), "training": found}},
        )
        spec = spec.model_copy(update={"models": options.models})
        output = Path(name) / "shadows.safetensors"
        whole = from_texts_to_scores(spec, points, words, output, options.shares)
        made = read(output, LiraSpec(kind="lira", shadows="tiny"))
        whole |= {"shares": options.shares}
        whole |= {"models": len(made.seen), "candidates": len(made.member)} | leave_one_out(
            made.total, made.seen
        )
        shown("whole", whole)
    results = {"settings": spec.model_dump(), "training": found, "whole": whole}
    write_json(options.output, {"hardware": hardware, "results": results})


if __name__ == "__main__":
    main()
