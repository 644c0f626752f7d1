"""params.yaml as a whole, and the reports and records that are made from it."""

from typing import Annotated

from pydantic import Field

from confide.spec_base import Count, Fraction, Natural, Positive, Spec
from confide.specs.canaries import AnyCanarySpec
from confide.specs.data import (
    CorpusSpec,
    DedupSpec,
    Label,
    Learn,
    PartitionSpec,
    Point,
    RedactSpec,
    Scope,
    TokenizerSpec,
)
from confide.specs.policies import DomainPolicySpec, PipelineSpec, PolicySpec, WordListSpec
from confide.specs.synthesis import TextsSpec
from confide.specs.training import (
    AttackSpec,
    ModelSpec,
    PrivacySpec,
    RecipeSpec,
    ShadowsSpec,
    TrainSpec,
)


class ReportRun(Spec):
    """One trained run of a study; `name` is its row of the sample sheet, shared by all its gammas
    and seeds.
    """

    run: str
    name: str
    method: str
    dataset: str
    corpus: str | None = (
        # what it is tested on: datasets of one corpus and tokenizer share it; None: its dataset
        None
    )
    reader: str | None = None  # of its corpus: whether that is simulated
    variant: str | None = (
        None  # what tells it from another row of the same method; None: model and ablations say it
    )
    model: str
    gamma: Fraction
    seed: int
    dedup: bool = True
    redact: bool = True
    domains: list[str] | None = None  # only points of these were trained on; None: of all
    attacks: list[str] = []
    trajectory: list[str] = []  # attacks that were run on the model after every epoch, too

    @property
    def assessment(self) -> str:
        """File of the page for whoever assesses the model, in the folder of a study."""
        return f"assessment_{self.run.replace('/', '_')}.html"


class RankedRun(ReportRun):
    """A run that may stand in a leaderboard."""

    recipe: str  # its name in params.yaml
    init: str | None = None  # the row that it started from
    covered: bool = False  # its policy is a cover, which stands in for one that misses
    # exact updates read values in place of masks, made-up ones (True) or those of public text
    filled: bool | str = False


class PanelSpec(Spec):
    """The runs of one study, which are compared with each other alone: one corpus, one model.

    Claims count at no larger a delta.
    """

    study: str
    runs: Annotated[list[RankedRun], Field(min_length=1)]
    delta: Annotated[float, Field(gt=0, lt=1)] = 8e-5


class LeaderboardSpec(Spec):
    """What is worth most at equal epsilon. `panels`: the studies that are compared, each by itself,
    with their titles.
    """

    leaderboard: str
    panels: Annotated[dict[str, str], Field(min_length=1)]
    epsilons: Annotated[list[Positive], Field(min_length=1)] = [1.0, 3.0, 8.0]


class TrialSpec(Spec):
    """What was tried for a method, on text that needs no protection: a recipe, a fill of masks."""

    run: str
    corpus: str
    model: str
    method: str
    covered: bool
    dedup: bool
    filled: bool | str = False
    recipe: str
    settings: RecipeSpec


class TuningSpec(Spec):
    """All trials, as many of each method of a model on each corpus."""

    trials: Annotated[list[TrialSpec], Field(min_length=1)]


class AmplificationSpec(Spec):
    """The closed-form curves of CRT Figure 6; the mechanism only matters where delta / gamma or the
    relation does.
    """

    delta: Annotated[float, Field(gt=0, lt=1)] = 8e-5
    epsilons: tuple[Positive, ...] = (0.5, 1.0, 2.0, 3.0)
    sample_rate: Annotated[float, Field(gt=0, lt=1)] = 0.0256
    steps: Natural = 391
    labelled: Natural = 200  # hand-labelled secrets that the miss rate is estimated from
    confidence: Fraction = 0.95


class ReportSpec(Spec):
    """Runs and figures of one study. `gamma`: the one that figures without a gamma axis show (None:
    0.1 or the nearest).

    `ppl_levels`: validation perplexities at which models are compared, each as it was after the
    epoch that is nearest.
    """

    study: str
    title: str
    figures: list[str] = []
    runs: Annotated[list[ReportRun], Field(min_length=1)]
    gamma: Fraction | None = None
    published: list[str] = []
    examples: bool = False  # some attack of a run wrote texts out
    ppl_levels: list[Positive] = []
    amplification: AmplificationSpec = AmplificationSpec()


class SummarySpec(Spec):
    """All studies that were selected, for the page that opens the report."""

    studies: Annotated[list[ReportSpec], Field(min_length=1)]


class RerunSpec(Spec):
    """The chain from points to a model, run `repetitions` times on D and on D', in which one gold
    secret is masked.
    """

    tokenizer: TokenizerSpec
    dedup: DedupSpec = DedupSpec()
    redact: RedactSpec
    partition: PartitionSpec = PartitionSpec()
    train: TrainSpec  # its noise_seed is replaced by fresh ones, the same for D and D'
    secret: Count = 0  # which gold occurrence of the train split, in file order
    repetitions: Natural = 10
    confidence: Fraction = 0.95
    seed: int = 0  # of the noise seeds


