"""Frozen specifications: one block of params.yaml or one stage each. Unknown keys and wrong types are refused by name.

Nothing here has a default that an experiment would vary silently: defaults are the papers' settings or "off".
"""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from confide.errors import InputError

Fraction = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=0)]
Natural = Annotated[int, Field(ge=1)]


class Spec(BaseModel):
    """Base of all specifications: immutable, strict about keys, no NaN or infinity."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


# Corpora -----------------------------------------------------------------------------------------------------------


class Sizes(Spec):
    """How many documents of each split."""

    train: Natural
    valid: Natural
    test: Natural


class CustomerSimSpec(Spec):
    """The embedded simulator of customer-support dialogues (same agenda and value formats as Shi et al. 2021)."""

    reader: Literal["customersim"]
    sizes: Sizes
    seed: int = 1111
    variant: Literal["private", "public"] = "private"  # public: other sentences, other values, for tokenizer and warm start
    shared_users: bool = False  # True: one user table for all splits, as published (leaks train names into test)
    users: Natural = 20_000


class DialogFilesSpec(Spec):
    """The authors' own CustomerSim: one dial-N.txt per dialogue."""

    reader: Literal["dialog_files"]
    archive: Literal["customersim"] = "customersim"
    sizes: Sizes | None = None  # None: all; else the first so many by number


class LinesSpec(Spec):
    """The user's own corpus: JSONL (text; optional doc, author, domain, split, spans) or plain text, a document a line."""

    reader: Literal["lines"]
    path: str
    valid: Fraction = 0.1  # share of documents where lines carry no split
    test: Fraction = 0.1
    seed: int = 0


class WikiTextSpec(Spec):
    """WikiText-2 raw lines; secrets are tokens of digits (Shi et al. 2021)."""

    reader: Literal["wikitext"]
    archive: Literal["wikitext-2"] = "wikitext-2"
    lines: Natural | None = None  # first so many non-empty lines of each split


CorpusSpec = Annotated[CustomerSimSpec | DialogFilesSpec | LinesSpec | WikiTextSpec, Field(discriminator="reader")]


# Data stages -------------------------------------------------------------------------------------------------------


class FetchSpec(Spec):
    archive: str


class SplitSpec(Spec):
    corpus: CorpusSpec
    point: Literal["turn", "dialogue", "sentence", "window"] = "turn"
    window: Natural = 40  # words, for point: window


class CanarySpec(Spec):
    """`count` secrets drawn from the template's digits, each planted `copies` times in train; `controls` are never planted."""

    template: str = "My ID is: {6}"  # {n}: n random digits (the secret)
    count: Count = 10
    copies: Natural = 20
    controls: Count = 10
    seed: int = 0
    label: str = "canary"


class DedupSpec(Spec):
    """digest sha1 is the papers' plain SHA-1; hmac-sha1 keys it with a random key that is never stored."""

    digest: Literal["hmac-sha1", "sha1"] = "hmac-sha1"


class RegexPolicySpec(Spec):
    kind: Literal["regex"]
    patterns: dict[str, str]  # label -> pattern


class EverythingPolicySpec(Spec):
    """Fires on every text: pi_c = 1 of CRT section 3.2, where no conservative policy is at hand."""

    kind: Literal["everything"]


PolicySpec = Annotated[RegexPolicySpec | EverythingPolicySpec, Field(discriminator="kind")]


class RedactSpec(Spec):
    policy: PolicySpec
    conservative: PolicySpec
    miss_rate: Fraction = 0.0  # gamma: share of unique secrets that the policy is made to miss
    miss_seed: int = 0


class AuditSpec(Spec):
    confidence: Fraction = 0.95


class TokenizerSpec(Spec):
    """bpe: ours, byte-level, single digits, trained on a public corpus. gpt2: files (archive or folder) or a hub name."""

    kind: Literal["bpe", "gpt2"]
    corpus: str | None = None  # bpe: name of the public corpus it is trained on
    vocab_size: Natural = 1024
    source: str | None = None  # gpt2: "archive", a folder with vocab.json and merges.txt, or a hub name


