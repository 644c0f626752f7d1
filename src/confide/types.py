"""The nouns. Shapes: N points, T tokens of a view, B batch, L length, V vocabulary."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

MASK = "<MASK>"  # the one token that redaction and deduplication put in place of text (CRT A.6-4)
# Where a dialogue of several domains begins and ends (Domain Private Transformers, Appendix C).
CONVERSATION_START = "<_soc_>"
CONVERSATION_END = "<_eoc_>"

SplitName = Literal["train", "valid", "test"]
SPLITS: tuple[SplitName, ...] = ("train", "valid", "test")  # a split is stored as its index here


class Span(NamedTuple):
    """Half-open character range of a text, found by a policy or known as gold."""

    start: int
    end: int
    label: str
    score: float = 1.0


@dataclass(frozen=True, slots=True)
class Record:
    """One document as a reader yields it."""

    text: str
    doc: str
    author: str | None = None
    domain: str | None = None
    spans: tuple[Span, ...] = ()  # gold secrets
    split: SplitName = "train"
    # of a conversation, the ranges of its assistants' turns
    answers: tuple[tuple[int, int], ...] | None = None


@dataclass(frozen=True, slots=True)
class View:
    """Token ids of all points, one after the other; point i is ids[starts[i]:starts[i + 1]] (no
    begin/end tokens).
    """

    ids: np.ndarray  # (T,) int32
    starts: np.ndarray  # (N + 1,) int64
    private: np.ndarray  # (T,) bool: token overlaps a span of the policy, or is <MASK>
    # (T,) bool: tokens that are scored, where not all are; None: all, and the ends
    learned: np.ndarray | None = None

    def __getitem__(self, point: int) -> np.ndarray:
        return self.ids[self.starts[point] : self.starts[point + 1]]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def scored(self, point: int) -> np.ndarray:
        """(n + 1,) bool: which tokens of a point are scored, and last its end.

        The end is where every token is, so that an assistant's turn does not teach another end than
        the one that its template writes.
        """
        size = int(self.starts[point + 1] - self.starts[point])
        if self.learned is None:
            return np.ones(size + 1, bool)
        marks = self.learned[self.starts[point] : self.starts[point + 1]]
        return np.append(marks, marks.all())

    def scores_all(self, points: Iterable[int]) -> bool:
        """Whether every token of some points is scored."""
        return self.learned is None or all(self.scored(point).all() for point in points)

    def marked(self) -> np.ndarray:
        """(N,) bool: points that hold a private token."""
        before = np.concatenate([[0], np.cumsum(self.private)])
        return before[self.starts[1:]] > before[self.starts[:-1]]


@dataclass(frozen=True, slots=True)
class Partition:
    """All that a training job reads. Points of all splits, in file order."""

    original: View
    # each span collapsed into ONE mask token; a deduplicated copy is a single mask token in both
    # views
    redacted: View
    secret: np.ndarray  # (T of original,) bool: token overlaps a gold span; for evaluation only
    private: np.ndarray  # (N,) bool: contains <MASK>, a policy span, or a conservative hit
    copy: np.ndarray  # (N,) bool: a single mask token, as a later copy becomes
    split: np.ndarray  # (N,) uint8 index into SPLITS
    domain: np.ndarray  # (N,) int32 index into domains, -1 none
    owner: np.ndarray  # (N,) int32, -1 none
    domains: tuple[str, ...] = ()

    def view(self, name: "ViewName") -> View:
        return self.original if name == "original" else self.redacted

    def pool(self, name: "PoolName") -> np.ndarray:
        """Indices of the training points of a pool, (n,) int64."""
        train = self.split == SPLITS.index("train")
        if name == "marked":
            return np.flatnonzero(train & self.original.marked())
        return np.flatnonzero(
            train if name == "all" else train & (self.private == (name == "private"))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """How a training job reads its points: cut into chunks."""

    tokens: int  # of a chunk
    most: int  # chunks that one point lies in
    views: str  # names of the views that are read, space between two


ViewName = Literal["original", "redacted"]
# marked: holds a private token of the original view
PoolName = Literal["all", "public", "private", "marked"]
POOLS: tuple[PoolName, ...] = ("all", "public", "private", "marked")
TokensName = Literal["all", "public", "private", "unmasked"]
StateName = Literal["reset", "noise", "carry", "published"]
RegulariserName = Literal["none", "adversarial", "triplet"]
UnitName = Literal["point", "author"]
WeighingName = Literal["none", "tokens", "scores"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one optimizer update may read. Methods yield these; they never see data."""

    view: ViewName
    pool: PoolName
    # True: Poisson batch, per-example clipping, Gaussian noise. False: plain gradient of a shuffled
    # batch
    noisy: bool
    # losses of which positions count; private: reads or predicts a private token of the view;
    # unmasked: predicts none
    tokens: TokensName = "all"
    # What becomes of the recurrent state after private text, where tokens are told apart: it is set
    # to zero, or clipped and noised, or carried on as it is; published: noised, and one batch for
    # exact and noisy updates, which nothing bounds.
    state: StateName = "reset"
    # of an exact step: what is added to its loss against telling authors apart
    regulariser: RegulariserName = "none"
    # what noise hides, and what a Poisson batch draws: one point, or all points of an author
    unit: UnitName = "point"
    # of a noisy step: whether its noise goes by what a detector found in the text, which nothing
    # bounds. tokens: on the gradients of private tokens alone; scores: as much as a point's private
    # tokens are said to be sensitive, on a point without any none
    weighing: WeighingName = "none"
    noise_scale: float = 1.0  # of its noise multiplier; only such noise has another

    @property
    def tells_apart(self) -> bool:
        """Whether it tells public tokens from private ones."""
        return self.tokens in ("public", "private")


UNNAMED = "0" * 64  # a sequence of correlated noise that was not drawn yet


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """How the noise of a sequence of updates hangs together, and which units each of them reads."""

    # of C, lower triangular with these along its diagonals: noise is C^-1 times independent noise
    coefficients: tuple[float, ...]
    separation: int  # groups that units are dealt into: each is read once in so many updates
    sequence: str  # SHA-256 of the state that its noise began with: tells one from another


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What really ran: `count` consecutive updates of one kind. Enough to price them."""

    step: Step
    # of a noisy step: probability of each unit (point or author) of the pool, or of the group that
    # is its turn where noise is correlated; of an exact step 0
    sample_rate: float = 0.0
    # standard deviation of the noise over max_grad_norm; 0 for an exact step. Where noise is
    # correlated: of the independent noise that it is made of
    noise_multiplier: float = 0.0
    max_grad_norm: float = 0.0  # 0 for an exact step
    count: int
    # how many numbers each update added discrete Gaussian noise to; 0: Gaussian noise
    discrete_coordinates: int = 0
    correlation: Correlation | None = None  # None: noise of its own for each update

    @property
    def noisy(self) -> bool:
        """Whether noise was added."""
        return self.step.noisy


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRelease:
    """Recurrent states after private text that public text then read: clipped, with noise.

    `count` of them for one point, and as many for every other one: nothing is drawn by chance.
    """

    noise_multiplier: float  # standard deviation of the noise over max_grad_norm
    max_grad_norm: float  # bound of a state's norm
    count: int
    noisy: ClassVar[bool] = True
    sample_rate: ClassVar[float] = 1.0
    discrete_coordinates: ClassVar[int] = 0  # its noise is Gaussian
    correlation: ClassVar[None] = None  # and independent


AnyRelease = Release | StateRelease
