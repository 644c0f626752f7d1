"""Whether the definitions of params.yaml can be right, whoever uses them.

A function for each subject yields its problems; `confide.config.params` raises the first one.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from confide.config import jobs
from confide.config.layers import Problem, meant
from confide.config.same_text import meet, same_text
from confide.config.yaml_lines import KeyPath
from confide.files.io import readable
from confide.output.escaping import visible
from confide.policies.cover import NEEDS_BLANK, needs_blank
from confide.policies.regex import fault
from confide.policies.words import LONGEST, NOT_RANDOM, is_random
from confide.report.published import sources
from confide.specs import (
    AuditCanarySpec,
    CanarySpec,
    CausalLMSpec,
    DatasetSpec,
    LiraSpec,
    MessagesSpec,
    Params,
    PolicySpec,
    ShadowsSpec,
)
from confide.specs.policies import parts
from confide.text.canary_templates import (
    DIGITS_OR_TOKEN,
    BadTemplate,
    parse_canary,
    parse_template,
)

# fmt: off
FIGURES = (
    "tradeoff", "utility", "exposure", "membership", "group_membership", "amplification",
    "frontier", "pareto", "roc", "learning", "trajectory", "private_ppl", "leak", "domain_epsilon",
    "domain_roc", "schedules", "author_exposure", "tab", "subgroups", "train_time",
    "author_inference", "worth",
)
# fmt: on
# folders of what the workflow makes
MADE = ("data/work", "data/tokenizers", "data/synthetic", "models", "results", ".checkpoints")
# Of every definition: names become folders, and "-" and "/" join them there.
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
TAKEN = (
    jobs.CERTIFICATE,
    jobs.EVALUATION,
    jobs.TRAJECTORY,
    *jobs.OF_TEXTS,
)  # files that stand beside an attack's
OF_OWN = "is made by this workflow, which knows itself whether it is public"
RELEASED = (
    "is a model that `confide release` wrote, by its README.md, and tells of the text that it was "
    "trained on: start from its run (init), or leave out public"
)
CARD = re.compile(rb"^confide: \{", re.MULTILINE)  # a line of the metadata of its README.md
CARD_BYTES = 4096  # within which the metadata stands
IN_FOLDER = re.compile(r"sqlite:///[\w-][\w.-]*")  # an address of MLflow
NAMING = (  # blocks and keys that name files of the user's
    ("corpora", "path"),
    ("corpora", "template"),
    ("datasets", "review"),
    ("models", "pretrained"),
    ("tokenizers", "source"),
)
LARGEST_DELTA = 0.01  # of a budget, however small the corpus
SHARED = ("label", "limit", "seed")  # what an attack and its shadow models must agree in
REFERENCES = (  # block, field, block that must define the value
    ("tokenizers", "corpus", "corpora"),
    ("pipelines", "entities", "corpora"),
    ("domain_policies", "corpus", "corpora"),
    ("word_lists", "corpus", "corpora"),
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
    ("runs", "synthesis", "synthesis"),
    ("synthesis", "templates", "datasets"),
    ("attacks", "reference", "runs"),
    ("attacks", "judges", "policies"),
    ("attacks", "shadows", "shadows"),
    ("shadows", "model", "models"),
    ("studies", "runs", "runs"),
)


def names(params: Params) -> Iterator[Problem]:
    """Definitions whose name cannot be part of a file name."""
    form = "a name is letters, digits and _, and begins with a letter"
    for block, definitions in params:
        for name in definitions if isinstance(definitions, dict) else ():
            if not NAME.fullmatch(name):
                yield Problem((block, name), None, form)
            if block == "attacks" and name in TAKEN:
                yield Problem((block, name), None, "this name is taken")
            if block == "leaderboards" and not name.startswith("leaderboard"):
                message = "is what `snakemake NAME` builds: a name begins with leaderboard"
                yield Problem((block, name), None, message)


def references(params: Params) -> Iterator[Problem]:
    """Names that are used and not defined."""
    for block in ("select", "papers"):
        yield from undefined(params, (block,), getattr(params, block), "studies")
    for name, listed in params.leaderboards.items():
        yield from undefined(params, ("leaderboards", name), listed, "studies")
    for block, field, target in REFERENCES:
        for name, spec in getattr(params, block).items():
            yield from undefined(params, (block, name, field), getattr(spec, field, None), target)


def undefined(params: Params, path: tuple[str, ...], used: Any, target: str) -> Iterator[Problem]:
    """Those of some names (a mapping to names, a list, one, or None) that a block lacks."""
    defined = getattr(params, target)
    if isinstance(used, dict):
        places = {(*path, key): name for key, name in used.items()}
    elif isinstance(used, list):
        places = {(*path, index): name for index, name in enumerate(used)}
    else:
        places = {} if used is None else {path: used}
    for place, name in places.items():
        if not isinstance(name, str):
            yield Problem(place, None, f"expected a name of {target}")
        elif name not in defined:
            known = ", ".join(defined) or "nothing is"
            suggestion = meant(name, defined)
            message = f"is not defined under {target}: {known}{suggestion and f'; {suggestion}'}"
            yield Problem(place, name, message)


def canaries(params: Params) -> Iterator[Problem]:
    """Templates that do not say where the secret stands, or the answer behind it."""
    for name, canary in params.canaries.items():
        if isinstance(canary, CanarySpec):
            yield from template(("canaries", name), canary.template, partial(parse_canary, canary))
        for audit, spec in (("game", canary.game), ("inclusion", canary.inclusion)):
            if isinstance(spec, AuditCanarySpec):
                parse = partial(parse_template, spec.template, DIGITS_OR_TOKEN)
                yield from template(("canaries", name, audit), spec.template, parse)


def template(path: tuple[str, ...], text: str, parse: Callable[[], object]) -> Iterator[Problem]:
    """What is wrong with the template of some canaries."""
    try:
        parse()
    except BadTemplate as error:
        yield Problem((*path, "template"), text, str(error))


def tokenizers(params: Params) -> Iterator[Problem]:
    """Tokenizers that lack what their kind needs, or have what it does not know."""
    for name, tokenizer in params.tokenizers.items():
        is_bpe = tokenizer.kind == "bpe"
        needed, unused = ("corpus", "source") if is_bpe else ("source", "corpus")
        pointless = f"has no meaning for kind {tokenizer.kind}"
        if (value := getattr(tokenizer, unused)) is not None:
            yield Problem(("tokenizers", name, unused), value, pointless)
        if tokenizer.new_tokens and not is_bpe:
            message = f"{pointless}: its vocabulary is as published"
            yield Problem(("tokenizers", name, "new_tokens"), tokenizer.new_tokens, message)
        if tokenizer.control == "template" and tokenizer.kind != "pretrained":
            yield Problem(("tokenizers", name, "control"), tokenizer.control, pointless)
        if getattr(tokenizer, needed) is None:
            message = f"is missing: kind {tokenizer.kind} needs it"
            yield Problem(("tokenizers", name, needed), None, message)


def filled(params: Params) -> Iterator[Problem]:
    """Datasets whose values in place of masks are of no public text."""
    public = jobs.public_corpora(params)
    for name, dataset in params.datasets.items():
        if dataset.values_of is None:
            continue
        path = ("datasets", name, "fill")
        yield from undefined(params, path, dataset.values_of, "datasets")
        source = params.datasets.get(dataset.values_of)
        if source is not None and not (source.public and source.corpus in public):
            message = (
                "has text that needs protection: values in place of masks are of a dataset with "
                "public: true, whose corpus no other one protects; true makes them up"
            )
            yield Problem(path, dataset.fill, message)


def learned(params: Params) -> Iterator[Problem]:
    """Datasets that learn some tokens alone, and whose corpus or canaries do not say which."""
    chats = of_templates(params)
    for name, dataset in params.datasets.items():
        canaries = params.canaries.get(dataset.canaries or "")
        input_only = getattr(canaries, "input_only", False)
        if input_only and dataset.learn == "all":
            needed = "learn: all_but_read, or learn: assistant"
            message = f"are read and not learned (input_only), which takes {needed}"
            yield Problem(("datasets", name, "canaries"), dataset.canaries, message)
        if dataset.fill and dataset.learn != "all":
            message = "would move what is scored, so that it takes learn: all"
            yield Problem(("datasets", name, "fill"), dataset.fill, message)
        problem = None
        if dataset.learn == "assistant" and dataset.corpus not in chats:
            needed = "needs a corpus of the reader messages with a template"
            problem = f"{needed}: {dataset.corpus} is another"
        elif dataset.learn == "all_but_read" and not input_only:
            problem = "needs canaries that are read and not learned (input_only)"
        elif dataset.learn == "all_but_read" and dataset.corpus in chats:
            problem = f"would learn users' turns of {dataset.corpus}: say assistant"
        if problem is not None:
            yield Problem(("datasets", name, "learn"), dataset.learn, problem)


def of_templates(params: Params) -> dict[str, MessagesSpec]:
    """Corpora of conversations that a chat template writes."""
    return {
        name: corpus
        for name, corpus in params.corpora.items()
        if isinstance(corpus, MessagesSpec) and corpus.template is not None
    }


def conversations(params: Params) -> Iterator[Problem]:
    """Corpora of conversations that are cut, or whose tokenizer is not that of their template."""
    chats = of_templates(params)
    for name, dataset in params.datasets.items():
        corpus = chats.get(dataset.corpus)
        if corpus is None:
            continue
        if dataset.point != "dialogue":
            message = "cuts conversations; a chat template writes them whole: dialogue"
            yield Problem(("datasets", name, "point"), dataset.point, message)
        tokenizer = params.tokenizers[dataset.tokenizer]
        if (tokenizer.source, tokenizer.control) != (corpus.template, "template"):
            message = (
                f"is not that of the chat template of {dataset.corpus}: kind pretrained, "
                f"source {corpus.template}, control template"
            )
            yield Problem(("datasets", name, "tokenizer"), dataset.tokenizer, message)
    for block, field, target in REFERENCES:
        if target != "corpora" or block == "datasets":
            continue
        for name, spec in getattr(params, block).items():
            if (corpus_name := getattr(spec, field)) in chats:
                message = "is of conversations, which only datasets read"
                yield Problem((block, name, field), corpus_name, message)


def reviews(params: Params) -> Iterator[Problem]:
    """Reviews of a policy that is made to miss more in one run than in another."""
    for name, dataset in params.datasets.items():
        rates = {
            gamma for row in params.runs.values() if row.dataset == name for gamma in row.gammas
        }
        if dataset.review is not None and len(rates) > 1:
            message = "is of one policy, and runs of this dataset have several gammas"
            yield Problem(("datasets", name, "review"), dataset.review, message)


def policies(params: Params) -> Iterator[Problem]:
    """Pipelines that learn nothing, policies whose model was fitted for another kind or whose list
    of words is not there, patterns.

    A pattern is tried here, so that no job has to fail for it.
    """
    for name, pipeline in params.pipelines.items():
        learns = pipeline.treebank is not None or pipeline.entities is not None
        if pipeline.package is not None and learns:
            message = "is taken as it is, and learns from no treebank and no entities"
            yield Problem(("pipelines", name, "package"), pipeline.package, message)
        elif pipeline.package is None and not learns:
            message = "needs a package, or a treebank, entities, or both"
            yield Problem(("pipelines", name), None, message)
    for name, policy in params.policies.items():
        if policy.kind in ("keyword", "classifier") and policy.model in params.domain_policies:
            fit = params.domain_policies[policy.model].fit
            if fit.kind != policy.kind:
                yield Problem(("policies", name, "model"), policy.model, f"is of kind {fit.kind}")
        yield from unusable(policy, ("policies", name))
        for place, part in leaves(policy, ("policies", name)):
            if part.kind == "words" and not Path(part.path).is_file():
                yield Problem((*place, "path"), part.path, "there is no such file")


def lists(params: Params) -> Iterator[Problem]:
    """Lists of words of which everybody could guess what they hold."""
    for name, policy in params.policies.items():
        for place, part in leaves(policy, ("policies", name)):
            if part.kind == "words" and not is_random(first_line(Path(part.path))):
                yield Problem((*place, "path"), part.path, f"its first line {NOT_RANDOM}")


def first_line(path: Path) -> str:
    """The first line of a file, as far as it may be a comment of a list."""
    with readable(path), path.open(encoding="utf-8-sig", errors="replace") as lines:
        return lines.readline(LONGEST).rstrip("\n")


def unusable(policy: PolicySpec, path: KeyPath) -> Iterator[Problem]:
    """Patterns that do not compile or find nothing, and covers among other policies."""
    for pattern_path, pattern in patterns_of(policy, path):
        if (problem := fault(pattern)) is not None:
            yield Problem(pattern_path, pattern, problem)
        elif policy.kind == "cover" and needs_blank(pattern):
            yield Problem(pattern_path, pattern, NEEDS_BLANK)
    if policy.kind == "union" and any(part.kind == "cover" for part in parts(policy)):
        message = (
            "unite a cover with others: what these find beside it may change with what it hides; "
            "give one cover the patterns of all"
        )
        yield Problem((*path, "policies"), None, message)


def patterns_of(policy: PolicySpec, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """Each regular expression of a policy and of those that it unites, with its path of keys."""
    for place, part in leaves(policy, path):
        if part.kind in ("regex", "cover"):
            for label, pattern in part.patterns.items():
                yield (*place, "patterns", label), pattern


def leaves(policy: PolicySpec, path: KeyPath) -> Iterator[tuple[KeyPath, PolicySpec]]:
    """A policy, or those that it unites, each with its path of keys."""
    if policy.kind != "union":
        yield path, policy
        return
    for number, part in enumerate(policy.policies):
        yield from leaves(part, (*path, "policies", number))


def shadows(params: Params) -> Iterator[Problem]:
    """Shadow models that nobody can train, and attacks on other secrets than they know."""
    for name, spec in params.shadows.items():
        for key, message in shadowless(params, spec):
            yield Problem(("shadows", name, key), getattr(spec, key), message)
    for name, attack in params.attacks.items():
        if not isinstance(attack, LiraSpec):
            continue
        for key in SHARED:
            value = getattr(attack, key)
            theirs = getattr(params.shadows[attack.shadows], key)
            if value != theirs:
                message = f"shadows.{attack.shadows} has {theirs!r}"
                yield Problem(("attacks", name, key), value, message)


def shadowless(params: Params, spec: ShadowsSpec) -> Iterator[tuple[str, str]]:
    """Why shadow models of a pretrained model cannot be what is meant: keys, and what is wrong."""
    if spec.model is None:
        return
    model = params.models[str(spec.model)]
    if not isinstance(model, CausalLMSpec) or model.adapter is None:
        yield "model", "needs a model of kind causal_lm with an adapter: only that is trained anew"
    for key in ("embedding", "hidden"):
        if key in spec.model_fields_set:
            yield key, f"is of LSTMs: these are adapters of {spec.model}"
    if "lr" not in spec.model_fields_set:
        yield "lr", "is for LSTMs: say what adapters learn at, such as 0.002"


def privacy(params: Params) -> Iterator[Problem]:
    """Budgets that say both what is spent and what noise is drawn, or neither, or protect nobody.

    How many points there are training alone knows, and says if delta is too large for them.
    """
    for name, budget in params.privacy.items():
        if (budget.epsilon is None) == (budget.noise_multiplier is None):
            yield Problem(("privacy", name), None, "needs either epsilon or noise_multiplier")
        if budget.delta > LARGEST_DELTA:
            message = (
                "allows to give one text of a hundred away whole: take less than 1 / the number of "
                "your points, such as 1e-5"
            )
            yield Problem(("privacy", name, "delta"), budget.delta, message)


def recipes(params: Params) -> Iterator[Problem]:
    """Recipes that bound a pass in two ways."""
    for name, recipe in params.recipes.items():
        if {"physical_batch_size", "physical_tokens"} <= recipe.model_fields_set:
            message = "bounds what physical_batch_size bounds, too: leave out one of them"
            yield Problem(("recipes", name, "physical_tokens"), recipe.physical_tokens, message)


def publicity(params: Params) -> Iterator[Problem]:
    """Text that one dataset declares public and another one does not."""
    declared: list[tuple[str, DatasetSpec]] = []
    for name, dataset in params.datasets.items():
        for other, earlier in declared:
            if earlier.public != dataset.public and of_one_text(params, dataset, earlier):
                message = f"the dataset {other} of the same text says {earlier.public}"
                yield Problem(("datasets", name, "public"), dataset.public, message)
        declared.append((name, dataset))


def of_one_text(params: Params, first: DatasetSpec, second: DatasetSpec) -> bool:
    """Whether two datasets are of one corpus, or may be of one file.

    What an archive holds is published: a study may protect it that has nothing to do with another
    one. In one run it is protected, or it is not (`confide.config.rows`).
    """
    corpora = [params.corpora[dataset.corpus] for dataset in (first, second)]
    files = all(getattr(corpus, "path", None) is not None for corpus in corpora)
    return first.corpus == second.corpus or (files and same_text(*corpora))


def own_models(params: Params) -> Iterator[Problem]:
    """Models that are declared public by their paths, and that this workflow makes.

    It knows itself what they are made of.
    """
    for name, model in params.models.items():
        yield from made_here(("models", name, "pretrained"), model)
    for name, tokenizer in params.tokenizers.items():
        yield from made_here(("tokenizers", name, "source"), tokenizer)
    for name, policy in params.policies.items():
        for part in parts(policy):
            yield from made_here(("policies", name, "model"), part)
            yield from made_here(("policies", name, "path"), part)
    for name, fitted in params.domain_policies.items():
        yield from made_here(("domain_policies", name, "fit", "pretrained"), fitted.fit)


def own_texts(params: Params) -> Iterator[Problem]:
    """Datasets that are declared public, of text that this workflow makes or that a model wrote.

    What is claimed of a model is claimed of its texts and of all that is trained on them.
    """
    for name, dataset in params.datasets.items():
        place = getattr(params.corpora[dataset.corpus], "path", None)
        if place is None or not dataset.public:
            continue
        if is_made_here(place):
            yield Problem(("datasets", name, "public"), True, f"{place} {OF_OWN}")
        elif jobs.written_by_a_model(params, dataset.corpus):
            message = f"{place} holds texts of a model, which tell of its text what the model does"
            yield Problem(("datasets", name, "public"), True, message)


def made_here(path: tuple[str, ...], spec: Any) -> Iterator[Problem]:
    """The problem of a specification that declares public what this workflow makes, or made."""
    place = getattr(spec, path[-1], None)
    declared = getattr(spec, "public", False) or getattr(spec, "independent", False)
    if place is None or not declared:
        return
    if is_made_here(place):
        yield Problem(path, place, OF_OWN)
    elif is_released(place):
        yield Problem(path, place, RELEASED)


def is_made_here(place: str) -> bool:
    """Whether a path leads to what this workflow makes, or anything below it does."""
    return meet(Path(place), *map(Path, MADE))


def is_released(place: str) -> bool:
    """Whether a path is the folder of a model that `confide release` wrote for others to open."""
    card = Path(place, "README.md")
    if not card.is_file():
        return False
    with readable(card), card.open("rb") as content:
        return CARD.search(content.read(CARD_BYTES)) is not None


def studies(params: Params) -> Iterator[Problem]:
    """Figures that nobody can draw, and lists that name a thing twice."""
    for name, study in params.studies.items():
        for field, known in (("figures", FIGURES), ("published", sources())):
            for index, value in enumerate(getattr(study, field)):
                if value not in known:
                    path = ("studies", name, field, index)
                    yield Problem(path, value, f"not one of {', '.join(known)}")
        for field in ("runs", "figures", "published"):
            yield from twice(("studies", name, field), getattr(study, field))
    for block in ("select", "papers"):
        yield from twice((block,), getattr(params, block))
    for name, listed in params.leaderboards.items():
        yield from twice(("leaderboards", name), listed)


def tuning(params: Params) -> Iterator[Problem]:
    """Trials that have read what needs protection, whose outcome would tell of it without noise."""
    for study in jobs.trials(params):
        for index, name in enumerate(params.studies[study].runs):
            private = dict.fromkeys(
                what for run in jobs.of_row(params, name) for what in jobs.not_public(params, run)
            )
            if private:
                message = (
                    f"has read {', '.join(private)}, which is not public, or what it starts from "
                    "has: a choice by it costs what nobody accounts for; trials need datasets, "
                    "starts and vocabularies with public: true"
                )
                yield Problem(("studies", study, "runs", index), name, message)


def tracking(params: Params) -> Iterator[Problem]:
    """An address that is no database in the project's folder.

    Who wrote the file is perhaps not who runs it, and would be sent settings, tables and figures.
    The problem does not show the address: it may hold a password.
    """
    if not IN_FOLDER.fullmatch(params.tracking.uri):
        message = "is no database in this folder (sqlite:///NAME): set MLFLOW_TRACKING_URI instead"
        yield Problem(("tracking", "uri"), None, message)


def names_of_files(params: Params) -> Iterator[Problem]:
    """Files whose names have a character that cannot be seen: Snakemake shows names as they are."""
    for block, key in NAMING:
        for name, spec in getattr(params, block).items():
            file = getattr(spec, key, None)
            if isinstance(file, str) and visible(file) != file:
                message = "has a character that cannot be seen: rename the file"
                yield Problem((block, name, key), file, message)


def twice(path: tuple[str, ...], values: Sequence[Any]) -> Iterator[Problem]:
    """The problem of a list that names a thing twice."""
    if len(set(values)) < len(values):
        yield Problem(path, values, "lists a value twice")