class PartitionSpec(Spec):
    dedup: bool = True
    scope: Literal["private", "all"] = "private"  # which copies are masked; all = CRT Algorithm 1 to the letter


# Models and training -----------------------------------------------------------------------------------------------


class LSTMSpec(Spec):
    kind: Literal["lstm"]
    embedding: Natural = 200
    hidden: Natural = 200
    layers: Natural = 1
    dropout: Fraction = 0.0


class GPT2Spec(Spec):
    """transformers' GPT-2; `pretrained` (hub name or folder) overrides the sizes."""

    kind: Literal["gpt2"]
    layers: Natural = 6
    width: Natural = 768
    heads: Natural = 12
    positions: Natural = 1024
    dropout: Fraction = 0.0
    pretrained: str | None = None


ModelSpec = Annotated[LSTMSpec | GPT2Spec, Field(discriminator="kind")]


class PrivacySpec(Spec):
    """Either a target epsilon (noise calibrated to the enumerated steps) or a noise_multiplier, not both."""

    epsilon: Positive | None = None
    noise_multiplier: Positive | None = None
    delta: Annotated[float, Field(gt=0, lt=1)] = 8e-5
    max_grad_norm: Positive = 1.0
    relation: Literal["add_or_remove", "replace_one", "zero_out"] = "replace_one"


class RecipeSpec(Spec):
    """How to optimize. Exact and noisy updates keep separate optimizer states and learning rates."""

    optimizer: Literal["adam", "sgd"] = "adam"
    lr: Positive = 5e-3
    noisy_lr: Positive | None = None  # None: lr
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    schedule: Literal["constant", "linear"] = "linear"  # linear: warm-up over 5 % of the updates, then down to 5 % of lr
    batch_size: Natural = 64  # of exact updates
    noisy_batch_size: Natural = 256  # expected size of the Poisson batch, a public constant
    epochs: Natural = 10
    noisy_epochs: Natural | None = None  # passes over the private pool in all; None: epochs
    exact_clip: Positive | None = 1.0  # global gradient norm of exact updates
    physical_batch_size: Natural = 256  # memory bound: examples in one forward pass


class TrainSpec(Spec):
    """One training job. `privacy` may be None only where the method yields no noisy step."""

    run: str
    method: str
    model: ModelSpec
    recipe: RecipeSpec
    privacy: PrivacySpec | None = None
    redact: bool = True  # False (ablation): steps that ask for the redacted view read the original one
    init: str | None = None  # name of the run whose weights are the start
    init_public: bool = False  # that run saw public text only (its dataset says so)
    seed: int = 0
    noise_seed: int | None = 0  # None: system entropy; a recorded seed makes the noise reproducible: not for release
    device: str = "auto"  # auto: cuda where there is one, else cpu
    checkpoint_every: Natural = 50  # updates


class CertifySpec(Spec):
    run: str
    privacy: PrivacySpec | None = None
    confidence: Fraction = 0.95
    point: str = "turn"
    dedup: bool = True
    miss_rate: Fraction = 0.0
    delta2: Fraction = 0.0  # assumed miss probability of pi_c beyond what the audit bounds
    everything_private: bool = False  # pi_c fires on every text, so that nothing can slip into the public pool
    noise_seed: int | None = 0
    init: str | None = None  # what the run was warm-started from, as named in the certificate


class EvaluateSpec(Spec):
    run: str
    split: Literal["valid", "test"] = "test"
    batch_size: Natural = 256
    device: str = "auto"


class ExposureSpec(Spec):
    kind: Literal["exposure"]
    chunk: Natural = 20_000  # prefix-tree states held at once


class MembershipSpec(Spec):
    kind: Literal["membership"]
    label: str = "address"  # kind of gold secret that is attacked
    limit: Natural = 1000  # members and non-members each
    group: Natural = 20
    bootstrap: Natural = 1000
    seed: int = 0


AttackSpec = Annotated[ExposureSpec | MembershipSpec, Field(discriminator="kind")]


