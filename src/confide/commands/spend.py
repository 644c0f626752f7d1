"""`confide spend MODEL ...`: what all released models of one corpus tell of it together.

It reads their certificates. A certificate is about one model. Whoever has several models of one
corpus has what all of them tell, and its owner should know the sum before another one is given
away. Only what is listed is counted. A MODEL is a certificate, or a folder with some.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from os.path import isfile
from pathlib import Path
from typing import Any

from confide.certify.certificate import past, saw_public_text
from confide.certify.facts import SECRET_MISSED
from confide.certify.together import (
    ADDED,
    CLAIMS,
    Group,
    Model,
    Stated,
    Total,
    distinct,
    groups_of,
    total,
)
from confide.commands.verify import (
    NEEDED,
    certificate_in,
    checked,
    is_of_texts,
    read,
)
from confide.dp.ledger import Ledger
from confide.errors import InputError
from confide.files.folders import found_below
from confide.files.io import number, read_file, write_json
from confide.output.escaping import say
from confide.output.rounding import rounded_up
from confide.specs.files import CERTIFICATE, ClaimOfFile, File, TextsFile

# of the terms of a training those that tell of which corpus it was
TELLING = {"dataset": "name", "corpus": "digest"}
OTHERS = (
    "Not added up: Bayesian, group and other claims of confidentiality; "
    "each holds for its own model alone."
)
POOLS = (
    "It is about records that each model reads with noise alone or not at all; "
    "the conditions of each certificate still count."
)
LISTED = (
    "Counted is what is listed, and nothing else: any other model or release of the corpus costs "
    "as well, and so does choosing among several trained models by private validation data "
    "(Papernot and Steinke 2022)."
)
APART = (
    "Models of different corpora, units or chunks are not added up; where they hold the same text, "
    "its costs add up as well (--one_corpus does that for corpora)."
)


class SpentFile(File):
    """Of a certificate, what adds up."""

    run: str
    unit: str
    ledger_head: str
    claims: list[ClaimOfFile]
    asked: dict[str, Any]
    public_constants: dict[str, Any]
    release_note: str | None


def spend(
    models: list[Path],
    *,
    delta: float | None = None,
    one_corpus: bool = False,
    json: Path | None = None,
) -> None:
    """Print what certified models cost together.

    InputError where a certificate does not hold. One whose ledger is not here is taken at its word,
    which is said.

    models: certificates, or folders that hold some.
    delta: at which to price them together, instead of the sum of their deltas.
    one_corpus: whatever their datasets are called, they hold the same text.
    json: file for the same numbers.
    """
    if delta is not None and not 0 < delta < 1:
        raise InputError("must lie between 0 and 1", key="delta", value=delta)
    paths = certificates(models)
    check_texts(models, paths)
    read_models = [model_of(path) for path in paths]
    public = [] if one_corpus else public_ones(read_models)
    priced = [model for model in read_models if model not in public]
    protected = frozenset().union(*(model.corpora for model in priced))
    priced = [replace(model, read_openly=model.read_openly & protected) for model in priced]
    if one_corpus:
        priced = [replace(model, corpora=frozenset()) for model in priced]
    counted, left_out = distinct(priced)
    groups = groups_of(counted)
    totals = [[total(group.models, name, delta) for name in group.claims] for group in groups]
    if json is not None:
        write_json(json, as_json(counted, groups, totals))
    say(
        *(
            f"{model.file}: trained on text that is declared public, so there is nothing to count."
            for model in public
        )
    )
    say(*lines(counted, left_out, groups, totals, one_corpus))


def public_ones(models: Sequence[Model]) -> list[Model]:
    """Models whose ledgers, and those of their starts, declare all their text public, and whose
    corpora no other one protects: what one model protects costs as well where another one's user
    calls it public.
    """
    declared = [
        model for model in models if model.history and all(map(saw_public_text, model.history))
    ]
    protected = frozenset().union(*(each.corpora for each in models if each not in declared))
    return [model for model in declared if not (model.corpora | model.read_openly) & protected]


def certificates(places: Sequence[Path]) -> list[Path]:
    """Every certificate of a model that is meant, each once; InputError for a folder without any,
    and for texts: these cost what their model costs.
    """
    paths = []
    for path in places:
        below = found(path, CERTIFICATE) if path.is_dir() else [path]
        if not below:
            raise InputError(f"holds no {CERTIFICATE} of a model", file=path)
        if not path.is_dir() and is_of_texts(certificate_in(path)):
            message = "texts cost what their model costs: give the certificate of that"
            raise InputError(message, file=path)
        paths += below
    return list({path.resolve(): path for path in paths}.values())


def found(folder: Path, pattern: str) -> list[Path]:
    """Files below a folder whose names match a pattern, in order, links followed."""
    paths = sorted(Path(name) for name, _ in found_below(folder))
    return [path for path in paths if path.match(pattern)]


def check_texts(places: Sequence[Path], counted: Sequence[Path]) -> None:
    """InputError where texts lie below a folder whose model is not counted, which they cost."""
    weights = {file["sha256"] for path in counted for file in read(path)["files"]["model"]}
    folders = filter(Path.is_dir, places)
    below = [path for folder in folders for path in found(folder, f"*.{CERTIFICATE}")]
    for path in filter(is_of_texts, below):
        of_model = read_file(path, TextsFile)["model"]
        if of_model["weights"] not in weights:
            message = "is of texts, and the certificate of their model is not among those given"
            raise InputError(message, file=path, key="model", value=of_model["certificate"])


def model_of(path: Path) -> Model:
    """A verified certificate with its ledgers.

    Where these are not here, it is taken at its word.
    """
    sealed = read(path)
    folders = [*path.resolve().parents]
    at_hand = all(
        any(isfile(folder / file["path"]) for folder in folders)
        for name in NEEDED
        for file in sealed["files"].get(name, [])
    )
    history = None
    starts: list[Ledger] = []
    if at_hand:
        _, places, _ = checked(path, folders)
        history, starts = history_of(places)
    certified = read_file(path, SpentFile)
    claims = {
        claim["name"]: stated(claim, path)
        for claim in certified["claims"]
        if claim["name"] in CLAIMS
    }
    return Model(
        file=path,
        run=certified["run"],
        head=certified["ledger_head"],
        unit=of_cut(certified["unit"], certified),
        secret=of_cut(secret_of(certified), certified),
        claims=claims,
        history=history,
        corpora=corpora_of(certified["asked"], history or ()),
        read_openly=frozenset(pair for pair in corpora_of({}, starts) if pair[0] == "digest"),
        alone="tokens_of_a_chunk" in certified["public_constants"],
        note=certified["release_note"],
        vocabulary=" ".join(file["sha256"] for file in sealed["files"].get("tokenizer", [])),
        dedup=data_of(certified["asked"]).get("dedup"),
    )


def data_of(settings: dict[str, Any]) -> dict[str, Any]:
    """What a run's settings say of its data; nothing where they are of another form."""
    train = settings.get("train")
    data = train.get("data") if isinstance(train, dict) else None
    return data if isinstance(data, dict) else {}


