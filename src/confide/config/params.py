"""params.yaml: read once, by the workflow, and checked as a whole before any job is planned.

It may include files of further definitions (`include`). Further files may be laid over all that,
and values from the command line over these. Nobody else reads these files first: Snakemake's own
reader hands a file that asks for it to a template engine, which runs any Python.

Errors are one line: file, line, key, value and what is wrong. Beyond the types of `specs.Params`,
every name must be defined where it is used, and rows that could not run (no budget where a method
adds noise, a warm start of another kind) are refused.
"""

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from pydantic import ValidationError

from confide.config import jobs
from confide.config.layers import Layer, Problem, merged, read_layers, refused, typed
from confide.config.same_text import same_text
from confide.config.yaml_lines import KeyPath, compose
from confide.errors import InputError
from confide.methods import METHODS
from confide.methods.regularised import RegularisedOptions
from confide.output.escaping import warn
from confide.report.published import sources
from confide.specs import Params, ParamsFile
from confide.text.planted import NEW_TOKEN
from confide.train.packing import problems as unpackable
from confide.train.planning import AUTHORS_DEDUPLICATED, CHUNKS_DEDUPLICATED

FILE = Path("params.yaml")
SCHEMA = Path("workflow/schemas/params.schema.yaml")
FIGURES = (
    *(
        "tradeoff",
        "utility",
        "exposure",
        "membership",
        "group_membership",
        "amplification",
        "frontier",
        "pareto",
        "roc",
    ),
    *("learning", "trajectory", "private_ppl", "leak", "domain_epsilon", "domain_roc", "schedules"),
    *("author_exposure", "tab", "subgroups", "train_time", "author_inference"),
)
MADE = ("data/work", "data/tokenizers", "models")  # folders of what the workflow makes
NAME = re.compile(
    r"[A-Za-z][A-Za-z0-9_]*"
)  # of every definition: names become folders, and "-" and "/" join them there
TAKEN = (jobs.CERTIFICATE, jobs.EVALUATION, jobs.TRAJECTORY)  # files that stand beside an attack's
SEVERAL = ("leak", "domain_lira")  # kinds of which a row may have several: each names its domains
FINAL = {
    "lira": "needs shadow models",
    "gradients": "repeats all of a run's updates",
}  # attacks that look at no epoch
CANARIES = {
    "exposure": "digits",
    "sequence_exposure": "words",
    "tab": "words",
}  # what kinds of attacks rank
REFERENCES = (  # block, field, block that must define the value
    ("tokenizers", "corpus", "corpora"),
    ("pipelines", "entities", "corpora"),
    ("domain_policies", "corpus", "corpora"),
    ("datasets", "corpus", "corpora"),
    ("datasets", "canaries", "canaries"),
    ("datasets", "policy", "policies"),
    ("datasets", "conservative", "policies"),
    ("datasets", "tokenizer", "tokenizers"),
    ("runs", "dataset", "datasets"),
    ("runs", "model", "models"),
    ("runs", "recipe", "recipes"),
    ("runs", "privacy", "privacy"),
    ("runs", "init", "runs"),
    ("runs", "attacks", "attacks"),
    ("runs", "trajectory", "attacks"),
    ("attacks", "reference", "runs"),
    ("attacks", "judges", "policies"),
    ("attacks", "shadows", "shadows"),
    ("studies", "runs", "runs"),
)


class Composed(NamedTuple):
    """Parameters of several files, laid over each other."""

    values: dict[str, Any]  # plain
    params: Params  # the same, checked
    files: list[Path]  # that they come from, included ones among them


def load(file: Path = FILE) -> Params:
    """Read and check a file and those that it includes; InputError names the first problem."""
    return check_layers(read_layers(file))


def load_layers(files: Sequence[Path], given: Mapping[str, Any]) -> Composed:
    """Files, each laid over those before it, and over all of them the values that the command line
    gives.
    """
    layers = [layer for file in files for layer in read_layers(file)]
    sources = [Path(layer.source) for layer in layers]
    if given:
        layers.append(Layer("--config", None, dict(given)))
    return Composed(values=merged(layers), params=check_layers(layers), files=sources)