class AttackJobSpec(Spec):
    run: str
    attack: AttackSpec
    device: str = "auto"


class ReportRun(Spec):
    """One trained run of a study; `name` is its row of the sample sheet, shared by all its gammas and seeds."""

    run: str
    name: str
    method: str
    dataset: str
    variant: str | None = None  # what tells it from another row of the same method; None: model and ablations say it
    model: str
    gamma: Fraction
    seed: int
    dedup: bool = True
    redact: bool = True
    attacks: list[str] = []


class AmplificationSpec(Spec):
    """The closed-form curves of CRT Figure 6; the mechanism only matters where delta / gamma or the relation does."""

    delta: Annotated[float, Field(gt=0, lt=1)] = 8e-5
    epsilons: tuple[Positive, ...] = (0.5, 1.0, 2.0, 3.0)
    sample_rate: Annotated[float, Field(gt=0, lt=1)] = 0.0256
    steps: Natural = 391
    labelled: Natural = 200  # hand-labelled secrets that the miss rate is estimated from
    confidence: Fraction = 0.95


class ReportSpec(Spec):
    """Runs and figures of one study. `gamma`: the one that figures without a gamma axis show (None: 0.1 or the nearest)."""

    study: str
    title: str
    figures: list[str] = []
    runs: Annotated[list[ReportRun], Field(min_length=1)]
    gamma: Fraction | None = None
    amplification: AmplificationSpec = AmplificationSpec()


# params.yaml -------------------------------------------------------------------------------------------------------


class DatasetSpec(Spec):
    """A corpus with everything that turns it into a partition; names refer to the other blocks."""

    corpus: str
    public: bool = False  # True: nothing in it needs protection; certificates name it as public
    point: Literal["turn", "dialogue", "sentence", "window"] = "turn"
    window: Natural = 40
    canaries: str | None = None
    dedup: DedupSpec = DedupSpec()
    scope: Literal["private", "all"] = "private"
    policy: str
    conservative: str
    miss_seed: int = 0
    tokenizer: str


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
    gammas: Annotated[list[Fraction], Field(min_length=1)] = [0.0]
    seeds: Annotated[list[int], Field(min_length=1)] = [0]
    noise_seed: int | None = 0
    attacks: list[str] = []


class StudySpec(Spec):
    """What to build together: one figure or table of a paper, or a comparison."""

    title: str
    runs: Annotated[list[str], Field(min_length=1)]
    figures: list[str] = []


class TrackingSpec(Spec):
    experiment: str = "confide"
    uri: str = "sqlite:///mlflow.db"  # MLFLOW_TRACKING_URI overrides


class TrackSpec(Spec):
    """What to load into the tracking server: trained runs with their settings, and the studies that list them."""

    tracking: TrackingSpec = TrackingSpec()
    runs: list[TrainSpec]
    studies: list[ReportSpec] = []


class Params(Spec):
    """The whole of params.yaml: definitions are mappings, selections are lists."""

    corpora: dict[str, CorpusSpec]
    tokenizers: dict[str, TokenizerSpec]
    policies: dict[str, PolicySpec]
    canaries: dict[str, CanarySpec]
    datasets: dict[str, DatasetSpec]
    models: dict[str, ModelSpec]
    recipes: dict[str, RecipeSpec]
    privacy: dict[str, PrivacySpec]
    attacks: dict[str, AttackSpec]
    runs: dict[str, RunSpec]
    studies: dict[str, StudySpec]
    select: Annotated[list[str], Field(min_length=1)]
    tracking: TrackingSpec = TrackingSpec()


S = TypeVar("S", bound=Spec)


def parse(cls: type[S], value: Any, *, file: str | None = None) -> S:
    """Build a spec from a mapping; InputError names the first offending key and its value."""
    try:
        return cls.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        message = "unknown key" if first["type"] == "extra_forbidden" else first["msg"]
        shown = None if first["type"] == "missing" else first["input"]
        shown = type(shown).__name__ if isinstance(shown, dict | list) else shown
        raise InputError(message, file=file, key=key or cls.__name__, value=shown) from None