def secret_of(certified: dict[str, Any]) -> str:
    """What the claim of a missed secret is of."""
    units = (claim.get("unit") for claim in certified["claims"] if claim["name"] == SECRET_MISSED)
    return next(filter(None, units), "one secret")


def of_cut(unit: str, certified: dict[str, Any]) -> str:
    """What a claim is of; where that lies in windows, with which cut they are of."""
    data = data_of(certified["asked"])
    if data.get("point") != "window":
        return unit
    return f"{unit} (of the cut {str(data.get('cut'))[:8]})"


def history_of(places: dict[str, list[Path]]) -> tuple[tuple[Ledger, ...], list[Ledger]]:
    """The ledgers of a certificate's training and of those that it started from, and apart from
    these the ones that it says are public.
    """
    place = places["ledger"][0]
    ran = Ledger.from_file(place)
    given = [Ledger.from_file(start) for start in places["start_ledgers"]]
    public, history = past(ran, place, given)
    return tuple(history), public


def stated(claim: dict[str, Any], path: Path) -> Stated:
    """Epsilon and delta of a claim.

    InputError for one without a delta, or of another relation than its name says.
    """
    key = f"claims.{claim['name']}"
    relation = claim.get("relation")
    if relation != CLAIMS[claim["name"]][1]:
        raise InputError("is of another relation", file=path, key=key, value=relation)
    delta = claim.get("delta")
    if delta is None or not 0 <= delta < 1:
        raise InputError("has no delta below 1", file=path, key=key)
    return Stated(float(claim["epsilon"]), float(delta))


