"""Train one model: enumerate the method's steps, calibrate the noise to them, run them, write
weights and ledger.

The ledger is what really happened; it is priced by the certify stage, never here. A killed job
resumes from its checkpoint to the same weights and the same ledger. No tracker is imported: metrics
are JSON lines. Where several processes train together, the first of them holds the folder of the
checkpoint and writes all files.
"""

import hashlib
import io
import json
import sys
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
from confide.files.io import sha256, write_jsonl, write_text
from confide.files.jsons import JsonObject
from confide.models.recompute import recompute
from confide.models.sharding import Shards
from confide.output.escaping import terminal, warn
from confide.provenance.code_hash import code_hash
from confide.provenance.terms import read_before
from confide.runtime.devices import device_of, has_bfloat16
from confide.runtime.memory import advised, free, keep_pages
from confide.runtime.parallel import Group, joined
from confide.specs import TrainSpec
from confide.text.tokenizer import load as load_tokenizer
from confide.train import checkpoint as checkpoints
from confide.train import snapshots
from confide.train.evaluation import evaluate_points
from confide.train.forecast import amount, announce, savings
from confide.train.job import Job
from confide.train.metrics import Watch, passes, progress
from confide.train.packing import pack
from confide.train.planning import (
    Epochs,
    Sizes,
    discrete,
    enumerate_steps,
    noise_for,
    updates_of_steps,
)
from confide.train.regularisers import regulariser_of
from confide.train.sizes import sizes_of
from confide.types import SPLITS, Partition


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
    InputError for weights to start from that the specification does not name, or that have no
    ledger.
    """
    if len({part is None for part in (spec.init, init, init_ledger)}) > 1:
        message = "a start has a name, weights and a ledger, or training has no start"
        raise InputError(message, key="init", value=spec.init)
    inputs = [original, redacted, tokenizer, init, init_ledger]
    outputs = [model, config, metrics, ledger, epochs]
    keep_pages()
    with (
        joined(device_of(spec.device)) as group,
        checkpoints.exclusive(checkpoint) if group.first else nullcontext(False) as waited,
        advised(savings(spec)),
    ):
        group.wait()
        partition = load_partition(original, redacted)
        loaded_tokenizer = load_tokenizer(tokenizer)
        check_vocabulary(partition, loaded_tokenizer.vocab_size, original, redacted)
        if spec.domains is not None:
            partition = within(partition, spec.domains, redacted)
        partition, packing = pack(spec, partition, loaded_tokenizer.bos_id)
        check_authors(spec, partition)
        check_learned(partition)
        sizes = sizes_of(spec, partition)
        plan = enumerate_steps(spec, sizes)
        reads = list(read_before(spec.reads, tokenizer))
        fingerprint = fingerprint_of(spec, inputs, reads)
        group.check_files(fingerprint)
        this = f"{fingerprint} {training_code()}"
        # a second training has other noise: both models together say more than the ledger of one
        if group.same(waited and checkpoints.is_finished(checkpoint, this, outputs)):
            warn(f"{spec.run}: was trained meanwhile by the other job, whose files are kept")
            return
        if group.first:
            checkpoints.begin(checkpoint)
        saved = checkpoints.read(checkpoint, fingerprint)
        job = prepare(
            spec,
            partition,
            epochs=plan,
            sizes=sizes.of(plan),
            tokenizer=tokenizer,
            reads=reads,
            init=init,
            init_ledger=init_ledger,
            group=group,
            noise_multiplier=None if saved is None else saved["job"]["noise_multiplier"],
        )
        if packing is not None:
            job.history.ledger.packed(**asdict(packing))
        if saved is not None:
            check_code(job, saved, checkpoint)
            job.restore(saved)
            if spec.every_epoch and group.first:
                snapshots.check(checkpoint, len(job.metrics.rows))
        announce(job, plan)
        warn_of_delta(job, plan)
        warn_of_bfloat16(job)
        run(job, plan, checkpoint, fingerprint)
        # whoever saw one output of a job that is then killed gets no second noise to compare
        job.save(checkpoint, fingerprint)
        job.check()
        stored = models.weights_of(job.model)
        if not group.first:
            return
        snapshots.join(checkpoint, len(plan) if spec.every_epoch else 0, epochs)
        models.save(job.model, model, config, stored)
        job.history.ledger.end(weights=sha256(model))
        write_jsonl(metrics, job.metrics.rows)
        write_text(ledger, job.history.ledger.dump())
        checkpoints.finish(checkpoint, this, outputs)
        # last: while the checkpoint is there, a killed job needs its epochs' weights to finish
        checkpoints.clear(checkpoint)
        snapshots.clear(checkpoint)


def warn_of_delta(job: Job, epochs: Epochs) -> None:
    """Say in one line where a budget's delta allows to give one unit away whole."""
    units = {job.batches.units(step) for steps in epochs for step in set(steps) if step.noisy}
    privacy = job.spec.privacy
    if privacy is None or not units or not job.group.first or privacy.delta * max(units) < 1:
        return
    many = f"1 / {max(units):,}, where that is the number of its {privacy.unit}s"
    advice = f"take at most {10.0 ** -len(str(max(units))):g}"
    warn(f"{job.spec.run}: privacy.delta {privacy.delta:g} is no less than {many}: {advice}")


