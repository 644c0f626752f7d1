"""`confide recommend [FOLDER]`: which policies and method fit a target epsilon, with prices.

FOLDER is where Snakemake was told to work (`-d`), after its target `prepare` at least. Only counts
and rates are read.
"""

import math
import sys
from collections.abc import Mapping
from contextlib import chdir
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import orjson

from confide.advisor.advice import (
    UNITS,
    Advice,
    Option,
    Policies,
    Wish,
    advise,
    at_most,
    cover,
)
from confide.advisor.page import plain
from confide.advisor.prices import PRICED, priced, with_wish
from confide.advisor.rates import BENCHMARKS
from confide.commands.init import command
from confide.config import jobs
from confide.config.jobs import Run
from confide.config.params import FILE, load
from confide.data.partition_files import load_partition
from confide.dp.accounting.calibration import check_ranges
from confide.dp.accounting.curves import Relation
from confide.errors import InputError
from confide.files.io import read_file, read_object
from confide.methods import UNTOUCHED
from confide.output.escaping import say
from confide.output.rounding import duration, rounded_up
from confide.provenance.terms import read_before, terms
from confide.report.results import unigram_like
from confide.report.tables.table import show, table_lines
from confide.runtime.plan import left
from confide.runtime.workflow_log import WorkflowJob
from confide.specs import NeighboursSpec, Params, RecallSpec
from confide.specs.files import CERTIFICATE, NeighboursFile, RecallFile
from confide.train.pools import share_of
from confide.types import Partition

FOR = {
    "all": "every {}",
    "if": "every {} where the conservative policy fires",
    "if author": "of every author the points where the conservative policy fires",
    "caught": "a secret that the policy catches",
}
Measured = Mapping[str, dict[str, Any]]  # of trained runs: what was measured on test text
QUALITY = (  # what is read of evaluate.json
    "accuracy",
    "accuracy_public",
    "bits_per_character",
    "ppl",
    "ppl_public",
    "ppl_unigram",
    "ppl_unigram_redacted",
)
STRICTER = " (everything)"  # a dataset with this conservative policy instead of its own


def recommend(
    folder: Path = Path(),
    *,
    epsilon: float = 3.0,
    unit: str = "secret",
    delta: float | None = None,
    relation: str = "replace_one",
) -> None:
    """Print what each method would certify, most first, and a recommendation with its reasons.

    folder: where params.yaml lies and the workflow works.
    epsilon: the most that a method may cost.
    unit: whom it is for: secret, record (a point) or author.
    delta: of (epsilon, delta); that of the runs if none is given.
    relation: replace_one, or of records and authors also add_or_remove.
    """
    if not folder.is_dir():
        raise InputError("there is no such folder", file=folder)
    if not (params_file := folder / FILE).is_file():
        remedy = "`confide init CORPUS` writes it; another folder: confide recommend FOLDER"
        raise InputError(f"is not there: {remedy}", file=params_file)
    if unit not in UNITS:
        raise InputError(f"is not one of {', '.join(UNITS)}", key="unit", value=unit)
    if unit == "secret" and relation != "replace_one":
        raise InputError(
            "does not fit secrets, whose text is replaced: replace_one",
            key="relation",
            value=relation,
        )
    call = command(folder)
    with chdir(folder):
        params = load()
        refuse_unprepared(call)
        runs = [
            run
            for run in jobs.runs_of(params, params.select).values()
            if protected(params, run) and run.gamma == 0
        ]
        delta = delta if delta is not None else delta_of(params, runs)
        check_ranges(epsilon, delta, 1.0, 1, relation)
        wish = Wish(unit, epsilon, delta, cast(Relation, relation))  # check_ranges knows it
        stale = [run for run in runs if is_stale(params, run)]
        measured = {
            run.run: metrics
            for run in runs
            if run not in stale and (metrics := evaluation_of(run)) is not None
        }
        all_policies = []
        options = []
        for dataset in dict.fromkeys(run.row.dataset for run in runs):
            own = [run for run in runs if run.row.dataset == dataset]
            policies, prices = look(params, own, measured, wish, call)
            all_policies += policies
            options += prices
        worth_lines = [
            *other_settings(stale, call),
            *worths(runs, measured),
        ]
        advice = advise(options, all_policies, wish)
        say(*page(all_policies, advice, wish, worth_lines))
        sys.stdout.flush()  # what follows may train a few steps
        if advice.best is not None:
            say(*time_of(params, runs, advice.best))


