"""`confide init CORPUS`: count what a corpus holds and write a first params.yaml for it.

The file gives the reasons for each choice.

Nothing of its text is printed or written, only counts and the names of its labels.
"""

import shlex
from pathlib import Path

from confide.advisor.choices import LEAST, choose, doubtful, policies, unit_of
from confide.advisor.page import screen
from confide.advisor.survey import Corpus, corpus_of, points_of
from confide.advisor.template import as_yaml
from confide.errors import InputError
from confide.files.io import write_text
from confide.output.escaping import say
from confide.specs import LinesSpec
from confide.types import SPLITS

NAME = "params.yaml"


def init(
    corpus: Path, *, output: Path | None = None, public: Path | None = None, epsilon: float = 3.0
) -> None:
    """Write params.yaml, for a corpus to train on; one that is there is kept.

    corpus: JSON lines with a "text" each, or plain text, a document a line.
    output: folder to write into; the corpus's own if none is given.
    public: text that needs no protection, for the vocabulary and the start; without it simulated
    text serves.
    epsilon: the most that one secret may cost.
    """
    folder = output or corpus.parent
    if (target := folder / NAME).exists():
        raise InputError("exists, and is not overwritten; another folder: --output", file=target)
    if not epsilon > 0 or epsilon == float("inf"):
        raise InputError("must be positive", key="epsilon", value=epsilon)
    spec = LinesSpec(reader="lines", path=str(corpus))
    counted = corpus_of(spec)
    unit, _ = unit_of(counted)
    check(counted, unit, corpus)
    if public is not None:
        corpus_of(LinesSpec(reader="lines", path=str(public)))  # whether it can be read
    points = points_of(spec, counted, unit, policies(), doubtful())
    choice = choose(counted, points, unit, epsilon)
    text = as_yaml(choice, seen_from(folder, corpus), seen_from(folder, public) if public else None)
    write_text(target, text)
    say(*screen(counted, points, choice, str(public) if public else None).split("\n"))
    say("", f"written: {target}; next: {command(folder)}")


def check(corpus: Corpus, unit: str, file: Path) -> None:
    """InputError for a corpus that is too small for anything to come of it."""
    sizes = corpus.points[unit]
    if sizes["train"] < LEAST:
        count = f"{sizes['train']:,} training points ({unit}s)"
        message = f"has {count}, and the least is {LEAST}: noise would drown them"
        raise InputError(message, file=file)
    for split in SPLITS:
        if not sizes[split]:
            message = (
                "has no text: documents and authors go whole into one split; "
                "give lines a split, or more documents"
            )
            raise InputError(message, file=file, key=split)


def seen_from(folder: Path, file: Path) -> str:
    """Path of a file as seen from a folder.

    It is relative only below the folder, so that both can be moved together.
    """
    file = file.resolve()
    folder = folder.resolve()
    return str(file.relative_to(folder) if file.is_relative_to(folder) else file)


def command(folder: Path) -> str:
    """What to run: Snakemake itself in a checkout, `confide run` anywhere else."""
    program = "snakemake" if Path("Snakefile").exists() else "confide run"
    is_here = folder.resolve() == Path.cwd()
    return program if is_here else f"{program} -d {shlex.quote(str(folder))}"