class GateRun(Spec):
    """A run, and an attack that audits it; None: no attack does."""

    run: str
    audit: str | None


class GateSpec(Spec):
    """Certificates of a study, each of which must stand against the audits of its model."""

    study: str
    runs: list[GateRun]


class DatasetSpec(Spec):
    """A corpus with everything that turns it into a partition; names refer to the other blocks."""

    corpus: str
    public: bool = False  # True: nothing in it needs protection; certificates name it as public
    point: Point = "turn"
    window: Natural = 40
    canaries: str | None = None
    dedup: DedupSpec = DedupSpec()
    scope: Scope = "private"
    merge_masks: bool = False
    # exact updates read values where a mask would stand: true, made-up ones; the name of a public
    # dataset, those that its policy finds in its text
    fill: bool | str = False
    # tokens of a chunk, its begin token counted: training reads the train split's points of a
    # domain end to end, cut into such chunks, each a record; needs the conservative policy
    # `everything`. None: a point is a record
    pack: Annotated[int, Field(ge=2)] | None = None
    # of gold spans, those that are secrets: what policies miss is measured on these alone, and the
    # certificate says so; a label that no training secret has counts as missed. None: all
    labels: Annotated[list[Label], Field(min_length=1)] | None = None
    policy: str
    conservative: str
    miss_seed: int = 0
    # file of `confide review`, in which a person marked what the policy misses; None: gold alone
    # says what it misses
    review: str | None = None
    tokenizer: str
    # the tokens that training and evaluation score: all of them; of a corpus of conversations those
    # of assistants' turns; or all_but_read, all but what input_only canaries show. What is
    # protected is the whole point in any case
    learn: Learn = "all"
    # jobs in which it is deduplicated, redacted and tokenized, on as many nodes: the same files. Of
    # a text of less than 4 MB for each of them, some have nothing to do; each opens as many files
    shares: Annotated[int, Field(ge=1, le=500)] = 1

    @property
    def values_of(self) -> str | None:
        """The public dataset whose values stand in place of masks; None: made-up ones, or masks."""
        return self.fill if isinstance(self.fill, str) else None


class RunSpec(Spec):
    """One row of the sample sheet; trained once per gamma and seed."""

    dataset: str
    model: str
    method: str
    recipe: str
    privacy: str | None = None
    init: str | None = None  # run to warm-start from (its first gamma and seed)
    dedup: bool = True
    redact: bool = True
    domains: Annotated[list[str], Field(min_length=1)] | None = (
        None  # only points of these are trained on
    )
    gammas: Annotated[list[Fraction], Field(min_length=1)] = [0.0]
    seeds: Annotated[list[int], Field(min_length=1)] = [0]
    noise_seed: int | None = 0
    attacks: list[str] = []
    trajectory: list[
        str
        # attacks that are run on the model after every epoch, too: all of these are then released
    ] = []
    synthesis: str | None = None  # what its model writes; None: nothing
    label: str | None = None  # what figures and tables call it beside its method


class StudySpec(Spec):
    """What to build together: one figure or table of a paper, or a comparison."""

    title: str
    runs: Annotated[list[str], Field(min_length=1)]
    figures: list[str] = []
    published: list[str] = []  # figures and tables of the papers whose numbers its report quotes
    ppl_levels: list[
        Positive
    ] = []  # validation perplexities at which models are compared, beside the final ones


class TrackingSpec(Spec):
    experiment: str = "confide"
    uri: str = "sqlite:///mlflow.db"  # MLFLOW_TRACKING_URI overrides


class TrackSpec(Spec):
    """What to load into the tracking server: trained runs with their settings, and the studies that
    list them.
    """

    tracking: TrackingSpec = TrackingSpec()
    runs: list[TrainSpec]
    studies: list[ReportSpec] = []


class Params(Spec):
    """All parameters, from whatever files: definitions are mappings, selections are lists."""

    corpora: dict[str, CorpusSpec]
    tokenizers: dict[str, TokenizerSpec]
    pipelines: dict[str, PipelineSpec] = {}
    domain_policies: dict[str, DomainPolicySpec] = {}
    word_lists: dict[str, WordListSpec] = {}
    policies: dict[str, PolicySpec]
    canaries: dict[str, AnyCanarySpec]
    datasets: dict[str, DatasetSpec]
    models: dict[str, ModelSpec]
    recipes: dict[str, RecipeSpec]
    privacy: dict[str, PrivacySpec]
    shadows: dict[str, ShadowsSpec] = {}
    attacks: dict[str, AttackSpec]
    synthesis: dict[str, TextsSpec] = {}
    runs: dict[str, RunSpec]
    studies: dict[str, StudySpec]
    select: Annotated[list[str], Field(min_length=1)]
    papers: list[str] = []  # studies that `snakemake all_papers` builds
    # what `snakemake NAME` compares at equal epsilon, each study by itself; a name begins with
    # leaderboard
    leaderboards: dict[str, Annotated[list[str], Field(min_length=1)]] = {}
    tracking: TrackingSpec = TrackingSpec()


class ParamsFile(Params):
    """A file of parameters: those, and the files below its folder whose definitions belong to
    it.
    """

    include: list[str] = []
