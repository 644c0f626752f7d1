"""A classifier of domains as a policy.

This is "Sequence Classification" of Domain Private Transformers, section 5.1. A window of words
within an utterance is flagged where a RoBERTa classifier says with a probability above z that it is
of one of the policy's domains, whatever domain the text is of: all domains for a redacted data set,
those that a prompt is not of for leaks, as for keywords. Windows that overlap are one span (the
paper's code replaces strings in turn, so tails leak). The model is a file of the stage
`domain_policy`, or a folder or a cached name of transformers; nothing is downloaded here. It looks
at whole windows, so what it may claim of a caught secret is what the neighbour test measures.
"""

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from confide.errors import InputError
from confide.files.io import atomic
from confide.policies.batches import Batched, closed
from confide.policies.spans import merge
from confide.policies.utterances import windows
from confide.specs import ClassifierPolicySpec
from confide.text.tokenizer import backend_of
from confide.types import Span

if TYPE_CHECKING:
    import torch
    from tokenizers import Tokenizer
    from transformers import RobertaConfig, RobertaForSequenceClassification

BATCH = 256  # windows of one forward pass
DIGITS = 4  # of a probability: what a window's place in a batch may change lies below
# Of a file's metadata: one key alone, as safetensors writes several in any order.
KEY = "classifier"
SIZES = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
    "pad_token_id",
    "bos_token_id",
    "eos_token_id",
)
# Of a configuration, what scores depend on.
SHAPE = dict.fromkeys(SIZES, int) | {"hidden_act": str, "layer_norm_eps": float}
Probabilities = Callable[[Sequence[str]], np.ndarray]  # n texts -> (n, D)


class Classifier(NamedTuple):
    """A network with its words and what it calls its classes."""

    network: "RobertaForSequenceClassification"
    tokenizer: "Tokenizer"
    labels: tuple[str, ...]
    threshold: float | None  # z that it was tuned to; None: it is not one of ours


def classifier(spec: ClassifierPolicySpec) -> Batched:
    """The policy over many texts, their windows in common batches.

    InputError where the model cannot be had, or its labels are not the domains.
    """
    model = load(spec.model)
    threshold = model.threshold if spec.threshold is None else spec.threshold
    if threshold is None:
        raise InputError("is needed: the model has none of its own", key="threshold")
    chosen = indices(model, spec.domains, spec.model)

    def ask(texts: Sequence[str]) -> np.ndarray:
        return remembered(spec.model, tuple(texts))

    return closed(finder(ask, model.labels, chosen, threshold, spec.window))


def indices(model: Classifier, domains: Sequence[str] | None, name: str) -> list[int]:
    """Where the domains are among a model's labels.

    InputError where they are not, or a model of others' gets none named.
    """
    known = ", ".join(model.labels)
    if domains is None and model.threshold is None:
        raise InputError(
            f"are needed for a model that was not trained here; its labels: {known}", key="domains"
        )
    for domain in domains or ():
        if domain not in model.labels:
            raise InputError(
                f"is a classifier with other labels: no {domain} among {known}",
                key="model",
                value=name,
            )
    return [model.labels.index(domain) for domain in domains or model.labels]


def finder(
    ask: Probabilities, labels: Sequence[str], chosen: Sequence[int], threshold: float, size: int
) -> Callable[[Sequence[str]], list[list[Span]]]:
    """Spans of each text: windows to which the model gives one of the chosen labels.

    The label's probability is above the threshold.

    Guarantees: what is flagged at a threshold is flagged at every smaller one; a probability that
    is no number raises.
    """

    def find(texts: Sequence[str]) -> list[list[Span]]:
        places = [windows(text, size) for text in texts]
        distinct: dict[str, int] = {}  # row of each window among the scores
        rows = []
        for text, ranges in zip(texts, places, strict=True):
            read = [" ".join(text[start:end].split()) for start, end in ranges]
            rows.append([distinct.setdefault(window, len(distinct)) for window in read])
        scores = ask(list(distinct))[:, list(chosen)]  # (n, C)
        if not np.isfinite(scores).all():
            raise ValueError("a probability is no number")
        best = scores.argmax(1).tolist()
        most = scores.max(1).tolist()
        names = [labels[chosen[place]] for place in best]
        return [
            merge(
                Span(start, end, names[row], most[row])
                for (start, end), row in zip(ranges, of_text, strict=True)
                if most[row] > threshold
            )
            for ranges, of_text in zip(places, rows, strict=True)
        ]

    return find


