"""What may be said of texts that a certified model wrote.

A text is drawn from the model and from what it is asked to go on from, and from nothing else. So
what a certificate claims of its model, it claims of everything that the model ever writes: however
many texts are drawn, sorted out or shown, nothing is added (post-processing). Two things could add
something, and are refused or named: prompts and shares that were made from protected text, and
texts of a second model of the same corpus, whose claims add up (`confide spend`).
"""

from pathlib import Path
from typing import Any

from confide.certify.certificate import check_seal, sealed
from confide.errors import InputError
from confide.files.io import read_json, sha256
from confide.specs import MixSpec, SynthesisSpec

Json = dict[str, Any]
KIND = "texts of a certified model"
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
# A certificate that was not made by `confide release` counts secrets, and has digests of text.
COUNTS = (
    "the model's certificate holds exact counts of secrets: not for release (`confide release`, "
    "then `confide synthesize` from its folder)"
)


def certificate_of_texts(
    model: Json, *, asked: SynthesisSpec, drawn: Json, texts: Json, certificate: str
) -> Json:
    """A certificate of texts, sealed; every claim is the model's own.

    model: its verified certificate. drawn: how many texts were drawn, and why some were left out.
    texts: name, digest and number of those that are there. certificate: where the model's lies.
    """
    return sealed(
        {
            "version": VERSION,
            "kind": KIND,
            "run": model["run"],
            "says": says(model, texts["count"]),
            "claims": model["claims"],
            "policy": model["policy"],
            "release_note": note(model),
            "assumptions": [
                *model["assumptions"],
                ONLY,
                *([PUBLIC] if asked.mix else []),
                *([FILLED] if asked.fill else []),
            ],
            "asked": asked.model_dump(mode="json"),
            "drawn": drawn,
            "texts": texts,
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


def says(model: Json, count: int) -> str:
    """The claim in a sentence."""
    return f"{count:,} texts, of which all that is claimed of their model holds: {model['says']}"


def header(model: Json, asked: SynthesisSpec, count: int) -> Json:
    """The first line of the file: where the texts come from."""
    return {
        HEADER: {
            "run": model["run"],
            "certificate": model["seal"],
            "weights": model["weights"],
            "texts": count,
            "asked": asked.model_dump(mode="json"),
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
