"""Whether the rows of the sample sheet, `runs` in params.yaml, could run.

A function for each subject yields its problems; `confide.config.params` raises the first one.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from confide.config import jobs
from confide.config.definitions import twice
from confide.config.kept import kept
from confide.config.layers import Problem
from confide.config.pulled import without_corpus
from confide.config.same_text import same_text
from confide.config.yaml_lines import KeyPath
from confide.corpora import table, table_files
from confide.methods import METHODS
from confide.methods.regularised import RegularisedOptions
from confide.specs import AuditCanarySpec, Params, PrivacySpec, RunSpec, TableSpec
from confide.train.obstacles import (
    AUTHORS_DEDUPLICATED,
    CHUNKS_DEDUPLICATED,
    NOISED_FILLED,
    SOME_DOMAINS,
    must_score_all,
    reads_filled,
    relies_on_policies,
)
from confide.train.packing import MIXED, obstacle
from confide.types import StateName, Step

SEVERAL = ("leak", "domain_lira")  # kinds of which a row may have several: each names its domains
FINAL = {  # kinds of attacks that look at no epoch, and why
    "lira": "needs shadow models",
    "gradients": "repeats all of a run's updates",
}
CANARIES = {  # what kinds of attacks rank
    "exposure": "digits",
    "context_exposure": "digits",
    "sequence_exposure": "words",
    "tab": "words",
}
Audits = Mapping[str, Mapping[str, AuditCanarySpec]]  # of new tokens, by dataset and by set


def rows(params: Params) -> Iterator[Problem]:
    """Rows that could not run."""
    yield from packed(params)
    for name, row in params.runs.items():
        for problem in row_problems(params, row):
            yield problem._replace(path=("runs", name, *problem.path))


def packed(params: Params) -> Iterator[Problem]:
    """Packed datasets that hold public text, and rows that cannot read chunks."""
    for name, dataset in params.datasets.items():
        if dataset.pack is not None and params.policies[dataset.conservative].kind != "everything":
            message = "is not of kind everything, which pack needs: " + MIXED
            yield Problem(("datasets", name, "conservative"), dataset.conservative, message)
    for name, row in params.runs.items():
        if params.datasets[row.dataset].pack is None or row.method not in METHODS:
            continue
        steps = steps_of(params, row.method, row.recipe)
        why = obstacle(steps, params.recipes[row.recipe], budget_of(params, row))
        if why is not None:
            yield Problem(("runs", name, "dataset"), row.dataset, f"is packed: {why}")


def row_problems(params: Params, row: RunSpec) -> Iterator[Problem]:
    """Why a row could not run, with keys of the row."""
    budget = budget_of(params, row)
    if row.dedup and budget is not None and budget.unit == "author":
        message = f"privacy.{row.privacy}.unit {AUTHORS_DEDUPLICATED}"
        yield Problem(("dedup",), True, message)
    planted = params.datasets[row.dataset].canaries
    nobodys = planted is not None and params.canaries[planted].kind != "words"
    if nobodys and budget is not None and budget.unit == "author":
        message = (
            f"protects authors, and the canaries of datasets.{row.dataset} have none: "
            "write canaries: null there"
        )
        yield Problem(("privacy",), row.privacy, message)
    if row.dedup and params.datasets[row.dataset].pack is not None:
        yield Problem(("dedup",), True, f"datasets.{row.dataset}.pack {CHUNKS_DEDUPLICATED}")
    if row.method not in METHODS:
        yield Problem(("method",), row.method, f"not one of {', '.join(METHODS)}")
    else:
        yield from demands(params, row)
    for field in ("gammas", "seeds", "attacks", "trajectory"):
        yield from twice((field,), getattr(row, field))
    policy = params.datasets[row.dataset].policy
    if any(row.gammas) and params.policies[policy].kind == "cover":
        message = (
            f"policies.{policy} covers: which covers it misses the secrets in them would decide, "
            "so that masking one could bring back what stands beside it"
        )
        yield Problem(("gammas",), row.gammas, message)
    for field in ("attacks", "trajectory"):
        yield from attacks(params, row, field)


def budget_of(params: Params, row: RunSpec) -> PrivacySpec | None:
    """The privacy of a row, if it has any."""
    return None if row.privacy is None else params.privacy[row.privacy]


def demands(params: Params, row: RunSpec) -> Iterator[Problem]:
    """What the method of a row needs and the row does not have."""
    recipe = params.recipes[row.recipe]
    method = METHODS[row.method]
    steps = steps_of(params, row.method, row.recipe)
    if method.needs_domains and row.domains is None:
        yield Problem(("domains",), None, f"are missing: {row.method} needs some")
    dataset = params.datasets[row.dataset]
    if method.needs_cover and params.policies[dataset.policy].kind != "cover":
        message = f"{row.method} needs one whose policy is a cover: that of this one is no cover"
        yield Problem(("dataset",), row.dataset, message)
    if row.domains is not None and any(map(relies_on_policies, steps)):
        yield Problem(("domains",), ", ".join(row.domains), SOME_DOMAINS)
    if dataset.learn != "all" and (why := must_score_all(steps, dataset.pack)) is not None:
        message = f"datasets.{row.dataset}.learn is {dataset.learn}: {why}"
        yield Problem(("dataset",), row.dataset, message)
    if reads_filled(steps, fill=dataset.fill, redact=row.redact):
        yield Problem(("dataset",), row.dataset, f"datasets.{row.dataset}.fill {NOISED_FILLED}")
    if row.privacy is None and any(step.noisy for step in steps):
        yield Problem(("privacy",), None, f"is missing: {row.method} adds noise")
    if recipe.gradient_checkpointing and params.models[row.model].kind == "lstm":
        message = f"has no blocks, which recipes.{row.recipe}.gradient_checkpointing recomputes"
        yield Problem(("model",), row.model, message)
    if recipe.shard and params.models[row.model].kind != "causal_lm":
        message = f"is no causal_lm, which recipes.{row.recipe}.shard needs"
        yield Problem(("model",), row.model, message)
    is_regularised = any(step.regulariser != "none" for step in steps)
    if is_regularised and RegularisedOptions.of(recipe).regulariser_weight is None:
        message = f"has no regulariser_weight, which {row.method} needs"
        yield Problem(("recipe",), row.recipe, message)
    if any(step.weighing != "none" for step in steps):
        yield from demands_of_weighing(params, row)
    if any(step.tells_apart for step in steps):
        noised_states = {step.state for step in steps} & {"noise", "published"}
        yield from demands_of_tokens(params, row, noised_states)


@kept
def steps_of(params: Params, method: str, recipe: str) -> frozenset[Step]:
    """The kinds of steps that a method makes with a recipe."""
    return frozenset(METHODS[method].kinds(params.recipes[recipe]))


def demands_of_weighing(params: Params, row: RunSpec) -> Iterator[Problem]:
    """What a method whose noise goes by the text needs besides."""
    budget = budget_of(params, row)
    if budget is None:
        return
    if budget.noise_multiplier is None:
        message = f"has no noise_multiplier, which {row.method} needs: no epsilon bounds it"
        yield Problem(("privacy",), row.privacy, message)
    if budget.discrete:
        message = f"has discrete noise, and that of {row.method} goes by the text"
        yield Problem(("privacy",), row.privacy, message)
    if budget.unit == "author":
        message = f"protects authors, but {row.method} weighs the tokens of a point"
        yield Problem(("privacy",), row.privacy, message)


def demands_of_tokens(
    params: Params, row: RunSpec, noised_states: set[StateName]
) -> Iterator[Problem]:
    """What a method that tells the tokens of a point apart needs besides."""
    if params.models[row.model].kind != "lstm":
        yield Problem(("model",), row.model, f"is no recurrent model, which {row.method} needs")
    budget = budget_of(params, row)
    if budget is None:
        return
    if "published" in noised_states and budget.noise_multiplier is None:
        message = "has no noise_multiplier, which published training needs"
        yield Problem(("privacy",), row.privacy, message)
    if noised_states and budget.discrete:
        message = f"has discrete noise, and private_state: {min(noised_states)} adds another"
        yield Problem(("privacy",), row.privacy, message)
    if budget.unit == "author":
        message = f"protects authors, but {row.method} tells tokens apart"
        yield Problem(("privacy",), row.privacy, message)


def attacks(params: Params, row: RunSpec, field: str) -> Iterator[Problem]:
    """Attacks of a row that it cannot bear, or that a report could not tell apart."""
    listed = getattr(row, field)
    planted = params.datasets[row.dataset].canaries
    for index, name in enumerate(listed):
        kind = params.attacks[name].kind
        if planted is None:
            if kind in ("game", *CANARIES):
                message = f"the dataset {row.dataset} has no canaries"
                yield Problem((field, index), name, message)
        elif kind in CANARIES and params.canaries[planted].kind != CANARIES[kind]:
            message = f"needs canaries of {CANARIES[kind]}: {planted} are others"
            yield Problem((field, index), name, message)
        if (problem := foreign_shadows(params, row, name)) is not None:
            yield Problem((field, index), name, problem)
        if field == "trajectory" and kind in FINAL:
            yield Problem((field, index), name, f"{FINAL[kind]}: for the final model alone")
    specs = [params.attacks[name] for name in listed]
    kinds = [
        (spec.kind, getattr(spec, "published_setting", False))
        for spec in specs
        if spec.kind not in SEVERAL
    ]
    if len(set(kinds)) < len(kinds):
        yield Problem((field,), listed, "has two attacks of one kind")
    compared_with = jobs.references(params, listed)
    if field == "trajectory" and len(compared_with) > 1:
        shown = ", ".join(run.name for run in compared_with)
        yield Problem((field,), listed, f"has several reference models: {shown}")


def texts(params: Params) -> Iterator[Problem]:
    """What rows ask their models to write that cannot be, or that would tell of protected text."""
    for name, spec in params.synthesis.items():
        path = ("synthesis", name)
        if spec.texts.mix and not spec.texts.public_mix:
            message = (
                "may tell of protected text: public_mix: true declares that it was made of none"
            )
            yield Problem((*path, "texts", "mix"), None, message)
        templates = spec.templates
        public = jobs.public_corpora(params)
        if templates is not None and params.datasets[templates].corpus not in public:
            message = "may need protection: templates are of a dataset with public: true"
            yield Problem((*path, "templates"), templates, message)
    chosen: dict[str, str] = {}  # by job
    for name in params.runs:
        for run in jobs.of_row(params, name):
            if run.row.synthesis is None:
                continue
            other = chosen.setdefault(run.run, run.row.synthesis)
            if other != run.row.synthesis:
                message = f"another row of the same training ({run.run}) writes {other}"
                yield Problem(("runs", name, "synthesis"), run.row.synthesis, message)


def foreign_shadows(params: Params, row: RunSpec, attack: str) -> str | None:
    """What is wrong with shadow models that would read a row's tokens as those of another model."""
    name = getattr(params.attacks[attack], "shadows", None)
    if name is None or (chosen := params.shadows[name].model) is None:
        return None
    source = getattr(params.models[str(chosen)], "pretrained", None)
    tokenizer = params.datasets[row.dataset].tokenizer
    tokenizer_spec = params.tokenizers[tokenizer]
    if tokenizer_spec.kind == "pretrained" and tokenizer_spec.source == source:
        return None
    return f"shadows.{name} are of {chosen}, which has other tokens than the tokenizer {tokenizer}"


