"""Repeat the whole chain on two neighbouring corpora, and compare all that comes out.

Does anything but the noised updates tell them apart?

A certificate speaks of the noised updates alone. Here everything from raw points to a released
model runs on D and on D' (one secret masked), tokenizer included, with the same fresh noise for
both in each repetition: what a certificate takes as public (vocabulary, configuration, counts,
rates, sizes, the log) must then be equal, and is a side door where it is not. What the noise makes
random gives a lower bound on epsilon, which must not exceed the certified one.
"""

import contextlib
import io
import itertools
import json
import math
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from confide import models
from confide.config.jobs import MODEL_FILES
from confide.data.neighbours import Outcome, Secret, compare, neighbour, secrets_of
from confide.data.partition_files import load_partition
from confide.data.partitioning import Raw, Row, build
from confide.dp.accounting.bounds import clopper_pearson
from confide.dp.accounting.price import epsilon, price
from confide.dp.ledger import Ledger, updates_of
from confide.errors import InputError
from confide.files.io import number, read_bytes, read_jsonl, sha256, write_json, write_jsonl
from confide.files.rows import read_rows
from confide.provenance.terms import findings_by
from confide.specs import PrivacySpec, RerunSpec
from confide.stages.dedup import dedup
from confide.stages.fill_key import fill_key
from confide.stages.partition import partition
from confide.stages.redact import redact
from confide.stages.tokenizer import tokenizer
from confide.stages.train import train
from confide.text.tokenizer import load
from confide.train.evaluation import evaluate_points
from confide.train.metrics import COSTS
from confide.train.pools import pool_sizes
from confide.types import AnyRelease

# Seconds and perplexities in the lines of a log, and how much memory the machine had.
NUMBERS = re.compile(r"[\d.]+ \w?B(?= are free)|\d+\.\d+(?:e[+-]?\d+)?|inf|nan")
SIDES = ("D", "D'")


class Ran(NamedTuple):
    """What is compared of one run."""

    public: dict[str, Any]  # by name: all that a release shows and that noise does not protect
    noised: dict[str, Any]
    read: list[str]  # digests of the views that training read
    releases: list[AnyRelease]
    scalars: dict[str, float]


class Threshold(NamedTuple):
    """The event that tells the sides apart: value >= cut (above) or < cut.

    It is likelier on the side `likelier`.
    """

    bound: float
    # difference of the means over the sum of the standard deviations; decides between equal bounds
    effect: float
    cut: float
    above: bool
    likelier: int


def rerun(
    spec: RerunSpec,
    *,
    points: Path,
    output: Path,
    public: Path | None = None,
    values: Path | None = None,
    init: Path | None = None,
    init_ledger: Path | None = None,
) -> None:
    """Write rerun.json: what of a released model tells the two corpora apart, and how far.

    points: points.jsonl of the corpus, as `confide split` writes it.
    output: the new file rerun.json.
    public: points that the tokenizer is trained on; without them the confidential ones themselves.
    values: of a public text, to put in place of masks, where spec.partition.fill names a dataset.
    init: weights of the model to start from.
    init_ledger: ledger of that model.

    Work files hold the corpus: they lie in a hidden folder beside `points`, which is removed.
    Guarantees: only names of artefacts, counts and bounds are written, never text.
    """
    if (spec.train.init is None) != (init is None):
        raise InputError(
            "a warm start needs its name and the weights", key="train.init", value=spec.train.init
        )
    corpus = [Raw(*row) for row in read_rows(points, *Raw._fields)]
    secret = next(itertools.islice(secrets_of(corpus), spec.secret, None), None)
    if secret is None:
        raise InputError(
            "there are not so many gold secrets in the train split",
            file=points,
            key="secret",
            value=spec.secret,
        )
    seeds = np.random.SeedSequence(spec.seed).generate_state(spec.repetitions).tolist()
    with tempfile.TemporaryDirectory(prefix=".rerun-", dir=points.parent) as folder:
        corpora = (corpus, neighbour(corpus, secret, copies_masked=spec.partition.dedup))
        sides = [Path(folder, name) for name in ("first", "second")]
        key_file = Path(folder, "fill_key") if spec.partition.fill else None
        if key_file is not None:
            fill_key(output=key_file)
        for side, rows in zip(sides, corpora, strict=True):
            side.mkdir()
            write_jsonl(side / "points", (row._asdict() for row in rows))
        jobs = [(number, side, seed) for number, seed in enumerate(seeds) for side in (0, 1)]
        jobs.append((len(seeds), 0, seeds[0]))  # D once more
        runs: list[list[Ran]] = [[], []]
        for number, side_number, seed in tqdm(jobs, desc="rerun", unit="run", disable=None):
            side = sides[side_number]
            run_folder = chain(
                spec,
                points=side / "points",
                public=public,
                values=values,
                key_file=key_file,
                init=init,
                init_ledger=init_ledger,
                noise_seed=seed,
                folder=side / str(number),
            )
            runs[side_number].append(look(run_folder, secret))
            if number:
                shutil.rmtree(run_folder)
        views = [load_partition(side / "0" / "original", side / "0" / "redacted") for side in sides]
        again = runs[0].pop()
        write_json(output, comparison(spec, secret, compare(*views), runs, again))


