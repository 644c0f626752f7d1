"""What a first params.yaml should say of a corpus: plain rules, each with its reason.

They look at its counts alone. Learning rates and clipping are those of the studies, chosen on
simulated text. What is chosen here depends on counts of the protected text, and no certificate
charges for that: `confide init` says so.
"""

import math
from bisect import bisect_left
from collections.abc import Collection
from typing import NamedTuple, get_args

from confide.advisor.survey import UNITS, Corpus, Points, Presets
from confide.dp.accounting.audit_power import TIMES, mu_of, power
from confide.dp.accounting.curves import gaussian_curve
from confide.dp.accounting.tradeoff import points_of
from confide.specs import PolicySpec, PresetName, PresetPolicySpec

# training points: a few hundred are planted beside them, and noise for a useful epsilon drowns
# fewer
LEAST = 500
GUESSES = ("capitals", "name")  # presets that go by capitals alone, and mask much else
IDENTIFIERS: tuple[PresetName, ...] = tuple(
    name for name in get_args(PresetName) if name not in GUESSES
)
# presets, united: each finds all that the one before it finds
POLICIES: dict[str, tuple[PresetName, ...]] = {
    "identifiers": IDENTIFIERS,
    "capitals": (*IDENTIFIERS, "capitals"),
    "names": (*IDENTIFIERS, "capitals", "name"),
}
# whatever might be a secret, or the place of one
DOUBTFUL: tuple[PresetName, ...] = ("number", "email", "link", "capitals", "name")
TRUSTED = 100  # held-out secrets from which on it is trusted if it fires on the points of all
SPARED = 0.1  # share of the points that it must spare to be worth a condition in the certificate
SMALLER = {"turn": ["sentence"], "sentence": [], "dialogue": ["turn", "sentence"]}  # cuts
MOST_COINS = 1000
OFTEN = 0.85
# secrets of a label in train, and in test, from which on membership of that label is attacked
ATTACKED = 50


class Choice(NamedTuple):
    """Everything that the file says, in the order in which it is decided."""

    point: str
    points: int  # training points
    policy: str
    presets: tuple[str, ...]  # that the policy unites
    labels: tuple[str, ...]  # of the gold secrets that count; none: all do
    conservative: str
    vocabulary: int
    epsilon: float
    delta: float
    width: int  # of the model: embedding and state
    copies: int  # of each of ten canaries
    game: int  # coins of the two audits, 0 for none
    inclusion: int
    batch: int
    noisy_batch: int
    epochs: int
    attacked: str | None  # label of the secrets whose membership is attacked


def presets() -> dict[str, PolicySpec]:
    """Each preset by itself."""
    return {name: PresetPolicySpec(kind="preset", names=[name]) for name in get_args(PresetName)}


def useful_presets(survey: Presets, labels: Collection[str] | None) -> set[str]:
    """Names of the presets that are worth their time: those that hit anything.

    All, where not every point was looked at: what is rare may lie elsewhere. Where the user says
    which labels are secret, those that cover a held-out secret of them.
    """
    hit = set(get_args(PresetName))
    if survey.whole:
        hit = {name for name, hits in survey.hits.items() if hits.points}
    if labels is not None and survey.held_out:
        hit = {name for name, hits in survey.hits.items() if hits.covered}
    return hit


def policies(used: Collection[str] | None = None) -> dict[str, PolicySpec]:
    """The policies that are tried, of the presets that are used (None: all)."""
    policy_by_name: dict[str, PolicySpec] = {}
    for policy, names in POLICIES.items():
        preset_names = [name for name in names if used is None or name in used]
        policy_by_name[policy] = PresetPolicySpec(kind="preset", names=preset_names or [*names])
    return policy_by_name


def doubtful() -> PolicySpec:
    """The conservative policy that is tried."""
    return PresetPolicySpec(kind="preset", names=[*DOUBTFUL], conservative=True)


def unit_of(corpus: Corpus) -> tuple[str, str]:
    """A cut into points, and why.

    It is the smallest that leaves secrets whole and does not take sentences apart needlessly. Where
    it leaves too few points to train on, it is the largest smaller one that has enough.
    """
    several = sum(corpus.points["turn"].values()) > 1.5 * corpus.lines
    long = sum(corpus.points["sentence"].values()) > 3 * corpus.lines
    unit = "turn" if several else "sentence" if long else "dialogue"
    why = {
        "turn": "texts have several lines: a line is a point",
        "sentence": "texts are of one line and several sentences: a sentence is a point",
        "dialogue": "texts are short: each is a point",
    }
    if not (cut := corpus.cut[unit]):
        if corpus.points[unit]["train"] < LEAST:
            for smaller in SMALLER[unit]:
                if corpus.points[smaller]["train"] >= LEAST and not corpus.cut[smaller]:
                    return smaller, f"of {unit}s there are fewer than {LEAST} to train on"
        return unit, why[unit]
    whole = next(
        larger for larger in (*UNITS[UNITS.index(unit) :], "dialogue") if not corpus.cut[larger]
    )
    return whole, f"a {unit} would cut {cut:,} known secrets in two"