def warm_starts(params: Params) -> Iterator[Problem]:
    """Runs that start from themselves, or from another architecture or vocabulary."""
    for name, row in params.runs.items():
        if row.init is None:
            continue
        path = ("runs", name, "init")
        if circle := circle_from(params, name):
            message = f"warm starts go in a circle: {' <- '.join(circle)}"
            yield Problem(path, row.init, message)
            continue
        start = params.runs[row.init]
        if start.model != row.model:
            message = f"is of the model {start.model}, not {row.model}"
            yield Problem(path, row.init, message)
        tokenizer = params.datasets[row.dataset].tokenizer
        other = params.datasets[start.dataset].tokenizer
        if other != tokenizer:
            yield Problem(path, row.init, f"has the tokenizer {other}, not {tokenizer}")


def circle_from(params: Params, name: str) -> list[str]:
    """Names of rows, each started from the next one, until one comes again; none if none does."""
    seen = [name]
    while (start := params.runs[seen[-1]].init) is not None:
        if start in seen:
            return [*seen, start]
        seen.append(start)
    return []


def new_tokens(params: Params) -> Iterator[Problem]:
    """Audit canaries of new tokens that a tokenizer lacks, that may be public, or are unlearnt."""
    audits = {name: jobs.token_audits(jobs.canaries(params, name)) for name in params.datasets}
    for name, dataset in params.datasets.items():
        available = params.tokenizers[dataset.tokenizer].new_tokens
        wanted = sum(audit.count for audit in audits[name].values())
        planted = f"canaries.{dataset.canaries}"
        if available < wanted:
            message = f"has {available} new_tokens, {planted} need {wanted}"
            yield Problem(("datasets", name, "tokenizer"), dataset.tokenizer, message)
        everything_private = params.policies[dataset.conservative].kind == "everything"
        if "inclusion" in audits[name] and not everything_private:
            message = (
                f"may take sentences of {planted}.inclusion for public: new tokens need everything"
            )
            yield Problem(("datasets", name, "conservative"), dataset.conservative, message)
    for name, row in params.runs.items():
        for problem in unlearnt(params, name, audits) if audits[row.dataset] else ():
            yield problem._replace(path=("runs", name, *problem.path))