def chain(
    spec: RerunSpec,
    points: Path,
    public: Path | None,
    values: Path | None,
    key_file: Path | None,
    init: Path | None,
    init_ledger: Path | None,
    noise_seed: int,
    folder: Path,
) -> Path:
    """All stages from points to a model; the folder of their files."""
    folder.mkdir()
    copies = folder / "copies"
    spans = folder / "spans"
    vocabulary = folder / "tokenizer.json"
    original = folder / "original"
    redacted = folder / "redacted"
    model_files = {Path(name).stem: folder / name for name in MODEL_FILES}
    seeded = spec.train.model_copy(update={"noise_seed": noise_seed})
    log = io.StringIO()
    with contextlib.redirect_stderr(log):
        tokenizer(spec.tokenizer, points=public or points, output=vocabulary)
        dedup(spec.dedup, points=points, output=copies)
        redact(spec.redact, points=points, output=spans)
        partition(
            spec.partition,
            points=points,
            copies=copies,
            spans=spans,
            tokenizer=vocabulary,
            policies=findings_by(spec.redact),
            original=original,
            redacted=redacted,
            values=values,
            fill_key=key_file,
        )
        train(
            seeded,
            original=original,
            redacted=redacted,
            tokenizer=vocabulary,
            checkpoint=folder / "checkpoint",
            init=init,
            init_ledger=init_ledger,
            **model_files,
        )
    (folder / "log").write_text(NUMBERS.sub("#", log.getvalue()), encoding="utf-8")
    return folder


def look(folder: Path, secret: Secret) -> Ran:
    """Everything of a finished chain that is compared."""
    ledger = Ledger.load(read_bytes(folder / "ledger.jsonl"))
    releases = ledger.releases()
    rows = [
        {name: value for name, value in row.items() if name not in COSTS}
        for row in read_jsonl(folder / "metrics.jsonl")
    ]
    sizes = pool_sizes(load_partition(folder / "original", folder / "redacted"))
    steps = [release.step for release in updates_of(releases)]
    pools = {step.pool for step in steps}
    public: dict[str, Any] = {
        name: sha256(folder / name) for name in ("tokenizer.json", "config.json", "log")
    }
    public["ledger.jsonl"] = unchained(ledger)
    public |= {
        "number of updates": sum(release.count for release in releases),
        "sample rates": [release.sample_rate for release in releases],
        "noise multiplier": [release.noise_multiplier for release in releases],
        # a missed secret becomes a marked <MASK>: that pool shows only where it is drawn from
        "pool sizes": {
            name: size for name, size in sizes.items() if name != "marked" or name in pools
        },
        "shapes of weights": header(folder / "model.safetensors"),
        "fields of metrics.jsonl": [
            [name for name, value in row.items() if value is not None] for row in rows
        ],
    }
    noised = {"model.safetensors": sha256(folder / "model.safetensors"), "metrics.jsonl": rows}
    view_digests = [sha256(folder / name) for name in sorted({step.view for step in steps})]
    return Ran(public, noised, view_digests, releases, scalars(folder, rows, secret))


def unchained(ledger: Ledger) -> list[dict[str, Any]]:
    """Lines of a ledger without their hashes and the digest of the weights.

    These are compared by themselves.
    """
    apart = ("hash", "previous", "weights")
    return [
        {key: value for key, value in line.items() if key not in apart} for line in ledger.lines()
    ]


def header(path: Path) -> dict[str, Any]:
    """Names, types and shapes of a safetensors file."""
    with open(path, "rb") as file:
        return json.loads(file.read(int.from_bytes(file.read(8), "little")))


def comparison(
    spec: RerunSpec, secret: Secret, outcome: Outcome, runs: list[list[Ran]], again: Ran
) -> dict[str, Any]:
    """The comparison of all runs, as it is written."""
    delta = (spec.train.privacy or PrivacySpec()).delta
    is_packed = spec.train.pack is not None
    epsilon_of_secret = certified(outcome.kind, runs[0][0].releases, delta, packed=is_packed)
    itself = differing(runs[0][0], again)  # whatever a second run on D changes says nothing of D'
    doors = {name for pair in zip(*runs, strict=True) for name in differing(*pair)}
    return {
        "secret": spec.secret,
        "label": secret.label,
        "outcome": outcome.kind,
        "points_that_differ": outcome.points,
        "repetitions": spec.repetitions,
        "side_doors": sorted(doors - itself),
        "not_reproducible": sorted(itself),
        "certified": number(epsilon_of_secret),
        "delta": delta,
        "confidence": spec.confidence,
        **best_bound([[ran.scalars for ran in side] for side in runs], delta, spec.confidence),
    }


