"""What jobs would take before they run: seconds, memory and disk.

A job is priced by the best that is known: what it took here before, what jobs like it took here, a
rehearsal of a few of its steps, or what it took on another machine, whose speed is compared. Where
nothing is known it says so.
"""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from statistics import median

import numpy as np
from tqdm import tqdm

from confide.advisor.rates import (
    ALIKE,
    ELSEWHERE,
    GUESSED,
    IMPORT,
    NOT_KNOWN,
    OF_RUNS,
    OF_TOKENS,
    REHEARSED,
    TOKEN,
    Cost,
    importing,
    kind_of,
    measured,
    read_rates,
    study_of,
)
from confide.advisor.rehearsal import CHARACTERS, Rehearsal, Text, rehearse
from confide.config import jobs
from confide.config.jobs import Run
from confide.corpora import READERS, raw_file, table_files
from confide.corpora.messages import is_table
from confide.corpora.table import reading_of
from confide.corpora.table_files import Reading
from confide.data.partition_files import load_partition
from confide.errors import InputError
from confide.files.shards import numbers_of_share
from confide.runtime.workflow_log import WorkflowJob
from confide.specs import CorpusSpec, LinesSpec, MessagesSpec, Params, SplitSpec, TableSpec
from confide.stages.evaluate import TRAINED
from confide.stages.split import pieces
from confide.text.tokenizer import load as load_tokenizer
from confide.types import SPLITS

STARTS = 1.5  # how much longer our jobs take to start than Python with torch
SAMPLE = 20_000  # documents, or points, that stand for a corpus
PRIVATE = 0.3  # share of the points, where no policy has been applied yet
# How often the text of a dataset stands on disk as points, as findings, and as tokens of both views
DISK = {"split": 2.5, "plant": 2.5, "redact": 0.5, "partition": 2.5}
# Steps that a stage becomes where jobs share its text, and what all jobs of a step take together of
# the time that one job of the stage would take for the same text: by benchmarks/shares.py
STEPS = {
    "key_of_digests": ("dedup", 0.0),
    "digests": ("dedup", 0.9),
    "repeats": ("dedup", 0.35),
    "copies": ("dedup", 0.4),
    "gather_copies": ("dedup", 0.05),
    "redact_share": ("redact", 1.0),
    "gather_spans": ("redact", 0.03),
    "partition_share": ("partition", 1.0),
    "gather": ("partition", 0.3),
}
READING = ("evaluate", "attack")  # rules whose jobs read texts with a trained model


def costs(params: Params, planned: Sequence[WorkflowJob]) -> list[Cost]:
    """What each of these jobs would take, in this folder."""
    forecast = Forecast(params)
    bar = tqdm(planned, desc="forecast", unit="job", leave=False, disable=None)
    return [forecast.cost(job) for job in bar]