def check(config: Any, file: Path | None = FILE) -> Params:
    """Check an already parsed configuration; `file` is where it was read from, for the line
    numbers.
    """
    known_lines = (
        [Layer(file, compose(file)[0], config)] if file is not None and file.is_file() else []
    )
    return validated(config, known_lines)


def check_layers(layers: Sequence[Layer]) -> Params:
    """Check layers as a whole; InputError names the first problem and the layer that it is in."""
    return validated(merged(layers), layers)


def validated(config: Any, layers: Sequence[Layer]) -> Params:
    """The checked parameters."""
    try:
        params = Params.model_validate(config)
    except ValidationError as error:
        raise refused(typed(error), layers) from None
    for find in CHECKS:
        for problem in find(params):
            raise refused(problem, layers)
    return params


def names(params: Params) -> Iterator[Problem]:
    """Definitions whose name cannot be part of a file name."""
    for block, definitions in params:
        for name in definitions if isinstance(definitions, dict) else ():
            if not NAME.fullmatch(name):
                yield Problem(
                    (block, name), None, "a name is letters, digits and _, and begins with a letter"
                )
            if block == "attacks" and name in TAKEN:
                yield Problem((block, name), None, "this name is taken")


def references(params: Params) -> Iterator[Problem]:
    """Names that are used and not defined."""
    chosen = (("select", params.select), ("papers", params.papers))
    used = [
        ((block, index), study, "studies")
        for block, listed in chosen
        for index, study in enumerate(listed)
    ]
    for block, field, target in REFERENCES:
        for name, spec in getattr(params, block).items():
            value = getattr(spec, field, None)
            if isinstance(value, dict):
                used += [((block, name, field, key), item, target) for key, item in value.items()]
            elif isinstance(value, list):
                used += [
                    ((block, name, field, index), item, target) for index, item in enumerate(value)
                ]
            elif value is not None:
                used.append(((block, name, field), value, target))
    for path, value, target in used:
        if value not in getattr(params, target):
            yield Problem(
                path,
                value,
                f"is not defined under {target}: {', '.join(getattr(params, target)) or 'nothing is'}",
            )


def definitions(params: Params) -> Iterator[Problem]:
    """Definitions that cannot be right whoever uses them."""
    for name, canary in params.canaries.items():
        for path, one in (
            ((), canary),
            (("game",), canary.game),
            (("inclusion",), canary.inclusion),
        ):
            template = getattr(one, "template", None)  # canaries of words have none
            slot, known = (r"\{(?:\d+|token)\}", ", or {token}") if path else (r"\{\d+\}", "")
            if template is not None and len(re.findall(slot, template)) != 1:
                where = ("canaries", name, *path, "template")
                yield Problem(
                    where, template, f"expected exactly one slot of digits such as {{6}}{known}"
                )
            elif template is not None and NEW_TOKEN.search(template):
                where = ("canaries", name, *path, "template")
                yield Problem(where, template, "holds a character that stands for a new token")
    for name, tokenizer in params.tokenizers.items():
        unused = "source" if tokenizer.kind == "bpe" else "corpus"
        if getattr(tokenizer, unused) is not None:
            message = f"has no meaning for kind {tokenizer.kind}"
            yield Problem(("tokenizers", name, unused), getattr(tokenizer, unused), message)
        if tokenizer.new_tokens and tokenizer.kind != "bpe":
            message = f"has no meaning for kind {tokenizer.kind}: its vocabulary is as published"
            yield Problem(("tokenizers", name, "new_tokens"), tokenizer.new_tokens, message)
        needed = "corpus" if tokenizer.kind == "bpe" else "source"
        if getattr(tokenizer, needed) is None:
            yield Problem(
                ("tokenizers", name, needed), None, f"is missing: kind {tokenizer.kind} needs it"
            )
    for name, pipeline in params.pipelines.items():
        if pipeline.treebank is None and pipeline.entities is None:
            yield Problem(("pipelines", name), None, "needs a treebank, entities, or both")
    for name, policy in params.policies.items():
        fitted = (
            params.domain_policies.get(policy.model)
            if policy.kind in ("keyword", "classifier")
            else None
        )
        if fitted is not None and fitted.fit.kind != policy.kind:
            yield Problem(
                ("policies", name, "model"), policy.model, f"is of kind {fitted.fit.kind}"
            )
    for name, attack in params.attacks.items():
        for key in ("label", "limit", "seed") if attack.kind == "lira" else ():
            theirs = getattr(params.shadows[attack.shadows], key)
            if getattr(attack, key) != theirs:
                yield Problem(
                    ("attacks", name, key),
                    getattr(attack, key),
                    f"shadows.{attack.shadows} has {theirs!r}",
                )
    for name, privacy in params.privacy.items():
        if (privacy.epsilon is None) == (privacy.noise_multiplier is None):
            yield Problem(("privacy", name), None, "needs either epsilon or noise_multiplier")