def unlearnt(params: Params, name: str, audits: Audits) -> Iterator[Problem]:
    """Why a game of a row would see nothing of its new tokens, or more than the row learnt."""
    row = params.runs[name]
    model = params.models[row.model]
    planted = f"canaries.{params.datasets[row.dataset].canaries}"
    starts = [run.row.dataset for run in jobs.ancestors(params, jobs.of_row(params, name)[0])]
    learnt = next((start for start in starts if start != row.dataset and audits[start]), None)
    for path, attack in games(params, row):
        if getattr(model, "lora_rank", 0):
            message = f"lora_rank freezes embeddings: no new token of {planted} can be learnt"
            yield Problem(path, attack, f"models.{row.model}.{message}")
        elif getattr(model, "pretrained", None) is not None:
            message = f"is pretrained: it has no room for the new tokens of {planted}"
            yield Problem(path, attack, f"models.{row.model} {message}")
        elif learnt is not None:
            message = f"has learnt new tokens of the dataset {learnt}"
            yield Problem(("init",), row.init, f"{message}: they are not new to this row")


def games(params: Params, row: RunSpec) -> Iterator[tuple[KeyPath, str]]:
    """Where a row asks for a game, and by what name."""
    for field in ("attacks", "trajectory"):
        for index, attack in enumerate(getattr(row, field)):
            if params.attacks[attack].kind == "game":
                yield (field, index), attack


