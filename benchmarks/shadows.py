"""Shadow models of the default study: trained as one stack, and one after the other with the project's ordinary LSTMModel.

python benchmarks/shadows.py

Both take the same steps on the same batches: an ordinary model gets, of each, the points that it learns from. In each round the
stack trains all models for some steps, then two ordinary models, stretched to all of them, take those steps with fused AdamW.
The ordinary models have the tokenizer's vocabulary; the stack has the tokens that occur, as in the stage ("stacked"), or all.
"whole" is the stage from texts to scores with the settings of params.yaml, on `--threads` threads of torch. Figures on more
than one thread need an idle machine: an ordinary model's small operations wait for each other's threads.
"""

import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from machine import machine
from runner import arguments_of, compared, interleaved, shown

from confide import jobs, params
from confide.attacks.membership import choose, first_occurrences
from confide.attacks.shadows import assignment, holders, read
from confide.batches import padded, token_losses
from confide.dp.sampling import generator, shuffled
from confide.io import write_json
from confide.memory import keep_pages
from confide.models.lstm import LSTMModel
from confide.models.stacked import StackedLSTM, train
from confide.specs import LiraSpec, LSTMSpec, ShadowsSpec
from confide.stages.plant import plant
from confide.stages.shadows import compact, encoded, shadows, training_set
from confide.stages.split import split
from confide.stages.tokenizer import tokenizer
from confide.tokenizer import load
from confide.types import View

ROOT = Path(__file__).parents[1]
SEQUENTIAL = 2  # ordinary models that are timed


def corpus(folder: Path, given: params.Params) -> tuple[Path, Path]:
    """Points and tokenizer of the dataset sim."""
    sources = jobs.sources(given)
    for name in ("sim-turn", "public-turn"):
        split(sources[name], output=folder / f"{name}.jsonl")
    tokenizer(given.tokenizers["bpe"], points=folder / "public-turn.jsonl", output=folder / "bpe.json")
    plant(
        jobs.canaries(given, "sim"),
        points=folder / "sim-turn.jsonl",
        output=folder / "points.jsonl",
        canaries=folder / "c.json",
    )
    return folder / "points.jsonl", folder / "bpe.json"


def ordinary(model: LSTMModel, view: View, learns: torch.Tensor, batches: list[torch.Tensor], lr: float) -> None:
    """The usual loop, on the points of each batch that the model learns from."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.0, fused=True)
    for points in batches:
        own = points[learns[points]].numpy()
        if not len(own):
            continue
        batch = padded(view, own, model.bos)
        optimizer.zero_grad()
        (token_losses(model, batch).sum() / (batch.targets >= 0).sum()).backward()
        optimizer.step()


def steps(spec: ShadowsSpec, points: Path, words: Path, count: int, rounds: int) -> dict[str, dict[str, float]]:
    """Sizes of the vocabularies, and milliseconds of so many steps of all models, either way."""
    rng, tokens = np.random.default_rng(0), load(words)
    chosen = choose(list(first_occurrences(points, spec.label)), spec.limit, np.random.default_rng(spec.seed))
    seen = assignment(spec.models, len(chosen), rng)
    texts, learns = training_set(list(holders(points, spec.label, chosen)), seen, spec.background, rng)
    view, like = encoded(texts, tokens), LSTMSpec(kind="lstm", embedding=spec.embedding, hidden=spec.hidden)
    batches = shuffled(torch.from_numpy(np.diff(view.starts)), spec.batch_size, generator(0, "benchmark"))[:count]
    models = [LSTMModel(like, tokens.vocab_size, tokens.bos_id) for _ in range(spec.models)]
    full, masks = StackedLSTM.of(models), torch.from_numpy(learns)
    (short,), bos, size = compact([view], tokens.bos_id)
    stack = StackedLSTM.of([LSTMModel(like, size, bos) for _ in range(spec.models)])

    def one_by_one() -> None:
        for model, mask in zip(models[:SEQUENTIAL], masks, strict=False):
            ordinary(model, view, mask, batches, spec.lr)

    contenders = {
        "stacked": lambda: train(stack, short, masks, [batches], spec.lr, bos),
        "stacked, whole vocabulary": lambda: train(full, view, masks, [batches], spec.lr, tokens.bos_id),
        "ordinary": one_by_one,
    }
    seconds = interleaved(contenders, rounds)
    seconds["ordinary"] = [found * spec.models / SEQUENTIAL for found in seconds["ordinary"]]
    return compared(seconds, "stacked") | {"vocabulary": {"stacked": size, "ordinary": tokens.vocab_size}}


def main() -> None:
    parser = arguments_of(__file__, __doc__, 9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    keep_pages()
    hardware = machine("torch", "numpy") | {"threads": options.threads}
    given = params.load(ROOT / "params.yaml")
    spec = given.shadows["tiny"]
    results = {"settings": spec.model_dump(), "steps": options.steps}
    with tempfile.TemporaryDirectory() as name:
        points, words = corpus(Path(name), given)
        for threads in (1, options.threads):
            torch.set_num_threads(threads)
            found = results[f"threads_{threads}"] = steps(spec, points, words, options.steps, options.rounds)
            for contender, row in found.items():
                shown(f"{contender}, {threads} threads", row)
        begun, worked = time.perf_counter(), time.process_time()
        shadows(spec, points=points, tokenizer=words, output=Path(name) / "shadows.safetensors")
        results["whole"] = {"seconds": time.perf_counter() - begun, "cpu_seconds": time.process_time() - worked}
        found = read(Path(name) / "shadows.safetensors", LiraSpec(kind="lira", shadows="tiny"))
        results["whole"] |= {"models": len(found.seen), "candidates": len(found.member)}
        shown("whole", results["whole"])
    write_json(options.output, {"hardware": hardware, "results": results})


if __name__ == "__main__":
    main()
