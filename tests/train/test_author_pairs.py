"""Partners of the triplet regulariser: of the author that was asked for, near in length, never the
point itself.
"""

import numpy as np
import pytest
import torch
from scipy import stats

from confide.train.regularisers.pairs import NEAR, AuthorPairs
from confide.types import View


def pairs_of(authors: np.ndarray, share: float, lengths: np.ndarray | None = None) -> AuthorPairs:
    lengths = (
        np.random.default_rng(0).integers(1, 100, len(authors)) if lengths is None else lengths
    )
    starts = np.concatenate([[0], lengths.cumsum()])
    view = View(np.zeros(starts[-1], np.int32), starts, np.zeros(starts[-1], bool))
    return AuthorPairs(view, authors, share, torch.Generator().manual_seed(0))


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_asked_share_is_of_the_same_author(share: float) -> None:
    authors = np.random.default_rng(1).integers(0, 7, 600)
    points = np.random.default_rng(2).integers(0, 600, 20_000)
    partners = pairs_of(authors, share).partners(points)
    assert (partners != points).all()
    same = int((authors[points] == authors[partners]).sum())
    assert (
        stats.binomtest(same, len(points), share).pvalue > 1e-3
        if 0 < share < 1
        else same == share * len(points)
    )


def test_every_near_point_of_the_author_is_as_likely() -> None:
    authors = np.repeat([0, 1], [9, 200])
    lengths = np.arange(1, 210)
    drawn = pairs_of(authors, 1.0, lengths).partners(np.full(8000, 4))
    assert (
        stats.chisquare(np.bincount(drawn, minlength=9)[[0, 1, 2, 3, 5, 6, 7, 8]]).pvalue > 1e-3
        and drawn.max() == 8
    )
    drawn = pairs_of(authors, 1.0, lengths).partners(np.full(26_000, 109))
    expected = [*range(109 - NEAR, 109), *range(110, 110 + NEAR)]
    assert sorted(set(drawn.tolist())) == expected
    assert stats.chisquare(np.bincount(drawn, minlength=209)[expected]).pvalue > 1e-3


def test_a_partner_is_near_in_length() -> None:
    authors = np.arange(4000) % 2
    points = np.arange(4000)
    lengths = np.random.default_rng(3).integers(1, 500, 4000)
    for share in (0.0, 1.0):
        gaps = np.abs(lengths[pairs_of(authors, share, lengths).partners(points)] - lengths)
        assert (
            gaps.mean() < 10
            and np.abs(lengths - np.random.default_rng(4).permutation(lengths)).mean() > 100
        )


def test_an_author_among_nobody_else_of_his_length_is_compared_with_anyone() -> None:
    authors = np.repeat([0, 1, 2], [300, 10, 20])
    lengths = np.where(authors == 0, 5, 50)
    drawn = pairs_of(authors, 0.0, lengths).partners(np.zeros(3000, np.int64))
    assert set(drawn.tolist()) == set(range(300, 330))
    assert stats.chisquare(np.bincount(drawn - 300)).pvalue > 1e-3


def test_lonely_points_have_other_authors_partners_and_nobodys_have_none() -> None:
    authors = np.array([0, 1, 1, 2, -1, 2])
    pairs = pairs_of(authors, 1.0)
    for _ in range(50):
        partners = pairs.partners(np.arange(6))
        assert partners.tolist()[1:] == [2, 1, 5, 4, 3]
        assert partners[0] in (1, 2, 3, 5)


def test_two_points_are_each_others_partners() -> None:
    assert pairs_of(np.array([0, 1]), 0.5).partners(np.arange(2)).tolist() == [1, 0]