def one_text_twice(params: Params) -> Iterator[Problem]:
    """Runs that protect a text and, under another name, read it as public."""
    for run in jobs.runs_of(params, params.studies).values():
        for name in jobs.protected(params, run):
            for other in jobs.taken_for_public(params, run):
                if same_text(params.corpora[name], params.corpora[other]):
                    message = (
                        f"protects the corpus {name}, and the corpus {other}, "
                        "which it reads as public, may hold its text"
                    )
                    yield Problem(("runs", run.name, "dataset"), run.row.dataset, message)


def corpora(params: Params) -> Iterator[Problem]:
    """Files of the user's that a selected study reads and that are not there, or lack a column."""
    for run in jobs.runs_of(params, params.select).values():
        name = params.datasets[run.row.dataset].corpus
        path = getattr(params.corpora[name], "path", None)
        if path is not None and not Path(path).exists():
            message = f"there is no such file. {without_corpus(Path())}".rstrip()
            yield Problem(("corpora", name, "path"), path, message)
        elif isinstance(corpus := params.corpora[name], TableSpec):
            yield from columns(name, corpus)


def columns(name: str, corpus: TableSpec) -> Iterator[Problem]:
    """Columns that a table is to be read by and does not have; only headers are read."""
    reading = table.reading_of(corpus)
    for piece in table_files.pieces(Path(corpus.path), reading):
        there = list(table_files.columns(piece.path, reading))
        named = [*table.columns_of(corpus).items(), *(("secrets", name) for name in corpus.secrets)]
        for key, column in named:
            if column not in there:
                is_text = table_files.is_csv(piece.path, reading)
                known = table_files.hint(there, column, is_text=is_text)
                message = f"{piece.path} has no such column{known}"
                yield Problem(("corpora", name, key), column, message)
