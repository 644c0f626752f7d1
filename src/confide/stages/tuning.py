"""Choose for each method by trials on text that needs no protection, as many for each.

What is tried are recipes, or what stands in place of masks.
"""

from pathlib import Path

from confide.errors import InputError
from confide.files.io import read_jsonl, write_text
from confide.methods import METHODS
from confide.output.escaping import table_of
from confide.report.tables.table import Row
from confide.specs import TrialSpec, TuningSpec

SETTINGS = ("lr", "noisy_lr", "batch_size", "noisy_batch_size", "epochs", "noisy_epochs", "average")
SCORE = "valid_ppl"


def tuning(spec: TuningSpec, *, models: Path, output: Path) -> None:
    """Write a CSV file with all trials: settings, validation perplexity, and which is the best.

    The best of a method of a model on a corpus has the lowest perplexity of the valid split after
    its last epoch, and of equals is listed first. InputError where methods have different numbers
    of trials, which would favour one of them, or where a trial has no such number.
    """
    rivals: dict[tuple[str, str, str], list[TrialSpec]] = {}
    for trial in spec.trials:
        rivals.setdefault((trial.corpus, trial.model, method_of(trial)), []).append(trial)
    if len(set(map(len, rivals.values()))) > 1:
        found = ", ".join(
            f"{method} of {model} on {corpus}: {len(trials)}"
            for (corpus, model, method), trials in rivals.items()
        )
        raise InputError(f"each method needs as many trials as the others: {found}", key="trials")
    scores = {trial.run: score_of(models / trial.run / "metrics.jsonl") for trial in spec.trials}
    best = {
        min((trial.run for trial in trials), key=scores.__getitem__) for trials in rivals.values()
    }
    rows = [row_of(trial, scores[trial.run], is_best=trial.run in best) for trial in spec.trials]
    write_text(output, table_of(rows))


def method_of(trial: TrialSpec) -> str:
    """A trial's method, in words."""
    words = [trial.method]
    if trial.covered and not METHODS[trial.method].needs_cover:
        words.append("behind a cover")
    words += ["deduplicated"] if trial.dedup else []
    return ", ".join(words)


def score_of(path: Path) -> float:
    """Validation perplexity after the last epoch."""
    rows = list(read_jsonl(path))
    value = rows[-1].get(SCORE) if rows else None
    if not isinstance(value, int | float):
        raise InputError("its last epoch has no number", file=path, key=SCORE, value=value)
    return float(value)


def row_of(trial: TrialSpec, score: float, *, is_best: bool) -> Row:
    """A line of the table."""
    settings = {name: getattr(trial.settings, name) for name in SETTINGS}
    return {
        "corpus": trial.corpus,
        "model": trial.model,
        "method": method_of(trial),
        "filled": trial.filled,
        "recipe": trial.recipe,
        **settings,
        "run": trial.run,
        SCORE: score,
        "best": is_best,
    }
