"""Updates of a pretrained model: private beside ordinary ones, with adapters and whole, with blocks
kept and recomputed, and Opacus on the same adapters; texts in batches and one at a time.

    python benchmarks/pretrained.py [--rounds 5] [--batch 8] [--length 128] [--model FOLDER]
    python benchmarks/pretrained.py --layers 2 --width 64 --vocab 500    # of random weights

SmolLM2 where its folder is there (`snakemake data/raw/pretrained/smollm2-135m-instruct`), else a
Llama of random weights. Peak memory is that of a process of its own per contender.
"""

import json
import tempfile
from argparse import Namespace
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import peft
import torch
import torch.nn.functional as F
from machine import machine
from runner import arguments_of, compared, interleaved, peak_memory, shown
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from confide.dp.mechanism.clipping import PerExampleClipper
from confide.dp.mechanism.randomness import noise_of
from confide.dp.mechanism.update import exact_gradient, noisy_gradient
from confide.files.io import write_json
from confide.models import build, trainable
from confide.models.batches import Batch
from confide.models.generation import Ending, generate, uniforms
from confide.models.recompute import recompute
from confide.runtime.memory import Budget, keep_pages
from confide.specs import AdapterSpec, CausalLMSpec, SamplingSpec
from confide.text.tokenizer import vocabulary_of

SMOLLM2 = Path(__file__).parents[1] / "data/raw/pretrained/smollm2-135m-instruct"
RANK = 8
BOUND = 1.0
SIGMA = 1.0
WAYS = ("adapters", "whole")
CASES = (*WAYS, "texts")
PLAIN = "not private"
PRIVATE = "clipped and noised"
OPACUS = "Opacus hooks, PEFT"
PROMPTS = 32
SAMPLING = SamplingSpec(max_new_tokens=32)


@dataclass(frozen=True)
class Case:
    """A model, how it is trained, and the batch of an update."""

    folder: str
    way: str
    batch: int
    length: int
    device: str
    private: bool = False
    again: bool = False  # whether blocks are recomputed


