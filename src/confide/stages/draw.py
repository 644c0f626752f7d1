"""Draw some of a run's texts ahead, as one of several jobs on several machines perhaps.

`synthetic` puts them together: its file is, byte for byte, what it would have drawn alone.
"""

import shutil
from pathlib import Path

from confide import models
from confide.certify.drawing import Begun, begun_beside, draw_ahead, has_key, key_of
from confide.certify.texts import certificate_of_files
from confide.files.io import writable
from confide.files.locks import exclusive
from confide.runtime.devices import device_of
from confide.runtime.memory import keep_pages
from confide.specs import SyntheticSpec
from confide.text.tokenizer import load


def draw(
    spec: SyntheticSpec,
    *,
    certificate: Path,
    model: Path,
    tokenizer: Path,
    share: str,
    output: Path,
) -> None:
    """Write the batches that fall to this share.

    share: such as 2-of-8

    What was begun and stopped goes on where it was, and what is there is not drawn again.
    InputError unless the certificate is whole and of these weights and this vocabulary.
    """
    keep_pages()
    certified = certificate_of_files(
        spec.texts, certificate=certificate, model=model, tokenizer=tokenizer
    )
    key = key_of(certified, spec.texts)
    file = begun_beside(output)
    with exclusive(file):
        if output.exists() and has_key(output, key):
            with writable(file):
                shutil.copyfile(output, file)
        network = models.load(model.parent).to(device_of(spec.device))
        draw_ahead(network, load(tokenizer), spec.texts, Begun(file, key), share)
        file.replace(output)