def corpora(params: Params) -> Iterator[Problem]:
    """Files of the user's that a selected study reads and that are not there."""
    for run in jobs.runs_of(params, params.select).values():
        name = params.datasets[run.row.dataset].corpus
        path = getattr(params.corpora[name], "path", None)
        if path is not None and not Path(path).exists():
            yield Problem(("corpora", name, "path"), path, "there is no such file")


def demands(params: Params, name: str) -> Iterator[Problem]:
    """What the method of a row needs and the row does not have."""
    row = params.runs[name]
    recipe = params.recipes[row.recipe]
    method = METHODS[row.method]
    steps = method.kinds(recipe)
    tells_apart = any(step.tokens in ("public", "private") for step in steps)
    noised_states = {step.state for step in steps} & {"noise", "published"}
    if method.needs_domains and row.domains is None:
        yield Problem(("runs", name, "domains"), None, f"are missing: {row.method} needs some")
    elif row.privacy is None and any(step.noisy for step in steps):
        yield Problem(("runs", name, "privacy"), None, f"is missing: {row.method} adds noise")
    elif (
        any(step.regulariser != "none" for step in steps)
        and RegularisedOptions.of(recipe).regulariser_weight is None
    ):
        yield Problem(
            ("runs", name, "recipe"),
            row.recipe,
            f"has no regulariser_weight, which {row.method} needs",
        )
    elif tells_apart and params.models[row.model].kind != "lstm":
        yield Problem(
            ("runs", name, "model"), row.model, f"is no recurrent model, which {row.method} needs"
        )
    elif (
        tells_apart
        and "published" in noised_states
        and params.privacy[row.privacy].noise_multiplier is None
    ):
        yield Problem(
            ("runs", name, "privacy"),
            row.privacy,
            "has no noise_multiplier, which published training needs",
        )
    elif tells_apart and noised_states and params.privacy[row.privacy].discrete:
        yield Problem(
            ("runs", name, "privacy"),
            row.privacy,
            f"has discrete noise, and private_state: {min(noised_states)} adds another",
        )
    elif tells_apart and params.privacy[row.privacy].unit == "author":
        yield Problem(
            ("runs", name, "privacy"),
            row.privacy,
            f"protects authors, but {row.method} tells tokens apart",
        )


def publicity(params: Params) -> Iterator[Problem]:
    """Text that one dataset declares public and another one does not."""
    declared: dict[str, tuple[str, bool]] = {}
    for name, dataset in params.datasets.items():
        text = getattr(params.corpora[dataset.corpus], "path", None)
        place = dataset.corpus if text is None else os.path.realpath(text)
        other, public = declared.setdefault(place, (name, dataset.public))
        if public != dataset.public:
            yield Problem(
                ("datasets", name, "public"),
                dataset.public,
                f"the dataset {other} of the same text says {public}",
            )


def one_text_twice(params: Params) -> Iterator[Problem]:
    """Runs that protect a text and, under another name, read it as public."""
    for run in jobs.runs_of(params, params.studies).values():
        for name in jobs.protected(params, run):
            for other in jobs.taken_for_public(params, run):
                if same_text(params.corpora[name], params.corpora[other]):
                    message = f"protects the corpus {name}, and the corpus {other}, which it reads as public, may hold its text"
                    yield Problem(("runs", run.name, "dataset"), run.row.dataset, message)