def refuse_unprepared(call: str) -> None:
    """InputError unless all that is looked at here was made of what is there now: params.yaml,
    corpora, reviews and word lists.

    call: what a user calls to run the workflow in this folder.
    """
    unmade = left("prepare")
    if unmade:
        raise InputError(
            "is not there yet, or of other text, settings or code than there are now: "
            f"`{call} prepare` makes it",
            file=Path(unmade[0].outputs[0]).resolve(),
        )


def protected(params: Params, run: Run) -> bool:
    return not params.datasets[run.row.dataset].public


def delta_of(params: Params, runs: list[Run]) -> float:
    """The one delta of the runs' budgets."""
    deltas = {params.privacy[run.row.privacy].delta for run in runs if run.row.privacy is not None}
    if len(deltas) != 1:
        raise InputError(f"the selected runs have {len(deltas)} of them: give one", key="delta")
    return deltas.pop()


def look(
    params: Params, runs: list[Run], measured: Measured, wish: Wish, call: str
) -> tuple[list[Policies], list[Option]]:
    """What was measured of one dataset's policies, and the price of every method on it.

    A method is priced with the recipe of the dataset's run of that method, else with that of a run
    that adds noise. Beside the dataset as it is stands the one with the conservative policy
    `everything`, of which nothing more needs to be measured. One with values in place of masks
    stands beside the same one without, and has the methods of its runs alone.
    """
    noisy = [run for run in runs if run.row.privacy is not None]
    usual = (noisy or runs)[0]
    run_by_method = {run.row.method: run for run in reversed(runs)}
    recall, neighbours, partition = read(params, usual, call)
    policies = policies_of(params, usual.row.dataset, recall, neighbours, partition)

    def price(method: str, name: str, partition: Partition, **change: bool) -> Option:
        run = run_by_method.get(method, usual)
        spec = with_wish(jobs.certification(params, run), method, usual.row.dedup, wish)
        data = spec.train.data.model_copy(update=change)
        spec = spec.model_copy(update={"train": spec.train.model_copy(update={"data": data})})
        return priced(
            spec, dataset=name, partition=partition, recall=recall, neighbours=neighbours, wish=wish
        )

    fill = params.datasets[policies.dataset].fill
    asked = [method for method in PRICED if not fill or method in run_by_method]
    options = [price(method, policies.dataset, partition) for method in asked]
    untouched = run_by_method.get(UNTOUCHED)
    start = None if untouched is None else measured.get(untouched.run)
    unigram = best_unigram(runs, measured)
    options = [
        option._replace(**trained(run_by_method[option.method], measured, start, unigram))
        if option.method in run_by_method
        else option
        for option in options
    ]
    if fill or policies.private == policies.points:
        return [policies], options
    safe = policies._replace(
        dataset=policies.dataset + STRICTER,
        conservative="everything",
        private=policies.points,
    )
    private = replace(partition, private=np.ones_like(partition.private))
    stricter = price("crt", safe.dataset, private, everything_private=True)
    kin = next((option for option in options if option.method == "crt" and option.trained), None)
    return [policies, safe], [*options, stricter._replace(kin=kin)]


def read(params: Params, run: Run, call: str) -> tuple[dict[str, Any], dict[str, Any], Partition]:
    """recall.json, neighbours.json and the partition of a run; InputError where params.yaml has
    changed since.

    call: what a user calls to run the workflow in this folder.
    """
    dataset = run.row.dataset
    vocabulary = Path("data/tokenizers", f"{params.datasets[dataset].tokenizer}.json")
    place = Path("data/work", run.partition)
    recall = Path("data/work", run.redaction, "recall.json")
    neighbours = place / "neighbours.json"
    for path in (recall, neighbours):
        if not path.is_file():
            raise InputError(
                f"is not there yet: `{call} prepare` measures the policies",
                file=path.resolve(),
            )
    counted = read_file(recall, RecallFile)
    rates = read_file(neighbours, NeighboursFile)
    tested = jobs.neighbours(params, dataset, run.gamma, run.row.dedup)
    check_terms(counted, jobs.recall(params, dataset, run.gamma), vocabulary, recall, call)
    check_terms(rates, tested, vocabulary, neighbours, call)
    return (
        counted,
        rates,
        load_partition(place / "original.safetensors", place / "redacted.safetensors"),
    )


