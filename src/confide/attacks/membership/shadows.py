"""Shadow models' file, and which shadow model learns which candidate.

Shadow models come in pairs with complementary halves of the candidates (Carlini et al. 2022,
section V), so that every candidate is in the training set of exactly half of them, with or without
any one pair. The file holds numbers alone: a candidate is known by the line of its first text,
never by its text or a hash of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from confide.attacks.membership.members import Candidate
from confide.errors import InputError
from confide.files.io import atomic
from confide.files.rows import read_rows
from confide.specs import LiraSpec, ShadowsSpec

TENSORS: dict[str, Any] = {
    "model": np.int64,
    "seen": np.bool_,
    "total": np.float64,
    "count": np.int64,
    "member": np.bool_,
    "line": np.int64,
    "loss": np.float64,
}
OF_CANDIDATES = ("count", "member", "line")  # alike in all shares


@dataclass(frozen=True, slots=True)
class Shadows:
    """What K shadow models say of M candidates."""

    spec: ShadowsSpec
    model: np.ndarray  # (K,) int64: numbers of the models, all that `spec` has or those of a share
    seen: np.ndarray  # (K, M) bool: the model was trained on the candidate
    total: np.ndarray  # (K, M) float64: log-probability of the secret's tokens in its text, nats
    count: np.ndarray  # (M,) int64: how many tokens that are
    member: np.ndarray  # (M,) bool: of the target's training set
    line: np.ndarray  # (M,) int64: where in the points the candidate first occurs, from 0
    loss: np.ndarray  # (epochs, K) float64: mean training loss, nats per token


def assignment(models: int, candidates: int, rng: np.random.Generator) -> np.ndarray:
    """Who learns whom, (K, M) bool: models 2i and 2i + 1 learn complementary random halves."""
    seen = np.zeros((models, candidates), dtype=bool)
    for first in range(0, models, 2):
        seen[first, rng.permutation(candidates)[: candidates // 2]] = True
        seen[first + 1] = ~seen[first]
    return seen


def holders(
    points: Path, label: str, candidates: list[Candidate]
) -> Iterator[tuple[str, bool, list[int]]]:
    """Each point's text, whether it is for training, and the candidates that it holds."""
    number = {candidate.secret: index for index, candidate in enumerate(candidates)}
    for text, split, gold in read_rows(points, "text", "split", "gold"):
        secrets = {text[start:end] for start, end, kind, *_ in gold if kind == label}
        yield text, split == "train", sorted(number[secret] for secret in secrets & number.keys())


def first_lines(points: Path, label: str, candidates: list[Candidate]) -> np.ndarray:
    """Line (M,) int64 of each candidate's first text."""
    lines = np.full(len(candidates), -1, dtype=np.int64)
    for line, (_, _, held) in enumerate(holders(points, label, candidates)):
        for index in held:
            if lines[index] < 0:
                lines[index] = line
    return lines


def write(shadows: Shadows, path: Path) -> None:
    """Write the file, whole or not at all.

    Guarantees: holds no text, no secret and no hash of one.
    """
    arrays = {
        name: np.ascontiguousarray(getattr(shadows, name), dtype) for name, dtype in TENSORS.items()
    }
    with atomic(path) as temporary:
        save_file(arrays, temporary, metadata={"spec": shadows.spec.model_dump_json()})


def read(path: Path, wanted: LiraSpec) -> Shadows:
    """Read the file back.

    InputError if it is damaged, holds a share alone, or is of candidates drawn in another way.
    """
    shadows = read_share(path)
    spec = shadows.spec
    if len(shadows.model) != spec.models:
        message = f"holds {len(shadows.model)} of {spec.models} shadow models"
        raise InputError(message, file=path, key="model")
    for key in ("label", "limit", "seed"):
        value = getattr(wanted, key)
        trained = getattr(spec, key)
        if value != trained:
            message = f"the shadow models were trained for {trained!r}"
            raise InputError(message, file=path, key=key, value=value)
    return shadows


def read_share(path: Path) -> Shadows:
    """Read a file back that may hold a share of the models; InputError if it is damaged."""
    try:
        with safe_open(path, "numpy") as file:
            arrays = {
                name: file.get_tensor(name).astype(dtype, casting="no")
                for name, dtype in TENSORS.items()
            }
            spec = ShadowsSpec.model_validate_json(file.metadata()["spec"])
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        message = f"is not a file of shadow models ({type(error).__name__})"
        raise InputError(message, file=path) from None
    return Shadows(spec, **arrays)


def joined(paths: list[Path]) -> Shadows:
    """All shadow models, from files of their shares in the order of the models.

    InputError unless the shares are of one specification and of the same candidates, and each model
    is in one of them.
    """
    shares = [read_share(path) for path in paths]
    first = shares[0]
    for path, share in zip(paths, shares, strict=True):
        pairs = ((getattr(share, name), getattr(first, name)) for name in OF_CANDIDATES)
        if share.spec != first.spec or not all(np.array_equal(*pair) for pair in pairs):
            raise InputError(f"is of other shadow models than {paths[0]}", file=path)
    numbers = np.concatenate([share.model for share in shares])
    if not np.array_equal(numbers, np.arange(first.spec.models)):
        message = f"the shares do not hold each of {first.spec.models} models once, in their order"
        raise InputError(message, file=paths[0], key="model")
    return replace(
        first,
        model=numbers,
        seen=np.concatenate([share.seen for share in shares]),
        total=np.concatenate([share.total for share in shares]),
        loss=np.concatenate([share.loss for share in shares], axis=1),
    )


def check(
    shadows: Shadows, member: np.ndarray, lines: np.ndarray, count: np.ndarray, path: Path
) -> None:
    """InputError unless the shadow models were made for exactly these candidates and tokens."""
    if not np.array_equal(shadows.member, member) or not np.array_equal(shadows.line, lines):
        message = "the shadow models were trained for candidates of another dataset"
        raise InputError(message, file=path, key="line")
    if not np.array_equal(shadows.count, count):
        message = "the shadow models were trained with another tokenizer"
        raise InputError(message, file=path, key="count")
