"""Author inference: who wrote a text, told from a language model's state after its last token.

That state is what privacy regularisation (Mireshghallah et al. 2021, section 2) hides authors from:
against its own discriminator in training, here against a new one, which is trained on what the
finished model makes of its training text. The same classifier on counts of tokens never sees the
model (`blind`): what it can tell is in the text itself.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from confide.attacks.authorship.authors import Sample, read_samples
from confide.attacks.domains.proportions import rated
from confide.attacks.statistics.probe import Features, choose, hits
from confide.attacks.statistics.scoring import view_of
from confide.attacks.target import Target
from confide.errors import InputError
from confide.models import LanguageModel
from confide.models.batches import by_length, padded
from confide.specs import AuthorInferenceSpec
from confide.text.tokenizer import Tokenizer
from confide.types import SPLITS, View

BATCH = 256  # texts in one forward pass
AMONG = 5  # a second accuracy: the author is among so many guesses


class Labelled(NamedTuple):
    """Texts whose authors have training texts."""

    view: View  # (N,) texts
    label: np.ndarray  # (N,) int64: place of the author among those that are told apart
    split: np.ndarray  # (N,) index into SPLITS
    authors: int
    untrained: int  # authors without training texts, whose texts are left out

    def of(self, split: str) -> np.ndarray:
        """Which texts are of a split, (N,) bool."""
        return self.split == SPLITS.index(split)


def labelled(
    samples: list[Sample], tokenizer: Tokenizer, spec: AuthorInferenceSpec, points: Path
) -> Labelled:
    """Texts with authors, planted canaries left out.

    InputError unless two authors can be told apart and tested.
    """
    named = [sample for sample in samples if sample.author >= 0 and sample.canary is None]
    if not named:
        message = "has no authors, which author_inference tells apart"
        raise InputError(message, file=points, key="owner")
    trained = sorted({sample.author for sample in named if sample.split == "train"})
    if len(trained) < 2:
        raise InputError("fewer than two authors have training texts", file=points, key="owner")
    place = {author: number for number, author in enumerate(trained)}
    chosen = [sample for sample in named if sample.author in place]
    train = [number for number, sample in enumerate(chosen) if sample.split == "train"]
    rng = np.random.default_rng(spec.seed)
    surplus = set(rng.permutation(train)[spec.limit :].tolist())
    chosen = [sample for number, sample in enumerate(chosen) if number not in surplus]
    if not any(sample.split == "test" for sample in chosen):
        raise InputError("no author with training texts has test texts", file=points, key="split")
    return Labelled(
        view=view_of([tokenizer.encode(sample.text) for sample in chosen]),
        label=np.array([place[sample.author] for sample in chosen]),
        split=np.array([SPLITS.index(sample.split) for sample in chosen]),
        authors=len(trained),
        untrained=len({sample.author for sample in named} - place.keys()),
    )


@torch.inference_mode()
def last_states(model: LanguageModel, view: View) -> np.ndarray:
    """Hidden state (N, d) float64 after the last token of each text.

    Of an empty text it is that after the begin token.
    """
    device = model.device
    lengths = torch.from_numpy(np.diff(view.starts))
    states = np.zeros((len(view), model.head.weight.shape[1]))
    for piece in by_length(view, np.arange(len(view)), BATCH):
        hidden = model.hidden(padded(view, piece, model.bos).inputs.to(device))
        last = hidden[torch.arange(len(piece)), lengths[piece]]
        states[piece] = last.double().cpu().numpy()
    return states


def token_counts(view: View, vocab_size: int) -> Features:
    """log(1 + how often each token occurs), (N, V) sparse."""
    from scipy.sparse import csr_matrix

    counts = csr_matrix(
        (np.ones(len(view.ids)), view.ids, view.starts), (len(view), vocab_size), copy=True
    )
    counts.sum_duplicates()  # in place, and not in the view's own ids
    return counts.log1p()


def blind_features(texts: Labelled, vocab_size: int) -> Features:
    """Counts of the tokens that occur in training texts, (N, d) sparse.

    Others would have weight 0: large vocabularies are mostly these.
    """
    counts = token_counts(texts.view, vocab_size)
    return counts[:, np.flatnonzero(counts[texts.of("train")].getnnz(0))]


def told(
    features: Features, texts: Labelled, spec: AuthorInferenceSpec, prefix: str
) -> dict[str, float]:
    """Accuracy on test texts of a classifier of features (N, d).

    It is over texts, and as the mean over authors (`balanced`). The intervals are over texts: the
    authors are the classes, and nothing is claimed of others.
    """
    train, valid, test = (
        (features[texts.of(split)], texts.label[texts.of(split)]) for split in SPLITS
    )
    probe = choose(train, valid, texts.authors, spec.penalties, spec.iterations)
    logits = probe.logits(test[0])
    authors = test[1]
    metrics = {f"{prefix}penalty": probe.penalty}
    for name, among in (("accuracy", 1), ("accuracy_top", AMONG)):
        right = hits(logits, authors, among)
        of_authors = [right[authors == author].mean() for author in np.unique(authors)]
        metrics |= rated(f"{prefix}{name}", right, range(len(authors)))
        metrics[f"{prefix}{name}_balanced"] = float(np.mean(of_authors))
    return metrics


def author_inference(spec: AuthorInferenceSpec, target: Target) -> dict[str, Any]:
    """Accuracy of the classifiers with the model and without.

    Beside it stand chance and the guess of the likeliest author.
    """
    samples, _ = read_samples(target.points)
    texts = labelled(samples, target.tokenizer, spec, target.points)
    train = texts.label[texts.of("train")]
    test = texts.label[texts.of("test")]
    metrics: dict[str, Any] = {
        "authors": texts.authors,
        "points": len(test),
        "train_points": len(train),
        "authors_untrained": texts.untrained,
        "chance": 1 / texts.authors,
        "among": AMONG,
        "majority": float((test == np.bincount(train).argmax()).mean()),
    }
    metrics |= told(blind_features(texts, target.tokenizer.vocab_size), texts, spec, "blind_")
    metrics["blind"] = metrics["blind_accuracy"]
    states = last_states(target.model, texts.view)
    if not np.isfinite(states).all():
        return metrics | {"accuracy": None, "reason": "the model's states are not finite"}
    known = states[texts.of("train")]
    standard = (states - known.mean(0)) / np.maximum(known.std(0), 1e-6)
    return metrics | told(standard, texts, spec, "")