def check_terms(
    measured: dict[str, Any],
    spec: RecallSpec | NeighboursSpec,
    tokenizer: Path,
    path: Path,
    call: str,
) -> None:
    """InputError unless measurements are of the text, the policies and the models of a
    specification.
    """
    message = (
        "is not what params.yaml says, so this was measured on something else: "
        f"`{call} prepare` measures again"
    )
    measured_terms = measured.get("terms") or {}
    expected_terms = terms(spec.text, spec.redact, getattr(spec, "partition", None))
    for key, value in expected_terms.items():
        if measured_terms.get(key) != value:
            raise InputError(message, file=path.resolve(), key=f"terms.{key}")
    if measured.get("reads") != list(read_before(spec.reads, tokenizer)):
        raise InputError(message, file=path.resolve(), key="reads")


def policies_of(
    params: Params, name: str, counted: dict[str, Any], rates: dict[str, Any], partition: Partition
) -> Policies:
    """What was measured of a dataset's policies."""
    dataset = params.datasets[name]
    train = partition.pool("all")
    return Policies(
        dataset=name,
        policy=dataset.policy,
        conservative=dataset.conservative,
        points=len(train),
        private=len(partition.pool("private")),
        marked=share_of(partition.original, train),
        secrets=rates["sampled"],
        gamma=rates["gamma"],
        gamma_upper=rates["gamma_upper"],
        delta2_upper=rates["delta2_upper"],
        most=counted["multiplicity_distinct"],
        label=rates.get("worst_label"),
        found=sum(of_label["found"] for of_label in counted["spans"].values()),
        not_hidden=not_hidden(counted, rates.get("worst_label")),
        unmarked=unmarked(counted),
    )


def unmarked(counted: dict[str, Any]) -> dict[str, int]:
    """What the policy finds under labels of which the corpus marks nothing: how often, by label."""
    return {
        label: spans["found"]
        for label, spans in counted["spans"].items()
        if spans["found"] and spans.get("precision") == 0
    }


def not_hidden(counted: dict[str, Any], label: str | None) -> float | None:
    """Share of the secrets of a label that the policy does not hide whole; None if unknown."""
    of_label = (counted.get("labels") or {}).get(label)
    if of_label is None or not of_label["secrets"]:
        return None
    return of_label["missed"] / of_label["secrets"]


def trained(
    run: Run,
    measured: Measured,
    start: dict[str, Any] | None,
    unigram: dict[str, Any] | None,
) -> dict[str, Any]:
    """What was measured of a trained run; nothing where it is not trained yet.

    start: what was measured of the model that it started from, where that was asked for.
    unigram: what was measured of a run whose text has the best unigram model of all.
    """
    folder = Path("results/runs") / run.run
    certificate = folder / CERTIFICATE
    metrics = measured.get(run.run)
    if metrics is None or unigram is None or not certificate.is_file():
        return {}
    epsilon = float(read_object(certificate, "headline")["headline"]["record_epsilon"])
    return {
        "trained": worth(metrics),
        "perplexity": metrics["ppl_public"],
        "unigram": unigram[unigram_like(unigram)],
        "untouched": None if start is None else start["ppl_public"],
        "spent": epsilon,
    }


def is_stale(params: Params, run: Run) -> bool:
    """Whether a run is certified of other settings than params.yaml has for it."""
    certificate = Path("results/runs") / run.run / CERTIFICATE
    if not certificate.is_file():
        return False
    asked = read_object(certificate, "asked")["asked"]
    return bool(asked != orjson.loads(jobs.certification(params, run).model_dump_json()))


def other_settings(stale: list[Run], call: str) -> list[str]:
    """A line for each of these runs, and an empty one; none where there are none."""
    lines = [
        f"{run.run} was made with other settings than params.yaml has, and does not count here: "
        f"`{call}` makes it again."
        for run in stale
    ]
    return [*lines, ""] if lines else []


