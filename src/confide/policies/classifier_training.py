"""Training of a domain classifier on random character spans.

This is section 5.1 of Domain Private Transformers, and its code. Each epoch sees one span of each
document, without the markers. The network is a RoBERTa: pretrained, with a new head, as in the
paper; or a small one from scratch, whose vocabulary is a BPE of the same text. Random numbers
follow from the seed.
"""

import math
import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from confide.errors import InputError
from confide.policies.domain_classifier import Classifier, cut, from_transformers, logits
from confide.policies.utterances import Texts, spoken
from confide.specs import ClassifierFitSpec

if TYPE_CHECKING:
    from torch import nn

# Tokens that a network from scratch reads at once; windows of 16 words seldom have more.
POSITIONS = 128


def train(spec: ClassifierFitSpec, texts: Texts) -> Classifier:
    """A classifier of the domains of `texts`, in their order.

    It is trained on one span of each document per epoch.
    """
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    generator = random.Random(spec.seed)
    steps = 0
    documents = [
        (" ".join(map(spoken, points)), label)
        for label, of in enumerate(texts.values())
        for points in of.values()
    ]
    total = spec.epochs * math.ceil(len(documents) / spec.batch_size)
    with torch.random.fork_rng():
        torch.manual_seed(spec.seed)
        model = untrained(spec, [text for text, _ in documents], list(texts))
        network: nn.Module = model.network
        network.to(device).train()
        optimizer = torch.optim.AdamW(network.parameters(), spec.lr)
        for _ in tqdm(range(spec.epochs), desc="classifier", unit="epoch", disable=None):
            for batch in batches(model, spec, documents, generator):
                optimizer.param_groups[0]["lr"] = spec.lr * (1 - steps / total)
                scores = logits(model, [piece for piece, _ in batch])
                truth = torch.tensor([label for _, label in batch], device=device)
                loss = torch.nn.functional.cross_entropy(scores, truth)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                steps += 1
    return model


def untrained(spec: ClassifierFitSpec, texts: list[str], domains: list[str]) -> Classifier:
    """The network that training begins with.

    It is pretrained with a new head, or a small one with words of its own.
    """
    from transformers import RobertaConfig, RobertaForSequenceClassification

    from confide.text.tokenizer import train_bpe

    labels: dict[str, Any] = {
        "id2label": dict(enumerate(domains)),
        "label2id": {domain: label for label, domain in enumerate(domains)},
    }
    if spec.pretrained is not None:
        return from_transformers(spec.pretrained, **labels)
    if spec.width % spec.heads:
        raise InputError("is not a multiple of heads", key="fit.width", value=spec.width)
    tokenizer = train_bpe(texts, spec.vocab_size)
    config = RobertaConfig(
        vocab_size=tokenizer.vocab_size,
        hidden_size=spec.width,
        num_hidden_layers=spec.layers,
        num_attention_heads=spec.heads,
        intermediate_size=2 * spec.width,
        max_position_embeddings=POSITIONS + tokenizer.pad_id + 1,
        type_vocab_size=1,
        pad_token_id=tokenizer.pad_id,
        bos_token_id=tokenizer.bos_id,
        eos_token_id=tokenizer.bos_id,
        **labels,
    )
    return Classifier(
        RobertaForSequenceClassification(config), tokenizer.backend, tuple(domains), None
    )


def batches(
    model: Classifier,
    spec: ClassifierFitSpec,
    documents: list[tuple[str, int]],
    generator: random.Random,
) -> Iterator[list[tuple[list[int], int]]]:
    """Token ids and labels of a span of each document, in random batches.

    The spans of a batch are about as long as one another.
    """
    spans = [drawn(text, spec.start, spec.min_length, generator) for text, _ in documents]
    encodings = model.tokenizer.encode_batch(spans, add_special_tokens=False)
    examples = [
        (cut(model, encoding.ids)[0], label)
        for encoding, (_, label) in zip(encodings, documents, strict=True)
    ]
    generator.shuffle(examples)
    several = 16 * spec.batch_size
    for first in range(0, len(examples), several):
        alike = sorted(examples[first : first + several], key=lambda example: len(example[0]))
        cuts = [alike[at : at + spec.batch_size] for at in range(0, len(alike), spec.batch_size)]
        generator.shuffle(cuts)
        yield from cuts


def drawn(text: str, start: int | None, min_length: int, generator: random.Random) -> str:
    """A random span of characters.

    It begins at `start` at the latest (None: anywhere), and has min_length if the text has.
    """
    latest = max(0, len(text) - min_length)
    begin = generator.randint(0, latest if start is None else min(start, latest))
    return text[begin : generator.randint(min(begin + min_length, len(text)), len(text))]
