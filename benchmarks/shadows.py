"""Shadow models of the default study: trained as one stack, and one after the other with the project's ordinary LSTMModel.

python benchmarks/shadows.py

Both take the same steps on the same batches: an ordinary model gets, of each, the points that it learns from. In each round the
stack trains all models through all epochs, its processes' start included, then two ordinary models take those steps with fused
AdamW, and their time is stretched to all of them. The ordinary models have the tokenizer's vocabulary, the stack the tokens
that occur, as in the stage. The stack has `--processes` of one thread each, the ordinary models as many threads.
"whole" is the stage from texts to scores with the settings of params.yaml.
"""

import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from machine import machine
from runner import arguments_of, compared, interleaved, shown

from confide import jobs, params
from confide.attacks.members import choose, first_occurrences
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


def steps(
    spec: ShadowsSpec, points: Path, words: Path, epochs: int, rounds: int, processes: int
) -> dict[str, dict[str, float]]:
    """Sizes of the vocabularies, and milliseconds of so many epochs of all models, either way."""
    rng, tokens = np.random.default_rng(0), load(words)
    chosen = choose(list(first_occurrences(points, spec.label)), spec.limit, np.random.default_rng(spec.seed))
    seen = assignment(spec.models, len(chosen), rng)
    texts, learns = training_set(list(holders(points, spec.label, chosen)), seen, spec.background, rng)
    view, like = encoded(texts, tokens), LSTMSpec(kind="lstm", embedding=spec.embedding, hidden=spec.hidden)
    lengths, source = torch.from_numpy(np.diff(view.starts)), generator(0, "benchmark")
    plan = [shuffled(lengths, spec.batch_size, source) for _ in range(epochs)]
    models = [LSTMModel(like, tokens.vocab_size, tokens.bos_id) for _ in range(spec.models)]
    masks = torch.from_numpy(learns)
    (short,), bos, size = compact([view], tokens.bos_id)
    stack = StackedLSTM.of([LSTMModel(like, size, bos) for _ in range(spec.models)])

    def one_by_one() -> None:
        for model, mask in zip(models[:SEQUENTIAL], masks, strict=False):
            ordinary(model, view, mask, [batch for epoch in plan for batch in epoch], spec.lr)

    contenders = {
        "stacked": lambda: train(stack, short, masks, plan, spec.lr, bos, processes),
        "ordinary": one_by_one,
    }
    seconds = interleaved(contenders, rounds)
    seconds["ordinary"] = [found * spec.models / SEQUENTIAL for found in seconds["ordinary"]]
    return compared(seconds, "stacked") | {"vocabulary": {"stacked": size, "ordinary": tokens.vocab_size}}


def main() -> None:
    parser = arguments_of(__file__, __doc__, 3)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    keep_pages()
    hardware = machine("torch", "numpy") | {"processes": options.processes}
    given = params.load(ROOT / "params.yaml")
    spec = given.shadows["tiny"]
    results = {"settings": spec.model_dump()}
    with tempfile.TemporaryDirectory() as name:
        points, words = corpus(Path(name), given)
        for processes in (1, options.processes):
            torch.set_num_threads(processes)
            found = results[f"processes_{processes}"] = steps(spec, points, words, spec.epochs, options.rounds, processes)
            for contender, row in found.items():
                shown(f"{contender}, {processes} processes", row)
        torch.set_num_threads(1)
        begun, output = time.perf_counter(), Path(name) / "shadows.safetensors"
        shadows(spec, points=points, tokenizer=words, output=output, processes=options.processes)
        results["whole"] = {"seconds": time.perf_counter() - begun}
        found = read(output, LiraSpec(kind="lira", shadows="tiny"))
        results["whole"] |= {"models": len(found.seen), "candidates": len(found.member)}
        shown("whole", results["whole"])
    write_json(options.output, {"hardware": hardware, "results": results})


if __name__ == "__main__":
    main()
