"""What a stage needs of a JSON file that another one wrote: the keys that it reads, and their
types, among others.

A file may come from somebody else, and with it any value: it is refused here, or it cannot do harm
further on.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from confide.spec_base import Count, Fraction

Price = Annotated[float, Field(ge=0)] | Literal["inf"]  # an epsilon
Share = Fraction | None
Amount = Annotated[float, Field(ge=0, le=2**53)]  # a count, which may have a decimal point
Often = (
    Annotated[int, Field(ge=0, le=10_000_000)] | None
)  # prices of groups take time and memory with their size
ANY = "any label"  # of a review, not the name of one: all of them together
CERTIFICATE = "certificate.json"  # its name in the folder of a run, or of a release


class File(BaseModel):
    """Base: JSON's own types, no NaN or infinity."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True, allow_inf_nan=False)


class ReadOfFile(File):
    """A product of an earlier stage, as a line of a ledger has it."""

    stage: str
    source: str
    public: bool
    digest: str | None


class MeasuredFile(File):
    """On what terms policies were measured, and with which models: what a certificate compares with
    the ledger of a run.
    """

    terms: dict[str, Any] | None = (
        None  # files of earlier versions have none, and no certificate takes them
    )
    reads: list[ReadOfFile] | None = None


class Pools(File):
    public: int


class FoundOfLabel(File):
    """Of one label: its secrets, those of which redaction found not all, and of these such of which
    more is read than white space between masks.
    """

    secrets: Count
    missed: Count
    shown: Count

    @model_validator(mode="after")
    def part(self) -> "FoundOfLabel":
        if self.shown > self.missed or self.missed > self.secrets:
            raise ValueError("more are missed than there are")
        return self


class TestedOfLabel(File):
    """Of one label: the secrets that were tested, and those that leave a trace."""

    secrets: Count
    different: Count

    @model_validator(mode="after")
    def part(self) -> "TestedOfLabel":
        if self.different > self.secrets:
            raise ValueError("more leave a trace than were tested")
        return self


class SpansOfLabel(File):
    """Of one label of the policy: what it finds in training text, planted sentences left out."""

    found: Count
    precision: Share = None  # share of it that touches what the corpus marks


class RecallFile(MeasuredFile):
    multiplicity: Often
    multiplicity_distinct: Often
    multiplicity_authors: Often = None
    multiplicity_authors_distinct: Often = None
    pools: Pools
    recall: Share = None
    labels: dict[str, FoundOfLabel] | None = None  # None: rounded for a release
    spans: dict[str, SpansOfLabel] | None = None  # None: rounded for a release


class CoinsOfFile(File):
    """What became of secrets of one set of coins."""

    sampled: Count = 0
    different: Count = 0
    read: Count = 0  # what redacted text still holds


class PlantedOfFile(File):
    """What became of secrets that the tool planted itself."""

    secrets: Count = 0
    sampled: Count = 0
    different: Count = 0
    exposed: Count = 0
    sets: dict[Literal["game", "inclusion"], CoinsOfFile] = {}


class LiteralOfFile(File):
    """Of the neighbour with one occurrence masked: in how many points it differs at most."""

    points: Annotated[int, Field(ge=0, le=1000)] = 2


Few = Annotated[int, Field(ge=0, le=1_000_000)]
# of points by a value, which JSON has as a string
Histogram = dict[Annotated[str, Field(pattern=r"^[0-9]{1,7}$")], Few]


class TracesOfFile(File):
    """Of drawn texts: secrets that leave a trace, and spans that do or are in vain."""

    traces: Histogram
    lost: Histogram


class LabelOfReview(File):
    """Of one label: spans that the policy finds in each text, secrets that each may hold."""

    found: Histogram
    room: Histogram
    marked: Count
    gamma: TracesOfFile
    delta2: TracesOfFile
    gamma_literal: TracesOfFile
    doubled_literal: TracesOfFile


class StratumOfReview(File):
    texts: Few
    drawn: Few
    reviewed: Few
    labels: dict[str, LabelOfReview]


class ReviewCounts(File):
    """What bounds by a review follow from."""

    labels: Annotated[list[str], Field(max_length=100)]
    strata: dict[str, StratumOfReview]

    @model_validator(mode="after")
    def whole(self) -> "ReviewCounts":
        for stratum in self.strata.values():
            if not stratum.reviewed <= stratum.drawn <= stratum.texts:
                raise ValueError("more were reviewed than drawn, or drawn than there are")
            if not stratum.labels.keys() >= {*self.labels, ANY}:
                raise ValueError("a stratum lacks a label")
        return self


class Reviewed(File):
    """Who marked how many texts, and how these were drawn."""

    by: str | None
    seed: int | None
    most: int | None
    drawn: Count
    reviewed: Count


