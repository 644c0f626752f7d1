"""`confide review PARAMS`: let a person mark what the policy missed in texts drawn by lot.

It shows each text with what was masked, on a page for this machine alone or in the terminal, and
saves after each; call it again to go on. What was marked bounds how many secrets the policy misses:
name the file that it prints under `review` of the dataset, and certificates are made again.
"""

from contextlib import chdir
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from confide.certify.review import RATES, bounds_in, rates_of
from confide.commands.init import command, path_from
from confide.config import jobs
from confide.config.params import load as load_params
from confide.dp.accounting.bounds import each_of
from confide.errors import InputError
from confide.output.escaping import say
from confide.output.rounding import percent_up
from confide.provenance.terms import findings_by, terms
from confide.reviews.draw import OTHER, Drawn, draw_sample
from confide.reviews.marks import VERSION, Marks, Review, load, sample_of, save
from confide.reviews.server import serve
from confide.reviews.session import Session
from confide.reviews.tally import counts_of
from confide.reviews.terminal import review as in_terminal
from confide.specs import NeighboursSpec
from confide.specs.files import ANY

CONFIDENCE: float = NeighboursSpec.model_fields["confidence"].default
FOLDER = Path("data/own/reviews")
COMMON = ("name", "address", "organisation")  # what a policy of shapes misses most
LOOSE = 0.2  # bound from which on a review says how to tighten it
USUAL = {"size": 200, "seed": 0}


def review(
    params: Path,
    *,
    dataset: str,
    output: Path | None = None,
    size: int | None = None,
    seed: int | None = None,
    most: int | None = None,
    by: str | None = None,
    labels: str | None = None,
    gamma: float = 0.0,
    terminal: bool = False,
) -> None:
    """Draw texts, and show those that were not read yet. Run `snakemake prepare` before.

    params: params.yaml of your project.
    dataset: its name there.
    output: file of the marks; data/own/reviews/DATASET.json beside params.yaml if none is given.
    size: how many texts are drawn; 200 if nothing is said.
    seed: of the lot; 0 if nothing is said.
    most: how many missed secrets any text holds at most, which certificates then name as a
    condition; without it each word may be one, and the bound is several times as large.
    by: your name, for the certificate.
    labels: further ones than those of the policy, name, address and organisation, with commas
    between.
    gamma: the miss rate of the runs.
    terminal: ask in the terminal, not in a browser.

    InputError where the review in `output` is of other text, or was drawn in another way
    than is asked for.
    Guarantees: nothing but offsets, labels and `by` is written, for the owner alone.
    """
    project = params.parent
    path = output or project / FOLDER / f"{dataset}.json"
    if (project / "results").resolve() in path.resolve().parents:
        raise InputError("lies in results, which others may see", file=path)
    folder = project / "data/work" / dataset
    files = {
        "points": folder / "points.jsonl",
        "spans": folder / f"g{jobs.gamma_text(gamma)}" / "spans.jsonl",
        "copies": folder / "copies.jsonl",
    }
    measured_on, policies = terms_of(params, dataset, gamma)
    for file in files.values():
        if not file.is_file():
            message = f"is not there: run `{command(project)} prepare` before"
            raise InputError(message, file=file)
    options = {"size": size, "seed": seed, "most": most, "by": by}
    if path.exists():
        begun = load(path)
        check_same(begun, options, path)
        if begun.terms != measured_on:
            message = "is a review of another corpus, split or policy; another file: --output"
            raise InputError(message, file=path, key="terms")
        sample = sample_of(begun, path, **files, policies=policies)
    else:
        settings = USUAL | {key: value for key, value in options.items() if value is not None}
        begun, sample = begin(settings, labels, measured_on, files, policies)
        save(path, begun)
    read(Session(begun, sample, path), terminal=terminal)
    line = f"review: {path_from(project, path)}"
    say(f"next: `{line}` of the dataset in {params}, then {command(project)}")


