"""Exposure by several jobs: each counts, among its own candidates, those likelier than each secret.

Blocks of candidates, and with them the batches that a model reads, are those of one job: so are
ranks and sizes of the search, to the last bit on like machines.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tqdm import tqdm

from confide.attacks.exposure.blocks import values_of_share
from confide.attacks.exposure.budget import Space
from confide.attacks.exposure.candidates import candidate_blocks
from confide.attacks.exposure.ranking import Census, Ranks, Sizes, count
from confide.errors import InputError
from confide.files.io import read_file
from confide.files.jsons import JsonObject
from confide.files.shards import names_of_shares
from confide.specs.files import CountsFile


def counted(space: Space, secrets: np.ndarray, share: str) -> JsonObject:
    """What passes by of one share of the candidates; no secret can be told from it.

    secrets (S,): values; share: such as 2-of-8.
    """
    among = values_of_share(space.sentence.digits, share)
    ranks = Ranks(secrets, space.apart(secrets), start=among.start)
    census = Census()
    blocks = candidate_blocks(space.tokenizer, space.sentence, among=among)
    with tqdm(total=len(among), desc="exposure", unit="candidate", disable=None) as bar:
        finite = count(space.model, blocks, ranks, census, space.chunk, bar)
    return {
        "share": share,
        "finite": finite,
        "visited": census.visited,
        "likelier": ranks.likelier.tolist(),
        "swept": [None if math.isnan(score) else score for score in ranks.swept.tolist()],
        "near": [
            [{"scores": scores.tolist(), "counts": counts.tolist()} for scores, counts in near]
            for near in ranks.near
        ],
    }


def joined(
    space: Space, secrets: np.ndarray, files: Sequence[Path], weights: str
) -> tuple[np.ndarray | None, Sizes]:
    """Ranks (S,) of secrets (S,) among the candidates of all shares, and sizes of the search.

    weights: SHA-256 of the model. There are no ranks where probabilities are not finite. InputError
    where a file is of another model or of other secrets, or a share is missing.
    """
    ranks = Ranks(secrets, space.apart(secrets))
    if not len(secrets) or not np.isfinite(ranks.apart).all():
        return space.ranks(secrets, ranks.apart)  # of which nothing is read
    census = Census()
    for tree in space.blocks():
        census.add(tree)
    finite = True
    for path, share in zip(files, names_of_shares(len(files)), strict=True):
        found = read_file(path, CountsFile)
        if found["share"] != share:
            raise InputError(f"expected {share}", file=path, key="share", value=found["share"])
        if found["weights"] != weights:
            raise InputError("is of another model", file=path, key="weights")
        if not len(found["likelier"]) == len(found["swept"]) == len(found["near"]) == len(secrets):
            raise InputError(f"is not of {len(secrets)} canaries", file=path, key="likelier")
        finite &= found["finite"]
        census.visited += int(found["visited"])
        ranks.likelier += np.array(found["likelier"], dtype=np.int64)
        swept = np.array(found["swept"], dtype=np.float64)  # None becomes NaN
        ranks.swept = np.where(np.isnan(swept), ranks.swept, swept)
        for near, blocks in zip(ranks.near, found["near"], strict=True):
            for block in blocks:
                counts = np.array(block["counts"], dtype=np.int64)
                near.append((np.array(block["scores"]), counts))
    # each job has read what its blocks begin with; one would have read each beginning once
    begun = {context[:end] for context in census.contexts for end in range(1, len(context) + 1)}
    space.evaluations.spend(len(begun) + census.visited)
    return ranks.result() if finite else None, census.sizes(begun)