class NeighboursFile(MeasuredFile):
    """Bounds are known together or not at all; a rate that is not told has a bound all the same,
    where any is known.
    """

    misaligned: Count
    gamma: Share
    gamma_upper: Share
    delta2: Share
    delta2_upper: Share
    gamma_literal: Share = None
    gamma_literal_upper: Share = None
    doubled_literal: Share = None
    doubled_literal_upper: Share = None
    literal: LiteralOfFile = LiteralOfFile()
    planted: PlantedOfFile = PlantedOfFile()
    confidence: Annotated[float, Field(gt=0, lt=1)]
    sampled: Count | None
    secrets: Count | None
    census: bool | None = None
    note: str | None = None
    worst_label: str | None = None
    labels: dict[str, TestedOfLabel] | None = None  # None: rounded for a release
    rounded: bool = False  # for a release: bounds alone, on a public grid
    reviewed: Reviewed | None = None
    review_counts: ReviewCounts | None = None

    @model_validator(mode="after")
    def together(self) -> "NeighboursFile":
        bounds = [self.gamma_upper, self.delta2_upper]
        literal = [self.gamma_literal_upper, self.doubled_literal_upper]
        for some in (bounds, literal):
            if len({bound is None for bound in some}) > 1:
                raise ValueError("some rates are numbers and others are null")
        for rate, bound in (
            ("gamma", bounds[0]),
            ("delta2", bounds[1]),
            ("gamma_literal", literal[0]),
        ):
            if (value := getattr(self, rate)) is not None and (bound is None or value > bound):
                raise ValueError(f"{rate} lies above its bound, or has none")
        missing = [name for name in ("sampled", "secrets") if getattr(self, name) is None]
        if missing and not self.rounded:
            raise ValueError(
                f"{' and '.join(missing)}: null, where nothing was rounded for a release"
            )
        if (
            not self.rounded
            and self.reviewed is None
            and len({rate is None for rate in (self.gamma, self.delta2, *bounds)}) > 1
        ):
            raise ValueError("some rates are numbers and others are null")
        return self


class ClaimOfFile(File):
    name: str
    epsilon: Price
    relation: str | None = None
    unit: str | None = None
    accountant: str | None = None
    delta: float = 8e-5


class HeadlineOfFile(File):
    relation: str
    unit: str
    delta: float
    accountant: str
    record_epsilon: Price
    bayesian_epsilon: Price
    condition: str
    bayesian_epsilon_upper: Price | None = None
    bayesian_epsilon_literal: Price | None = None
    bayesian_epsilon_literal_upper: Price | None = None
    gamma: Share = None
    gamma_upper: Share = None
    gamma_literal: Share = None
    gamma_literal_upper: Share = None


class EpochOfFile(File):
    epoch: int
    record_epsilon: Price
    bayesian_epsilon: Price


class NamedFile(File):
    model_config = ConfigDict(extra="forbid")

    path: str
    sha256: str


Pair = Annotated[
    list[Annotated[float, Field(ge=0)]], Field(min_length=2, max_length=2)
]  # epsilon, delta


class Claims(File):
    """Of a certificate, what an audit is compared with."""

    run: str
    claims: list[ClaimOfFile]
    policy: dict[str, Any]
    files: dict[str, list[NamedFile]]
    curves: dict[str, Annotated[list[Pair], Field(max_length=1000)]] = {}
    ledger_head: str | None = None


class CertificateFile(File):
    """Of a certificate, what a report shows."""

    claims: list[ClaimOfFile]
    headline: HeadlineOfFile
    epochs: list[EpochOfFile]
    public_constants: dict[str, Any] = {}


class HandedOutFile(File):
    """What a released certificate's pages say beside it: what was tried, what was overruled."""

    tried: str
    against: list[str]


class SealedFile(File):
    """Of a certificate, what it takes to make it again."""

    version: int
    seal: str
    asked: dict[str, Any]
    files: dict[str, list[NamedFile]]
    code: dict[str, Any]
    run: str
    says: str
    release_note: str | None
    handed_out: HandedOutFile | None = None  # None: of one that was not released


class TextsNamed(File):
    """A file of texts that a model wrote or has read, which lies beside its certificate."""

    path: str
    sha256: str
    count: Count


class ModelOfTexts(File):
    """Where the certificate of the model lies that wrote or has read texts, and its seal."""

    certificate: str
    seal: str
    weights: str


class TextsFile(File):
    """Of a certificate of texts, what it takes to make it again."""

    version: int
    seal: str
    says: str
    asked: dict[str, Any] | None  # None: redacted texts, which no model wrote
    drawn: dict[str, Count]
    texts: TextsNamed
    model: ModelOfTexts
    release_note: str | None


