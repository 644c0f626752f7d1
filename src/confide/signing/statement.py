"""What is signed: an in-toto statement (https://in-toto.io/Statement/v1) about a certified model.

Its subjects are files with their SHA-256: the certificate, what the certificate names and others
may see (weights, ledger, measurements of the policy), the audits with the verdict of the gate, and
the scan. Its predicate repeats what the certificate claims, says what each file is, and lists
everything that was overruled when it was signed.
"""

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
from pydantic import Field, StringConstraints, ValidationError

from confide.errors import InputError, misfit
from confide.files.io import parse_json
from confide.specs.files import File

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:confide:certificate:v1"
# the role of the certificate itself; files that it names have the names that it gives them
CERTIFICATE = "certificate"
PAGES = "pages"  # which people open instead of it
AUDITS = "audits"
SCAN = "scan"
DIGEST = re.compile(r"[0-9a-f]{64}")


class Digests(File):
    sha256: Annotated[str, StringConstraints(pattern=f"^{DIGEST.pattern}$")]


class Subject(File):
    name: Annotated[str, StringConstraints(min_length=1, max_length=1000)]
    digest: Digests


class Predicate(File):
    """What is said of the files.

    roles: for each kind of file the names of its subjects. unbound: audits that do not say of which
    weights they are.
    """

    run: str
    says: str
    seal: str
    ledger_head: str
    headline: dict[str, Any]
    release_note: str | None
    roles: dict[str, list[str]]
    gate: list[dict[str, str]]
    overruled: list[str]
    unbound: list[str]
    version: str


class Statement(File):
    type_: Literal["https://in-toto.io/Statement/v1"] = Field(alias="_type")
    subject: Annotated[list[Subject], Field(min_length=1, max_length=10_000)]
    predicateType: str
    predicate: dict[str, Any]


def payload_of(subjects: dict[str, str], predicate: dict[str, Any]) -> bytes:
    """The statement's bytes; `subjects`: SHA-256 by name."""
    named = [{"name": name, "digest": {"sha256": digest}} for name, digest in subjects.items()]
    value = {
        "_type": STATEMENT,
        "subject": named,
        "predicateType": PREDICATE,
        "predicate": predicate,
    }
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def statement_of(payload: bytes, path: Path) -> tuple[dict[str, str], dict[str, Any]]:
    """SHA-256 of each subject by its name, and the predicate.

    InputError where the payload is no statement of this kind.
    """
    value = parse_json(payload, path)
    _checked(Statement, value, path, "payload")
    if value["predicateType"] != PREDICATE:
        message = f"is not {PREDICATE}, so the statement is about something else"
        key = "payload.predicateType"
        raise InputError(message, file=path, key=key, value=value["predicateType"])
    _checked(Predicate, value["predicate"], path, "payload.predicate")
    subjects = {subject["name"]: subject["digest"]["sha256"] for subject in value["subject"]}
    if len(subjects) < len(value["subject"]):
        raise InputError("names a file twice", file=path, key="payload.subject")
    return subjects, value["predicate"]


def _checked(kind: type[File], value: Any, path: Path, key: str) -> None:
    try:
        kind.model_validate(value)
    except ValidationError as error:
        raise misfit(error, path, above=f"{key}.") from None
