"""Let a run's certified model write texts: a corpus, with a certificate of it.

The texts stay among the data: a model may write a secret, whatever is certified of it. Who hands
them out copies them with their certificate.
"""

import os
from pathlib import Path

from confide import models
from confide.certify.drawing import Progress, corpus, counted, draw, drawn_ahead, key_of
from confide.certify.texts import certificate_of_files, certificate_of_texts
from confide.files.io import sha256, write_json, write_jsonl
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

    What was begun and stopped goes on where it was.
    InputError unless the certificate is whole and of these weights and this vocabulary.
    """
    keep_pages()
    certified = certificate_of_files(
        spec.texts, certificate=certificate, model=model, tokenizer=tokenizer
    )
    network = models.load(model.parent).to(device_of(spec.device))
    key = key_of(certified, spec.texts)
    ahead = drawn_ahead(drawn or [], key)
    progress = Progress(output.with_name(f".{output.name}.begun"), key)
    draw(network, load(tokenizer), spec.texts, progress, ahead)
    write_jsonl(output, corpus(certified, spec.texts, progress))
    write_json(
        stated,
        certificate_of_texts(
            certified,
            asked=spec.texts,
            drawn=counted(spec.texts, progress),
            texts={"path": output.name, "sha256": sha256(output), "count": spec.texts.count},
            certificate=os.path.relpath(certificate.resolve(), output.resolve().parent),
        ),
    )
    progress.begun.file.unlink()
