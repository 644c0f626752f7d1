"""`confide init CORPUS`: count what a corpus holds and write a first params.yaml for it.

A corpus is a file or a folder, of which init says what kind it takes it for. The file that it
writes gives the reasons for each choice.

Nothing of its text is printed or written, only counts and the names of its labels.
"""

import shlex
from difflib import get_close_matches
from pathlib import Path
from typing import get_args

from confide.advisor.choices import (
    LEAST,
    choose,
    doubtful,
    policies,
    presets,
    unit_of,
    useful_presets,
)
from confide.advisor.inputs import Asked, is_table, recognised
from confide.advisor.page import SHOWN, screen
from confide.advisor.survey import Corpus, corpus_of, points_of, presets_of
from confide.advisor.template import as_yaml
from confide.errors import InputError
from confide.files.encodings import Encoding
from confide.files.io import check_new, readable, write_text
from confide.output.escaping import say, terminal
from confide.runtime.packaged import program
from confide.specs import CorpusSpec
from confide.types import SPLITS

NAME = "params.yaml"
WITHOUT_NOISE = (
    "To protect what a policy finds needs none: in the project's params.yaml method redacted, on a "
    "dataset with fill: true (docs/synthetic.md)"
)


def init(
    corpus: Path,
    *,
    output: Path | None = None,
    public: Path | None = None,
    epsilon: float = 3.0,
    column: str | None = None,
    doc: str | None = None,
    author: str | None = None,
    secrets: str | None = None,
    encoding: str | None = None,
    labels: str | None = None,
) -> None:
    """Write params.yaml, for a corpus to train on; one that is there is kept.

    corpus: a file or folder of texts: JSON lines, plain text, a table, conversations, mail.
    output: folder to write into; the corpus's own if none is given.
    public: text that needs no protection, for the vocabulary and the start; without it simulated
    text serves.
    epsilon: the most that one secret may cost.
    column: of a table, where texts stand.
    doc: of a table, or of conversations, the column or key that says which texts belong together:
    they come into one split.
    author: of a table, or of conversations, the column or key that says who wrote.
    secrets: of a table, or of conversations, with commas between, columns or keys whose values are
    secret in the text beside them, such as a customer's name.
    encoding: cp1252 or latin-1, of what is neither UTF-8 nor UTF-16.
    labels: of gold spans, with commas between, those that are secret; without it all are.
    """
    with readable(corpus):
        corpus.stat()
    folder = output or corpus.parent
    target = folder / NAME
    check_new(target, "; another folder: --output")
    if not epsilon > 0 or epsilon == float("inf"):
        raise InputError("must be positive", key="epsilon", value=epsilon)
    columns = () if secrets is None else tuple(name.strip() for name in secrets.split(","))
    options = Asked(column, doc, author, encoding_of(encoding), columns)
    spec, description = recognised(corpus, options)
    other = None
    if public is not None:
        other = recognised(public, Asked(column if is_table(public) else None)).spec
    corpus_counts = corpus_of(spec)
    unit, _ = unit_of(corpus_counts)
    check(corpus_counts, unit, corpus)
    secret = None if labels is None else only(corpus_counts, labels, corpus)
    if other is not None:
        corpus_of(other)  # whether it can be read
    survey = presets_of(spec, corpus_counts, unit, presets(), secret)
    policy_specs = policies(useful_presets(survey, secret))
    points = points_of(spec, corpus_counts, unit, policy_specs, doubtful(), labels=secret)
    points.presets = survey
    choice = choose(corpus_counts, points, unit, epsilon, secret)
    places = [seen_from(folder, each) for each in (spec, other) if each is not None]
    write_text(target, as_yaml(choice, *places, program=program()))
    say(f"{corpus}: {description}", "")
    say(*screen(corpus_counts, points, choice, str(public) if public else None).split("\n"))
    say("", f"written: {target}; next: {next_steps(folder)}")


def encoding_of(name: str | None) -> Encoding | None:
    """A name of an encoding. InputError for one that is not known here."""
    encodings: tuple[Encoding, ...] = get_args(Encoding)
    for encoding in encodings:
        if name == encoding:
            return encoding
    if name is not None:
        message = f"expected one of {', '.join(encodings)}; UTF-8 and UTF-16 are told without it"
        raise InputError(message, key="--encoding", value=name)
    return None


def only(corpus: Corpus, labels: str, file: Path) -> list[str]:
    """The labels of a list, once no other is counted; InputError for one that no gold span has."""
    there = corpus.labels()
    names = list(dict.fromkeys(label.strip() for label in labels.split(",")))
    for label in names:
        if label not in there:
            close = get_close_matches(label, map(terminal, there), n=1)
            among = ", ".join(map(terminal, sorted(there)[:SHOWN])) or "none"
            hint = f"did you mean {close[0]}?" if close else f"there are: {among}"
            raise InputError(
                f"no gold span has this label; {hint}", file=file, key="--labels", value=label
            )
    for key in [key for key in corpus.gold if key[0] not in names]:
        del corpus.gold[key]
    return names


def check(corpus: Corpus, unit: str, file: Path) -> None:
    """InputError for a corpus that is too small for anything to come of it."""
    sizes = corpus.points[unit]
    if sizes["train"] < LEAST:
        count = f"{sizes['train']:,} training points ({unit}s)"
        message = f"has {count}, and the least is {LEAST}: noise would drown them. {WITHOUT_NOISE}"
        raise InputError(message, file=file)
    for split in SPLITS:
        if not sizes[split]:
            message = (
                "has no text: documents and authors go whole into one split; "
                "give lines a split, or more documents"
            )
            raise InputError(message, file=file, key=split)


def seen_from(folder: Path, spec: CorpusSpec) -> CorpusSpec:
    """A corpus with the path of its file as seen from a folder."""
    return spec.model_copy(update={"path": path_from(folder, Path(spec.model_dump()["path"]))})


def path_from(folder: Path, file: Path) -> str:
    """Path of a file as seen from a folder.

    It is relative only below the folder, so that both can be moved together.
    """
    file = file.resolve()
    folder = folder.resolve()
    return str(file.relative_to(folder) if file.is_relative_to(folder) else file)


def command(folder: Path) -> str:
    """What runs the workflow in a folder."""
    return program() if is_here(folder) else f"{program()} -d {shlex.quote(str(folder))}"


def next_steps(folder: Path) -> str:
    """What to run next: redaction alone, then what each method would guarantee."""
    where = "" if is_here(folder) else f" {shlex.quote(str(folder))}"
    return f"{command(folder)} prepare, then confide recommend{where}"


def is_here(folder: Path) -> bool:
    """Whether it is the one that a user stands in."""
    return folder.resolve() == Path.cwd()
