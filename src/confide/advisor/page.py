"""What `confide init` shows of a corpus, on one screen."""

from collections.abc import Iterator
from importlib.util import find_spec

from confide.advisor.choices import Choice, conservative_of, policy_of, unit_of
from confide.advisor.survey import UNITS, Corpus, Points, Presets
from confide.output.escaping import terminal
from confide.types import SPLITS

SHOWN = 8  # labels of secrets that have a place on the screen


def screen(corpus: Corpus, points: Points, choice: Choice, public: str | None) -> str:
    """Counts and choices in lines; of the corpus's own words only the names of labels."""
    parts = (
        counts(corpus, points, choice),
        presets(points.presets, choice),
        effects(points, choice),
        unknowable(points, choice),
        settings(corpus, points, choice, public),
    )
    return "\n\n".join(filter(None, ("\n".join(lines) for lines in parts)))


def counts(corpus: Corpus, points: Points, choice: Choice) -> Iterator[str]:
    """What there is."""
    texts = f"{corpus.documents:,} documents, {corpus.words:,} words"
    authors = f"{len(corpus.authors):,} authors"
    if corpus.nameless:
        authors += f" ({share(corpus.nameless, corpus.lines)} of the texts name none)"
    yield f"{texts}, {authors}, {len(corpus.domains):,} domains"
    yield row("points, if one is a", *SPLITS)
    for unit in UNITS:
        yield row(f"  {unit}", *(f"{corpus.points[unit][split]:,}" for split in SPLITS))
    yield row("known secrets", *(f"{corpus.labels(split).total():,}" for split in SPLITS))
    for label, _ in corpus.labels().most_common(SHOWN):
        yield row(f"  {plain(label)}", *(f"{corpus.labels(split)[label]:,}" for split in SPLITS))
    lengths = sorted(points.lengths)
    middle, long, most = (lengths[int(part * (len(lengths) - 1))] for part in (0.5, 0.95, 1))
    sizes = f"{middle:,} words in the median, 95 % have at most {long:,}, the longest {most:,}"
    copies = f"{share(points.copies, len(lengths))} are exact copies of another"
    yield f"a {choice.point} of train: {sizes}; {copies}"


def presets(survey: Presets, choice: Choice) -> Iterator[str]:
    """What each preset finds by itself; `>`: those that the policy unites."""
    held_out = survey.held_out
    yield row("preset", "hits", "points hit", "MB/s", "secrets found")
    for name, hits in survey.hits.items():
        if not hits.points:
            continue
        cells = [f"{hits.spans.total():,}", share(hits.points, survey.sampled)]
        cells.append(f"{survey.characters / 1e6 / max(hits.seconds, 1e-9):.1f}")
        cells.append(f"{hits.covered.total():,} of {held_out:,}" if held_out else "unknown")
        yield row(f"{'>' if name in choice.presets else ' '} {name}", *cells)
        if set(hits.spans) != {name}:
            labels = (f"{label} {count:,}" for label, count in hits.spans.most_common(SHOWN))
            yield f"    {', '.join(labels)}"
    if idle := [name for name, hits in survey.hits.items() if not hits.points]:
        yield f"  found nothing in {survey.sampled:,} points: {', '.join(idle)}"


def unknowable(points: Points, choice: Choice) -> Iterator[str]:
    """What no preset can know, and what could be asked instead."""
    hidden = points.effects[choice.policy].hidden
    labels = [
        f"{plain(label)} ({count - hidden[label]:,} of {count:,})"
        for label, count in points.held_out.most_common()
        if hidden[label] < count
    ]
    if labels:
        yield f"missed by {choice.policy}: {', '.join(labels[:SHOWN])}"
    elif points.held_out:
        return
    yield "What has a shape of your own (orders, customers) or none (names in lower case, products)"
    yield "no preset finds. In a union (params.yaml) stand beside it"
    yield "  patterns:         { kind: regex, patterns: { order: '\\bORD-\\d{6}\\b' } }"
    yield "  a list of yours:  { kind: words, path: customers.txt }, and independent: true only"
    yield "                    if no line of it was taken from this corpus"
    entities = "{ kind: ner, model: en_core_web_sm }"
    here = find_spec("en_core_web_sm") is not None
    how = "installed" if here else "pipelines: { en_core_web_sm: { package: en_core_web_sm } }"
    yield f"  or a pipeline:    {entities} ({how})"


def effects(points: Points, choice: Choice) -> Iterator[str]:
    """What each policy would do."""
    held_out = points.held_out.total()
    yield row("policy", "points hit", "words masked", "secrets hidden")
    for name, effect in points.effects.items():
        hidden = f"{effect.hidden.total():,} of {held_out:,}" if held_out else "unknown"
        hit = share(effect.private, points.sampled)
        masked = share(effect.masked, points.sampled_words)
        yield row(f"{'>' if name == choice.policy else ' '} {name}", hit, masked, hidden)
    best = points.effects[choice.policy].hidden
    if held_out:
        labels = (
            f"{plain(label)} {best[label]:,} of {count:,}"
            for label, count in points.held_out.most_common(SHOWN)
        )
        yield f"  {choice.policy}: {', '.join(labels)}"
        yield "  (hidden: masking the secret in a held-out document leaves no trace)"


def settings(corpus: Corpus, points: Points, choice: Choice, public: str | None) -> Iterator[str]:
    """What params.yaml says, and why."""
    source = (
        f"of {public}" if public else "of simulated English text (of other text: --public FILE)"
    )
    delta = f"epsilon at delta {choice.delta:g}, which is below 1 / {choice.points:,} points"
    audit = ("updates", "too little text to plant enough sentences for this epsilon")
    if choice.game:
        coins = f"{choice.game} and {choice.inclusion} coins"
        audit = ("game", f"{coins}: sentences that are planted or not, for an attack to tell")
    batch = f"points in expectation, {choice.epochs} epochs"
    reasons = {
        "point": (choice.point, unit_of(corpus)[1]),
        "policy": (choice.policy, policy_of(points)[1]),
        "conservative": (choice.conservative, conservative_of(points)[1]),
        "vocabulary": (f"{choice.vocabulary:,}", f"tokens {source}; never of the corpus"),
        "budget": (f"{choice.epsilon:g}", delta),
        "noisy batch": (f"{choice.noisy_batch:,}", batch),
        "audit": audit,
    }
    yield "chosen, as > marks above:"
    for key, (value, why) in reasons.items():
        yield f"  {key:<13} {value:<11} {why}"
    yield "These choices follow counts of the protected text, for which no certificate charges."
    if not corpus.labels():
        yield "No secrets are known, so nobody can say what a policy misses, and confide release"
        yield "refuses until somebody has read some of the text: confide review, after prepare."


def row(head: str, *cells: str) -> str:
    """A line of a table, its numbers below one another."""
    return f"{head:<20}" + "".join(f"{cell:>15}" for cell in cells)


def share(part: int, whole: int) -> str:
    """A part of a whole in percent."""
    return f"{part / whole:.0%}" if whole else "none"


def plain(label: str) -> str:
    """A label as a terminal may have it, of at most forty characters."""
    return terminal(label)[:40]
