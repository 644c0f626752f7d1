"""Loss on assistants' turns alone: clipped sums against a loop over examples in float64, whatever
company an example has; jobs, what they write down, and evaluation.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from confide import models
from confide.config.params import validated
from confide.dp.ledger import Ledger
from confide.dp.mechanism.clipping import PerExampleClipper
from confide.dp.mechanism.randomness import Stream
from confide.dp.mechanism.update import clipped, discrete_gradient, per_example
from confide.errors import InputError
from confide.files.io import read_json, read_jsonl
from confide.models.batches import answers_only, padded
from confide.models.head import IGNORE
from confide.models.language_model import LanguageModel
from confide.specs import DataSpec, EvaluateSpec, GPT2Spec, LSTMSpec
from confide.stages.evaluate import evaluate
from confide.train.evaluation import evaluate_points, reference_points
from confide.types import Partition, View
from tests.stages.test_train import files, partition, run, spec, vocabulary
from tests.text.test_chat_tokens import chats

__all__ = ["vocabulary"]

VOCAB = 40
BOS = 1
BOUND = 0.4
LENGTHS = (7, 3, 9, 5, 6)
KINDS: dict[str, Any] = {
    "lstm": LSTMSpec(kind="lstm", embedding=9, hidden=11),
    "gpt2": GPT2Spec(kind="gpt2", layers=2, width=12, heads=3, positions=48),
}


def view_of(seed: int = 3) -> View:
    """Points of which the second has nothing that is learned, and the fourth nothing else."""
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(LENGTHS)]).astype(np.int64)
    learned = rng.random(starts[-1]) < 0.5
    learned[starts[1] : starts[2]] = False
    learned[starts[3] : starts[4]] = True
    ids = rng.integers(2, VOCAB, starts[-1]).astype(np.int32)
    return View(ids, starts, np.zeros(starts[-1], bool), learned)


def model_of(kind: str) -> LanguageModel:
    torch.manual_seed(0)
    return models.build(KINDS[kind], VOCAB, BOS).double().eval()


def naive(model: LanguageModel, view: View, point: int) -> list[Tensor]:
    """Gradient of one example: the mean loss of its learned tokens, token by token."""
    parameters = list(model.parameters())
    assert view.learned is not None
    marks = view.learned[view.starts[point] : view.starts[point + 1]]
    ids = view[point].tolist()
    logits = model(torch.tensor([[BOS, *ids]]))[0]
    losses = [-F.log_softmax(logits[t], -1)[ids[t]] for t in range(len(ids)) if marks[t]]
    if marks.all():
        losses.append(-F.log_softmax(logits[len(ids)], -1)[BOS])
    if not losses:
        return [torch.zeros_like(parameter) for parameter in parameters]
    found = torch.autograd.grad(sum(losses) / len(losses), parameters, allow_unused=True)
    return [
        torch.zeros_like(parameter) if grad is None else grad
        for grad, parameter in zip(found, parameters, strict=True)
    ]


def norm_of(grads: list[Tensor]) -> Tensor:
    return torch.sqrt(sum((grad.square().sum() for grad in grads), torch.zeros(())))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pieces", [[range(5)], [[0], [1], [2], [3], [4]], [[1, 4], [2, 0, 3]]])
def test_clipped_sums_are_those_of_a_loop(kind: str, pieces: list[Any]) -> None:
    model = model_of(kind)
    view = view_of()
    total = [torch.zeros_like(parameter) for parameter in model.parameters()]
    norms = []
    for point in range(len(LENGTHS)):
        grads = naive(model, view, point)
        norms.append(norm_of(grads))
        for place, grad in enumerate(grads):
            total[place] += grad * min(1.0, BOUND / max(float(norms[-1]), 1e-300))
    clipper = PerExampleClipper(model, BOUND)
    clipper.reset()
    found = torch.zeros(len(LENGTHS), dtype=torch.float64)
    for piece in pieces:
        points = np.array(list(piece))
        batch = answers_only(view, points, padded(view, points, BOS))
        found[points] = clipper.add(lambda batch=batch: per_example(model, batch))
    assert found[1] < 1e-100 and (found[[0, 2, 3, 4]] > 0).all()
    torch.testing.assert_close(found, torch.stack(norms), rtol=1e-10, atol=1e-14)
    for ours, theirs in zip(clipper.total, total, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-13)


def test_an_author_is_the_mean_of_all_examples_learned_or_not() -> None:
    model = model_of("lstm")
    view = view_of()
    points = np.array([0, 1, 2])
    batch = answers_only(view, points, padded(view, points, BOS))
    clipper = PerExampleClipper(model, 1e6)
    clipper.reset()
    clipped(clipper, replace(batch, units=torch.zeros(3, dtype=torch.int64)), size=8, half=False)
    grads = [naive(model, view, point) for point in points]
    for place, ours in enumerate(clipper.total):
        torch.testing.assert_close(ours, sum(grad[place] for grad in grads) / 3, rtol=1e-6, atol=0)


def test_an_example_without_a_turn_is_noise_alone() -> None:
    model = model_of("lstm")
    view = view_of()
    alone = np.array([1])
    clipper = PerExampleClipper(model, BOUND)
    sums = []
    for batches in ([], [answers_only(view, alone, padded(view, alone, BOS))]):
        discrete_gradient(clipper, batches, 1.0, 4.0, Stream(5, "noise"))
        sums.append(torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]))
    assert torch.equal(*sums) and sums[0].any()


def answering(data: Partition, seed: int = 1) -> Partition:
    """The same points, of which a share of the tokens is learned."""
    learned = np.random.default_rng(seed).random(len(data.original.ids)) < 0.4
    learned[data.original.starts[3] : data.original.starts[4]] = False
    view = replace(data.original, learned=learned)
    return replace(data, original=view, redacted=view)


def asked(method: str, **changes: Any) -> Any:
    wanted = spec(method, **changes)
    data = DataSpec(**(wanted.data.model_dump() | {"learn": "assistant"}))
    return wanted.model_copy(update={"data": data})


@pytest.mark.parametrize("method", ["nonprivate", "dpsgd", "crt", "jft", "selective"])
def test_jobs_train_and_say_so(method: str, tmp_path: Path, vocabulary: Path) -> None:
    made = run(tmp_path / "answers", vocabulary, asked(method), answering(partition()))
    ledger = Ledger.from_file(made["ledger"])
    assert ledger.events("data")[0]["terms"]["learn"] == "assistant"
    if method != "dpsgd":
        return
    whole = run(tmp_path / "whole", vocabulary, spec(method))
    assert "learn" not in Ledger.from_file(whole["ledger"]).events("data")[0]["terms"]
    assert made["model"].read_bytes() != whole["model"].read_bytes()
    rows = [list(read_jsonl(some["metrics"]))[-1] for some in (made, whole)]
    assert rows[0]["valid_tokens"] < rows[1]["valid_tokens"]


@pytest.mark.parametrize(
    ("method", "changes", "message"),
    [
        ("sa_adp", {}, "this method weighs the gradients of public and of private tokens apart"),
        ("triplet", {}, "its regulariser reads whole points"),
        ("dpsgd", {"pack": 6}, "chunks have no turns"),
    ],
)
def test_what_reads_other_tokens_is_refused(
    method: str, changes: dict[str, Any], message: str, tmp_path: Path, vocabulary: Path
) -> None:
    data = answering(partition())
    data = replace(data, private=np.ones_like(data.private)) if changes else data
    with pytest.raises(InputError, match=f"learn = 'assistant': cannot be: {message}"):
        run(tmp_path, vocabulary, asked(method, **changes), data)
    given = chats()
    given["datasets"]["talks"] |= {"learn": "assistant"} | changes
    if changes:
        given["policies"]["all"] = {"kind": "everything"}
        given["datasets"]["talks"]["conservative"] = "all"
    recipe = given["recipes"]["quick"] | {"regulariser_weight": 0.5}
    given["recipes"]["other"] = recipe
    row = {"dataset": "talks", "model": "lstm", "method": method, "recipe": "other"}
    given["runs"]["talks"] = row | {"privacy": "eps3", "dedup": False}
    with pytest.raises(InputError, match=message):
        validated(given, [])


@pytest.mark.parametrize("state", ["noise", "published"])
def test_private_states_that_pass_on_gradients_of_all_tokens_are_refused(state: str) -> None:
    given = chats()
    given["datasets"]["talks"] |= {"learn": "assistant"}
    given["recipes"]["other"] = given["recipes"]["quick"] | {"private_state": state}
    row = {"dataset": "talks", "model": "lstm", "method": "selective", "recipe": "other"}
    given["runs"]["talks"] = row | {"privacy": "eps3", "dedup": False}
    with pytest.raises(InputError, match="its private states pass on gradients of all tokens"):
        validated(given, [])


def test_other_corpora_have_no_turns() -> None:
    given = chats()
    name = next(iter(given["datasets"]))
    given["datasets"][name] |= {"learn": "assistant"}
    with pytest.raises(InputError, match=f"datasets.{name}.learn = 'assistant': needs a corpus"):
        validated(given, [])


def test_evaluation_counts_what_is_learned(tmp_path: Path, vocabulary: Path) -> None:
    data = answering(partition())
    made = run(tmp_path, vocabulary, asked("nonprivate"), data)
    rows = []
    for point in range(len(data.split)):
        row = {"key": f"d{point}:0", "text": "x" * 50, "answers": [[0, 3 + point % 5], [20, 24]]}
        rows.append(orjson.dumps(row) + b"\n")
    (tmp_path / "points").write_bytes(b"".join(rows))
    evaluate(
        EvaluateSpec(run="a", device="cpu"),
        model=made["model"],
        **files(tmp_path, data),
        points=tmp_path / "points",
        output=tmp_path / "evaluation.json",
    )
    found = read_json(tmp_path / "evaluation.json")
    model = models.load(tmp_path).double().eval()
    view = data.original
    assert view.learned is not None
    losses: list[float] = []
    counts = np.ones(model.vocab_size)
    surprises: list[int] = []
    characters = 0
    for point in range(len(data.split)):
        marks = view.learned[view.starts[point] : view.starts[point + 1]]
        ids = [*view[point].tolist(), model.bos]
        scored = [token for token, mark in zip(ids, [*marks, marks.all()], strict=True) if mark]
        if data.split[point] == 0:
            np.add.at(counts, scored, 1)
        if data.split[point] != 2:
            continue
        with torch.no_grad():
            logits = model(torch.tensor([[model.bos, *ids[:-1]]]))[0].log_softmax(-1)
        for place, mark in enumerate([*marks, marks.all()]):
            losses += [-float(logits[place, ids[place]])] if mark else []
        surprises += scored
        characters += 3 + point % 5 + 4
    assert found["tokens"] == len(losses) and found["scored"] == "assistant"
    assert found["ppl"] == pytest.approx(np.exp(np.mean(losses)), rel=1e-5)
    bits = sum(losses) / np.log(2) / characters
    assert found["bits_per_character"] == pytest.approx(bits, rel=1e-5)
    unigram = np.exp(-np.log(counts / counts.sum())[surprises].mean())
    assert found["ppl_unigram"] == pytest.approx(unigram, rel=1e-9)


def test_nothing_learned_has_no_perplexity() -> None:
    view = replace(view_of(), learned=np.zeros(sum(LENGTHS), bool))
    points = np.arange(len(LENGTHS))
    found = evaluate_points(model_of("lstm").float(), view, view.private, points)
    assert found["ppl"] is None and found["tokens"] == 0
    reference = reference_points(view, view.private, points, points, vocab_size=VOCAB, end=BOS)
    assert reference["ppl_unigram"] is None
    batch = answers_only(view, points, padded(view, points, BOS))
    assert (batch.targets == IGNORE).all()
