"""The sample sheet, expanded: the jobs that params.yaml asks for, and each one's specification.

A specification holds exactly what its job depends on, so that a changed key reruns the jobs that it
touches and no others. A run is one row at one gamma and seed; its name is "row/g<gamma>-s<seed>".
Rows that agree in all that training depends on are trained once, under the shortest of their names:
two trainings of them would differ in noise alone, and be paid for twice.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path

from confide.attacks.exposure.blocks import block_count
from confide.config.kept import kept
from confide.config.policy_files import PIPELINE, files_of, placed, trained
from confide.corpora.lines import is_synthetic
from confide.provenance.terms import digest_of_specs, terms
from confide.specs import (
    TEXT_AUDIT,
    AttackJobSpec,
    AttackSpec,
    AuditCanarySpec,
    CanarySpec,
    CertifySpec,
    DatasetSpec,
    DataSpec,
    EvaluateSpec,
    ExposureSpec,
    FoundValuesSpec,
    MarkedSpec,
    NeighboursSpec,
    Params,
    PartitionSpec,
    PolicySpec,
    ReadSpec,
    RecallSpec,
    RedactSpec,
    RunSpec,
    ShadowsSpec,
    SplitSpec,
    SyntheticSpec,
    TableSpec,
    TextAuditJobSpec,
    TextSpec,
    TextsSpec,
    TrainSpec,
    TrajectorySpec,
    WordCanarySpec,
    WorthJobSpec,
)
from confide.specs.data import DIALOGUES, Point
from confide.text.canary_templates import DIGITS

TOKEN_SLOT = "{token}"  # of an audit's template
POINT: Point = DatasetSpec.model_fields["point"].default  # of a corpus that only a tokenizer reads
MODEL_FILES = (
    "model.safetensors",
    "config.json",
    "metrics.jsonl",
    "ledger.jsonl",
    "epochs.safetensors",
)
# what may differ between rows that share a job where they have a miss rate and a seed in common
OWN = {"gammas", "seeds", "attacks", "synthesis", "label"}
TRAINED_BY = tuple(name for name in RunSpec.model_fields if name not in OWN)
CERTIFICATE = "certificate"
EVALUATION = "evaluate"
TRAJECTORY = "trajectory"
OF_TEXTS = ("worth", TEXT_AUDIT)  # what is measured of the texts that a model writes
VALUES = "data/work/{}/found_values.json"  # of a public dataset
FILL_KEY = "data/work/{}/fill_key"  # by which a dataset gets values in place of masks: a secret
TRIALS = ("tuning", "tuning_values")  # studies whose runs are trials: of recipes, of fills of masks


def trials(params: Params) -> list[str]:
    """The studies TRIALS that there are."""
    return [name for name in TRIALS if name in params.studies]


@dataclass(frozen=True, slots=True)
class Run:
    """One model to train."""

    name: str  # of its row
    row: RunSpec
    gamma: float
    seed: int
    home: str  # of the rows that ask for this very training, the one that gives the job its name
    run: str = field(init=False)  # name of the job, in which thousands of files lie

    def __post_init__(self) -> None:
        name = f"{self.home}/g{gamma_text(self.gamma)}-s{self.seed}"
        object.__setattr__(self, "run", name)  # the class is frozen

    @property
    def redaction(self) -> str:
        """Folder of its policy's findings, below data/work."""
        return f"{self.row.dataset}/g{gamma_text(self.gamma)}"

    @property
    def partition(self) -> str:
        """Folder of its two views, below data/work."""
        return f"{self.redaction}-{'dedup' if self.row.dedup else 'nodedup'}"


