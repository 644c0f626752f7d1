"""What leaves this machine, and which corpora are public: what the search for secrets opens, and what it passes over."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from confide import jobs
from confide.errors import InputError
from confide.specs import Params


def public_corpora(params: Params) -> set[str]:
    """Names of the corpora that were declared public: by a dataset of them, and contradicted by no other dataset.

    Nothing else makes a corpus public, and least of all that something was trained on it.
    """
    declared = {dataset.corpus for dataset in params.datasets.values() if dataset.public}
    protected = {dataset.corpus for dataset in params.datasets.values() if not dataset.public}
    return declared - protected


def public_sources(params: Params, datasets: Iterable[str]) -> list[str]:
    """Folders, below data/work, of public text that models of these datasets may repeat: a string in it is no secret.

    That is the text of these datasets and of their tokenizers' corpora, where it was declared public.
    """
    public = public_corpora(params)
    used = [params.datasets[name] for name in datasets]
    corpora = [params.tokenizers[dataset.tokenizer].corpus for dataset in used]
    sources = [jobs.source_name(corpus, jobs.POINT, 0) for corpus in corpora if corpus in public]
    own = [name for name in datasets if params.datasets[name].corpus in public]
    return list(dict.fromkeys([*sources, *own]))


def pushed(path: Path) -> list[str]:
    """Files and folders that `dvc push` sends, by dvc.yaml: all outputs but those with `push: false`.

    InputError where the file cannot be read or an output is of a shape that is not known here.
    """
    try:
        stages = yaml.safe_load(path.read_text())["stages"]
        outputs = [output for stage in stages.values() for output in stage.get("outs", [])]
    except (OSError, ValueError, yaml.YAMLError, KeyError, AttributeError, TypeError):
        raise InputError("is not a list of stages and their outputs that DVC could follow", file=path) from None
    return [name for output in outputs for name, sent in sending(output, path) if sent]


def sending(output: Any, path: Path) -> list[tuple[str, bool]]:
    """Names in one entry of `outs`, each with whether it is pushed."""
    if isinstance(output, str):
        return [(output, True)]
    if not isinstance(output, dict) or not all(isinstance(settings, dict) for settings in output.values()):
        raise InputError("an output is neither a name nor a name with its settings", file=path, key="outs")
    return [(name, settings.get("push", True) is not False) for name, settings in output.items()]
