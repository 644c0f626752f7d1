"""Let a run's certified model write texts: a corpus, with a certificate of it.

The texts stay among the data: a model may write a secret, whatever is certified of it. Who hands
them out copies them with their certificate.
"""

import os
from pathlib import Path
from typing import Any

from confide import models
from confide.certify.drawing import (
    Progress,
    begun_beside,
    corpus,
    counted,
    draw,
    drawn_ahead,
    key_of,
)
from confide.certify.texts import certificate_of_files, certificate_of_texts
from confide.files.io import read_object, sha256, write_json, write_jsonl
from confide.files.locks import exclusive
from confide.runtime.devices import device_of
from confide.runtime.memory import keep_pages
from confide.specs import SyntheticSpec
from confide.text.tokenizer import load


def synthetic(
    spec: SyntheticSpec,
    *,
    certificate: Path,
    model: Path,
    tokenizer: Path,
    output: Path,
    stated: Path,
    drawn: list[Path] | None = None,
) -> None:
    """Write the texts as JSON lines to `output`, and the certificate of them to `stated`.

    drawn: what `confide draw` wrote of each share

    What was begun and stopped goes on where it was, and what is there is kept.
    InputError unless the certificate is whole and of these weights and this vocabulary.
    """
    keep_pages()
    certified = certificate_of_files(
        spec.texts, certificate=certificate, model=model, tokenizer=tokenizer
    )

    def statement(counts: dict[str, int]) -> dict[str, Any]:
        """The certificate of the texts in `output`."""
        return certificate_of_texts(
            certified,
            asked=spec.texts,
            drawn=counts,
            texts={"path": output.name, "sha256": sha256(output), "count": spec.texts.count},
            certificate=os.path.relpath(certificate.resolve(), output.resolve().parent),
        )

    key = key_of(certified, spec.texts)
    ahead = drawn_ahead(drawn or [], key)
    file = begun_beside(output)
    with exclusive(file):
        there = read_object(stated, "drawn") if output.exists() and stated.exists() else None
        if there is None or there != statement(there["drawn"]):
            network = models.load(model.parent).to(device_of(spec.device))
            progress = Progress(file, key)
            draw(network, load(tokenizer), spec.texts, progress, ahead)
            write_jsonl(output, corpus(certified, spec.texts, progress))
            write_json(stated, statement(counted(spec.texts, progress)))
        file.unlink()
