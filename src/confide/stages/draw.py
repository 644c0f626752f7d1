"""Draw some of a run's texts ahead, as one of several jobs on several machines perhaps.

`synthetic` puts them together: its file is, byte for byte, what it would have drawn alone.
"""

from pathlib import Path

from confide import models
from confide.certify.drawing import Begun, draw_ahead, key_of
from confide.certify.texts import certificate_of_files
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

    What was begun and stopped goes on where it was.
    InputError unless the certificate is whole and of these weights and this vocabulary.
    """
    keep_pages()
    certified = certificate_of_files(
        spec.texts, certificate=certificate, model=model, tokenizer=tokenizer
    )
    network = models.load(model.parent).to(device_of(spec.device))
    key = key_of(certified, spec.texts)
    begun = Begun(output.with_name(f".{output.name}.begun"), key)
    draw_ahead(network, load(tokenizer), spec.texts, begun, share)
    begun.file.replace(output)