class Forecast:
    """Prices jobs of the current folder; what several of them need is measured once."""

    def __init__(self, params: Params) -> None:
        self.params = params
        self.runs = jobs.runs_of(params, params.studies)
        self.sources = jobs.sources(params)
        self.attacks = {name: attack.kind for name, attack in params.attacks.items()}
        self.rates = read_rates()
        self.start = importing()
        self.slowness = self.start / self.rates[IMPORT].seconds
        self.texts: dict[str, Text | None] = {}  # of corpora
        self.texts_of_runs: dict[str, Text | None] = {}
        self.rehearsals: dict[str, Rehearsal | None] = {}
        self.before = {str(file): cost for file, cost in measured(Path()).items()}

    def cost(self, job: WorkflowJob) -> Cost:
        """What a job would take."""
        if job.benchmark in self.before:
            return self.before[job.benchmark]
        alike = [self.before[file] for file in self.files_like(job) if file in self.before]
        if alike:
            return Cost(
                seconds=median(cost.seconds for cost in alike),
                memory_mb=max(cost.memory_mb for cost in alike),
                source=ALIKE,
            )
        run = self.runs.get(job.wildcards.get("run", ""))
        if job.rule == "train" and run is not None:
            return self.training(run)
        if job.rule in READING and run is not None:
            return self.reading(job, run)
        return self.elsewhere(job)

    def files_like(self, job: WorkflowJob) -> list[str]:
        """Where it says what jobs took that do the same for another seed or miss rate."""
        run = self.runs.get(job.wildcards.get("run", ""))
        if run is None or job.benchmark is None:
            return []
        name = f"/{run.run}"
        others = [other.run for other in self.runs.values() if other.row == run.row]
        return [job.benchmark.replace(name, f"/{other}") for other in others]

    def training(self, run: Run) -> Cost:
        """What a training would take, by a few of its steps."""
        rehearsal = self.rehearsal(run)
        if rehearsal is None:
            return NOT_KNOWN
        snapshots = self.params.recipes[run.row.recipe].epochs if run.row.trajectory else 0
        return Cost(
            seconds=STARTS * self.start + rehearsal.seconds,
            memory_mb=rehearsal.memory_mb,
            disk_mb=(1 + snapshots) * rehearsal.weights_mb,
            source=REHEARSED if is_parted(run) else GUESSED,
        )

    def reading(self, job: WorkflowJob, run: Run) -> Cost:
        """What a job would take that reads text with a trained model.

        It is what one took elsewhere, and for each token that it reads, times how much longer this
        model reads; a start aside.
        """
        rate = self.rates.get(kind_of(job, self.attacks))
        rehearsal = self.rehearsal(run)
        if rate is None or rehearsal is None:
            return NOT_KNOWN
        start = min(rate.seconds, STARTS * self.rates[IMPORT].seconds)
        longer = rehearsal.per_token / self.rates[TOKEN].seconds
        text = self.text_of(run)
        amounts = {} if text is None else {OF_TOKENS: tokens_read(text) / 1000}
        work = rate.seconds - start + rate.seconds_more(amounts)
        return Cost(
            seconds=start * self.slowness + work * longer,
            memory_mb=max(rate.memory_mb, rehearsal.memory_mb / 2),
            source=ELSEWHERE,
        )

    def elsewhere(self, job: WorkflowJob) -> Cost:
        """What a job took on another machine, times how much slower this one is."""
        stage, part = STEPS.get(job.rule, (kind_of(job, self.attacks), 1.0))
        rate = self.rates.get(stage)
        if rate is None:
            return NOT_KNOWN
        shares = shares_of(job)
        amounts = {OF_RUNS: float(self.runs_of(job))}
        source = self.source_of(job) if rate.of_text() else None
        if source is not None:
            text = self.text(source)
            if text is None:
                return NOT_KNOWN
            amounts |= amounts_of(text)
        return Cost(
            seconds=self.slowness * (rate.seconds + part * rate.seconds_more(amounts) / shares),
            memory_mb=rate.memory_mb,
            disk_mb=amounts.get("mb", 0.0) * DISK.get(stage, 0.0) / shares,
            source=ELSEWHERE,
        )

    def runs_of(self, job: WorkflowJob) -> int:
        """How many runs the study has that a rule is called after; of others, all there are."""
        study = study_of(job.rule)
        if study not in self.params.studies:
            return len(self.runs)
        return len(jobs.runs_of(self.params, [study]))

    def source_of(self, job: WorkflowJob) -> SplitSpec | None:
        """The corpus that a data stage reads, with its cut; None for a published tokenizer."""
        dataset = job.wildcards.get("dataset")
        if dataset in self.params.datasets:
            return self.sources[jobs.source_of(self.params.datasets[dataset])]
        tokenizer = job.wildcards.get("tokenizer")
        if tokenizer in self.params.tokenizers:
            corpus = self.params.tokenizers[tokenizer].corpus
            return None if corpus is None else jobs.split_spec(self.params, corpus, jobs.POINT, 0)
        return self.sources.get(job.wildcards.get("source", ""))

    def rehearsal(self, run: Run) -> Rehearsal | None:
        """A rehearsal of a run's training; None where it cannot be rehearsed yet.

        Runs that differ in miss rate and seed alone share one.
        """
        if run.home not in self.rehearsals:
            self.rehearsals[run.home] = self.rehearsed(run)
        return self.rehearsals[run.home]

    def rehearsed(self, run: Run) -> Rehearsal | None:
        """The same, run now."""
        dataset = self.params.datasets[run.row.dataset]
        text = self.text_of(run)
        vocabulary = self.vocabulary(dataset.tokenizer)
        if text is None or vocabulary is None:
            return None
        return rehearse(jobs.training(self.params, run), text, *vocabulary)

    def text_of(self, run: Run) -> Text | None:
        """How much text a run has: as its partition has it, else as its corpus does."""
        if run.home not in self.texts_of_runs:
            dataset = self.params.datasets[run.row.dataset]
            self.texts_of_runs[run.home] = parted(run) or self.text(
                self.sources[jobs.source_of(dataset)]
            )
        return self.texts_of_runs[run.home]

    def vocabulary(self, name: str) -> tuple[int, int] | None:
        """Size of a vocabulary and its begin token; None where nobody knows yet."""
        file = Path("data/tokenizers", f"{name}.json")
        if file.is_file():
            tokenizer = load_tokenizer(file)
            return tokenizer.vocab_size, tokenizer.bos_id
        spec = self.params.tokenizers[name]
        return (spec.vocab_size, 0) if spec.kind == "bpe" else None

    def text(self, spec: SplitSpec) -> Text | None:
        """How much text a corpus has, by its first documents; None where it is not there yet."""
        key = spec.model_dump_json()
        if key not in self.texts:
            self.texts[key] = surveyed(spec)
        return self.texts[key]