def terms_of(file: Path, dataset: str, gamma: float) -> tuple[dict[str, Any], str]:
    """What a review is of, as a certificate names it, and whose findings; InputError where there
    is no such dataset.

    file: params.yaml, which names other files as they are seen from its folder.
    """
    if not file.is_file():
        raise InputError("is not there: params.yaml of your project is needed", file=file)
    with chdir(file.parent):
        params = load_params(Path(file.name))
        if dataset not in params.datasets:
            names = ", ".join(params.datasets)
            raise InputError(f"is not one of {names}", file=file, key="dataset", value=dataset)
        if not 0 <= gamma <= 1:
            raise InputError("is not in [0, 1]", key="gamma", value=gamma)
        redacted = jobs.redaction(params, dataset, gamma)
        return terms(jobs.text(params, dataset), redacted), findings_by(redacted)


def check_same(begun: Review, options: dict[str, Any], path: Path) -> None:
    """InputError where a review that was begun is asked for with other settings."""
    for key, value in options.items():
        if value is not None and value != getattr(begun, key):
            message = f"was {getattr(begun, key)!r} when this review began; another one: --output"
            raise InputError(message, file=path, key=key, value=value)


def begin(
    settings: dict[str, Any],
    labels: str | None,
    measured_on: dict[str, Any],
    files: dict[str, Path],
    policies: str,
) -> tuple[Review, Drawn]:
    """A review without marks, and its texts."""
    extra = [label.strip() for label in (labels or "").split(",") if label.strip()]
    if ANY in extra:
        raise InputError("stands for all labels", key="labels", value=ANY)
    empty = {"by": None, "most": None, "labels": [*extra, OTHER], "marks": []}
    fixed = {"version": VERSION, "terms": measured_on, "points": "", "spans": ""}
    draft = checked(empty | fixed | settings)
    sample = draw_sample(draft.wanted, **files, policies=policies)
    if not sample.texts:
        raise InputError("has no training text of its own", file=files["points"])
    all_labels = list(dict.fromkeys([*sample.labels, *extra, *COMMON, OTHER]))
    of_sample = {"points": sample.points, "spans": sample.spans, "labels": all_labels}
    return checked(draft.model_dump() | of_sample | {"marks": [None] * len(sample.texts)}), sample


def checked(value: dict[str, Any]) -> Review:
    """A review; InputError names the flag, or the label of the policy, that cannot be."""
    try:
        return Review.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0])
        raise InputError(first["msg"], key=key, value=first["input"]) from None


def read(session: Session, *, terminal: bool) -> None:
    """Let a person read, and say what comes of it."""
    texts = sum(counted.texts for counted in session.sample.counted.values())
    say(
        f"{len(session.sample.texts):,} of {texts:,} distinct training texts, "
        f"{session.review.reviewed:,} of them read; kept in {session.path}",
        *prospects(best(session)),
    )
    if terminal:
        in_terminal(session, input, say)
    else:
        say("Open this address on this machine; Ctrl-C ends. It is for you alone:")
        serve(session, say)
    unread = len(session.sample.texts) - session.review.reviewed
    say(
        f"{session.review.reviewed:,} read, {unread:,} left"
        + (", which count as missed until they are read" if unread else "")
    )


def prospects(bounds: dict[str, float]) -> list[str]:
    """What a review can show at best, before anybody reads for hours.

    bounds: on gamma, by label. Certificates count the largest.
    """
    worst = max(bounds, key=lambda label: bounds[label])
    words = (
        f"were nothing missed in any of them, at most {percent_up(bounds[ANY])} of all secrets are"
    )
    if bounds[worst] > bounds[ANY]:
        words += f", and {percent_up(bounds[worst])} of the label {worst}"
        words += ": certificates count the worst one"
    if bounds[worst] < LOOSE:
        return [words]
    remedy = "draw more texts (--size), or state how many a text holds at most (--most)"
    if bounds[worst] < 1:
        return [words, f"to bound it more tightly: {remedy}"]
    return [words, f"that is no bound, and `confide release` would refuse: {remedy}"]


def best(session: Session) -> dict[str, float]:
    """The bounds on gamma if nothing at all is marked, by label."""
    clean = session.review.model_copy(update={"marks": [Marks()] * len(session.review.marks)})
    nothing = dict.fromkeys(RATES, False)
    counts = counts_of(clean, session.sample, lambda text, mark: nothing, RATES)
    each = each_of(CONFIDENCE, bounds_in(counts))
    return {label: rates["gamma_upper"] for label, rates in rates_of(counts, each).items()}
