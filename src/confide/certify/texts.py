"""What may be said of texts that a certified model wrote, and of redacted ones that it has read.

A text is drawn from the model and from what it is asked to go on from, and from nothing else. So
what a certificate claims of its model, it claims of everything that the model ever writes: however
many texts are drawn, sorted out or shown, nothing is added (post-processing). Two things could add
something, and are refused or named: prompts and shares that were made from protected text, and
texts of a second model of the same corpus, whose claims add up (`confide spend`).

A model that was trained on redacted text without noise may have kept all of it. So its claims are
about that text, whatever a model makes of it, and hold of the text itself. A model that read
anything else says nothing of it.
"""

from pathlib import Path
from typing import Any, NamedTuple

from confide.certify.certificate import check_seal, sealed
from confide.errors import InputError
from confide.files.io import read_json, sha256
from confide.specs import MixSpec, SynthesisSpec

Json = dict[str, Any]


class Kind(NamedTuple):
    """Of one kind of texts: its name, what is claimed of them, and what nobody can check."""

    name: str
    claimed: str
    unseen: str


WRITTEN = Kind(
    name="texts of a certified model",
    claimed="texts, of which all that is claimed of their model holds",
    unseen="that the model wrote them, which only writing them again shows",
)
READ = Kind(
    name="redacted texts that a certified model was trained on",
    claimed="redacted texts, of which all that is claimed of a model of them holds",
    unseen="that the model was trained on them, which only their owner can see",
)
KINDS = (WRITTEN.name, READ.name)
REDACTED = "redacted"  # the method that reads redacted text and nothing else
DRAWN = ("drawn", "unfinished", "short", "long", "duplicate", "filled")  # what is counted of texts
VERSION = 1
CONFIG = "config.json"  # beside the weights: it names the pretrained model of adapters
HEADER = "synthetic"  # key of the first line of a file of such texts, which has no other
PUBLIC = (
    "codes, prompts, shares and lengths that the model was asked for are public: they were made "
    "from no protected text"
)
ONLY = (
    "the texts were drawn from this model alone and sorted out by themselves alone, by settings "
    "that do not depend on protected text"
)
FILLED = (
    "values in the place of masks are made up, of public lists, the seed and the model's own text: "
    "one that equals a real secret does so by chance"
)
AS_READ = (
    "the texts are training points as the policy leaves them, which this model was trained on, "
    "without sentences that were planted for attacks"
)
# A certificate that was not made by `confide release` counts secrets, and has digests of text; so
# has what is made from it.
COUNTS = (
    "this certificate and the model's hold exact counts of secrets, and a seal over digests of "
    "their text: not for release (`confide release`, then `confide synthesize` from its folder)"
)


def certificate_of_texts(
    model: Json, *, asked: SynthesisSpec | None, drawn: Json, texts: Json, certificate: str
) -> Json:
    """A certificate of texts, sealed; every claim is the model's own.

    model: its verified certificate. asked: what the model was asked for; None of redacted texts
    that it was trained on. drawn: how many texts were drawn, and why some were left out. texts:
    name, digest and number of those that are there. certificate: where the model's lies.
    """
    return sealed(
        {
            "version": VERSION,
            "kind": kind_of(asked).name,
            "run": model["run"],
            "says": f"{texts['count']:,} {kind_of(asked).claimed}: {model['says']}",
            "claims": model["claims"],
            "policy": model["policy"],
            "release_note": note(model),
            "assumptions": [*model["assumptions"], *assumptions(asked)],
            "asked": settings(asked),
            "drawn": {name: drawn[name] for name in DRAWN if asked is not None and name in drawn},
            "texts": {
                "path": Path(texts["path"]).name,
                "sha256": texts["sha256"],
                "count": texts["count"],
            },
            "model": {
                "certificate": certificate,
                "seal": model["seal"],
                "weights": model["weights"],
            },
        }
    )


