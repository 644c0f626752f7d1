"""Models, training, and what is done with a trained model."""

from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from confide.errors import InputError
from confide.methods import with_options
from confide.methods.atdp import ATDPOptions
from confide.spec_base import Count, Fraction, IfAsked, Natural, Positive, Seed, Spec
from confide.specs.audits import GameSpec, GradientsSpec
from confide.specs.data import Learn, ReadSpec, Scope, TextSpec
from confide.specs.policies import PolicySpec


class LSTMSpec(Spec):
    kind: Literal["lstm"]
    embedding: Natural = 200
    hidden: Natural = 200
    layers: Natural = 1
    dropout: Fraction = 0.0


class GPT2Spec(Spec):
    """transformers' GPT-2; `pretrained` (hub name or folder) overrides the sizes.

    `public`: you declare that the pretrained weights were made from no protected text. Without it
    nothing finite is certified.
    """

    kind: Literal["gpt2"]
    layers: Natural = 6
    width: Natural = 768
    heads: Natural = 12
    positions: Natural = 1024
    dropout: Fraction = 0.0
    pretrained: str | None = None
    public: bool = False
    lora_rank: Annotated[int, Field(ge=0)] = (
        0  # above 0: only LoRA adapters of this rank are trained
    )


class AdapterSpec(Spec):
    """Low-rank adapters (LoRA, Hu et al. 2022).

    They alone are trained, and the rows of new tokens. A layer's output gains (alpha / rank) B A x,
    where A has `rank` rows.
    """

    rank: Natural = 8
    alpha: Positive | None = None  # None: twice the rank
    # names of linear layers as the model has them, such as q_proj; None: all in its blocks
    targets: list[str] | None = None
    dropout: Fraction = 0.0


class CausalLMSpec(Spec):
    """A pretrained language model of transformers, fine-tuned whole or with adapters.

    `pretrained` is a folder that transformers saved, or a model's name on the hub. `public`: you
    declare that its weights were made from no protected text. Without it nothing finite is
    certified.
    """

    kind: Literal["causal_lm"]
    pretrained: str
    # of all its files and their names: no others will do; a trained model has it in config.json
    sha256: str | None = None
    public: bool = False
    adapter: AdapterSpec | None = None  # None: all weights are trained
    dropout: Fraction | None = None  # None: what the model's own configuration says
    # of weights that are not trained; what is trained is float32, and all is on a processor without
    # products of bfloat16
    frozen_dtype: Literal["float32", "bfloat16"] = "float32"


def pretrained_name(pretrained: str) -> str:
    """What others call a pretrained model: its name on the hub, or that of its folder alone.

    By its form, and not by what lies there, so that it is the same on every machine.
    """
    is_path = pretrained.startswith(("/", ".", "~")) or pretrained.count("/") > 1
    return pretrained.rstrip("/").rpartition("/")[2] if is_path else pretrained


ModelSpec = Annotated[LSTMSpec | GPT2Spec | CausalLMSpec, Field(discriminator="kind")]


LEAST_NOISE = 1e-6  # what floats can price
MOST_NOISE = 1e9


class PrivacySpec(Spec):
    """Either a target epsilon (noise calibrated to the enumerated steps) or a noise_multiplier, not
    both.
    """

    epsilon: Positive | None = None
    noise_multiplier: Annotated[float, Field(ge=LEAST_NOISE, le=MOST_NOISE)] | None = None
    delta: Annotated[float, Field(gt=0, lt=1)] = 8e-5
    # with a smaller one rounding would make contributions longer than that
    max_grad_norm: Annotated[float, Field(ge=1e-20)] = 1.0
    # whom the noise protects; author: all points of a person, drawn together, as one clipped mean
    # of their gradients
    unit: Literal["point", "author"] = "point"
    relation: Literal["add_or_remove", "replace_one", "zero_out"] = "replace_one"
    calibrate: Literal["drawn", "every_step"] = (
        "drawn"  # every_step: as if all updates were noisy (DPT as published)
    )
    # discrete_gaussian: integers all the way, each unit's gradient on its own; exact, and many
    # times slower
    noise: Annotated[
        Literal["gaussian", "discrete_gaussian"],
        Field(exclude_if=lambda noise: noise == "gaussian"),  # digests stay what they were
    ] = "gaussian"

    @property
    def discrete(self) -> bool:
        return self.noise == "discrete_gaussian"


