"""Train one model: enumerate the method's steps, calibrate the noise to them, run them, write
weights and ledger.

The ledger is what really happened; it is priced by the certify stage, never here. A killed job
resumes from its checkpoint to the same weights and the same ledger. No tracker is imported: metrics
are JSON lines. Where several processes train together, the first of them holds the folder of the
checkpoint and writes all files.
"""

import hashlib
import io
import math
import sys
import time
from collections import Counter
from contextlib import nullcontext, redirect_stderr
from dataclasses import asdict, replace
from pathlib import Path

import torch
from tqdm import tqdm

import confide
from confide import models
from confide.data.partition_files import check_vocabulary, load_partition, within
from confide.dp.ledger import Ledger, settings_digest
from confide.errors import InputError
from confide.files.io import atomic, sha256, write_jsonl
from confide.output.escaping import terminal
from confide.provenance.code_hash import code_hash
from confide.provenance.terms import read_before
from confide.runtime.memory import keep_pages, peak_mb
from confide.runtime.parallel import ALONE, Group, joined
from confide.specs import TrainSpec
from confide.text.tokenizer import load as load_tokenizer
from confide.train import checkpoint as checkpoints
from confide.train import snapshots
from confide.train.evaluation import evaluate_points
from confide.train.job import Job, device_of, sizes_of
from confide.train.packing import pack
from confide.train.planning import Sizes, discrete, enumerate_steps, noise_for
from confide.train.regularisers import regulariser_of
from confide.types import SPLITS, Partition, Step

COSTS = (
    "seconds",
    "cpu_seconds",
    "peak_mb",
)  # of an epoch: what differs between runs that are alike


def train(
    spec: TrainSpec,
    *,
    original: Path,
    redacted: Path,
    tokenizer: Path,
    checkpoint: Path,
    model: Path,
    config: Path,
    metrics: Path,
    ledger: Path,
    epochs: Path,
    init: Path | None = None,
    init_ledger: Path | None = None,
) -> None:
    """Read a partition, write model.safetensors, config.json, metrics.jsonl, ledger.jsonl and the
    weights after every epoch.

    These are in `epochs` if the specification asks for them, else that file is empty of tensors.
    """
    inputs = [
        path for path in (original, redacted, tokenizer, init, init_ledger) if path is not None
    ]
    keep_pages()
    with (
        joined(device_of(spec.device)) as group,
        checkpoints.exclusive(checkpoint) if group.first else nullcontext(),
    ):
        group.wait()
        partition = load_partition(original, redacted)
        words = load_tokenizer(tokenizer)
        check_vocabulary(partition, words.vocab_size, original, redacted)
        if spec.domains is not None:
            partition = within(partition, spec.domains, redacted)
        packing = None
        if spec.pack is not None:
            partition, packing = pack(spec, partition, words.bos_id)
        check_authors(spec, partition)
        sizes = sizes_of(spec, partition)
        plan = enumerate_steps(spec, sizes)
        job = prepare(
            spec,
            partition,
            epochs=plan,
            sizes=sizes.of(plan),
            tokenizer=tokenizer,
            init=init,
            init_ledger=init_ledger,
            group=group,
        )
        if packing is not None:
            job.ledger.packed(**asdict(packing))
        fingerprint = fingerprint_of(spec, inputs)
        if (state := checkpoints.read(checkpoint, fingerprint)) is not None:
            job.restore(*state)
        run(job, plan, checkpoint, fingerprint)
        job.save(
            checkpoint, fingerprint
        )  # whoever saw one output of a job that is then killed gets no second noise to compare
        group.check(job.model.parameters(), job.ledger.head)
        if not group.first:
            return
        snapshots.join(checkpoint, len(plan) if spec.every_epoch else 0, epochs)
        models.save(job.model, model, config)
        job.ledger.end(weights=sha256(model))
        write_jsonl(metrics, job.metrics)
        with atomic(ledger) as temporary:
            temporary.write_text(job.ledger.dump())
        checkpoints.clear(checkpoint)
        snapshots.clear(
            checkpoint
        )  # last: while the checkpoint is there, a killed job needs them to finish


def check_authors(spec: TrainSpec, partition: Partition) -> None:
    """InputError where batches are to be of one author each, and no training point has one."""
    batching = spec.recipe.batching
    if batching == "author" and (partition.owner[partition.pool("all")] < 0).all():
        raise InputError(
            "needs authors, and the corpus names none", key="recipe.batching", value=batching
        )


def prepare(
    spec: TrainSpec,
    partition: Partition,
    *,
    epochs: list[list[Step]],
    sizes: Sizes,
    tokenizer: Path,
    init: Path | None,
    init_ledger: Path | None,
    group: Group = ALONE,
) -> Job:
    """Model at its start, noise multiplier for exactly these steps, ledger opened with what the
    start has seen.

    sizes: of what these steps draw from, and of nothing else.
    """
    torch.manual_seed(spec.seed)
    device = device_of(spec.device)
    words = load_tokenizer(tokenizer)
    network = models.build(spec.model, words.vocab_size, words.bos_id)
    if init is not None:
        models.load_weights(network, init)
    noisy = [step for steps in epochs for step in steps if step.noisy]
    updates = {True: len(noisy), False: sum(map(len, epochs)) - len(noisy)}
    if any(step.state == "published" for step in noisy):
        updates[False] = len(noisy)  # a step makes updates of both kinds
    kinds = {step.regulariser for steps in epochs for step in steps}
    width = network.head.weight.shape[1]
    with redirect_stderr(sys.stderr if group.first else io.StringIO()):
        regulariser = regulariser_of(kinds, spec, partition, width, device)
    if discrete(spec):
        sizes = replace(
            sizes, coordinates=sum(one.numel() for one in network.parameters() if one.requires_grad)
        )
    network = network.to(device).train()
    noise = noise_for(spec, epochs, sizes)
    job = Job(
        spec,
        partition=partition,
        model=network,
        noise_multiplier=noise,
        updates=updates,
        device=device,
        regulariser=regulariser,
        group=group,
    )
    open_ledger(job, sizes, tokenizer)
    if init is not None:
        check_start(init, init_ledger)
        job.ledger.init(spec.init, public=spec.init_public, ledger=init_ledger.read_text())
    return job


