"""Shadow models of the default study: trained as one stack, and one after the other with the
project's ordinary LSTMModel.

python benchmarks/shadows.py

Both take the same steps on the same batches. In each round the stack trains all models for STEPS
steps, in one process and in two of one thread each, their start included; then two ordinary models
take their steps with fused AdamW and torch's LSTM, on `--threads`, and their time is stretched to
all models. All have the vocabulary of the tokens that occur, as in the stage; "whole vocabulary" is
the tokenizer's. "processor" is the time of all processes and threads together, which programs
beside them disturb less. "whole" is the stage from texts to scores with the settings of
params.yaml.
"""

import os
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from machine import machine
from runner import Step, arguments_of, compared, interleaved, shown

from confide.attacks.membership.lira import leave_one_out
from confide.attacks.membership.members import choose, first_occurrences
from confide.attacks.membership.shadows import assignment, holders, read
from confide.config import jobs, params
from confide.dp.mechanism.sampling import generator
from confide.files.io import write_json
from confide.models.batches import padded, token_losses
from confide.models.lstm import LSTMModel
from confide.models.stacked import StackedLSTM, own_batches, train
from confide.runtime.memory import keep_pages
from confide.specs import LiraSpec, LSTMSpec, ShadowsSpec
from confide.stages.plant import plant
from confide.stages.shadows import compact, encoded, shadows, training_set
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
    """Sizes of the vocabularies, and milliseconds of STEPS steps of all models, either way."""
    rng = np.random.default_rng(0)
    tokens = load(words)
    chosen = choose(
        list(first_occurrences(points, spec.label)), spec.limit, np.random.default_rng(spec.seed)
    )
    seen = assignment(spec.models, len(chosen), rng)
    texts, learns = training_set(
        list(holders(points, spec.label, chosen)), seen, spec.background, rng
    )
    view = encoded(texts, tokens)
    like = LSTMSpec(kind="lstm", embedding=spec.embedding, hidden=spec.hidden)
    lengths = np.diff(view.starts)
    source = generator(0, "benchmark")
    plan = own_batches(lengths, learns, spec.batch_size, source)[None, :STEPS]
    (short,), bos, size = compact([view], tokens.bos_id)
    stack = StackedLSTM.of([LSTMModel(like, size, bos) for _ in range(spec.models)])
    own = (short, size, bos, plan)
    whole = (view, tokens.vocab_size, tokens.bos_id, plan)
    contenders: dict[str, Step] = {
        "stacked, two processes": lambda: train(stack, short, plan, spec.lr, bos, 2),
        "stacked, one process": lambda: train(stack, short, plan, spec.lr, bos, 1),
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
        if name.startswith("ordinary"):
            for found in (seconds, processor):
                found[name] = [second * spec.models / SEQUENTIAL for second in found[name]]
    rows, used = (compared(found, "stacked, two processes") for found in (seconds, processor))
    for name, row in rows.items():
        row |= {f"processor_{key}": used[name][key] for key in ("milliseconds", "ratio")}
    return rows | {
        "vocabulary": {"stacked": size, "whole": tokens.vocab_size},
        "steps": {"each": plan.shape[1]},
    }


def main() -> None:
    parser = arguments_of(__file__, __doc__, 7)
    parser.add_argument(
        "--threads", type=int, default=1
    )  # beside other programs two wait for each other most of the time
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
        torch.set_num_threads(1)
        begun = time.perf_counter()
        output = Path(name) / "shadows.safetensors"
        shadows(spec, points=points, tokenizer=words, output=output, processes=2)
        whole = {"seconds": time.perf_counter() - begun}
        made = read(output, LiraSpec(kind="lira", shadows="tiny"))
        whole |= {"models": len(made.seen), "candidates": len(made.member)} | leave_one_out(
            made.total, made.seen
        )
        shown("whole", whole)
    results = {"settings": spec.model_dump(), "training": found, "whole": whole}
    write_json(options.output, {"hardware": hardware, "results": results})


if __name__ == "__main__":
    main()