def gamma_text(gamma: float) -> str:
    """A miss rate as it stands in file names: shortest exact decimal without an exponent."""
    text = format(Decimal(repr(float(gamma))), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def of_row(params: Params, name: str) -> list[Run]:
    """A row's runs, gamma by gamma."""
    return list(runs_by_row(params)[name])


@kept
def runs_by_row(params: Params) -> dict[str, list[Run]]:
    """The runs of each row, gamma by gamma."""
    comparable: dict[tuple[str, ...], list[str]] = {}  # rows that have these names in common
    for name, row in params.runs.items():
        comparable.setdefault((row.dataset, row.model, row.method, row.recipe), []).append(name)
    return {
        name: runs_in(params, name, others) for others in comparable.values() for name in others
    }


def runs_in(params: Params, name: str, others: Iterable[str]) -> list[Run]:
    """A row's runs; `others`: all rows that may be trained alike, itself among them."""
    row = params.runs[name]
    alike = [other for other in others if trained_alike(params.runs[other], row)]
    alike.sort(key=lambda other: (len(other), other))  # whatever the order of files

    def home(gamma: float, seed: int) -> str:
        return next(
            other
            for other in alike
            if gamma in params.runs[other].gammas and seed in params.runs[other].seeds
        )

    return [
        Run(name, row, gamma=gamma, seed=seed, home=home(gamma, seed))
        for gamma in row.gammas
        for seed in row.seeds
    ]


def trained_alike(row: RunSpec, other: RunSpec) -> bool:
    """Whether two rows differ in nothing that a training or its own measurements depend on.

    Guarantees: trainings that share a job, and so its noise, are one mechanism on one data
    set. Rows that differ in anything but their attacks, label, miss rates and seeds have jobs of
    their own, whose streams have other names.
    """
    return all(getattr(row, name) == getattr(other, name) for name in TRAINED_BY)


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
    attacks = [name for run in listed for name in (*run.row.attacks, *run.row.trajectory)]
    listed += references(params, attacks)
    runs: dict[str, Run] = {}
    for last in listed:
        for run in (*reversed(ancestors(params, last)), last):
            runs[run.run] = with_attacks_of(run, runs.get(run.run))
    return runs


def with_attacks_of(run: Run, other: Run | None) -> Run:
    """A run with the attacks and texts, too, that another row asks for of the same job."""
    if other is None:
        return run
    attacks = list(dict.fromkeys([*other.row.attacks, *run.row.attacks]))
    synthesis = run.row.synthesis or other.row.synthesis
    if set(attacks) == set(run.row.attacks) and synthesis == run.row.synthesis:
        return run
    update = {"attacks": attacks, "synthesis": synthesis}
    return replace(run, row=run.row.model_copy(update=update))


# Data
# -------------------------------------------------------------------------------------------------


def source_name(corpus: str, point: Point, window: int) -> str:
    """Folder of a corpus cut into points."""
    return f"{corpus}-{point}{window}" if point == "window" else f"{corpus}-{point}"


def source_of(dataset: DatasetSpec) -> str:
    """Folder of a dataset's corpus, cut as the dataset says."""
    return source_name(dataset.corpus, dataset.point, dataset.window)


def sources(params: Params) -> dict[str, SplitSpec]:
    """Each corpus in each cut that a dataset or a tokenizer reads."""
    cuts: list[tuple[str, Point, int]] = [
        (dataset.corpus, dataset.point, dataset.window) for dataset in params.datasets.values()
    ]
    read_by_others = [
        *(tokenizer.corpus for tokenizer in params.tokenizers.values()),
        *(pipeline.entities for pipeline in params.pipelines.values()),
        *(policy.corpus for policy in params.domain_policies.values()),
        *(words.corpus for words in params.word_lists.values()),
    ]
    cuts += [(corpus, POINT, 0) for corpus in read_by_others if corpus is not None]
    return {source_name(*cut): split_spec(params, *cut) for cut in cuts}


def split_spec(params: Params, corpus: str, point: Point, window: int) -> SplitSpec:
    """A corpus in one cut; a window of no words is none."""
    options = {"window": window} if window else {}
    return SplitSpec(corpus=params.corpora[corpus], point=point, **options)


def canaries(params: Params, dataset: str) -> CanarySpec | WordCanarySpec:
    """What to plant; nothing where the dataset names no canaries."""
    name = params.datasets[dataset].canaries
    return params.canaries[name] if name is not None else CanarySpec(count=0, controls=0)


def canary_words(params: Params, dataset: str) -> str | None:
    """The tokenizer whose words or new tokens canaries are made of; None: they are of digits."""
    spec = canaries(params, dataset)
    are_of_words = spec.kind == "words" or token_audits(spec)
    return params.datasets[dataset].tokenizer if are_of_words else None


def token_audits(spec: CanarySpec | WordCanarySpec) -> dict[str, AuditCanarySpec]:
    """The audits, by set, whose canaries end in new tokens."""
    audits = (("game", spec.game), ("inclusion", spec.inclusion))
    return {name: audit for name, audit in audits if audit and TOKEN_SLOT in audit.template}


@kept
def redaction(params: Params, dataset: str, gamma: float) -> RedactSpec:
    """How a dataset is redacted at one miss rate."""
    spec = params.datasets[dataset]
    return RedactSpec(
        policy=placed(params, params.policies[spec.policy]),
        conservative=placed(params, params.policies[spec.conservative]),
        miss_rate=gamma,
        miss_seed=spec.miss_seed,
    )


def partition(params: Params, dataset: str, dedup: bool) -> PartitionSpec:
    """How a dataset is parted into public and private."""
    spec = params.datasets[dataset]
    return PartitionSpec(
        dedup=dedup,
        scope=spec.scope,
        merge_masks=spec.merge_masks,
        learn=spec.learn,
        fill=spec.fill,
    )


@kept
def text(params: Params, name: str) -> TextSpec:
    """Which text a dataset's points are of, as a training and a measurement name it."""
    dataset = params.datasets[name]
    source = split_spec(params, dataset.corpus, dataset.point, dataset.window)
    return TextSpec(
        dataset=name,
        corpus=digest_of_specs(source.corpus),
        cut=digest_of_specs(source, canaries(params, name), dataset.dedup),
        point=dataset.point,
        labels=dataset.labels,
    )


def recall(params: Params, dataset: str, gamma: float) -> RecallSpec:
    """The count of what a dataset's policies miss."""
    return RecallSpec(
        text=text(params, dataset),
        redact=redaction(params, dataset, gamma),
        named=named(params, dataset),
        reads=list(policies_reads(params, dataset)),
    )


def marked(params: Params, dataset: str, gamma: float) -> MarkedSpec:
    """What a review of a dataset is of."""
    return MarkedSpec(text=text(params, dataset), redact=redaction(params, dataset, gamma))


def neighbours(params: Params, dataset: str, gamma: float, dedup: bool) -> NeighboursSpec:
    """The neighbour test of a dataset."""
    return NeighboursSpec(
        text=text(params, dataset),
        redact=redaction(params, dataset, gamma),
        partition=partition(params, dataset, dedup),
        named=named(params, dataset),
        reads=data_reads(params, dataset),
    )


def named(params: Params, dataset: str) -> list[str]:
    """Labels of gold spans that a corpus's settings name, where all of its labels are secrets."""
    corpus = params.corpora[params.datasets[dataset].corpus]
    all_count = params.datasets[dataset].labels is None
    return list(corpus.secrets) if isinstance(corpus, TableSpec) and all_count else []


# Models
# -------------------------------------------------------------------------------------------------


def is_public(params: Params, run: Run) -> bool:
    """Whether nothing that a run and its ancestors have seen needs protection."""
    return not not_public(params, run)


def not_public(params: Params, run: Run) -> list[str]:
    """What a run and its ancestors have seen that needs protection: corpora, and what stages
    before training made of such, or of what nobody declares public.
    """
    seen = [run, *ancestors(params, run)]
    made = [read.source for one in seen for read in reads(params, one) if not read.public]
    return list(dict.fromkeys([*protected(params, run), *made]))


@kept
def public_corpora(params: Params) -> frozenset[str]:
    """Names of the corpora that a dataset declares public, and no other dataset contradicts.

    Nothing else makes a corpus public, and least of all that something was trained on it.
    """
    declared = {dataset.corpus for dataset in params.datasets.values() if dataset.public}
    return frozenset(declared - protected_corpora(params))


def protected_corpora(params: Params) -> set[str]:
    """Names of the corpora that some dataset protects."""
    return {dataset.corpus for dataset in params.datasets.values() if not dataset.public}


def taken_for_public(params: Params, run: Run) -> list[str]:
    """Names of the corpora that a run and its ancestors read as public, for whatever purpose."""
    used: list[str | None] = []
    for seen in [run, *ancestors(params, run)]:
        dataset = params.datasets[seen.row.dataset]
        used += [dataset.corpus, params.tokenizers[dataset.tokenizer].corpus]
        policies = [dataset.policy, dataset.conservative]
        if dataset.values_of is not None:
            public_dataset = params.datasets[dataset.values_of]
            used.append(public_dataset.corpus)
            policies.append(public_dataset.policy)
        for name in policies:
            used += trained(params, params.policies[name]).values()
    public = public_corpora(params)
    return [name for name in dict.fromkeys(used) if name is not None and name in public]


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
    products = data_reads(params, run.row.dataset)
    model = params.models[run.row.model]
    if model.kind != "lstm" and (name := model.pretrained) is not None:
        products.append(
            ReadSpec(stage="pretrained", source=name, public=model.public, artefact=name)
        )
    return products


def data_reads(params: Params, dataset: str) -> list[ReadSpec]:
    """What a dataset brings with it: its vocabulary, the models of its policies, and values that
    stand in place of masks.
    """
    vocabulary = tokenizer_read(params, params.datasets[dataset].tokenizer)
    return [vocabulary, *policies_reads(params, dataset), *values_reads(params, dataset)]


def values_reads(params: Params, dataset: str) -> list[ReadSpec]:
    """The text whose values stand in place of a dataset's masks, if it is another one's.

    They are public where that text is, and whatever the policy that finds them was made of.
    """
    name = params.datasets[dataset].values_of
    if name is None:
        return []
    spec = params.datasets[name]
    found_by = policy_reads(params, spec.policy, params.policies[spec.policy])
    public = spec.corpus in public_corpora(params) and all(read.public for read in found_by)
    return [ReadSpec(stage="values", source=name, public=public, artefact=VALUES.format(name))]


def found_values(params: Params, dataset: str) -> FoundValuesSpec:
    """What counts as a value of a public dataset."""
    return FoundValuesSpec(merge_masks=params.datasets[dataset].merge_masks)


@kept
def policies_reads(params: Params, dataset: str) -> tuple[ReadSpec, ...]:
    """What the models of a dataset's policies were made of; at least one for each of the two."""
    spec = params.datasets[dataset]
    names = (spec.policy, spec.conservative)
    return tuple(
        read for name in names for read in policy_reads(params, name, params.policies[name])
    )


@kept
def tokenizer_read(params: Params, name: str) -> ReadSpec:
    """What a vocabulary was made of; the archive is pinned by its digest, and published."""
    tokenizer = params.tokenizers[name]
    if tokenizer.kind == "bpe":
        public = tokenizer.corpus in public_corpora(params)
    else:
        public = tokenizer.public or tokenizer.is_archive
    return ReadSpec(stage="tokenizer", source=name, public=public)


def policy_reads(params: Params, name: str, policy: PolicySpec) -> list[ReadSpec]:
    """What the models of a policy were made of.

    A policy of patterns alone is a constant of params.yaml.
    """
    if policy.kind == "union":
        return [read for part in policy.policies for read in policy_reads(params, name, part)]
    if policy.kind == "words":
        source = f"{name}: {policy.path}"
        public = policy.independent
        return [ReadSpec(stage="policy", source=source, public=public, artefact=policy.path)]
    model: str | None = getattr(policy, "model", None)
    if model is None:
        return [ReadSpec(stage="policy", source=name, public=True)]

    def read(product: str, artefact: str, *, public: bool) -> ReadSpec:
        source = f"{name}: {product}"
        return ReadSpec(stage="policy", source=source, public=public, artefact=artefact)

    corpus_by_file = trained(params, policy)
    if not corpus_by_file:
        declared: bool = getattr(policy, "public", False)
        return [read(model, model, public=declared)]
    ((file, corpus),) = corpus_by_file.items()
    public = corpus is None or corpus in public_corpora(params)
    if file == PIPELINE.format(model):
        public &= not is_protected_treebank(params, params.pipelines[model].treebank)
    products = [read(model, file, public=public)]
    # a name of `domain_policies` may be one of `pipelines`, too
    fit = params.domain_policies[model].fit if policy.kind == "classifier" else None
    if fit is not None and fit.kind == "classifier" and fit.pretrained is not None:
        products.append(read(fit.pretrained, fit.pretrained, public=fit.public))
    return products


def is_protected_treebank(params: Params, treebank: str | None) -> bool:
    """Whether some dataset protects the text of a treebank that pipelines learn from."""
    protected = [params.corpora[name] for name in protected_corpora(params)]
    return treebank in [corpus.archive for corpus in protected if corpus.reader == "treebank"]


@kept
def written_by_a_model(params: Params, corpus: str) -> bool:
    """Whether a corpus is a file that `confide synthesize` wrote."""
    place = getattr(params.corpora[corpus], "path", None)
    return place is not None and is_synthetic(Path(place))


def data(params: Params, run: Run) -> DataSpec:
    """What a run's text goes through, and on which terms."""
    name = run.row.dataset
    dataset = params.datasets[name]
    redacted = redaction(params, name, run.gamma)
    parted = partition(params, name, run.row.dedup)
    reader = params.corpora[dataset.corpus].reader
    return DataSpec(
        public=dataset.public,
        synthetic=written_by_a_model(params, dataset.corpus),
        texts="dialogues" if reader in DIALOGUES else "documents",
        **terms(text(params, name), redacted, parted),
    )


def training(params: Params, run: Run) -> TrainSpec:
    """The training of a run."""
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
    """The certificate of a run."""
    return CertifySpec(train=training(params, run), miss_rate=run.gamma)


def evaluation(run: Run) -> EvaluateSpec:
    """The evaluation of a run."""
    return EvaluateSpec(run=run.run)


def shadows(params: Params, run: Run, attack: str) -> str | None:
    """File, below data/work, of the shadow models that an attack on a run reads, if it does."""
    name = getattr(params.attacks[attack], "shadows", None)
    return f"{run.row.dataset}/shadows-{name}.safetensors" if name is not None else None


def shadow_models(params: Params, name: str) -> ShadowsSpec:
    """Shadow models, with the model that they are adapters of in place of its name."""
    spec = params.shadows[name]
    model = None if spec.model is None else params.models[str(spec.model)]
    return spec.model_copy(update={"model": model})


def shadow_base(params: Params, name: str) -> str | None:
    """The pretrained model that shadow models are adapters of, if they are."""
    return getattr(shadow_models(params, name).model, "pretrained", None)


def attack(params: Params, run: Run, name: str) -> AttackJobSpec:
    """An attack on a run."""
    return AttackJobSpec(run=run.run, attack=judged(params, name))


def candidate_shares(params: Params, run: Run, name: str, most: int) -> int:
    """In how many jobs the candidates of an attack on a run are counted: of a budget, of another
    attack and of few candidates in one.
    """
    spec = params.attacks[name]
    canaries = params.canaries.get(params.datasets[run.row.dataset].canaries or "")
    if not (isinstance(spec, ExposureSpec) and isinstance(canaries, CanarySpec)):
        return 1
    digits = DIGITS.search(canaries.template)
    if spec.evaluations is not None or digits is None:
        return 1
    return min(most, block_count(int(digits[1])))


def judged(params: Params, name: str) -> AttackSpec:
    """An attack with the policies that judge it in place of their names."""
    spec = params.attacks[name]
    judges = {
        label: placed(params, params.policies[policy])
        for label, policy in getattr(spec, "judges", {}).items()
    }
    return spec.model_copy(update={"judges": judges} if judges else {})


def judge_files(params: Params, attacks: list[str]) -> list[str]:
    """Files that the policies run which judge attacks."""
    judges = [getattr(params.attacks[name], "judges", {}) for name in attacks]
    return files_of(params, *(policy for named in judges for policy in named.values()))


def references(params: Params, attacks: list[str]) -> list[Run]:
    """The runs that attacks take for reference models: the first of each row that they name."""
    rows = dict.fromkeys(getattr(params.attacks[name], "reference", None) for name in attacks)
    return [of_row(params, row)[0] for row in rows if row is not None]


def trajectory(params: Params, run: Run) -> TrajectorySpec:
    """The attacks on a run as it was after every epoch."""
    attacks = {name: without_texts(judged(params, name)) for name in run.row.trajectory}
    return TrajectorySpec(run=run.run, attacks=attacks)


def without_texts(attack: AttackSpec) -> AttackSpec:
    """The attack as numbers alone, of one that shows texts, too."""
    return attack.model_copy(update={"examples": 0}) if hasattr(attack, "examples") else attack


# Texts
# -------------------------------------------------------------------------------------------------


def texts(params: Params, run: Run) -> TextsSpec:
    """What a run's model writes, and what is measured of it; KeyError where it writes nothing."""
    return params.synthesis[run.row.synthesis or ""]


def synthetic(params: Params, run: Run) -> SyntheticSpec:
    """The texts of a run."""
    return SyntheticSpec(run=run.run, texts=texts(params, run).texts)


def worth(params: Params, run: Run) -> WorthJobSpec:
    """What texts of a run are worth."""
    policy = params.policies[params.datasets[run.row.dataset].policy]
    return WorthJobSpec(run=run.run, worth=texts(params, run).worth, policy=placed(params, policy))


def text_audit(params: Params, run: Run) -> TextAuditJobSpec:
    """What texts of a run give away."""
    return TextAuditJobSpec(run=run.run, audit=texts(params, run).audit)


# Studies
# -------------------------------------------------------------------------------------------------


def outcomes(run: Run) -> list[str]:
    """Stems of the files that are made of one trained model."""
    epochs = [TRAJECTORY] if run.row.trajectory else []
    of_texts = OF_TEXTS if run.row.synthesis is not None else ()
    return [CERTIFICATE, EVALUATION, *run.row.attacks, *epochs, *of_texts]