def best_unigram(runs: list[Run], measured: Measured) -> dict[str, Any] | None:
    """What was measured of the run, of those on one dataset, whose text has the best unigram model.

    Later copies are masked in the text of some: words that stand often then seem rare, and such a
    unigram model is easy to beat. None where nothing was measured yet.
    """
    there = [measured[run.run] for run in runs if run.run in measured]
    return min(there, key=lambda metrics: metrics[unigram_like(metrics)] or math.inf, default=None)


def evaluation_of(run: Run) -> dict[str, Any] | None:
    """What was measured of a run on test text; None where nothing was yet."""
    file = Path("results/runs") / run.run / "evaluate.json"
    return read_object(file, *QUALITY) if file.is_file() else None


def worth(metrics: dict[str, Any]) -> str:
    """What a model is worth, in a user's words."""
    guessed = f"{metrics['accuracy_public']:.0%} of the tokens outside secrets guessed right"
    if metrics["bits_per_character"] is None:
        return guessed
    return f"{guessed}, {metrics['bits_per_character']:.2f} bits per character"


def worths(runs: list[Run], measured: Measured) -> list[str]:
    """A table of what trained models are worth beside what takes no training; maybe no line."""
    rows: dict[tuple[str, str], list[str]] = {}
    for dataset in dict.fromkeys(run.row.dataset for run in runs):
        own = [run for run in runs if run.row.dataset == dataset]
        unigram = best_unigram(own, measured)
        if unigram is None:
            continue
        for name, cells in unigrams_of(unigram).items():
            rows[dataset, name] = cells
        for run in own:
            metrics = measured.get(run.run)
            if metrics is not None:
                rows[dataset, run.row.method] = numbers_of(metrics)
    if not rows:
        return []
    head = ["dataset", "model", "tokens guessed right", "outside secrets", "bits per character"]
    head.append("perplexity outside secrets")
    lines = table_lines(head, ([*names, *cells] for names, cells in rows.items()))
    return ["What models are worth, on test text:", "", *lines, ""]


def numbers_of(metrics: dict[str, Any]) -> list[str]:
    """Cells of a model in the table of what models are worth."""
    shares = [metrics["accuracy"], metrics["accuracy_public"]]
    others = [metrics["bits_per_character"], metrics["ppl_public"]]
    cells = ["–" if share is None else f"{share:.0%}" for share in shares]
    return [*cells, *("–" if number is None else show(number) for number in others)]


def unigrams_of(metrics: dict[str, Any]) -> dict[str, list[str]]:
    """The same of models that know how often each token stands, and nothing else: of the text, and
    of redacted text where secrets are known, by the tokens outside these.

    One needs so many more bits as its perplexity has.
    """
    bits = "–"
    if metrics["bits_per_character"] is not None and metrics["ppl"] > 1:
        larger = math.log(metrics["ppl_unigram"]) / math.log(metrics["ppl"])
        bits = show(metrics["bits_per_character"] * larger)
    outside = show(metrics[unigram_like(metrics)])
    if unigram_like(metrics) == "ppl_unigram":
        return {"unigram": ["–", "–", bits, outside]}
    return {
        "unigram": ["–", "–", bits, "–"],
        "unigram of redacted text": ["–", "–", "–", outside],
    }


def time_of(params: Params, runs: list[Run], best: Option) -> list[str]:
    """How long the training takes that is recommended; no line where no row of params.yaml makes
    one, or nobody knows.
    """
    from confide.advisor.forecast import Forecast  # which loads torch

    names = (best.dataset.removesuffix(STRICTER), best.method)
    run = next((run for run in runs if (run.row.dataset, run.row.method) == names), None)
    if run is None:
        return []
    measured = str(BENCHMARKS / f"train/{run.run}.tsv")
    job = WorkflowJob(rule="train", benchmark=measured, wildcards={"run": run.run})
    cost = Forecast(params).cost(job)
    if not cost.is_known:
        return []
    time = duration(cost.seconds)
    other = ", with its own conservative policy," if best.dataset.endswith(STRICTER) else ""
    how = f"Training {run.name}{other} takes about {time} on this machine, by {cost.source}."
    return [f"- {how} `confide forecast` says what all takes."]