def note(model: Json) -> str | None:
    """What speaks against handing the texts out with this certificate."""
    notes = [model["release_note"], COUNTS if model["files"].get("original") else None]
    return "; ".join(filter(None, notes)) or None


def kind_of(asked: SynthesisSpec | None) -> Kind:
    """The kind of texts that a model was asked for; of None those that it has read."""
    return READ if asked is None else WRITTEN


def assumptions(asked: SynthesisSpec | None) -> list[str]:
    """On what the claims rest beside what the model's rest on."""
    if asked is None:
        return [AS_READ]
    return [ONLY, *([PUBLIC] if asked.mix else []), *([FILLED] if asked.fill else [])]


def settings(asked: SynthesisSpec | None) -> Json | None:
    """What a model was asked for, as files have it."""
    return None if asked is None else asked.model_dump(mode="json")


def header(model: Json, asked: SynthesisSpec | None, count: int) -> Json:
    """The first line of the file: where the texts come from."""
    return {
        HEADER: {
            "run": model["run"],
            "certificate": model["seal"],
            "weights": model["weights"],
            "texts": count,
            "asked": settings(asked),
        }
    }


def quotas(mix: list[MixSpec], count: int) -> list[int]:
    """How many of `count` texts each part of a mix gets: in whole numbers, what is lost by rounding
    goes to the largest remainders, the first of equal ones first.
    """
    shares = [1 / len(mix) if part.share is None else part.share for part in mix]
    exact = [share * count / sum(shares) for share in shares]
    whole = [int(part) for part in exact]
    by_remainder = sorted(range(len(mix)), key=lambda place: whole[place] - exact[place])
    for place in by_remainder[: count - sum(whole)]:
        whole[place] += 1
    return whole


def check_declared(asked: SynthesisSpec, file: Path | None) -> None:
    """InputError where a mix is used that nobody declared public."""
    if asked.mix and not asked.public_mix:
        raise InputError(
            "may tell of protected text: --public_mix declares that its codes, prompts, shares and "
            "lengths were made from none. Shares of a protected corpus are none of these; without "
            "a mix the model decides by itself",
            file=file,
            key="mix",
        )


def check_reads_redacted(certified: Json, file: Path) -> None:
    """InputError unless a certificate is of a model that was trained on redacted text alone."""
    method = certified["asked"]["train"]["method"]
    if method != REDACTED:
        message = (
            "reads more than redacted text, so that its certificate says nothing of that text: "
            "take a row of the same dataset with method: redacted"
        )
        raise InputError(message, file=file, key="method", value=method)
    if not certified["asked"]["train"]["redact"]:
        message = "reads the original text: take a row with redact: true"
        raise InputError(message, file=file, key="redact", value="false")
    # who reads a text without noise has nothing finite to claim of a whole one
    if certified["headline"]["record_epsilon"] != "inf":
        message = "has not read the text that needs protection, so that it says nothing of it"
        raise InputError(message, file=file, key="headline.record_epsilon")


def certificate_of_files(
    asked: SynthesisSpec, *, certificate: Path, model: Path, tokenizer: Path
) -> Json:
    """A certificate, of whose model texts are asked for.

    InputError unless it is whole, of these weights, of the file beside them that says what model
    they are of, and of this vocabulary, and unless the mix is declared.
    """
    check_declared(asked, None)
    certified: Json = read_json(certificate)
    check_seal(certified, certificate)
    config = model.with_name(CONFIG)
    check_files(certified, certificate, model=model, config=config, tokenizer=tokenizer)
    return certified


def check_files(certified: Json, certificate: Path, **used: Path) -> None:
    """InputError unless a certificate is of these files, by the names that it has for them."""
    for name, path in used.items():
        if sha256(path) not in {entry["sha256"] for entry in certified["files"].get(name, [])}:
            raise InputError("is of another one", file=certificate, key=f"files.{name}")
