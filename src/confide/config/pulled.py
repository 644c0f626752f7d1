"""What is said in a folder with models and results whose text is not there, as after `dvc pull`.

A plan alone would mislead: it lists whatever hangs on the missing text, though nothing has to be
made again once that is back.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from confide.config.jobs import CERTIFICATE, MODEL_FILES, Run

VERIFY = "`confide verify CERTIFICATE` needs no text"


def complete(runs: Iterable[str], folder: Path) -> list[str]:
    """Runs whose certificate and files of the model are all there."""
    return [
        run
        for run in runs
        if (folder / f"results/runs/{run}/{CERTIFICATE}.json").is_file()
        and all((folder / "models" / run / file).is_file() for file in MODEL_FILES)
    ]


def without_corpus(folder: Path) -> str:
    """What to say beside a corpus's file that is not there; "" where nothing else is, either."""
    certificates = (folder / "results/runs").glob(f"*/*/{CERTIFICATE}.json")
    names = [str(file.parent.relative_to(folder / "results/runs")) for file in certificates]
    models = complete(names, folder)
    if not models:
        return ""
    return f"{counted(models)}: {VERIFY}. Whatever is made again needs the text"


def without_text(runs: Mapping[str, Run], folder: Path) -> str:
    """What to say of runs that are there while the text they were made from is not; "" if it is."""
    datasets = dict.fromkeys(run.row.dataset for run in runs.values())
    missing = [
        name for name in datasets if not (folder / f"data/work/{name}/points.jsonl").is_file()
    ]
    models = complete(runs, folder)
    if not missing or not models:
        return ""
    return (
        f"{counted(models)}: {VERIFY}. The text of {', '.join(missing)} is not here. "
        "`snakemake prepare` makes it again where its corpus can be had; after that, only what "
        "differs is made again. Until then a plan lists all that hangs on it."
    )


def counted(models: list[str]) -> str:
    """How many models are here."""
    if len(models) == 1:
        return "1 model with its certificate is here"
    return f"{len(models)} models with their certificates are here"