def differing(first_run: Ran, second_run: Ran) -> set[str]:
    """Names of what differs between two runs.

    Weights and metrics count only where training read the same text, with the same noise.
    """
    first, second = (
        {**ran.public, **(ran.noised if first_run.read == second_run.read else {})}
        for ran in (first_run, second_run)
    )
    return {name for name in first if first[name] != second[name]}


def certified(
    kind: str, releases: list[AnyRelease], delta: float, *, packed: bool = False
) -> float:
    """Epsilon (replace_one) that the ledger gives a secret, by the trace that it leaves.

    `kind`: same (no trace), private (one private trace), or exposed.

    packed: points are read end to end, where a mask, which is not as long as the secret, moves all
    that is behind it.
    """
    reached = price(releases)
    of_trace = {"same": reached.caught, "private": reached.missed, "exposed": None}[kind]
    if of_trace is None or (of_trace and packed):
        return math.inf
    return epsilon(of_trace, delta, "replace_one") if of_trace else 0.0


# A lower bound on epsilon
# ----------------------------------------------------------------------------------------------


def scalars(folder: Path, rows: list[dict[str, Any]], secret: Secret) -> dict[str, float]:
    """What an attacker may look at, by name, in numbers.

    These are the metrics of every epoch, and the final model's mean loss on the secret's tokens.
    """
    values = {
        f"{name} of epoch {row['epoch']}": value
        for row in rows
        for name, value in row.items()
        if name not in ("epoch", "step") and isinstance(value, int | float)
    }
    trained_tokenizer = load(folder / "tokenizer.json")
    span = (secret.start, secret.end)
    row = Row(
        secret.text,
        redacted=secret.text,
        spans=(),
        gold=[span],
        private=True,
        split=0,
        domain=None,
        owner=None,
        planted=secret.kind.planted,
    )
    alone = build(trained_tokenizer, iter([row]))
    losses = evaluate_points(
        models.load(folder), alone.original, alone.secret, np.zeros(1, np.int64)
    )
    if losses["ppl_private"] is not None:
        values["loss on the secret"] = math.log(losses["ppl_private"])
    return values


def best_bound(
    values: list[list[dict[str, float]]], delta: float, confidence: float
) -> dict[str, Any]:
    """Epsilon's lower bound from half of the repetitions, and what it is read from.

    Scalar and threshold are chosen on the other half.

    Guarantees: at most the true epsilon with chance `confidence`, if repetitions are independent.
    """
    half = len(values[0]) // 2
    rest = len(values[0]) - half
    names = [name for name in values[0][0] if all(name in row for side in values for row in side)]
    tables = {  # (2, N)
        name: np.array([[row[name] for row in side] for side in values], float) for name in names
    }
    halves = {name: table[:, :half] for name, table in tables.items()} if half else {}
    options = [(choose(table, delta, confidence), name) for name, table in halves.items()]
    best = max(options, default=None)
    most = bound(rest, 0, rest, delta, confidence)
    if best is None or best[0].bound == 0:
        return {"epsilon_lower": 0.0, "epsilon_lower_at_most": most, "scalar": None}
    (_, _, cut, above, likelier), name = best
    counts = ((tables[name][:, half:] >= cut) == above).sum(1).tolist()
    lower = bound(counts[likelier], counts[1 - likelier], rest, delta, confidence)
    return {
        "epsilon_lower": lower,
        "epsilon_lower_at_most": most,
        "scalar": name,
        "likelier": SIDES[likelier],
    }


def choose(table: np.ndarray, delta: float, confidence: float) -> Threshold:
    """The event with the largest bound on (2, n) values, of all thresholds and directions."""
    size = table.shape[1]
    spread = float(table.std(1).sum())
    effect = float(abs(np.diff(table.mean(1))[0])) / spread if spread else 0.0
    options = [Threshold(0.0, effect, math.inf, True, 0)]
    values = np.unique(table)
    for cut in ((values[1:] + values[:-1]) / 2).tolist():
        for above in (True, False):
            counts = ((table >= cut) == above).sum(1).tolist()
            likelier = int(counts[1] > counts[0])
            lower = bound(max(counts), min(counts), size, delta, confidence)
            options.append(Threshold(lower, effect, cut, above, likelier))
    return max(options)


def bound(often: int, seldom: int, trials: int, delta: float, confidence: float) -> float:
    """Lower bound on epsilon from an event that one side shows more often, Clopper-Pearson twice.

    It is seen `often` times on that side and `seldom` on the other, in as many trials on each.
    """
    if not trials:
        return 0.0
    each = (1 + confidence) / 2
    least = 1 - clopper_pearson(trials - often, trials, each)
    most = clopper_pearson(seldom, trials, each)
    return math.log((least - delta) / most) if least - delta > most else 0.0