def declared(params: Params) -> Iterator[Problem]:
    """Models that are declared public by their paths, and that this workflow makes: it knows itself
    what they are made of.
    """
    named = [(("models", name, "pretrained"), model) for name, model in params.models.items()]
    named += [
        (("tokenizers", name, "source"), tokenizer) for name, tokenizer in params.tokenizers.items()
    ]
    for name, policy in params.policies.items():
        parts = policy.policies if policy.kind == "union" else [policy]
        named += [(("policies", name, "model"), part) for part in parts]
    for path, spec in named:
        place = getattr(spec, path[-1], None)
        if place is None or not getattr(spec, "public", False):
            continue
        if any(Path(os.path.realpath(place)).is_relative_to(os.path.realpath(own)) for own in MADE):
            yield Problem(
                path, place, "is made by this workflow, which knows itself whether it is public"
            )


def rows(params: Params) -> Iterator[Problem]:
    """Rows of the sample sheet that could not run."""
    yield from (Problem(*found) for found in unpackable(params))
    for name, row in params.runs.items():
        if row.dedup and row.privacy is not None and params.privacy[row.privacy].unit == "author":
            yield Problem(
                ("runs", name, "dedup"), True, f"privacy.{row.privacy}.unit {AUTHORS_DEDUPLICATED}"
            )
        if row.dedup and params.datasets[row.dataset].pack is not None:
            yield Problem(
                ("runs", name, "dedup"), True, f"datasets.{row.dataset}.pack {CHUNKS_DEDUPLICATED}"
            )
        if row.method not in METHODS:
            yield Problem(("runs", name, "method"), row.method, f"not one of {', '.join(METHODS)}")
        else:
            yield from demands(params, name)
        for field in ("gammas", "seeds", "attacks", "trajectory"):
            values = getattr(row, field)
            if len(set(values)) < len(values):
                yield Problem(("runs", name, field), values, "lists a value twice")
        for field in ("attacks", "trajectory"):
            yield from attacks(params, name, field)


def attacks(params: Params, name: str, field: str) -> Iterator[Problem]:
    """Attacks of a row that it cannot bear, or that a report could not tell apart."""
    row = params.runs[name]
    listed = getattr(row, field)
    for index, attack in enumerate(listed):
        kind = params.attacks[attack].kind
        planted = params.datasets[row.dataset].canaries
        if kind in ("game", *CANARIES) and planted is None:
            yield Problem(
                ("runs", name, field, index), attack, f"the dataset {row.dataset} has no canaries"
            )
        elif kind in CANARIES and params.canaries[planted].kind != CANARIES[kind]:
            yield Problem(
                ("runs", name, field, index),
                attack,
                f"needs canaries of {CANARIES[kind]}: {planted} are others",
            )
        if field == "trajectory" and kind in FINAL:
            yield Problem(
                ("runs", name, field, index), attack, f"{FINAL[kind]}: for the final model alone"
            )
    alone = [
        params.attacks[attack] for attack in listed if params.attacks[attack].kind not in SEVERAL
    ]
    kinds = [(one.kind, getattr(one, "published_setting", False)) for one in alone]
    if len(set(kinds)) < len(kinds):
        yield Problem(("runs", name, field), listed, "has two attacks of one kind")
    if field == "trajectory" and len(theirs := jobs.references(params, listed)) > 1:
        yield Problem(
            ("runs", name, field),
            listed,
            f"has several reference models: {', '.join(run.name for run in theirs)}",
        )


def warm_starts(params: Params) -> Iterator[Problem]:
    """Runs that start from themselves, or from another architecture or vocabulary."""
    for name, row in params.runs.items():
        seen = [name]
        place = row.init
        while place is not None and place not in seen:
            seen.append(place)
            place = params.runs[place].init
        if place is not None:
            yield Problem(
                ("runs", name, "init"),
                row.init,
                f"warm starts go in a circle: {' <- '.join([*seen, place])}",
            )
        elif row.init is not None:
            start = params.runs[row.init]
            if start.model != row.model:
                yield Problem(
                    ("runs", name, "init"),
                    row.init,
                    f"is of the model {start.model}, not {row.model}",
                )
            words = [params.datasets[dataset].tokenizer for dataset in (start.dataset, row.dataset)]
            if words[0] != words[1]:
                yield Problem(
                    ("runs", name, "init"),
                    row.init,
                    f"has the tokenizer {words[0]}, not {words[1]}",
                )