def warn_of_bfloat16(job: Job) -> None:
    """Say in one line where a job computes in other numbers than its parameters ask for."""
    if job.spec.arithmetic == "float32" or has_bfloat16(job.device) or not job.group.first:
        return
    message = "this processor has no products of bfloat16: computed in float32"
    warn(f"{job.spec.run}: {message}, which takes more memory")


def run(job: Job, epochs: Epochs, checkpoint: Path, fingerprint: str) -> None:
    """Execute what is left of the stream; evaluate on valid points after every epoch."""
    before = 0  # steps of earlier epochs
    with tqdm(
        total=sum(map(len, epochs)),
        initial=job.done,
        desc=terminal(job.spec.run),
        unit="step",
        disable=None if job.group.first else True,  # None: no bar where nobody would see it move
    ) as bar:
        for number, steps in enumerate(epochs, 1):
            watch = Watch(job.device)
            for step in steps[max(0, job.done - before) :]:
                job.run(step)
                bar.update()
                if job.done % job.spec.checkpoint_every == 0:
                    job.save(checkpoint, fingerprint)
            before += len(steps)
            if number > len(job.metrics.rows):
                end_epoch(job, epochs[:number], watch)
                stored = models.weights_of(job.model) if job.spec.every_epoch else None
                if job.group.first:
                    if job.spec.every_epoch:
                        snapshots.write(checkpoint, number, job.model, stored)
                    line = f"{job.spec.run}: {progress(job.metrics.rows[-1], len(epochs))}"
                    tqdm.write(terminal(line), file=sys.stderr)


def end_epoch(job: Job, epochs: Epochs, watch: Watch) -> None:
    """A row of metrics, and a mark in the ledger, for the last of these epochs."""
    row: dict[str, float | None] = {
        "epoch": len(epochs),
        "step": job.done,
        "passes": passes(job.batches, epochs),
        "loss": job.metrics.mean_loss(done=job.done, lr=job.spec.recipe.lr),
    }
    costs = watch.costs()
    job.metrics.rows.append(row | quality(job) | costs)
    job.history.ledger.epoch(len(epochs))


def quality(job: Job) -> dict[str, float | None]:
    """What a regulariser and clipping counted, and perplexities on valid points, original text."""
    row = {} if job.regulariser is None else job.regulariser.metrics()
    if job.gradients.clipper is not None:
        row["nonfinite_gradients"] = job.gradients.nonfinite()
    partition = job.batches.partition
    valid = (partition.split == SPLITS.index("valid")).nonzero()[0]
    if len(valid):
        perplexities = evaluate_points(
            job.model, partition.original, partition.secret, valid, job.device
        )
        row |= {f"valid_{name}": value for name, value in perplexities.items()}
    return row


def check_authors(spec: TrainSpec, partition: Partition) -> None:
    """InputError where batches are to be of one author each, and no training point has one."""
    batching = spec.recipe.batching
    if batching == "author" and (partition.owner[partition.pool("all")] < 0).all():
        raise InputError(
            "needs authors, and the corpus names none", key="recipe.batching", value=batching
        )


def check_learned(partition: Partition) -> None:
    """InputError where assistants' turns alone are learned, and no held-out text has one.

    Training texts may have none but canaries, which are learned whole.
    """
    view = partition.original
    held_out = (partition.split != SPLITS.index("train")).nonzero()[0]
    if view.learned is None or not len(held_out):
        return
    if not any(view.scored(point).any() for point in held_out):
        raise InputError(
            "finds no assistant's turn in any valid or test text: messages of the role "
            '"assistant" alone are learned',
            key="learn",
        )


