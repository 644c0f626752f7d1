"""The sample sheet, expanded: which jobs a checked params.yaml asks for, where their files lie, and
each job's specification.

A specification holds exactly what its job depends on, so that a changed key reruns the jobs that it
touches and no others. A run is one row at one gamma and seed; its name is "row/g<gamma>-s<seed>".
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from confide.config.policy_files import files_of, placed, trained
from confide.provenance.terms import digest_of_specs, terms
from confide.specs import (
    AttackJobSpec,
    AttackSpec,
    AuditCanarySpec,
    CanarySpec,
    CertifySpec,
    DatasetSpec,
    DataSpec,
    EvaluateSpec,
    NeighboursSpec,
    Params,
    PartitionSpec,
    PolicySpec,
    ReadSpec,
    RecallSpec,
    RedactSpec,
    RunSpec,
    SplitSpec,
    TextSpec,
    TrainSpec,
    TrajectorySpec,
    WordCanarySpec,
)

TOKEN_SLOT = "{token}"  # of an audit's template
POINT = DatasetSpec.model_fields["point"].default  # of a corpus that only a tokenizer reads
MODEL_FILES = (
    "model.safetensors",
    "config.json",
    "metrics.jsonl",
    "ledger.jsonl",
    "epochs.safetensors",
)
CERTIFICATE = "certificate"
EVALUATION = "evaluate"
TRAJECTORY = "trajectory"


@dataclass(frozen=True, slots=True)
class Run:
    """One model to train."""

    name: str  # of its row
    row: RunSpec
    gamma: float
    seed: int

    @property
    def run(self) -> str:
        return f"{self.name}/g{gamma_text(self.gamma)}-s{self.seed}"

    @property
    def redaction(self) -> str:
        """Folder of its policy's findings, below data/work."""
        return f"{self.row.dataset}/g{gamma_text(self.gamma)}"

    @property
    def partition(self) -> str:
        """Folder of its two views, below data/work."""
        return f"{self.redaction}-{'dedup' if self.row.dedup else 'nodedup'}"


def gamma_text(gamma: float) -> str:
    """A miss rate as it stands in file names: shortest exact decimal, never with an exponent. 0.0
    -> "0".
    """
    text = format(Decimal(repr(float(gamma))), "f")
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"


def of_row(params: Params, name: str) -> list[Run]:
    """A row's runs, gamma by gamma."""
    row = params.runs[name]
    return [Run(name, row, gamma, seed) for gamma in row.gammas for seed in row.seeds]


def start_of(params: Params, row: RunSpec) -> Run | None:
    """The run whose weights a row's models start from: the first of that row."""
    return of_row(params, row.init)[0] if row.init is not None else None


def ancestors(params: Params, run: Run) -> list[Run]:
    """The run that a run starts from, the one that that one starts from, and so on."""
    start = start_of(params, run.row)
    return [] if start is None else [start, *ancestors(params, start)]


def runs_of(params: Params, studies: Iterable[str]) -> dict[str, Run]:
    """All runs that some studies list, each after the run that it starts from."""
    names = dict.fromkeys(name for study in studies for name in params.studies[study].runs)
    listed = [run for name in names for run in of_row(params, name)]
    listed += [
        one for run in listed for one in references(params, [*run.row.attacks, *run.row.trajectory])
    ]
    return {run.run: run for last in listed for run in [*reversed(ancestors(params, last)), last]}


# Data
# --------------------------------------------------------------------------------------------------------------


def source_name(corpus: str, point: str, window: int) -> str:
    """Folder of a corpus cut into points."""
    return f"{corpus}-{point}{window}" if point == "window" else f"{corpus}-{point}"


def source_of(dataset: DatasetSpec) -> str:
    return source_name(dataset.corpus, dataset.point, dataset.window)


def sources(params: Params) -> dict[str, SplitSpec]:
    """Each corpus in each cut that a dataset or a tokenizer reads."""
    wanted = [
        (dataset.corpus, dataset.point, dataset.window) for dataset in params.datasets.values()
    ]
    wanted += [
        (words.corpus, POINT, 0) for words in params.tokenizers.values() if words.corpus is not None
    ]
    wanted += [
        (one.entities, POINT, 0) for one in params.pipelines.values() if one.entities is not None
    ]
    wanted += [(one.corpus, POINT, 0) for one in params.domain_policies.values()]
    return {source_name(*cut): split_spec(params, *cut) for cut in wanted}


def split_spec(params: Params, corpus: str, point: str, window: int) -> SplitSpec:
    """A corpus in one cut; a window of no words is none."""
    return SplitSpec(
        corpus=params.corpora[corpus], point=point, **({"window": window} if window else {})
    )


def canaries(params: Params, dataset: str) -> CanarySpec | WordCanarySpec:
    """What to plant; nothing where the dataset names no canaries."""
    name = params.datasets[dataset].canaries
    return params.canaries[name] if name is not None else CanarySpec(count=0, controls=0)