class BandedNoiseSpec(Spec):
    """Noise of which later updates take back a part (Choquette-Choo et al. 2023).

    Units are dealt into groups, once and by chance, which take turns.
    """

    kind: Literal["banded"]
    bands: Natural = 4  # updates that noise hangs together over; 1: independent noise
    # sampled: as many groups as bands, a Poisson batch of the group whose turn it is; cyclic: as
    # many groups as a pass has updates, each read whole, so that nothing is left to chance
    order: Literal["sampled", "cyclic"] = "sampled"


@with_options
class RecipeSpec(Spec):
    """How to optimize, and the options of every method, which its file in `methods/` declares.

    Exact and noisy updates keep separate optimizer states and learning rates.
    """

    optimizer: Literal["adam", "sgd"] = "adam"
    lr: Positive = 5e-3
    noisy_lr: Positive | None = None  # None: lr
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    schedule: Literal["constant", "linear"] = (
        "linear"  # linear: warm-up over 5 % of the updates, then down to 5 % of lr
    )
    batch_size: Natural = 64  # of exact updates
    # expected size of the Poisson batch, a public constant; of authors where they are the unit
    noisy_batch_size: Natural = 256
    author_points: Natural | None = (
        32  # of an author who is drawn, at most so many points, at random; None: all of his
    )
    epochs: Natural = 10
    noisy_epochs: Natural | None = None  # passes over the private pool in all; None: epochs
    batching: Literal["uniform", "author"] = (
        "uniform"  # of exact updates; author: as many batches as can be of one author
    )
    exact_clip: Positive | None = 1.0  # global gradient norm of exact updates
    physical_batch_size: Natural = (
        256  # memory bound: examples in one forward pass; halved where they do not fit
    )
    # the same in tokens, padding included, instead of physical_batch_size; one example alone may
    # have more
    physical_tokens: IfAsked[Natural | None] = None
    # recompute each block of a transformer in the backward pass: less memory, a third more time
    gradient_checkpointing: IfAsked[bool] = False
    # of several processes each keeps a part of the blocks' weights (causal_lm); blocks are
    # recomputed
    shard: IfAsked[bool] = False
    # of noised updates (of all, where none is noised), the last over which the weights are
    # averaged; None: the last weights
    average: IfAsked[Fraction | None] = None
    # noised updates clip gradients divided by the root mean squares of exact ones
    precondition: IfAsked[bool] = False
    # what is done to noised gradients of matrices; spectral: singular values that noise alone would
    # have are dropped; subspace: what lies outside of the span of exact gradients
    noisy_filter: IfAsked[Literal["spectral", "subspace"] | None] = None
    noisy_rank: Natural = 16  # directions of that span
    # of methods whose exact updates all come first: how many layers noised ones train, those that
    # exact ones moved most; None: all
    noisy_layers: IfAsked[Natural | None] = None
    # how the noise of updates hangs together; None: independent for each
    noise: IfAsked[BandedNoiseSpec | None] = None
    precision: Literal["float32", "bfloat16"] = (
        "float32"  # of matrix products; weights stay float32, norms and noise float64
    )

    @model_serializer(mode="wrap")
    def _written(self, usual: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without what other fields switch off, so that digests of settings stay what they were."""
        fields = usual(self)
        unused = [] if self.physical_tokens is None else ["physical_batch_size"]
        if self.noisy_filter != "subspace":
            unused.append("noisy_rank")
        usual_of = ATDPOptions().model_dump()
        unused += [key for key, value in usual_of.items() if getattr(self, key) == value]
        return {key: value for key, value in fields.items() if key not in unused}


class DataSpec(TextSpec):
    """What the text of a training job went through, as far as claims depend on it. Its ledger says
    so, too.

    A run that starts from another one is composed with it only where all of this is the same. What
    policies miss counts for it only if measured on the same terms (`confide.provenance.terms`).
    """

    public: bool = False  # nothing in it needs protection: the dataset says so
    synthetic: bool = False  # a certified model wrote it: that model's claims are of other text
    texts: Literal["dialogues", "documents"] = "dialogues"  # what its points are parts of
    policies: str  # SHA-256 of the specification of both policies and of what they are made to miss
    everything_private: bool = (
        False  # pi_c fires on every text, so that nothing can slip into the public pool
    )
    dedup: bool = True
    scope: Scope = "private"
    merge_masks: bool = False
    learn: Learn = "all"
    fill: bool | str = False


class TrainSpec(Spec):
    """One training job. `privacy` may be None only where the method yields no noisy step."""

    run: str
    method: str
    data: DataSpec
    model: ModelSpec
    recipe: RecipeSpec
    privacy: PrivacySpec | None = None
    redact: bool = (
        True  # False (ablation): steps that ask for the redacted view read the original one
    )
    domains: Annotated[list[str], Field(min_length=1)] | None = (
        None  # only points of these are read; None: of all
    )
    pack: Annotated[int, Field(ge=2)] | None = (
        None  # tokens of a chunk, into which the train split is cut; None: points
    )
    init: str | None = None  # name of the run whose weights are the start
    # that run, and those that it started from, saw public text only: their ledgers say so
    init_public: bool = False
    reads: list[ReadSpec] = []  # what else is in the model
    seed: int = 0
    noise_seed: int | None = (
        0  # None: system entropy; a recorded seed makes the noise reproducible: not for release
    )
    device: str = "auto"  # auto: cuda where there is one, else cpu
    checkpoint_every: Natural = 50  # updates
    every_epoch: bool = False  # the weights after every epoch are released, too

    @property
    def arithmetic(self) -> Literal["float32", "bfloat16"]:
        """The coarsest numbers that gradients may be computed in: of matrix products, or of frozen
        weights and all that passes through them. A processor without bfloat16 has float32 instead.
        """
        frozen = getattr(self.model, "frozen_dtype", "float32")
        return "bfloat16" if "bfloat16" in (self.recipe.precision, frozen) else "float32"

    @property
    def protection(self) -> PrivacySpec:
        """How noise is made and what it protects; InputError for a job that says nothing of it."""
        if self.privacy is None:
            raise InputError(f"is missing: {self.method} adds noise", key="privacy")
        return self.privacy


class CertifySpec(Spec):
    """A training job, and what is assumed of its policies."""

    train: TrainSpec
    confidence: Fraction = 0.95
    miss_rate: Fraction = 0.0
    delta2: Fraction = 0.0  # assumed miss probability of pi_c beyond what the measurement bounds


class EvaluateSpec(Spec):
    run: str
    split: Literal["valid", "test"] = "test"
    device: str = "auto"


class ExposureSpec(Spec):
    kind: Literal["exposure"]
    chunk: Natural = 4_096  # prefix-tree states of one depth held at once
    # tokens that the model may read for it; beyond, ranks are estimates with intervals. None: as
    # many as exact ranks take
    evaluations: Natural | None = None
    seed: Seed = 0  # of the candidates that an estimate is made of
    published: bool = False  # rank per token of the whole sentence, too, as in Selective-DP


class ContextExposureSpec(Spec):
    """Exposure by what stands behind a secret: of canaries that training read and never scored."""

    kind: Literal["context_exposure"]
    candidates: Natural = 1000  # values that each secret is ranked among, drawn at random
    seed: Seed = 0


class MembershipSpec(Spec):
    """Membership of secrets; random non-members scored bare are the setting of Selective-DP on
    WikiText.
    """

    kind: Literal["membership"]
    # kind of gold secret that is attacked, or several: as many non-members as members of each
    label: str | Annotated[list[str], Field(min_length=1)] = "address"
    limit: Natural = 1000  # members and non-members of a kind, each
    non_members: Literal["held_out", "random"] = (
        "held_out"  # random: strings of spaces and digits, told apart by their form
    )
    context: Literal["text", "bare"] = (
        "text"  # bare: the secret after a space, and no text around it
    )
    scores: list[Literal["lowercase", "zlib", "min_k"]] = [
        "lowercase",
        "zlib",
        "min_k",
    ]  # beside the log-probabilities
    min_k: Annotated[float, Field(gt=0, le=100)] = (
        20.0  # % of a secret's tokens that the score min_k looks at
    )
    reference: str | None = (
        None  # name of a row of runs: the score `reference` is against its first run's model
    )
    group: Natural = 20
    bootstrap: Natural = 1000
    seed: Seed = 0

    @property
    def labels(self) -> list[str]:
        """The kinds of secrets that are attacked."""
        return [self.label] if isinstance(self.label, str) else self.label

    @property
    def published_setting(self) -> bool:
        """Whether candidates or their scores are as in the paper, so that a row may have the honest
        setting beside it.
        """
        return self.non_members == "random" or self.context == "bare"


# LSTMs that are trained as one: 8 take 1.2 times as long for each, 32 hardly less
STACKED = 16


class ShadowsSpec(Spec):
    """Shadow models of the likelihood-ratio attack.

    Each is trained on a random half of the candidates' points. They are small LSTMs, or with
    `model` adapters of a pretrained model: in params.yaml its name under models, in a job the model
    itself.
    """

    model: str | CausalLMSpec | None = None
    # kind of gold secret; label, limit and seed draw the candidates, as those of the attacks do
    label: str = "address"
    limit: Natural = 1000  # members and non-members each
    models: Annotated[int, Field(ge=4, multiple_of=2)] = (
        32  # in pairs: what one model has seen, the other has not
    )
    embedding: Natural = 32  # of the LSTMs
    hidden: Natural = 32
    epochs: Natural = 6
    lr: Positive = 0.02  # for LSTMs: adapters need one of their own
    batch_size: Natural = 8
    background: Fraction = 0.3  # share of all other training points, which every model sees
    seed: Seed = 0
    device: str = "auto"

    @property
    def groups(self) -> list[range]:
        """Numbers of the models, in groups that one process trains at a time: adapters one by one.

        They are the same for any number of jobs and processes, and so are the results.
        """
        size = STACKED if self.model is None else 1
        firsts = range(0, self.models, size)
        return [range(first, min(first + size, self.models)) for first in firsts]


class LiraSpec(Spec):
    """The likelihood-ratio attack (Carlini et al. 2022) on the candidates of the shadow models."""

    kind: Literal["lira"]
    shadows: str  # name under shadows
    label: str = "address"
    limit: Natural = 1000
    group: Natural = 20
    bootstrap: Natural = 1000
    delta: Annotated[float, Field(ge=0, lt=1)] = 8e-5  # of epsilon_heuristic
    seed: Seed = 0


class SamplingSpec(Spec):
    """How a model's next token is drawn: divided by the temperature, the top k, of these the
    nucleus of probability top_p.
    """

    temperature: Positive = 1.0
    top_k: Natural | None = 40  # None: all tokens
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    max_new_tokens: Natural = 64  # the paper: 256


class PromptedSpec(Spec):
    """Held-out dialogues of some domains, cut after every utterance, for the model to go on; who
    finds other domains in it.

    A judge is a policy whose labels are domains; in params.yaml its name under policies, in a job
    the policy itself.
    """

    prompts: Annotated[list[str], Field(min_length=1)]  # domains of the dialogues
    targets: Annotated[list[str], Field(min_length=1)]  # domains whose text must not come out
    judges: Annotated[dict[str, str | PolicySpec], Field(min_length=1)]
    dialogues: Natural = 10  # of the test split of each domain, first so many
    prefixes: Natural = 10  # of a dialogue, at most
    samples: Natural = 10  # of a prefix
    sampling: SamplingSpec = SamplingSpec()
    min_secret: Natural = 6  # letters and digits of a gold secret that is searched for
    held_out: Natural = 1000  # real utterances of a domain that the judges see, too
    examples: Count = (
        0  # above 0: so many texts are written out, their secrets masked; they are no metrics
    )
    seed: Seed = 0


class LeakSpec(PromptedSpec):
    """How often text of other domains comes out (Domain Private Transformers, section 6.3, there
    called LiRA success rate).
    """

    kind: Literal["leak"]


class DomainLiraSpec(PromptedSpec):
    """Likelihood ratios of what came out, and C of domain privacy (Definition 4.1): `reference`
    never saw the targets.

    One target domain for each reference that lacks it alone is the definition; several at once are
    the paper's code.
    """

    kind: Literal["domain_lira"]
    reference: str  # name of a row of runs, whose first run was trained without the target domains
    top: list[Natural] = [10, 50, 100]  # precision among so many of the highest ratios
    bootstrap: Natural = 500


class SequenceExposureSpec(Spec):
    """Exposure of canaries of words: exact as far as `states` states reach, beyond it estimated
    from samples.
    """

    kind: Literal["sequence_exposure"]
    # a space of at most so many sequences is searched to the end, whatever that takes
    enumerated: Natural = 100_000_000
    # prefixes that the model reads in search of the likeliest sequences of a larger space
    states: Natural = 20_000
    samples: Natural = 20_000  # sequences drawn where the search did not reach
    chunk: Natural = 4_096  # states of one depth held at once
    seed: Seed = 0


class ExtractionSpec(Spec):
    """Do planted canaries and secrets of the training text come out of a model that is prompted?"""

    kind: Literal["extraction"]
    samples: Natural = 1000  # drawn after the beginning of the canaries' sentence
    temperature: Positive = 1.0  # of these samples
    label: str | Annotated[list[str], Field(min_length=1)] = "address"  # kinds of training secrets
    limit: Natural = 200  # of each kind: so many of the training text, and as many held out
    seed: Seed = 0

    @property
    def labels(self) -> list[str]:
        """The kinds of secrets that are asked for."""
        return [self.label] if isinstance(self.label, str) else self.label


class TabSpec(Spec):
    """Does a first token bring back the rest? `reference`: a row that never saw the text, which
    picks the real sentences.
    """

    kind: Literal["tab"]
    beam: Natural = 5
    reference: str | None = None  # name of a row of runs; None: planted canaries alone
    real_min: Annotated[int, Field(ge=2)] = 5  # tokens of a real sentence
    real_max: Annotated[int, Field(ge=2)] = 20
    real_k: Natural = 5  # tokens after the first that count as a hit beside the whole


class AuthorInferenceSpec(Spec):
    """Who wrote it, told by a new classifier from the model's last hidden state."""

    kind: Literal["author_inference"]
    penalties: Annotated[list[Positive], Field(min_length=1)] = [
        100.0,
        10.0,
        1.0,
    ]  # on squared weights; validation picks
    iterations: Natural = 60  # of L-BFGS for each penalty
    limit: Natural = 20_000  # training points of the classifier, at most
    seed: Seed = 0


AttackSpec = Annotated[
    AuthorInferenceSpec
    | ContextExposureSpec
    | DomainLiraSpec
    | ExposureSpec
    | ExtractionSpec
    | GameSpec
    | GradientsSpec
    | LeakSpec
    | LiraSpec
    | MembershipSpec
    | SequenceExposureSpec
    | TabSpec,
    Field(discriminator="kind"),
]


class AttackJobSpec(Spec):
    run: str
    attack: AttackSpec
    device: str = "auto"


class TrajectorySpec(Spec):
    """Attacks on the model as it was after each epoch, by name."""

    run: str
    attacks: dict[str, AttackSpec]
    device: str = "auto"