def page(policies: list[Policies], advice: Advice, wish: Wish, worth_lines: list[str]) -> list[str]:
    """Everything, in Markdown. worth_lines: the table of what models are worth."""
    unit = {"secret": "one secret", "record": "one point", "author": "all points of one author"}[
        wish.unit
    ]
    relation = wish.relation.replace("_", "-")
    lines = [f"Wanted: ε ≤ {wish.epsilon:g} at δ = {wish.delta:g} for {unit} ({relation}).", ""]
    lines += [*map(described, policies), "", *table(advice.ranked, wish), "", *worth_lines]
    head = (
        f"Recommended: {advice.best.method} on {advice.best.dataset}."
        if advice.best
        else "Nothing to recommend."
    )
    return [*lines, head, *(f"- {reason}" for reason in advice.reasons)]


def described(policies: Policies) -> str:
    """A dataset's policies and their measurement, in a sentence each."""
    marked = "" if policies.marked is None else f", {policies.marked:.1%} of their tokens redacted"
    pools = f"{policies.points:,} training points, {policies.private:,} private{marked}"
    names = f"policy {policies.policy}, conservative policy {policies.conservative}"
    head = f"{policies.dataset}: {names}; {pools}"
    if policies.found == 0:
        head += f". WARNING: policy {policies.policy} finds nothing in this text: does it fit it?"
    if policies.gamma_upper is None:
        return f"{head}. What the policies miss is {policies.unknown}."
    label = plain(policies.label or "of one label")
    if policies.unknown:
        return f"{head}. How many secrets the policy misses is {policies.unknown} (worst: {label})."
    if policies.gamma is None:
        bound = f"{at_most(policies.gamma_upper)} of {policies.of_which}"
        return f"{head}. The policy misses at most {bound} (95 %)."
    misses = (
        f"misses {policies.gamma:.2%} of the secrets that it finds worst ({label}; "
        f"{policies.secrets:,} of all labels tested), "
        f"with 95 % confidence at most {at_most(policies.gamma_upper)} of any"
    )
    if policies.unmarked:
        kinds = (f"{plain(label)} ({found:,})" for label, found in policies.unmarked.items())
        head += (
            f". It finds {', '.join(kinds)} where the corpus marks nothing: what it misses of such "
            "secrets is unknown, and in no number here"
        )
    if policies.not_hidden == 0 and policies.gamma > 0:
        misses += "; it hides all of these whole, and some leave a trace"
    public = (
        f"; at most {at_most(policies.delta2_upper)} show in points read without noise"
        if policies.private < policies.points
        else ""
    )
    group = (
        f" One that stands in several texts is a group: the most frequent in {policies.most:,}."
        if (policies.most or 0) > 1
        else ""
    )
    return f"{head}. The policy {misses}{public}.{group}"


def table(options: list[Option], wish: Wish) -> list[str]:
    """The options in order; infinite where nothing is certified."""
    whose = {"author": "ε of an author"}.get(wish.unit, "ε of a point")
    head = [
        "dataset",
        "method",
        "certified for",
        "ε if caught",
        "ε if missed",
        "ε of a random secret",
        whose,
        "noise σ",
    ]
    head.append("trained at ε")
    return table_lines(head, (cells(option, wish) for option in options))


def cells(option: Option, wish: Wish) -> list[str]:
    if option.problem is not None:
        return [option.dataset, option.method, f"cannot run: {option.problem}", *["–"] * 6]
    kind = cover(option, wish)
    of_unit = FOR.get(f"{kind} {wish.unit}", FOR.get(kind, "nobody"))
    covered = of_unit.format(wish.unit)
    prices = [option.caught, option.missed, option.random, option.record]
    numbers = ["–" if value is None else rounded_up(value, 3) for value in prices]
    numbers.append("–" if option.noise is None else show(option.noise))
    spent = "not yet" if option.trained is None else rounded_up(option.spent, 3)
    warning = " ⚠ worse than without training" if option.worse else ""
    return [option.dataset, option.method, covered, *numbers, f"{spent}{warning}"]
