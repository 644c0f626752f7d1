"""What a small model learns of a text: it tells the text it has read from others, words are counted
as a loop counts them, and a classifier of domains finds what words give away.
"""

import numpy as np
import pytest
import torch

from confide.specs import WorthSpec
from confide.train.evaluation import Scores, perplexity, score
from confide.train.student import bags, classified, next_word, taught, view_of

SPEC = WorthSpec(updates=120, batch_size=8, embedding=8, hidden=16, lr=0.02, device="cpu")
TEXTS = [[2, 3, 4, 5], [2, 3, 6], [2, 3, 4, 5, 6]] * 4


def model_of(texts: list[list[int]], spec: WorthSpec = SPEC):
    view = view_of(texts)
    points = np.arange(len(texts))
    return taught(spec, view, points, vocab_size=12, bos=0, device="cpu")


def ppl(model, texts: list[list[int]]) -> float:
    view = view_of(texts)
    value = perplexity(score(model, view, np.arange(len(texts))).loss)
    assert value is not None
    return value


def test_the_text_that_was_learnt_is_told_better_than_another() -> None:
    model = model_of(TEXTS)
    assert ppl(model, TEXTS) < 3 < 12 < ppl(model, [[9, 8, 7], [10, 11, 9]])


def test_the_budget_is_the_same_and_repeats() -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    models = [model_of(TEXTS, SPEC.model_copy(update={"updates": 5})) for _ in range(2)]
    assert torch.equal(before, torch.get_rng_state())  # nobody else's numbers are used up
    for one, two in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert torch.equal(one, two)


def test_a_word_is_right_where_all_its_tokens_are() -> None:
    begins = np.array([False, False, True, False, True])
    view = view_of([[2, 3, 4], [3, 2, 3]])  # words: 23, 4; 3, 23
    place = np.array([4, 0, 1, 2, -1, 3, 5, -1])  # in any order
    hit = np.array([True, True, False, True, True, True, True, False])
    scores = Scores(np.array([1, 0, 0, 0, 0, 1, 1, 1]), place, np.zeros(8), hit)
    # 23: the second is wrong; 4 right; 3 right; 23 right
    assert next_word(scores, view, begins) == pytest.approx(3 / 4)
    assert next_word(scores.of(place < 0), view, begins) is None


def test_domains_are_found_by_their_words() -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 2
    texts = [[1, *rng.integers(10 + 5 * label, 15 + 5 * label, 4).tolist()] for label in labels]
    assert (classified(texts[:40], labels[:40], texts[40:], 2) == labels[40:]).all()
    noise = classified(texts[:40], rng.permutation(labels[:40]), texts[40:], 2) == labels[40:]
    assert noise.mean() < 0.95
    assert bags([[1, 1, 2], []]).norm(dim=1).tolist() == pytest.approx([1, 0])