def canary_words(params: Params, dataset: str) -> str | None:
    """The tokenizer whose words or new tokens canaries are made of; None: they are of digits."""
    spec = canaries(params, dataset)
    return (
        params.datasets[dataset].tokenizer if spec.kind == "words" or token_audits(spec) else None
    )


def token_audits(spec: CanarySpec | WordCanarySpec) -> dict[str, AuditCanarySpec]:
    """The audits, by set, whose canaries end in new tokens."""
    audits = {"game": spec.game, "inclusion": spec.inclusion}
    return {
        name: one for name, one in audits.items() if one is not None and TOKEN_SLOT in one.template
    }


def redaction(params: Params, dataset: str, gamma: float) -> RedactSpec:
    spec = params.datasets[dataset]
    policy, conservative = (
        placed(params, params.policies[name]) for name in (spec.policy, spec.conservative)
    )
    return RedactSpec(
        policy=policy, conservative=conservative, miss_rate=gamma, miss_seed=spec.miss_seed
    )


def partition(params: Params, dataset: str, dedup: bool) -> PartitionSpec:
    return PartitionSpec(
        dedup=dedup, scope=(spec := params.datasets[dataset]).scope, merge_masks=spec.merge_masks
    )


def text(params: Params, name: str) -> TextSpec:
    """Which text a dataset's points are of, as a training and a measurement name it."""
    dataset = params.datasets[name]
    source = split_spec(params, dataset.corpus, dataset.point, dataset.window)
    return TextSpec(
        dataset=name,
        corpus=digest_of_specs(source.corpus),
        cut=digest_of_specs(source, canaries(params, name), dataset.dedup),
        point=dataset.point,
    )


def recall(params: Params, dataset: str, gamma: float) -> RecallSpec:
    return RecallSpec(
        text=text(params, dataset),
        redact=redaction(params, dataset, gamma),
        reads=policies_reads(params, dataset),
    )


def neighbours(params: Params, dataset: str, gamma: float, dedup: bool) -> NeighboursSpec:
    return NeighboursSpec(
        text=text(params, dataset),
        redact=redaction(params, dataset, gamma),
        partition=partition(params, dataset, dedup),
        reads=data_reads(params, dataset),
    )


# Models
# ------------------------------------------------------------------------------------------------------------


def is_public(params: Params, run: Run) -> bool:
    """Whether nothing that a run has seen needs protection: its text, what else is in it, and the
    same of its ancestors.
    """
    for seen in [run, *ancestors(params, run)]:
        if not params.datasets[seen.row.dataset].public:
            return False
        if not all(read.public for read in reads(params, seen)):
            return False
    return True


def public_corpora(params: Params) -> set[str]:
    """Names of the corpora that were declared public: by a dataset of them, and contradicted by no
    other dataset.

    Nothing else makes a corpus public, and least of all that something was trained on it.
    """
    declared = {dataset.corpus for dataset in params.datasets.values() if dataset.public}
    protected = {dataset.corpus for dataset in params.datasets.values() if not dataset.public}
    return declared - protected


def taken_for_public(params: Params, run: Run) -> list[str]:
    """Names of the corpora that a run and its ancestors read as public text, for whatever
    purpose.
    """
    used = []
    for seen in [run, *ancestors(params, run)]:
        dataset = params.datasets[seen.row.dataset]
        used += [dataset.corpus, params.tokenizers[dataset.tokenizer].corpus]
        for name in (dataset.policy, dataset.conservative):
            used += trained(params, params.policies[name]).values()
    public = public_corpora(params)
    return [name for name in dict.fromkeys(used) if name in public]


def protected(params: Params, run: Run) -> list[str]:
    """Names of the corpora of a run and of its ancestors that need protection."""
    datasets = [params.datasets[seen.row.dataset] for seen in [run, *ancestors(params, run)]]
    return list(dict.fromkeys(dataset.corpus for dataset in datasets if not dataset.public))


def reads(params: Params, run: Run) -> list[ReadSpec]:
    """Stages before training whose product a model holds.

    What the workflow makes is public where the corpus that it is made of is, and a treebank is.
    What it does not make (a pretrained model, a vocabulary, an installed pipeline) is public only
    where params.yaml declares it.
    """
    found = data_reads(params, run.row.dataset)
    model = params.models[run.row.model]
    if (source := getattr(model, "pretrained", None)) is not None:
        found.append(
            ReadSpec(stage="pretrained", source=source, public=model.public, artefact=source)
        )
    return found


def data_reads(params: Params, dataset: str) -> list[ReadSpec]:
    """Those of them that a dataset brings with it: its vocabulary, and the models of its
    policies.
    """
    return [
        tokenizer_read(params, params.datasets[dataset].tokenizer),
        *policies_reads(params, dataset),
    ]


def policies_reads(params: Params, dataset: str) -> list[ReadSpec]:
    """The same of its policies alone; at least one for each of the two."""
    names = (params.datasets[dataset].policy, params.datasets[dataset].conservative)
    return [read for name in names for read in policy_reads(params, name, params.policies[name])]