def random_llama(folder: Path, layers: int, width: int, vocab: int) -> Path:
    """A Llama of random weights, and a tokenizer of as many tokens, as transformers saves them."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.BPE())
    words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    words.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    words.train_from_iterator([], trainers.BpeTrainer(initial_alphabet=alphabet))
    words.add_special_tokens(["<|end|>"])
    words.add_tokens([f"<{number}>" for number in range(vocab - words.get_vocab_size())])
    PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<|end|>").save_pretrained(folder)
    heads = max(1, width // 64)
    config = LlamaConfig(
        vocab_size=words.get_vocab_size(),
        hidden_size=width,
        intermediate_size=8 * width // 3,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        tie_word_embeddings=True,
    )
    torch.manual_seed(0)
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def model_of(case: Case) -> nn.Module:
    """The model in training, its blocks recomputed or not."""
    keep_pages()
    adapter = AdapterSpec(rank=RANK) if case.way == "adapters" else None
    spec = CausalLMSpec(kind="causal_lm", pretrained=case.folder, adapter=adapter)
    torch.manual_seed(0)
    model = build(spec, len(vocabulary_of(Path(case.folder))), 0).to(case.device).train()
    recompute(model)
    return model


def batch_of(case: Case, vocab: int) -> Batch:
    source = torch.Generator().manual_seed(0)
    ids = torch.randint(0, vocab, (case.batch, case.length), generator=source)
    return Batch(ids, ids.roll(-1, 1))


def steps_of(case: Case) -> dict[tuple[bool, bool], Callable[[], None]]:
    """Updates of one model, by whether they are private and whether blocks are recomputed."""
    model = model_of(case)
    batch = batch_of(case, model.vocab_size)
    budget = Budget(case.batch)
    optimizer = torch.optim.AdamW(trainable(model), lr=1e-4, fused=True)
    clippers: list[PerExampleClipper] = []
    source = noise_of(0, "noise", case.device)

    def update(private: bool, again: bool) -> None:
        for block in model.blocks_recomputed:
            block.module.gradient_checkpointing = again
        if not private:
            exact_gradient(model, [batch], None, budget)
        else:
            if not clippers:  # only here: its sums take memory, too
                clippers.append(PerExampleClipper(model, BOUND))
            noisy_gradient(clippers[0], [batch], SIGMA, case.batch, source, budget)
        optimizer.step()

    return {
        (private, again): lambda private=private, again=again: update(private, again)
        for private in (False, True)
        for again in (False, True)
    }


def step_of(case: Case) -> Callable[[], None]:
    """One of them alone, for its peak memory."""
    return steps_of(case)[case.private, case.again]


def opacus(case: Case) -> Callable[[], None]:
    """Opacus, per-example gradients by hooks, of the same adapters put on by PEFT itself."""
    from opacus.grad_sample.utils import prepare_module
    from opacus.optimizers import DPOptimizer

    keep_pages()
    torch.manual_seed(0)
    network = AutoModelForCausalLM.from_pretrained(
        case.folder, dtype=torch.float32, use_safetensors=True
    )
    config = peft.LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules="all-linear")
    adapted = peft.get_peft_model(network, config).to(case.device).train()
    model = prepare_module(adapted, "hooks", batch_first=True, loss_reduction="mean")
    weights = [weight for weight in adapted.parameters() if weight.requires_grad]
    optimizer = DPOptimizer(
        torch.optim.AdamW(weights, lr=1e-4, fused=True),
        noise_multiplier=SIGMA,
        max_grad_norm=BOUND,
        expected_batch_size=case.batch,
        loss_reduction="mean",
    )
    batch = batch_of(case, network.config.vocab_size).to(torch.device(case.device))
    positions = torch.arange(case.length, device=case.device).expand(batch.inputs.shape)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        logits = model(input_ids=batch.inputs, position_ids=positions, use_cache=False).logits
        losses: Tensor = F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten())
        losses.backward()
        optimizer.step()

    return step


def label(private: bool, again: bool) -> str:
    return f"{PRIVATE if private else PLAIN}{', recomputed' if again else ''}"


def measured(case: Case, rounds: int) -> dict[str, dict[str, Any]]:
    """Times of all contenders of one way, ratios to ordinary updates of the same rounds; memory.

    Those that recompute blocks take their turns apart: what the others need beyond their memory
    would lie idle meanwhile, and the kernel would take it back.
    """
    steps = steps_of(case)
    contenders = {label(private, False): steps[private, False] for private in (False, True)}
    refused = None
    if case.way == "adapters":
        try:
            step = opacus(case)
            step()  # some refuse only here
            contenders[OPACUS] = step
        except Exception as error:  # whatever it is, the table says so
            refused = f"{type(error).__name__}: {error}".partition("\n")[0][:200]
    found: dict[str, dict[str, Any]] = compared(
        interleaved(contenders, rounds, settles=True), PLAIN
    )
    contenders.clear()
    again = {label(private, True): steps[private, True] for private in (False, True)}
    base = {PLAIN: steps[False, False]}
    times = compared(interleaved(base | again, rounds, settles=True), PLAIN)
    found |= {name: times[name] for name in again}
    for held in (again, base, steps):
        held.clear()
    for name, row in found.items():
        if name == OPACUS:
            row["peak_mib"] = peak_memory(opacus, case)
            continue
        private = name.startswith(PRIVATE)
        one = replace(case, private=private, again=name.endswith("recomputed"))
        row["peak_mib"] = peak_memory(step_of, one)
    if refused is not None:
        found[OPACUS] = {"refused": refused}
    return found


def texts(case: Case, rounds: int) -> dict[str, dict[str, Any]]:
    """Texts of the merged model, in one batch and one by one."""
    model = model_of(case).merged().eval()
    source = torch.Generator().manual_seed(1)
    prompts = [
        torch.randint(0, model.vocab_size, (8 + 4 * (number % 8),), generator=source).tolist()
        for number in range(PROMPTS)
    ]
    numbers = uniforms(PROMPTS, 1, SAMPLING, source).to(case.device)
    until = Ending([b"a"] * model.vocab_size, frozenset({0}))

    def alone() -> None:
        for place, prompt in enumerate(prompts):
            generate(model, [prompt], numbers[place : place + 1], SAMPLING, until)

    contenders = {
        "batched": lambda: generate(model, prompts, numbers, SAMPLING, until),
        "one at a time": alone,
    }
    return compared(interleaved(contenders, rounds), "batched")


def asked() -> Namespace:
    parser = arguments_of(__file__, __doc__, 5)
    parser.add_argument("--model", type=Path, default=SMOLLM2, help="folder of transformers")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--layers", type=int, help="of a Llama of random weights instead")
    parser.add_argument("--width", type=int, default=576)
    parser.add_argument("--vocab", type=int, default=8192)
    parser.add_argument("--only", choices=CASES, help="the other figures stay as they are")
    return parser.parse_args()


def kept(file: Path, about: dict[str, Any]) -> dict[str, Any]:
    """Figures of before, which must be of the same updates on the same kind of processor."""
    before = json.loads(file.read_text())
    if before["case"] != about or before["hardware"]["cpu"] != machine()["cpu"]:
        raise SystemExit(f"{file}: is of other updates or of another processor: leave out --only")
    cases: dict[str, Any] = before["cases"]
    return cases


def main() -> None:
    arguments = asked()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.model
        if arguments.layers is not None or not folder.is_dir():
            layers = arguments.layers or 8
            folder = random_llama(Path(temporary), layers, arguments.width, arguments.vocab)
        case = Case(str(folder), "adapters", arguments.batch, arguments.length, device)
        about = asdict(case) | {"folder": SMOLLM2.name if folder == SMOLLM2 else "random Llama"}
        names = CASES if arguments.only is None else (arguments.only,)
        cases = {} if arguments.only is None else kept(arguments.output, about)
        for name in names:
            if name in WAYS:
                cases[name] = measured(replace(case, way=name), arguments.rounds)
            else:
                cases[name] = texts(case, arguments.rounds)
            for contender, row in cases[name].items():
                shown(f"{name}, {contender}", row)
        hardware = machine("torch", "opacus", "transformers", "peft")
        hardware |= {"threads": torch.get_num_threads()}
        write_json(arguments.output, {"hardware": hardware, "case": about, "cases": cases})


if __name__ == "__main__":
    main()