def check_start(init: Path, init_ledger: Path) -> None:
    """InputError unless the weights to start from are the ones that their ledger ends with."""
    ended = Ledger.from_file(init_ledger).events("end")
    if [line["weights"] for line in ended] != [sha256(init)]:
        raise InputError(
            "these weights are not the ones that the ledger beside them ends with", file=init
        )


def open_ledger(job: Job, sizes: Sizes, tokenizer: Path) -> None:
    """Write into the ledger whose history it is, what is read, and which products of earlier stages
    the model holds.
    """
    spec = job.spec
    noise = "system" if job.spec.noise_seed is None else "recorded"
    code = code_hash(Path(confide.__file__).parents[1], __name__)
    job.ledger.start(
        spec.run, settings=settings_digest(spec.model_dump_json()), code=code, noise=noise
    )
    job.ledger.data(
        spec.data.model_dump(), pools=sizes.pools, authors=sizes.authors, states=sizes.states
    )
    for made in read_before(spec.reads, tokenizer):
        job.ledger.read(**made)


def run(job: Job, epochs: list[list[Step]], checkpoint: Path, fingerprint: str) -> None:
    """Execute what is left of the stream; evaluate on valid points after every epoch."""
    position = 0
    quiet, total = (
        None if job.group.first else True,
        sum(map(len, epochs)),
    )  # None: no bar where nobody would see it move
    with tqdm(
        total=total, initial=job.done, desc=terminal(job.spec.run), unit="step", disable=quiet
    ) as bar:
        for number, steps in enumerate(epochs, 1):
            started = time.monotonic()
            worked = time.process_time()
            for step in steps:
                position += 1
                if position <= job.done:
                    continue
                job.run(step)
                bar.update()
                if job.done % job.spec.checkpoint_every == 0:
                    job.save(checkpoint, fingerprint)
            if len(job.metrics) < number:
                row = {"epoch": number, "step": job.done, "passes": passes(job, epochs[:number])}
                row["loss"] = job.mean_loss()  # which waits for the device
                spent = (
                    time.monotonic() - started,
                    time.process_time() - worked,
                    peak_mb(job.device),
                )
                if job.spec.every_epoch and job.group.first:
                    snapshots.write(checkpoint, number, job.model)
                job.metrics.append(row | epoch_metrics(job) | dict(zip(COSTS, spent, strict=True)))
                job.ledger.epoch(number)
                if job.group.first:
                    tqdm.write(terminal(progress(job, number, len(epochs))), file=sys.stderr)


def passes(job: Job, epochs: list[list[Step]]) -> float:
    """How often these steps read a training point, on average and in expectation: what methods of
    one budget have in common.
    """
    recipe = job.spec.recipe
    total = len(job.pools["all"])
    found = 0.0
    for step, count in Counter(step for steps in epochs for step in steps).items():
        read = len(job.pools[step.pool])
        size = recipe.noisy_batch_size if step.noisy else recipe.batch_size
        if step.unit == "author":
            read = sum(
                min(len(points), recipe.author_points or len(points))
                for points in job.authors[step.pool]
            )
        poisson = step.noisy and step.state != "published"
        found += (
            count
            * read
            / total
            * (job.sample_rate(step) if poisson else 1 / math.ceil(read / size))
        )
    return found


def progress(job: Job, number: int, epochs: int) -> str:
    """One line for the reader of a log, where no bar can move."""
    row = job.metrics[-1]
    quality = f", valid perplexity {row['valid_ppl']:.2f}" if row.get("valid_ppl") else ""
    silenced = (
        f", {count} gradients were not finite and left out"
        if (count := row.get("nonfinite_gradients"))
        else ""
    )
    return f"{job.spec.run}: epoch {number} of {epochs}, {job.done} updates{quality}, {row['seconds']:.1f} s{silenced}"


def epoch_metrics(job: Job) -> dict[str, float | None]:
    """What a line of metrics.jsonl says beside mean exact loss and time: validation perplexities on
    the original text, ...
    """
    row = {} if job.regulariser is None else job.regulariser.metrics()
    if job.clipper is not None:
        row["nonfinite_gradients"] = job.nonfinite()
    valid = (job.partition.split == SPLITS.index("valid")).nonzero()[0]
    if len(valid):
        found = evaluate_points(
            job.model, job.partition.original, job.partition.secret, valid, job.device
        )
        row |= {f"valid_{name}": value for name, value in found.items()}
    return row


def fingerprint_of(spec: TrainSpec, inputs: list[Path]) -> str:
    """What a checkpoint must have been made from to be continued."""
    parts = [spec.model_dump_json(), *(sha256(path) for path in inputs)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