Attempt = Annotated[
    list[Annotated[int, Field(ge=0)]], Field(min_length=2, max_length=2)
]  # guesses, right ones


class AuditSetFile(File):
    """What an audit says of one set of coins, each key behind the set's name; a set that tells
    nothing has a reason instead.
    """

    coins: Annotated[int, Field(ge=1, le=100_000)] | None = None
    attempts: Annotated[list[Attempt], Field(max_length=1000)] | None = None
    relation: str | None = None
    reason: str | None = None


class SurfacedFile(File):
    """What an audit of texts says of planted numbers in one kind of texts, each key behind the
    kind's name.
    """

    p_value: Annotated[float, Field(ge=0, le=1)] | None = None


class AuditFile(File):
    """Of an attack that flips coins. `weights`: SHA-256 of what it attacked; `ledger`: of the
    updates that it repeated; `texts_sha256`: of the texts that it searched, with the smallest
    `p_value` of all tests times their number.
    """

    run: str
    attack: str
    weights: str | None = None
    ledger: str | None = None
    texts_sha256: str | None = None
    p_value: Annotated[float, Field(ge=0, le=1)] | None = None


class Sentence(File):
    """Planted canaries of digits."""

    prefix: str
    suffix: str
    digits: int  # 0: the secrets are new tokens
    secrets: list[str]


class NearFile(File):
    """Different log-probabilities, and how many candidates have each."""

    scores: list[float]
    counts: list[Amount]


class CountsFile(File):
    """What several jobs count for exposure, each among its candidates: of every secret how many are
    likelier, its own log-probability where it is among them, and those close to it, with how many
    they are.
    """

    share: str
    weights: str
    finite: bool
    visited: Amount
    likelier: list[Amount]
    swept: list[float | None]
    near: list[list[NearFile]]


class Answers(File):
    """What stands behind each secret of its own: digits, and then the end of the sentence."""

    secrets: list[str]
    controls: list[str]
    end: str


class CanariesFile(Sentence):
    controls: list[str]
    copies: int
    answers: Answers | None = None

    @model_validator(mode="after")
    def of_each(self) -> "CanariesFile":
        """Every secret and every control has an answer, or none has."""
        if self.answers is not None:
            pairs = ((self.answers.secrets, self.secrets), (self.answers.controls, self.controls))
            if any(len(answers) != len(of) for answers, of in pairs):
                raise ValueError("has another number of answers than of secrets or controls")
        return self


class AuditSet(Sentence):
    coins: list[bool]


class AuditsFile(File):
    audits: dict[str, AuditSet] = {}


class WordCanary(File):
    text: str
    copies: int = 0
    author: str | None = None


class WordsFile(File):
    length: Annotated[int, Field(ge=2, le=1000)]
    vocabulary: Annotated[list[str], Field(min_length=1)]
    canaries: list[WordCanary]
    controls: list[WordCanary]


class EvaluationFile(File):
    ppl: float | None
    ppl_public: float | None
    ppl_private: float | None
    accuracy: float | None


class ScanTotals(File):
    files: Count
    hits: Count


class ScanSecrets(File):
    marked: Count = 1  # of the corpus's own; scans of earlier versions do not say


class ScanFile(File):
    """Of a search for secrets, what a report shows."""

    secrets: ScanSecrets | None = None
    totals: ScanTotals
    warning: str | None = None


class AttackFile(File):
    attack: str


class ClaimOfRow(File):
    """What the certificates of a row claim of one cell, and on what that rests."""

    epsilon: Price
    unit: str
    rests: str


class ClaimsOfRow(File):
    caught: ClaimOfRow
    missed: ClaimOfRow
    record: ClaimOfRow


class SeedOfRow(File):
    """One run: what its audits say, and its numbers, which are none where it does not count."""

    seed: Count
    outcome: str
    numbers: dict[str, float]


class RowOfPanel(File):
    """A row of the sample sheet at one miss rate. `seeds`: those that it asks for."""

    name: str
    method: str
    dataset: str
    model: str
    init: str | None
    variant: str | None
    recipe: str
    gamma: Annotated[float, Field(ge=0, le=1)]
    dedup: bool
    redact: bool
    covered: bool
    filled: bool | str
    seeds: list[Count]
    claims: ClaimsOfRow | None  # None: no run counts
    runs: list[SeedOfRow]


class PanelFile(File):
    """What a leaderboard reads of a study."""

    rows: Annotated[list[RowOfPanel], Field(min_length=1)]


class ConfigFile(File):
    """Of a trained model."""

    spec: dict[str, Any]
    vocab_size: Annotated[int, Field(ge=1, lt=1 << 31)]
    bos: int