def shares_of(job: WorkflowJob) -> int:
    """How many jobs share the text that a job reads one share of."""
    _, count = numbers_of_share(job.wildcards.get("share", "1-of-1"))
    return count


def amounts_of(text: Text) -> dict[str, float]:
    """What data stages take longer for."""
    points = sum(text.points.values()) / 1000
    return {
        "mb": text.characters / 1e6,
        "1000_points": points,
        "1000_secrets": text.private * points,
    }


def tokens_read(text: Text) -> float:
    """Tokens that an evaluation reads: of held-out points, and of some that were trained on."""
    points = text.points["test"] + min(TRAINED, text.points["train"])
    return points * (text.tokens + 1)


def views(run: Run) -> list[Path]:
    """The files of a run's partition."""
    folder = Path("data/work", run.partition)
    return [folder / f"{view}.safetensors" for view in ("original", "redacted")]


def is_parted(run: Run) -> bool:
    """Whether a run's partition is made."""
    return all(file.is_file() for file in views(run))


def parted(run: Run) -> Text | None:
    """A run's text as its partition has it, where that is made."""
    if not is_parted(run):
        return None
    partition = load_partition(*views(run))
    lengths = np.diff(partition.original.starts)
    of_splits: dict[str, np.ndarray] = {
        split: lengths[partition.split == number] for number, split in enumerate(SPLITS)
    }
    return Text(
        points={split: len(of_split) for split, of_split in of_splits.items()},
        tokens=len(partition.original.ids) / max(1, len(partition.original)),
        private=float(partition.private.mean()),
        lengths=of_splits,
    )


def surveyed(spec: SplitSpec) -> Text | None:
    """How much text a corpus has, by its first documents; None where it is not there yet, or where
    its files do not say how many more there are.
    """
    corpus = spec.corpus
    raw = raw_file(corpus)
    lengths: dict[str, list[int]] = {split: [] for split in SPLITS}  # of points, in characters
    size = 0
    try:
        records = READERS[corpus.reader](corpus, raw)
        for record in islice(records, SAMPLE):
            size += len(record.text.encode())
            for text, _ in pieces(record, spec.point, spec.window):
                lengths[record.split].append(len(text))
        is_whole = next(records, None) is None
        larger = 1.0 if is_whole else times_as_much(corpus, raw, size)
    except (InputError, OSError):
        return None
    counts = {split: len(of_split) for split, of_split in lengths.items()}
    total = sum(counts.values())
    if not total or larger is None:
        return None
    return Text(
        points={split: round(counts[split] * larger) for split in SPLITS},
        tokens=sum(map(sum, lengths.values())) / total / CHARACTERS,
        private=PRIVATE,
        lengths={
            split: np.ceil(np.array(of_split) / CHARACTERS).astype(np.int64)
            for split, of_split in lengths.items()
        },
    )


def times_as_much(corpus: CorpusSpec, raw: Path | None, size: int) -> float | None:
    """How many times as many documents as were looked at a corpus has; None where nobody knows.

    size: bytes of the text that was looked at, for files of another form than a user's own.
    """
    path = getattr(corpus, "path", None) or raw
    if path is None:
        return None
    if isinstance(corpus, TableSpec):
        return of_table(Path(path), reading_of(corpus))
    if isinstance(corpus, MessagesSpec) and is_table(corpus):
        return of_table(Path(path), Reading(encoding=corpus.encoding))
    if not Path(path).is_file():
        return None
    in_all = Path(path).stat().st_size
    is_of_lines = isinstance(corpus, LinesSpec | MessagesSpec)
    return max(1.0, in_all / (bytes_of_lines(Path(path), SAMPLE) if is_of_lines else size))


def of_table(path: Path, reading: Reading) -> float | None:
    """The same of a table: by the rows that Parquet counts, or by the lines of one file of text."""
    files = [piece.path for piece in table_files.pieces(path, reading)]
    if all(file.suffix.lower() == table_files.PARQUET for file in files):
        rows = sum(count for file in files for count, _ in table_files.group_sizes(file))
        return rows / SAMPLE
    if len(files) > 1 or not table_files.is_csv(files[0], reading):
        return None
    line, _ = next(islice(table_files.rows(files[0], reading, []), SAMPLE, None))
    return files[0].stat().st_size / bytes_of_lines(files[0], line - 1)


def bytes_of_lines(path: Path, count: int) -> int:
    """Length of the first lines of a file, ends included."""
    with path.open("rb") as lines:
        return sum(map(len, islice(lines, count)))