def corpora_of(settings: dict[str, Any], history: Sequence[Ledger]) -> frozenset[tuple[str, str]]:
    """Names and digests of the corpus, as far as settings and ledgers of a run tell."""
    terms = [data_of(settings)]
    terms += [line["terms"] for ledger in history for line in ledger.events("data")]
    tellers = [part for part in terms if isinstance(part, dict)]
    return frozenset(
        (kind, part[key])
        for part in tellers
        for key, kind in TELLING.items()
        if isinstance(part.get(key), str)
    )


def lines(
    counted: Sequence[Model],
    left_out: Sequence[tuple[Model, Model]],
    groups: Sequence[Group],
    totals: Sequence[list[Total]],
    one_corpus: bool,
) -> Iterator[str]:
    """What is printed."""
    for group, group_totals in zip(groups, totals, strict=True):
        of = f" of {', '.join(group.corpora)}" if group.corpora else ""
        yield f"{group.unit}{of}: {len(group.models)} model{'s' * (len(group.models) > 1)}"
        for joint in group_totals:
            yield from table(group, joint)
        yield ""
    for model, same in left_out:
        yield f"{model.file}: the same training as {same.file}, so it is counted once."
    for model in counted:
        if model.history is None:
            yield (
                f"{model.file}: the files that it follows from are not here, "
                "so it was not verified but taken at its word."
            )
        if model.note is not None:
            yield f"{model.file}: {model.note}"
    if one_corpus:
        yield "All are counted as models of one corpus, as asked."
    elif assumed := dict.fromkeys(model.run for group in groups for model in group.assumed):
        yield f"No dataset is recorded of {', '.join(assumed)}: taken for the corpus of all others."
    yield from notes_on(groups)


def table(group: Group, joint: Total) -> Iterator[str]:
    """One claim: each model, and all together."""
    yield f"  {CLAIMS[joint.claim][0]} ({CLAIMS[joint.claim][1]})"
    width = max(len(model.run) for model in group.models) + 2
    for model in group.models:
        claim = model.stated(joint.claim)
        epsilon = rounded_up(claim.epsilon)
        yield f"    {model.run:<{width}}  epsilon {epsilon:<8} delta {rounded_up(claim.delta)}"
    epsilon = rounded_up(joint.epsilon)
    together = f"    {'together':<{width}}  epsilon {epsilon:<8} delta {rounded_up(joint.delta)}"
    if joint.why is not None:
        yield f"{together}  ({joint.why})"
        return
    notes = [joint.how, *(f"{run} counted once" for run in joint.shared)]
    if joint.how != ADDED:
        notes.append(f"epsilons alone add up to {rounded_up(joint.added)}")
    yield f"{together}  ({'; '.join(notes)})"


def notes_on(groups: Sequence[Group]) -> list[str]:
    """What the totals say nothing of."""
    several = len(groups) > len({group.claims for group in groups})
    return [*([APART] if several else []), POOLS, OTHERS, LISTED]


def as_json(
    counted: Sequence[Model], groups: Sequence[Group], totals: Sequence[list[Total]]
) -> dict[str, Any]:
    """What `lines` says, for programs; infinity is the string "inf"."""
    models = [
        {
            "certificate": str(model.file),
            "run": model.run,
            "ledger_head": model.head,
            "verified": model.history is not None,
        }
        for model in counted
    ]
    rows = []
    for group, totals_of_group in zip(groups, totals, strict=True):
        about = {
            "unit": group.unit,
            "corpora": group.corpora,
            "runs": [model.run for model in group.models],
        }
        about["assumed"] = [model.run for model in group.assumed]
        for joint in totals_of_group:
            numbers = {
                "epsilon": number(joint.epsilon),
                "delta": joint.delta,
                "sum_of_epsilons": number(joint.added),
            }
            described = {
                "claim": joint.claim,
                "relation": CLAIMS[joint.claim][1],
                "how": joint.how,
                "shared": joint.shared,
                "why": joint.why,
            }
            rows.append(about | described | numbers)
    return {"models": models, "totals": rows, "notes": notes_on(groups)}