def tokenizer_read(params: Params, name: str) -> ReadSpec:
    """What a vocabulary was made of; the archive is pinned by its digest, and published."""
    tokenizer = params.tokenizers[name]
    if tokenizer.kind == "bpe":
        public = tokenizer.corpus in public_corpora(params)
    else:
        public = tokenizer.public or tokenizer.source == "archive"
    return ReadSpec(stage="tokenizer", source=name, public=public)


def policy_reads(params: Params, name: str, policy: PolicySpec) -> list[ReadSpec]:
    """What the models of a policy were made of; a policy of patterns alone is a constant of
    params.yaml.
    """
    if policy.kind == "union":
        return [read for part in policy.policies for read in policy_reads(params, name, part)]
    made = trained(params, policy)
    if made:
        ((file, corpus),) = made.items()
        public = corpus is None or corpus in public_corpora(params)
        found = [
            ReadSpec(stage="policy", source=f"{name}: {policy.model}", public=public, artefact=file)
        ]
        fitted = params.domain_policies.get(
            policy.model
        )  # which may be of another kind: pipelines have names of their own
        fit = fitted.fit if fitted is not None and fitted.fit.kind == policy.kind else None
        if (start := getattr(fit, "pretrained", None)) is not None:
            found.append(
                ReadSpec(
                    stage="policy", source=f"{name}: {start}", public=fit.public, artefact=start
                )
            )
        return found
    if getattr(policy, "model", None) is None:
        return [ReadSpec(stage="policy", source=name, public=True)]
    return [
        ReadSpec(
            stage="policy",
            source=f"{name}: {policy.model}",
            public=policy.public,
            artefact=policy.model,
        )
    ]


def data(params: Params, run: Run) -> DataSpec:
    """What a run's text goes through, and on which terms."""
    name = run.row.dataset
    found = terms(
        text(params, name),
        redaction(params, name, run.gamma),
        partition(params, name, run.row.dedup),
    )
    return DataSpec(public=params.datasets[name].public, **found)


def training(params: Params, run: Run) -> TrainSpec:
    row = run.row
    start = start_of(params, run.row)
    return TrainSpec(
        run=run.run,
        method=row.method,
        data=data(params, run),
        model=params.models[row.model],
        recipe=params.recipes[row.recipe],
        privacy=params.privacy[row.privacy] if row.privacy is not None else None,
        redact=row.redact,
        domains=row.domains,
        pack=params.datasets[row.dataset].pack,
        init=start.run if start is not None else None,
        init_public=start is not None and is_public(params, start),
        reads=reads(params, run),
        seed=run.seed,
        noise_seed=row.noise_seed,
        every_epoch=bool(row.trajectory),
    )


def certification(params: Params, run: Run) -> CertifySpec:
    return CertifySpec(train=training(params, run), miss_rate=run.gamma)


def evaluation(run: Run) -> EvaluateSpec:
    return EvaluateSpec(run=run.run)


def shadows(params: Params, run: Run, attack: str) -> str | None:
    """File, below data/work, of the shadow models that an attack on a run reads; None: it reads
    none.
    """
    name = getattr(params.attacks[attack], "shadows", None)
    return f"{run.row.dataset}/shadows-{name}.safetensors" if name is not None else None


def attack(params: Params, run: Run, name: str) -> AttackJobSpec:
    return AttackJobSpec(run=run.run, attack=judged(params, name))


def judged(params: Params, name: str) -> AttackSpec:
    """An attack with the policies that judge it in place of their names."""
    spec = params.attacks[name]
    judges = getattr(spec, "judges", {})
    found = {label: placed(params, params.policies[policy]) for label, policy in judges.items()}
    return spec.model_copy(update={"judges": found} if judges else {})


def judge_files(params: Params, attacks: list[str]) -> list[str]:
    """Files that the policies run which judge attacks."""
    return files_of(
        params,
        *(
            policy
            for name in attacks
            for policy in getattr(params.attacks[name], "judges", {}).values()
        ),
    )


def references(params: Params, attacks: list[str]) -> list[Run]:
    """The runs that attacks take for reference models: the first of each row that they name."""
    rows = [
        row
        for attack in attacks
        if (row := getattr(params.attacks[attack], "reference", None)) is not None
    ]
    return [of_row(params, row)[0] for row in dict.fromkeys(rows)]


def trajectory(params: Params, run: Run) -> TrajectorySpec:
    return TrajectorySpec(
        run=run.run, attacks={name: judged(params, name) for name in run.row.trajectory}
    )


# Studies
# -----------------------------------------------------------------------------------------------------------


def outcomes(run: Run) -> list[str]:
    """Stems of the files that are made of one trained model."""
    return [
        CERTIFICATE,
        EVALUATION,
        *run.row.attacks,
        *([TRAJECTORY] if run.row.trajectory else []),
    ]
