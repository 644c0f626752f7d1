"""`confide generate MODEL --output FILE`: let a trained model write texts, one JSON line each.

MODEL is a folder of `models/`, or of `confide release`. Texts come from the model's claims alone:
to sample from it costs no further privacy, whatever the prompts, as long as these are public. A
prompt from protected text is in the file as it is.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from confide import models
from confide.errors import InputError
from confide.files.encodings import text_lines
from confide.files.io import check_new, read_json, sha256, write_jsonl
from confide.models.generation import ending, uniforms
from confide.models.generation import generate as continued
from confide.output.escaping import say
from confide.runtime.devices import device_of
from confide.runtime.memory import keep_pages
from confide.specs import SamplingSpec, parse
from confide.specs.files import CERTIFICATE
from confide.text.tokenizer import Tokenizer, load

UNCERTIFIED = (
    "no certificate of these weights stands beside the model, so nothing is claimed of these texts "
    "(epsilon = infinity); texts with a claim: confide synthesize"
)
TOGETHER = 1024  # texts that are asked for at once, and written


def generate(
    model: Path,
    *,
    output: Path,
    tokenizer: Path | None = None,
    prompts: Path | None = None,
    count: int = 1,
    temperature: float = 1.0,
    top_p: float = 1.0,
    top_k: int = 0,
    max_new_tokens: int = 64,
    seed: int = 0,
    device: str = "auto",
) -> None:
    """Write `count` continuations of each prompt; without prompts, texts from their beginning.

    model: folder of the model.
    output: the new file, a JSON line for each text.
    tokenizer: the tokenizer.json of the model's dataset; a released model has it beside it.
    prompts: a text file, a prompt a line.
    count: texts for each prompt.
    temperature: what logits are divided by; the lower, the likelier the words.
    top_p: draw from the fewest tokens that have this probability together.
    top_k: draw from so many of the likeliest tokens; 0 for all.
    max_new_tokens: longest text.
    seed: the same one gives the same texts.
    device: cpu, cuda, or auto for the GPU where there is one.
    """
    check_new(output)
    spec = sampling(
        temperature=temperature, top_p=top_p, top_k=top_k, max_new_tokens=max_new_tokens
    )
    repeated_prompts = repeated([""] if prompts is None else lines_of(prompts), count)
    network, loaded_tokenizer = opened(model, tokenizer, device)
    text_count = write_jsonl(
        output, texts(network, loaded_tokenizer, repeated_prompts, spec=spec, seed=seed)
    )
    say(f"{output}: {text_count:,} texts")
    if not is_certified(model):
        say(UNCERTIFIED)


def is_certified(model: Path) -> bool:
    """Whether a certificate of these weights lies beside them; `verify` says if it holds."""
    certificate = model / CERTIFICATE
    if not certificate.is_file():
        return False
    stated: object = read_json(certificate)
    weights = stated.get("weights") if isinstance(stated, dict) else None
    return bool(weights == sha256(model / models.WEIGHTS))


def opened(folder: Path, file: Path | None, device: str) -> tuple[models.LanguageModel, Tokenizer]:
    """A trained model and its tokenizer; InputError where they do not belong together."""
    keep_pages()
    place = tokenizer_of(folder, file)
    tokenizer = load(place)
    model = models.load(folder).to(device_of(device))
    if model.vocab_size != tokenizer.vocab_size:
        sizes = f"{tokenizer.vocab_size} tokens, the model {model.vocab_size}"
        raise InputError(f"has {sizes}", file=place)
    return model, tokenizer


def sampling(*, temperature: float, top_p: float, top_k: int, max_new_tokens: int) -> SamplingSpec:
    """How texts are drawn; `top_k`: 0 for all tokens."""
    settings = {"temperature": temperature, "top_p": top_p, "max_new_tokens": max_new_tokens}
    return parse(SamplingSpec, settings | {"top_k": top_k or None})


def tokenizer_of(model: Path, tokenizer: Path | None) -> Path:
    """The tokenizer that is named, or the one beside the model."""
    place = model / "tokenizer.json" if tokenizer is None else tokenizer
    if not place.is_file():
        raise InputError(
            "is not there; --tokenizer names that of the model's dataset, "
            "data/tokenizers/NAME.json",
            file=place,
        )
    return place


def lines_of(prompts: Path) -> list[str]:
    """The prompts of a text file, a line each; InputError for what is no text."""
    lines = [line.rstrip("\r\n") for line in text_lines(prompts, None)]
    if not lines:
        raise InputError("holds no prompt", file=prompts)
    return lines


def repeated(prompts: Sequence[str], count: int) -> list[str]:
    """Each prompt `count` times, in order."""
    if count < 1:
        raise InputError("must be at least 1", key="count", value=count)
    return [prompt for prompt in prompts for _ in range(count)]


def texts(
    model: models.LanguageModel,
    tokenizer: Tokenizer,
    prompts: list[str],
    *,
    spec: SamplingSpec,
    seed: int,
) -> Iterator[dict[str, str | bool]]:
    """Each prompt with one continuation; `stopped`: the model ended the text itself.

    `doc` tells a corpus of such lines from text that no model wrote (`corpora.lines`).
    """
    source = torch.Generator().manual_seed(seed)
    stop = ending(tokenizer)
    for start in range(0, len(prompts), TOGETHER):
        part = prompts[start : start + TOGETHER]
        numbers = uniforms(len(part), 1, spec, source)
        encoded = [tokenizer.encode(prompt) for prompt in part]
        continuations = continued(model, encoded, numbers, spec, stop)
        pairs = zip(part, continuations, strict=True)
        for number, (prompt, (text,)) in enumerate(pairs, start + 1):
            doc = f"generated-text-{number}"
            yield {"doc": doc, "prompt": prompt, "text": text.text, "stopped": text.stopped}
