"""What leaves this machine, and which corpora are public.

The search for secrets opens the one, and passes over what stands in the other.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from confide.config import jobs
from confide.config.yaml_lines import compose
from confide.errors import InputError
from confide.files.packages import is_packaged
from confide.specs import Params

OUTPUTS = ("outs", "metrics", "plots")  # keys of a stage that list what it makes
MOVING = ("wdir", "foreach", "matrix", "do")  # and such as change what these names mean
NAME = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_./-]*")


def public_sources(params: Params, datasets: Iterable[str]) -> list[str]:
    """Folders, below data/work, of public text that models of these datasets may repeat.

    A string in it is no secret.

    That is the text of these datasets and of their tokenizers' corpora, where it was declared
    public.
    """
    public = jobs.public_corpora(params)
    used = [params.datasets[name] for name in datasets]
    corpora = [params.tokenizers[dataset.tokenizer].corpus for dataset in used]
    sources = [jobs.source_name(corpus, jobs.POINT, 0) for corpus in corpora if corpus in public]
    public_datasets = [name for name in datasets if params.datasets[name].corpus in public]
    return list(dict.fromkeys([*sources, *public_datasets]))


def private_sources(params: Params, datasets: Iterable[str]) -> list[str]:
    """Folders, below data/work, of text that tokenizers of these datasets are made of, where it was
    not declared public and none of the datasets is of it.
    """
    used = [params.datasets[name] for name in datasets]
    made_of = dict.fromkeys(params.tokenizers[dataset.tokenizer].corpus for dataset in used)
    known = jobs.public_corpora(params) | {dataset.corpus for dataset in used}
    return [
        jobs.source_name(corpus, jobs.POINT, 0)
        for corpus in made_of
        if corpus is not None and corpus not in known
    ]


def published_tokenizers(params: Params, datasets: Iterable[str]) -> list[str]:
    """Names of the tokenizers of some datasets that are as they were published, by their digest.

    One of a folder or a hub is not among them, whatever was declared of it: it may have been made
    of this very corpus.
    """
    names = dict.fromkeys(params.datasets[name].tokenizer for name in datasets)
    tokenizers = {name: params.tokenizers[name] for name in names}
    return [name for name, of in tokenizers.items() if of.is_archive or is_packaged(of.source)]


def pushed(path: Path) -> list[str]:
    """Files and folders that `dvc push` sends, by dvc.yaml.

    These are all outputs but those with `push: false` or `cache: false`.

    InputError where the file cannot be read, or is of a shape of which this cannot be told.
    """
    try:
        stages = compose(path)[1]["stages"]
        kinds = [
            (key, stage[key] or []) for stage in stages.values() for key in stage if key in OUTPUTS
        ]
        moved = [key for stage in stages.values() for key in stage if key in MOVING]
        names = [name for _, outputs in kinds for output in outputs for name in sent(output)]
    except (KeyError, AttributeError, TypeError, ValueError):
        raise InputError(
            "is no list of stages and their outputs that can be followed", file=path
        ) from None
    if moved:
        raise InputError(
            "is not known here, so that it cannot be told what is pushed", file=path, key=moved[0]
        )
    for name in names:
        if not NAME.fullmatch(name):
            raise InputError(
                "an output's name may have letters, digits and ._/- only", file=path, key="outs"
            )
    return list(dict.fromkeys(names))


def sent(output: Any) -> list[str]:
    """Names in one entry of a stage's outputs that are pushed.

    TypeError for anything but a name, or names with settings.
    """
    if isinstance(output, str):
        return [output]
    settings = dict(output)
    if not all(isinstance(value, dict) for value in settings.values()):
        raise TypeError
    return [
        name
        for name, options in settings.items()
        if options.get("push") is not False and options.get("cache") is not False
    ]