def policy_of(points: Points) -> tuple[str, str]:
    """Presets, and why: the first set that no other outdoes on held-out secrets.

    Without any held-out secrets it is that of identifiers.
    """
    held_out = points.held_out.total()
    if not held_out:
        what = "all that hit, but names: to mask these, too, add capitals and name to its names"
        return "identifiers", f"no held-out secrets are known: {what}"
    hidden = {name: effect.hidden.total() for name, effect in points.effects.items()}
    best = max(POLICIES, key=lambda name: hidden[name])  # the first of equals
    share = f"({hidden[best] / held_out:.1%})"
    return best, f"hides {hidden[best]:,} of {held_out:,} held-out secrets {share}"


def conservative_of(points: Points) -> tuple[str, str]:
    """The conservative policy, and why: everything, unless there is reason to trust less."""
    held_out = points.held_out.total()
    spared = 1 - points.noisy / max(1, points.sampled)
    if held_out < TRUSTED:
        few = f"{held_out:,} held-out secrets are too few to trust any less"
        return "everything", f"all points are trained on with noise: {few}"
    if points.unguarded:
        unguarded = f"{points.unguarded:,} of {held_out:,} held-out secrets"
        return "everything", f"`doubtful` would leave {unguarded} without noise"
    if spared < SPARED:
        return "everything", f"`doubtful` would spare no more than {spared:.1%} of the points"
    fires = f"fires on the points of all {held_out:,} held-out secrets"
    return "doubtful", f"{fires}; {spared:.0%} of the points need no noise"


def delta_of(points: int) -> float:
    """The largest power of ten that is at most half of 1 / points."""
    return float(f"1e{math.floor(math.log10(1 / (2 * points)))}")


def coins_of(claimed: float, delta: float, most: int, reach: tuple[int, ...] = (3, 5)) -> int:
    """The fewest coins, in twenties, of an audit that mostly rings at `reach` times the claim.

    It is 0 if `most` are too few. Mostly: an ideal attacker refutes the claim in 17 of 20
    trainings. Where `most` do not reach so far, at five times it. The claim is taken for one of
    Gaussian noise.
    """
    points = ((claimed, delta), *points_of(gaussian_curve(mu_of(claimed, delta))))
    counts = range(20, min(most, MOST_COINS) + 1, 20)
    for place in map(TIMES.index, reach):

        def rings(count: int, place: int = place) -> float:
            return power(points, claimed, delta, count).rings[place]

        enough = bisect_left(counts, OFTEN, key=rings)
        if enough < len(counts):
            return counts[enough]
    return 0


def near(value: float, low: int, high: int) -> int:
    """The power of two nearest to a value, within bounds that are such powers."""
    return min(high, max(low, 2 ** round(math.log2(max(1.0, value)))))


def choose(
    corpus: Corpus,
    points: Points,
    unit: str,
    epsilon: float,
    secret_labels: Collection[str] | None = None,
) -> Choice:
    """All numbers for a corpus that `unit_of` has cut.

    secret_labels: of gold secrets, where not all count.
    """
    train = len(points.lengths)
    copies = min(20, max(5, train // 200))
    delta = delta_of(train + 10 * copies + train // 2)  # with whatever is planted
    labels = [label for label, _ in corpus.labels().most_common() if _attackable(corpus, label)]
    conservative = conservative_of(points)[0]
    noisy = points.noisy / points.sampled if conservative == "doubtful" else 1
    game = coins_of(epsilon, delta, train // 4)
    # adding a record costs about half of what replacing one does
    inclusion = coins_of(0.5 * epsilon, delta, train // 4, reach=(5,)) if game else 0
    policy = policy_of(points)[0]
    policy_spec = policies(useful_presets(points.presets, secret_labels))[policy]
    return Choice(
        point=unit,
        points=train,
        policy=policy,
        presets=tuple(getattr(policy_spec, "names", ())),
        labels=tuple(secret_labels or ()),
        conservative=conservative,
        vocabulary=near(sum(points.lengths) / 64, 512, 4096),
        epsilon=epsilon,
        delta=delta,
        width=near(train / 40, 64, 256),  # noise grows with the number of weights
        copies=copies,
        game=game,
        inclusion=inclusion,
        batch=near(train / 256, 16, 128),
        noisy_batch=near(train / 8 * noisy, 16, 1024),
        epochs=6 if train < 20_000 else 4 if train < 200_000 else 2,
        attacked=labels[0] if labels else None,
    )


def _attackable(corpus: Corpus, label: str) -> bool:
    return min(corpus.labels(split)[label] for split in ("train", "test")) >= ATTACKED