def new_tokens(params: Params) -> Iterator[Problem]:
    """Audit canaries of new tokens that the tokenizer has not, that may be public, or that a row's
    model cannot learn.
    """
    audits = {name: jobs.token_audits(jobs.canaries(params, name)) for name in params.datasets}
    for name, dataset in params.datasets.items():
        words = params.tokenizers[dataset.tokenizer]
        wanted = sum(audit.count for audit in audits[name].values())
        if words.new_tokens < wanted:
            message = (
                f"has {words.new_tokens} new_tokens, canaries.{dataset.canaries} need {wanted}"
            )
            yield Problem(("datasets", name, "tokenizer"), dataset.tokenizer, message)
        if (
            "inclusion" in audits[name]
            and params.policies[dataset.conservative].kind != "everything"
        ):
            message = f"may take sentences of canaries.{dataset.canaries}.inclusion for public: new tokens need everything"
            yield Problem(("datasets", name, "conservative"), dataset.conservative, message)
    for name, row in params.runs.items():
        if audits[row.dataset]:
            yield from (
                Problem(("runs", name, *path), value, says)
                for path, value, says in unlearnt(params, name, audits)
            )


def unlearnt(
    params: Params, name: str, audits: Mapping[str, Any]
) -> Iterator[tuple[KeyPath, Any, str]]:
    """Why a game of a row would see nothing of its new tokens, or more than the row learnt: key,
    value and message.
    """
    row = params.runs[name]
    model = params.models[row.model]
    planted = params.datasets[row.dataset].canaries
    starts = [one.row.dataset for one in jobs.ancestors(params, jobs.of_row(params, name)[0])]
    for field in ("attacks", "trajectory"):
        for index, attack in enumerate(getattr(row, field)):
            if params.attacks[attack].kind != "game":
                continue
            if getattr(model, "lora_rank", 0):
                message = f"models.{row.model}.lora_rank freezes embeddings: no new token of canaries.{planted} can be learnt"
                yield (field, index), attack, message
            elif getattr(model, "pretrained", None) is not None:
                message = f"models.{row.model} is pretrained: it has no room for the new tokens of canaries.{planted}"
                yield (field, index), attack, message
            elif other := next(
                (start for start in starts if start != row.dataset and audits[start]), None
            ):
                yield (
                    ("init",),
                    row.init,
                    f"has learnt new tokens of the dataset {other}: they are not new to this row",
                )


def studies(params: Params) -> Iterator[Problem]:
    """Figures that nobody can draw, and lists that name a thing twice."""
    for name, study in params.studies.items():
        for index, figure in enumerate(study.figures):
            if figure not in FIGURES:
                yield Problem(
                    ("studies", name, "figures", index), figure, f"not one of {', '.join(FIGURES)}"
                )
        for index, source in enumerate(study.published):
            if source not in sources():
                yield Problem(
                    ("studies", name, "published", index),
                    source,
                    f"not one of {', '.join(sources())}",
                )
        for field in ("runs", "figures", "published"):
            values = getattr(study, field)
            if len(set(values)) < len(values):
                yield Problem(("studies", name, field), values, "lists a value twice")
    for block, listed in (("select", params.select), ("papers", params.papers)):
        if len(set(listed)) < len(listed):
            yield Problem((block,), listed, "lists a value twice")


# Each may rely on what the ones before it have checked.
CHECKS: tuple[Callable[[Params], Iterator[Problem]], ...] = (
    names,
    references,
    definitions,
    publicity,
    rows,
    warm_starts,
    new_tokens,
    one_text_twice,
    declared,
    studies,
    corpora,
)


def schema() -> str:
    """JSON schema of a file of parameters, as YAML, for editors. No key is required: other files
    may have it.
    """
    found = ParamsFile.model_json_schema()
    del found["required"]
    return yaml.safe_dump(found, sort_keys=True, width=120, allow_unicode=True)


def main() -> int:
    """`python -m confide.config.params [FILE]` checks a file; --write-schema renews the schema."""
    parser = argparse.ArgumentParser(prog="confide.config.params", description=main.__doc__)
    parser.add_argument("file", type=Path, nargs="?", default=FILE)
    parser.add_argument("--write-schema", action="store_true")
    given = parser.parse_args()
    if given.write_schema:
        SCHEMA.write_text(schema())
        return 0
    try:
        load(given.file)
    except InputError as error:
        warn(error)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