@lru_cache(maxsize=1)  # a policy and its conservative sibling ask the same in turn
def remembered(model: str, texts: tuple[str, ...]) -> np.ndarray:
    return probabilities(load(model), texts)


def probabilities(model: Classifier, texts: Sequence[str]) -> np.ndarray:
    """(n, D) float64: of each label for each text.

    Of a text that is too long, the largest of its pieces.
    """
    import torch

    pieces = []
    owners = []
    for index, encoding in enumerate(
        model.tokenizer.encode_batch(list(texts), add_special_tokens=False)
    ):
        for piece in cut(model, encoding.ids):
            pieces.append(piece)
            owners.append(index)
    largest = np.zeros((len(texts), len(model.labels)))
    order = sorted(range(len(pieces)), key=lambda index: len(pieces[index]))
    model.network.eval()
    with torch.inference_mode():
        for first in range(0, len(order), BATCH):
            rows = order[first : first + BATCH]
            scores = logits(model, [pieces[row] for row in rows]).double().softmax(1).cpu().numpy()
            np.maximum.at(largest, [owners[row] for row in rows], scores)
    return largest.round(DIGITS)


def cut(model: Classifier, ids: list[int]) -> list[list[int]]:
    """Token ids in as few pieces as the network's positions allow, each with begin and end."""
    config: Any = model.network.config
    # RoBERTa counts positions from the padding's id on.
    room = config.max_position_embeddings - config.pad_token_id - 3
    pieces = [ids[first : first + room] for first in range(0, len(ids), room)] or [[]]
    return [[config.bos_token_id, *piece, config.eos_token_id] for piece in pieces]


def logits(model: Classifier, pieces: Sequence[list[int]]) -> "torch.Tensor":
    """(B, D), of token ids padded to the longest."""
    import torch

    network = model.network
    config: Any = network.config
    longest = max(map(len, pieces))
    ids = torch.full((len(pieces), longest), config.pad_token_id)
    mask = torch.zeros_like(ids)
    for row, piece in enumerate(pieces):
        ids[row, : len(piece)] = torch.tensor(piece)
        mask[row, : len(piece)] = 1
    return network(ids.to(network.device), attention_mask=mask.to(network.device)).logits


def save(model: Classifier, path: Path) -> None:
    """Write weights, configuration, labels, words and z as one safetensors file."""
    from safetensors.torch import save_file

    config = {name: getattr(model.network.config, name) for name in SHAPE}
    values = {
        "config": config,
        "labels": model.labels,
        "words": model.tokenizer.to_str(),
        "threshold": model.threshold,
    }
    weights = {
        name: value.detach().cpu().contiguous()
        for name, value in model.network.state_dict().items()
    }
    with atomic(path) as temporary:
        save_file(weights, temporary, {KEY: json.dumps(values, sort_keys=True)})


@lru_cache(maxsize=2)
def load(model: str) -> Classifier:
    """A classifier that the stage wrote, or one of transformers; InputError otherwise.

    It is on the accelerator if there is one.
    """
    import torch

    loaded = from_file(Path(model)) if Path(model).is_file() else from_transformers(model)
    network: torch.nn.Module = loaded.network
    network.to("cuda" if torch.cuda.is_available() else "cpu").eval()
    return loaded


