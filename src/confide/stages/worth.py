"""Measure what texts that a model wrote are worth, beside the text it learnt from.

Everything is judged by the corpus's own held-out points: train on the texts, test on real ones.
These numbers read protected text, so that no certificate covers them, and they stay inside.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from confide.attacks.domains.examples import WORDS, veil
from confide.data.partition_files import check_points, check_vocabulary, load_partition
from confide.errors import InputError
from confide.files.io import read_jsonl, sha256, write_json
from confide.files.rows import read_rows
from confide.models.generation import pieces
from confide.policies import Policy, one_by_one, policy
from confide.runtime.devices import device_of
from confide.runtime.memory import keep_pages
from confide.specs import WorthJobSpec, WorthSpec
from confide.text.fakes import in_slots
from confide.text.likeness import divergence, likeness
from confide.text.planted import is_planted
from confide.text.tokenizer import Tokenizer, load, train_bpe
from confide.train.evaluation import bits_per_character, perplexity, score, some_of
from confide.train.student import classified, next_word, taught, view_of
from confide.types import MASK, SPLITS, Partition, View

GRAMS = (1, 2, 3)  # words of an n-gram
SHORTEST = 4  # letters and digits of a secret that is searched for in what is shown
NOT_COVERED = (
    "these numbers were computed from protected text: no certificate covers them, and they are "
    "not for release"
)


@dataclass(frozen=True, slots=True)
class Text:
    """Points that a student learns from, as tokens and as characters."""

    view: View
    points: np.ndarray  # (n,) of the view
    strings: list[str]  # (n,)
    domains: list[str | None]  # (n,)


def worth(
    spec: WorthJobSpec,
    *,
    texts: Path,
    original: Path,
    redacted: Path,
    points: Path,
    tokenizer: Path,
    output: Path,
    templates: Path | None = None,
    marked: Path | None = None,
) -> None:
    """Write what the texts are worth, what the real and the redacted training text are, and what
    points of a public corpus with made-up values in their slots are (`templates`), which cost
    nothing.

    Guarantees: numbers, and as many texts as the specification shows, in which there is no gold
    secret of the corpus and nothing that a person marked in a review (`marked`), and all that the
    policy finds is masked.
    """
    keep_pages()
    partition = load_partition(original, redacted)
    encoder = load(tokenizer)
    check_vocabulary(partition, encoder.vocab_size, original, redacted)
    rows = list(read_rows(points, "doc", "text"))
    check_points(partition, len(rows), points)
    held_out, learnt_from = sides(partition, [doc for doc, _ in rows], points)
    strings = [text for _, text in rows]
    seed = spec.worth.seed
    kinds: dict[str, Text | None] = {
        "synthetic": written(texts, encoder),
        "real": real(partition, learnt_from, strings),
        "redacted": masked(partition, learnt_from, encoder),
        "templates": None if templates is None else of_templates(templates, encoder, seed),
    }
    rng = np.random.default_rng(seed)
    tested = real(partition, some_of(held_out, spec.worth.limit, rng), strings)
    if spec.worth.vocab_size is not None:
        encoder = train_bpe([strings[point] for point in learnt_from], spec.worth.vocab_size)
        kinds = {name: text and retold(text, encoder) for name, text in kinds.items()}
        tested = retold(tested, encoder)
    metrics: dict[str, Any] = {
        "attack": "worth",
        "run": spec.run,
        "texts_sha256": sha256(texts),
        "covered": NOT_COVERED,
        "held_out": len(tested.points),
        "updates": spec.worth.updates,
    }
    find = policy(spec.policy)
    metrics |= slots_of("held_out", tested.strings, find)
    for name, text in kinds.items():
        if text is None:
            continue
        numbers = judged(spec.worth, text, tested, encoder)
        few = compared(text.strings, spec.worth.limit, seed)
        numbers |= alike(few, tested.strings, spec.worth)
        metrics |= {f"{name}_{key}": value for key, value in numbers.items()}
        metrics |= slots_of(name, few, find)
    if spec.worth.examples:
        secrets = [points] if marked is None else [points, marked]
        metrics["examples"] = examples(spec, secrets, kinds)
    write_json(output, metrics)


def examples(
    spec: WorthJobSpec, points: list[Path], kinds: dict[str, Text | None]
) -> list[dict[str, Any]]:
    """Some longer texts of the corpus and of the model, as a person may see them (`veil`)."""
    show = veil([spec.policy], points, SHORTEST)
    shown = []
    for name in ("real", "synthetic"):
        text = kinds[name]
        strings = [] if text is None else text.strings
        long = [string for string in strings if len(string.split()) >= WORDS]
        chosen_texts = compared(long, spec.worth.examples, spec.worth.seed)
        shown += [{"kind": name, "text": show(string)} for string in chosen_texts]
    return shown


def sides(partition: Partition, docs: Sequence[str], file: Path) -> tuple[np.ndarray, np.ndarray]:
    """Points (m,) of the test split and (n,) of the train split; nothing planted, no later copy."""
    counts = ~np.array([is_planted(doc) for doc in docs], bool) & ~partition.copy
    points = {}
    for split in ("test", "train"):
        points[split] = np.flatnonzero(counts & (partition.split == SPLITS.index(split)))
        if not len(points[split]):
            raise InputError("no points in this split", file=file, key="split", value=split)
    return points["test"], points["train"]


def compared(strings: list[str], limit: int, seed: int) -> list[str]:
    """At most so many of the texts, in their order."""
    places = some_of(np.arange(len(strings)), limit, np.random.default_rng(seed))
    return [strings[place] for place in places]


def retold(text: Text, tokenizer: Tokenizer) -> Text:
    """The same texts in the tokens of another tokenizer."""
    view = view_of([tokenizer.encode(string) for string in text.strings])
    return replace(text, view=view, points=np.arange(len(text.strings)))


def real(partition: Partition, points: np.ndarray, strings: list[str]) -> Text:
    """Points as they were."""
    shown = [strings[point] for point in points]
    return Text(partition.original, points, shown, domains_of(partition, points))


def masked(partition: Partition, points: np.ndarray, tokenizer: Tokenizer) -> Text:
    """The same points as the policy leaves them."""
    view = partition.redacted
    shown = [tokenizer.decode(view[point]) for point in points]
    return Text(view, points, shown, domains_of(partition, points))


def domains_of(partition: Partition, points: np.ndarray) -> list[str | None]:
    """The domain of each point."""
    names = [*partition.domains, None]  # -1 is the last one
    return [names[number] for number in partition.domain[points].tolist()]


def from_strings(
    strings: list[str], domains: list[str | None], tokenizer: Tokenizer, file: Path
) -> Text:
    """Texts that come as characters."""
    if not strings:
        raise InputError("holds no text", file=file)
    view = view_of([tokenizer.encode(text) for text in strings])
    return Text(view, np.arange(len(strings)), strings, domains)


def written(texts: Path, tokenizer: Tokenizer) -> Text:
    """What the model wrote; the first line says where it is from."""
    rows = [row for row in read_jsonl(texts) if "text" in row]
    domains = [row.get("domain") for row in rows]
    return from_strings([row["text"] for row in rows], domains, tokenizer, texts)


def of_templates(points: Path, tokenizer: Tokenizer, seed: int) -> Text:
    """Training points of a public corpus, with made-up values in the slots that it marks."""
    strings = []
    domains = []
    for doc, text, split, gold, domain in read_rows(
        points, "doc", "text", "split", "gold", "domain"
    ):
        if split == "train":
            slots = [(start, end, label) for start, end, label, _ in gold]
            strings.append(in_slots(text, slots, seed, doc))
            domains.append(domain)
    return from_strings(strings, domains, tokenizer, points)


def judged(
    spec: WorthSpec, text: Text, tested: Text, tokenizer: Tokenizer
) -> dict[str, float | None]:
    """What a small model that was trained on a text says of real points."""
    device = device_of(spec.device)
    model = taught(
        spec,
        text.view,
        text.points,
        vocab_size=tokenizer.vocab_size,
        bos=tokenizer.bos_id,
        device=device,
    )
    scores = score(model, tested.view, tested.points, device)
    begins = np.array([piece[:1].isspace() for piece in pieces(tokenizer)])
    characters = sum(map(len, tested.strings))
    # where some tokens alone are learnt, their characters are not known by themselves
    whole = tested.view.scores_all(tested.points)
    return {
        "texts": len(text.points),
        "ppl": perplexity(scores.loss),
        "bits_per_character": bits_per_character(scores, characters) if whole else None,
        "next_word": next_word(scores, tested.view, begins),
    } | domain_accuracy(text, tested, tokenizer)


def domain_accuracy(text: Text, tested: Text, tokenizer: Tokenizer) -> dict[str, float | None]:
    """How often a classifier of domains that was fitted to a text is right of real points.

    It does not see tokens such as <AIRLINE>, which would tell it. None where the text names fewer
    than two of the domains of real points; `chance` always says the commonest of these.
    """
    named = sorted({domain for domain in text.domains if domain is not None} & set(tested.domains))
    fitted = [place for place, domain in enumerate(text.domains) if domain in named]
    held_out = [place for place, domain in enumerate(tested.domains) if domain is not None]
    if len(named) < 2:
        return {"domain_accuracy": None, "domain_chance": None}
    numbers = {name: number for number, name in enumerate(named)}
    told = re.compile("|".join(f"<{re.escape(name)}>" for name in named))
    guesses = classified(
        [tokenizer.encode(told.sub("", text.strings[place])) for place in fitted],
        np.array([numbers[str(text.domains[place])] for place in fitted]),
        [tokenizer.encode(told.sub("", tested.strings[place])) for place in held_out],
        len(named),
    )
    truth = [numbers.get(str(tested.domains[place]), -1) for place in held_out]
    most = Counter(number for number in truth if number >= 0).most_common(1)[0][1]
    return {
        "domain_accuracy": float((guesses == np.array(truth)).mean()),
        "domain_chance": most / len(truth),
    }


def alike(strings: list[str], tested: list[str], spec: WorthSpec) -> dict[str, float | None]:
    """How alike texts and real points are, as many of each."""
    size = min(len(strings), len(tested))
    first = compared(strings, size, spec.seed)
    second = compared(tested, size, spec.seed)
    numbers = {f"divergence_{count}": divergence(first, second, count) for count in GRAMS}
    rng = np.random.default_rng(spec.seed)
    return numbers | {"likeness": likeness(first, second, spec.clusters, rng)}


def slots_of(name: str, strings: list[str], find: Policy) -> dict[str, Any]:
    """Share of the texts in which the policy finds each label, and in which there is a mask.

    A text on which the policy fails counts as one in which it finds nothing, and is counted.
    """
    findings = one_by_one(find)(strings)
    counts = Counter(label for spans in findings for label in {span.label for span in spans or ()})
    total = max(1, len(strings))
    shares = {label: count / total for label, count in sorted(counts.items())}
    return {
        f"{name}_slots": shares,
        f"{name}_masked": sum(MASK in text for text in strings) / total,
        f"{name}_policy_failed": findings.count(None),
    }
