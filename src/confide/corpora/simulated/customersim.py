"""Seeded simulator of customer-support dialogues, with gold spans for every secret.

It follows CustomerSim (Shi et al. 2021). The private variant follows the published agenda:
greeting, request, full name, one more slot, tracking number, closing. One dialogue in a hundred
answers two slots at once; two in a hundred close with a stray value, and the bot repeats itself.
The public variant is another simulation (other sentences, values and intents) that protects
nothing. Dialogue i of a split depends on the spec's seed, the split and i only. The sentences stand
in customersim.yaml.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from numpy.random import Generator, default_rng

from confide.corpora.simulated.customersim_values import (
    User,
    spoken_phone,
    tracking_code,
    user_tables,
)
from confide.corpora.simulated.templates import Options, parts
from confide.files import beside
from confide.specs import CustomerSimSpec
from confide.types import SPLITS, Record, Span, SplitName

MULTIPLE = 0.01  # share of dialogues in which the user gives name and another slot in one turn
STRAY = 0.022  # chance that the user answers the closing question with a value
VARIANTS = ("private", "public")
SECRETS = ("name", "address", "phone", "order", "tracking")  # slots that are gold secrets
ASKED = ("phone", "order", "address")  # the slot asked beside the name, uniformly

Turn = tuple[str, tuple[Span, ...]]


@dataclass(frozen=True, slots=True)
class Intent:
    """One reason to write in the public variant."""

    requests: Options  # what the user says
    questions: Options  # what is asked back
    answers: Options
    endings: Options


@dataclass(frozen=True, slots=True)
class Sentences:
    """All that dialogues are made of. Slots in braces are secrets or fillers."""

    private: dict[str, Options]  # by move of the agenda
    public: dict[str, Options]
    intents: tuple[Intent, ...]  # of the public variant
    fillers: dict[str, Options]  # what a slot is filled with that is no secret


SENTENCES = beside.words(__file__, Sentences)


def fill(template: str, values: dict[str, str], rng: Generator) -> Turn:
    """The sentence with its slots filled, and the spans of the secrets among them.

    A slot without a value is drawn.
    """
    text = ""
    spans = []
    for index, part in enumerate(parts(template)):
        if index % 2:
            start = len(text)
            value = values.get(part) or _choose(rng, SENTENCES.fillers[part])
            text += value
            if part in SECRETS:
                spans.append(Span(start, len(text), part))
        else:
            text += part
    return text, tuple(spans)


def _choose(rng: Generator, options: Options) -> str:
    return options[rng.integers(len(options))]


def join(turns: list[Turn], separator: str = " ") -> Turn:
    """Turns one after the other, their spans moved along."""
    text = ""
    spans = []
    for number, (piece, in_piece) in enumerate(turns):
        text += separator if number else ""
        spans += [
            Span(start + len(text), end + len(text), label, score)
            for start, end, label, score in in_piece
        ]
        text += piece
    return text, tuple(spans)


def _values(rng: Generator, variant: str, user: User, tracking: str) -> dict[str, str]:
    return {**user._asdict(), "phone": spoken_phone(rng, variant, user.phone), "tracking": tracking}


def _stray(rng: Generator, slot: str, users: tuple[User, ...]) -> Turn:
    """A value that nobody asked for, of a random row."""
    values = _values(rng, "private", users[rng.integers(len(users))], "")
    slot = _choose(rng, ("name", slot))
    return fill(_choose(rng, SENTENCES.private[slot]), values, rng)


def private_dialogue(rng: Generator, user: User, users: tuple[User, ...]) -> list[Turn]:
    """Turns of the agenda, the system's and the user's in turn, the system first."""
    values = _values(rng, "private", user, tracking_code(rng, "private"))
    slot = _choose(rng, ASKED)

    def say(*moves: str) -> Turn:
        return join([fill(_choose(rng, SENTENCES.private[move]), values, rng) for move in moves])

    turns = [say("open"), say("greet", "request"), say("ask name")]
    if rng.random() < MULTIPLE:
        name, spans = say("name")
        turns.append(join([(name if name.endswith(".") else name + ".", spans), say(slot)]))
    else:
        turns += [say("name"), say(f"ask {slot}"), say(slot)]
    turns.append(say("tracking", "close"))
    while rng.random() < STRAY:
        turns += [_stray(rng, slot, users), say("tracking", "close")]
    if rng.random() < 0.5:
        return [*turns, say("satisfied")]
    return [*turns, say("satisfied", "user bye"), say("bye")]


def public_dialogue(rng: Generator, user: User, users: tuple[User, ...]) -> list[Turn]:
    """Turns in the spirit of the private agenda, over many intents, with small talk.

    Tokenizer and warm start see these only.
    """
    product = _choose(rng, SENTENCES.fillers["product"])
    values = {**_values(rng, "public", user, tracking_code(rng, "public")), "product": product}
    intent = SENTENCES.intents[rng.integers(len(SENTENCES.intents))]

    def say(move: str) -> Turn:
        return fill(_choose(rng, SENTENCES.public[move]), values, rng)

    def tell(options: Options) -> Turn:
        return fill(_choose(rng, options), values, rng)

    turns = [say("open"), join([say("greet"), tell(intent.requests)]), say("ask name"), say("name")]
    if rng.random() < 0.7:
        turns += [tell(intent.questions), tell(intent.answers)]
    for slot in rng.permutation(ASKED)[: rng.integers(1, 3)].tolist():
        turns += [say(f"ask {slot}"), say(slot)]
    turns.append(tell(intent.endings))
    while rng.random() < 0.35:
        turns += [say("extra"), say("extra answer")]
    turns[-1] = join([turns[-1], say("close")])
    if rng.random() < 0.4:
        return [*turns, say("satisfied")]
    return [*turns, join([say("satisfied"), say("user bye")]), say("bye")]


DIALOGUES = {"private": private_dialogue, "public": public_dialogue}


def dialogue(spec: CustomerSimSpec, split: SplitName, number: int) -> Record:
    """Dialogue `number` of a split, the same on every machine and in any order."""
    place = SPLITS.index(split)
    seed = spec.seed % 2**64
    tables = user_tables(spec.variant, seed, spec.users, 1 if spec.shared_users else len(SPLITS))
    users = tables[0 if spec.shared_users else place]
    rng = default_rng([seed, VARIANTS.index(spec.variant), place, number])
    row = int(rng.integers(len(users)))
    turns = DIALOGUES[spec.variant](rng, users[row], users)
    speakers = [("USR: " if count % 2 else "SYS: ", ()) for count in range(len(turns))]
    text, spans = join(
        [join(pair, "") for pair in ([a, b] for a, b in zip(speakers, turns, strict=True))], "\n"
    )
    author = f"user-{row}" if spec.shared_users else f"{split}/user-{row}"
    return Record(text, f"{split}/dial-{number}", author=author, spans=spans, split=split)


def read(spec: CustomerSimSpec, raw: Path | None = None) -> Iterator[Record]:
    """All dialogues, train first; nothing is read.

    InputError if `users` asks for more names than there are.
    Guarantees: unless `shared_users`, no name, address, phone or order number of one split's table
    occurs in another's.
    """
    for split in SPLITS:
        for number in range(getattr(spec.sizes, split)):
            yield dialogue(spec, split, number)
