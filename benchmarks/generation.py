"""Many continuations of prompts at once, beside one at a time and beside transformers' own
generation.

    python benchmarks/generation.py [--rounds 3]

100 prompts of 20 to 180 tokens, ten samples each of at most 64 tokens, top-k 40, from models that
were not trained, so that texts rarely end early; the end token is the only stop. All but ours in
batches are timed on some of the 1,000 texts and scaled up. transformers pads prompts on the left to
the longest of a batch, and reads a prompt once for every sample.
"""

from collections.abc import Callable

import numpy as np
import torch
from machine import machine
from runner import arguments_of, compared, interleaved, shown
from torch import nn

from confide.files.io import read_json, write_json
from confide.models import build
from confide.models.generation import Ending, generate, uniforms
from confide.runtime.memory import keep_pages
from confide.specs import GPT2Spec, LSTMSpec, ModelSpec, SamplingSpec

PROMPTS = 100
SAMPLES = 10
VOCAB = 2048
TEXTS = PROMPTS * SAMPLES
SAMPLING = SamplingSpec(max_new_tokens=64)
CASES: dict[str, ModelSpec] = {
    "gpt2 2x128": GPT2Spec(kind="gpt2", layers=2, width=128, heads=4, positions=256),
    "gpt2 4x256": GPT2Spec(kind="gpt2", layers=4, width=256, heads=4, positions=256),
    "lstm 200": LSTMSpec(kind="lstm"),
}
NUMBERS = uniforms(PROMPTS, SAMPLES, SAMPLING, torch.Generator().manual_seed(0))
UNTIL = Ending([b"a"] * VOCAB, frozenset({1}))
Contender = tuple[Callable[[], object], int]  # what is timed, and how many texts it writes


def prompts() -> list[list[int]]:
    rng = np.random.default_rng(0)
    return [rng.integers(2, VOCAB, length).tolist() for length in rng.integers(20, 181, PROMPTS)]


def together(model: nn.Module) -> Contender:
    return lambda: generate(model, prompts(), NUMBERS, SAMPLING, UNTIL), TEXTS


def alone(model: nn.Module) -> Contender:
    """Some of the texts, each by itself."""
    asked = prompts()
    chosen = [divmod(text, SAMPLES) for text in range(0, TEXTS, 41)]

    def run() -> None:
        for prompt, sample in chosen:
            generate(
                model,
                asked[prompt : prompt + 1],
                NUMBERS[prompt, sample][None, None],
                SAMPLING,
                UNTIL,
            )

    return run, len(chosen)


def transformers(model: nn.Module, size: int, starts: range) -> Contender:
    """transformers' `generate`: batches of a size, from some places on, of prompts in the order of
    their lengths.
    """
    asked = sorted((prompt for prompt in prompts() for _ in range(SAMPLES)), key=len)
    settings = {
        "do_sample": True,
        "top_k": 40,
        "max_new_tokens": 64,
        "pad_token_id": 0,
        "eos_token_id": 1,
    }

    def run() -> None:
        for start in starts:
            rows = [[1, *row] for row in asked[start : start + size]]
            width = max(map(len, rows))
            ids = torch.tensor([[0] * (width - len(row)) + row for row in rows])
            mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])
            model.network.generate(input_ids=ids, attention_mask=mask, **settings)

    return run, size * len(starts)


def main() -> None:
    parser = arguments_of(__file__, __doc__, 3)
    parser.add_argument(
        "--case",
        choices=list(CASES),
        nargs="*",
        default=list(CASES),
        help="the others stay as they were",
    )
    arguments = parser.parse_args()
    keep_pages()
    found = read_json(arguments.output)["cases"] if arguments.output.exists() else {}
    for name in arguments.case:
        torch.manual_seed(0)
        model = build(CASES[name], VOCAB, 1).eval()
        contenders = {"batched": together(model), "one at a time": alone(model)}
        if name == "gpt2 2x128":  # with the other it is a matter of minutes
            contenders["transformers, 128 at a time"] = transformers(
                model, 128, range(256, TEXTS, 384)
            )
            contenders["transformers, one at a time"] = transformers(
                model, 1, range(50, TEXTS, 100)
            )
        seconds = interleaved(
            {one: step for one, (step, _) in contenders.items()}, arguments.rounds
        )
        whole = {
            one: [each * TEXTS / contenders[one][1] for each in row] for one, row in seconds.items()
        }
        found[name] = compared(whole, "batched") | {"threads": torch.get_num_threads()}
        for contender in contenders:
            shown(f"{name}, {contender}", found[name][contender])
    write_json(arguments.output, {"hardware": machine("torch", "transformers"), "cases": found})


if __name__ == "__main__":
    main()