def prepare(
    spec: TrainSpec,
    partition: Partition,
    *,
    epochs: Epochs,
    sizes: Sizes,
    tokenizer: Path,
    reads: list[JsonObject],
    init: Path | None,
    init_ledger: Path | None,
    group: Group,
    noise_multiplier: float | None,
) -> Job:
    """A job at its start: its model, its noise, and a ledger that says what the start has seen.

    sizes: of what these steps draw from, and of nothing else. reads: what was read before, as lines
    of the ledger. noise_multiplier: of a job that goes on; None: for exactly these steps.
    """
    device = device_of(spec.device)
    loaded_tokenizer = load_tokenizer(tokenizer)
    needed = models.weight_bytes(spec.model, loaded_tokenizer.vocab_size, loaded_tokenizer.bos_id)
    check_fits(needed, free("cpu"), spec)
    torch.manual_seed(spec.seed)
    network = models.build(spec.model, loaded_tokenizer.vocab_size, loaded_tokenizer.bos_id)
    if init is not None:
        models.load_weights(network, init)
    if not has_bfloat16(device):
        network.float()  # frozen weights: these values are multiplied tens of times faster
    if spec.recipe.gradient_checkpointing or spec.recipe.shard:
        recompute(network)
    if spec.recipe.shard and group.size > 1:
        network.shards = Shards(network, group)
    else:
        check_fits(sum(weight.nbytes for weight in network.parameters()), free(device), spec)
    steps = [step for steps in epochs for step in steps]
    with redirect_stderr(sys.stderr if group.first else io.StringIO()):
        kinds = {step.regulariser for step in steps}
        width = network.head.weight.shape[1]
        regulariser = regulariser_of(kinds, spec, partition, width, device)
    if discrete(spec):
        coordinates = sum(parameter.numel() for parameter in models.trainable(network))
        sizes = replace(sizes, coordinates=coordinates)
    if noise_multiplier is None:
        noise_multiplier = noise_for(spec, epochs, sizes)
    job = Job(
        spec,
        partition,
        network.to(device).train(),
        noise_multiplier=noise_multiplier,
        updates=updates_of_steps(steps),
        device=device,
        regulariser=regulariser,
        group=group,
    )
    open_ledger(job, sizes, reads)
    if init is not None and init_ledger is not None:
        check_start(init, init_ledger)
        text = init_ledger.read_text(encoding="utf-8")
        job.history.ledger.init(spec.init, public=spec.init_public, ledger=text)
    return job


def check_fits(weights: int, available: int | None, spec: TrainSpec) -> None:
    """InputError where a model's weights alone, so many bytes, are more than there is."""
    if available is not None and weights > available:
        of_model = f"a model of kind {spec.model.kind}"
        message = f"{of_model} has weights of {amount(weights)}"
        raise InputError(f"{message}, and {amount(available)} are free", key="model")


def check_start(init: Path, init_ledger: Path) -> None:
    """InputError unless the weights to start from are the ones that their ledger ends with."""
    ended = Ledger.from_file(init_ledger).events("end")
    if [line["weights"] for line in ended] != [sha256(init)]:
        raise InputError(
            "these weights are not the ones that the ledger beside them ends with", file=init
        )


def check_code(job: Job, saved: dict[str, checkpoints.State], folder: Path) -> None:
    """InputError where other code wrote the checkpoint: a ledger names one for all its updates."""
    before = Ledger.load(saved["history"]["ledger"])
    codes = [ledger.events("start")[0]["code"] for ledger in (before, job.history.ledger)]
    if codes[0] != codes[1]:
        raise InputError(
            f"was written by another version of the training code ({codes[0]}, this is {codes[1]}):"
            " go on with that one, or delete the file to start over",
            file=folder / checkpoints.NAME,
        )


def training_code() -> str:
    """Digest of the code that trains."""
    return code_hash(Path(confide.__file__).parents[1], __name__)


def open_ledger(job: Job, sizes: Sizes, reads: list[JsonObject]) -> None:
    """Write into the ledger whose history it is, what is read, and which products of earlier stages
    the model holds.
    """
    spec = job.spec
    ledger = job.history.ledger
    ledger.start(
        spec.run,
        settings=settings_digest(spec.model_dump_json()),
        code=training_code(),
        noise="system" if spec.noise_seed is None else "recorded",
        arithmetic=spec.arithmetic,
    )
    terms = spec.data.model_dump()
    ledger.data(terms, pools=sizes.pools, authors=sizes.authors, states=sizes.states)
    for read in reads:
        ledger.read(**read)


def fingerprint_of(spec: TrainSpec, inputs: list[Path | None], reads: list[JsonObject]) -> str:
    """What a checkpoint must have been made from to be continued; reads: lines of the ledger."""
    parts = [spec.model_dump_json(), *(sha256(path) for path in inputs if path is not None)]
    parts.append(json.dumps(reads))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
