"""What binds a measurement of policies, and a training, to one text and its policies.

Terms are names and digests of settings; what was read beforehand has digests of files. The same
functions make them for a training job, whose ledger holds them, and for the stages that measure
policies, so that a certificate can compare the two.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from confide.errors import InputError
from confide.files.io import sha256
from confide.provenance.artefacts import digest_of
from confide.specs import PartitionSpec, PolicySpec, ReadSpec, RedactSpec, Spec, TextSpec
from confide.specs.policies import parts

WORK = ("data", "work")  # parts of the path of what the workflow makes for policies
# What findings on the raw text depend on.
TEXT = (*TextSpec.model_fields, "policies", "everything_private")
PARTITION = tuple(PartitionSpec.model_fields)  # what processed text depends on, too


def digest_of_specs(*specs: Spec) -> str:
    """SHA-256 of specifications: no text, but settings such as paths, seeds and patterns."""
    return hashlib.sha256("\n".join(spec.model_dump_json() for spec in specs).encode()).hexdigest()


def findings_by(redact: RedactSpec, content_of: Callable[[str], str | None] = digest_of) -> str:
    """Whose findings are, as the line says that closes them: SHA-256 of the settings of redaction,
    and of the lists and models that these name, but for those that the workflow makes.

    What it makes it makes again where that changes. content_of: the digest of a list or a model.
    """
    names = [name for policy in (redact.policy, redact.conservative) for name in named_by(policy)]
    own = [name for name in names if Path(name).parts[:2] != WORK]
    settings = digest_of_specs(redact)
    if not own:
        return settings
    contents = [content_of(name) for name in own]
    return hashlib.sha256(f"{settings} {contents}".encode()).hexdigest()


def named_by(policy: PolicySpec) -> Iterator[str]:
    """The lists of words and the models that a policy names."""
    for part in parts(policy):
        names = [getattr(part, field, None) for field in ("path", "model")]
        yield from (name for name in names if name is not None)


def terms(
    text: TextSpec, redact: RedactSpec, partition: PartitionSpec | None = None
) -> dict[str, Any]:
    """Terms by the names that `DataSpec` has for them.

    Where nothing was partitioned these are those of TEXT alone.
    """
    named = text.model_dump()
    named["policies"] = digest_of_specs(redact)
    named["everything_private"] = redact.conservative.kind == "everything"
    return named if partition is None else named | partition.model_dump()


def read_before(
    reads: Iterable[ReadSpec], tokenizer: Path | None = None
) -> Iterator[dict[str, Any]]:
    """The `read` lines of a ledger, one for each product of an earlier stage.

    Each has stage, source, whether it is public, and digest.

    InputError where one is declared public and is not there, since nothing could then say which one
    was meant.
    """
    for product in reads:
        digest = digest_of(product.artefact)
        if product.stage == "tokenizer" and tokenizer is not None:
            digest = sha256(tokenizer)
        if product.public and product.artefact is not None and digest is None:
            message = (
                "is declared public, but was not found, "
                "so that the certificate could not name its digest"
            )
            raise InputError(message, key=f"reads.{product.stage}", value=product.artefact)
        yield {
            "stage": product.stage,
            "source": product.source,
            "public": product.public,
            "digest": digest,
        }