def from_file(path: Path) -> Classifier:
    """A file of `save`; InputError where it is damaged or something else."""
    import torch
    from safetensors import safe_open
    from transformers import RobertaForSequenceClassification

    try:
        with safe_open(path, "pt") as file:
            values = json.loads(file.metadata()[KEY])
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
        labels = tuple(map(str, values["labels"]))
        config = _config(values["config"], labels, weights)
        with torch.random.fork_rng(devices=[]):  # first weights are drawn, and then replaced
            network = RobertaForSequenceClassification(config)
        network.load_state_dict(weights)
        return Classifier(network, backend_of(values["words"]), labels, float(values["threshold"]))
    except Exception as error:  # transformers and tokenizers have errors of many kinds
        raise InputError(
            f"is no classifier of this project's ({type(error).__name__})", file=path
        ) from None


def _config(
    values: dict[str, Any], labels: Sequence[str], weights: "dict[str, torch.Tensor]"
) -> "RobertaConfig":
    """Of what `save` writes alone.

    ValueError for sizes beyond those of the weights, before anything is allocated.
    """
    from transformers import RobertaConfig

    most = max(len(weights), *(size for weight in weights.values() for size in weight.shape))
    if {name: type(value) for name, value in values.items()} != SHAPE or not all(
        0 <= values[name] <= most for name in SIZES
    ):
        raise ValueError("other keys or types than ours, or a size that the weights do not have")
    return RobertaConfig(**(values | {"num_labels": len(labels)}))


def from_transformers(name: str, **changes: Any) -> Classifier:
    """A RoBERTa classifier in a folder or in the local cache, with its tokenizer.

    `changes` of labels give it a new head.
    """
    from transformers import AutoConfig, AutoTokenizer, RobertaForSequenceClassification

    here: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        config = AutoConfig.from_pretrained(name, **here, **changes)
        if config.model_type != "roberta":
            raise ValueError(f"a {config.model_type}, not a roberta")
        _within(config, name)
        tokenizer = AutoTokenizer.from_pretrained(name, **here).backend_tokenizer
        loaded: Any = RobertaForSequenceClassification.from_pretrained(
            name,
            config=config,
            use_safetensors=True,
            ignore_mismatched_sizes=bool(changes),
            output_loading_info=True,
            **here,
        )
        network, report = loaded
        _complete(report, head_is_new=bool(changes))
    except Exception as error:  # of a file that others made: transformers has errors of many kinds
        reason = str(error).partition("\n")[0][:200]
        remedy = "" if Path(name).exists() else f": hf download {name}"
        raise InputError(f"cannot be loaded{remedy} ({reason})", key="model", value=name) from None
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return Classifier(network, tokenizer, labels_of(network.config), None)


def _within(config: Any, name: str) -> None:
    """ValueError for sizes beyond those of the weights, whose headers alone are read."""
    from confide.models.pretrained import headers, located

    stored = headers(located(name, local=True))
    most = max(len(stored), *(size for tensor in stored.values() for size in tensor.shape))
    for key in SIZES:
        if type(getattr(config, key)) is not int or not 0 <= getattr(config, key) <= most:
            raise ValueError(f"{key} is {getattr(config, key)}, which its weights do not have")


def _complete(report: dict[str, Any], *, head_is_new: bool) -> None:
    """ValueError unless the weights were all there, by what transformers reports of loading them.

    What is missing would be noise, and nothing would be found with it.
    """
    keys = {*report["missing_keys"], *(key for key, *_ in report["mismatched_keys"])}
    new = "classifier." if head_is_new else ()
    if wrong := sorted(key for key in map(str, keys) if not key.startswith(new)):
        raise ValueError(f"its weights lack {wrong[0]}, or have it in another shape")


def labels_of(config: Any) -> tuple[str, ...]:
    """Names of a network's classes, in order."""
    return tuple(config.id2label[index] for index in range(config.num_labels))
