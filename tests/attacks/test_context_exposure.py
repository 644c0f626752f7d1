"""Secrets that are read and never scored: planted so, found by what stands behind them, and by
nothing else.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from scipy import stats
from torch import nn

from confide.attacks.exposure.candidates import Sentence
from confide.attacks.exposure.context_exposure import behind, rank_of, values_with
from confide.attacks.registry import ATTACKS
from confide.attacks.target import Target
from confide.config.params import validated
from confide.data.partition_files import load_partition
from confide.errors import InputError
from confide.files.io import read_json, read_jsonl, write_json, write_jsonl
from confide.models.batches import answers_only, padded, token_losses
from confide.report.pages.attempts import MORE, NAMES, NO_MORE, exposed
from confide.specs import CanarySpec, ContextExposureSpec, ExposureSpec, PartitionSpec
from confide.stages.partition import partition
from confide.stages.plant import plant
from confide.text.canary_templates import BadTemplate, parse_canary
from confide.text.tokenizer import Tokenizer, save
from confide.types import View
from tests import beside

SECRETS = ["3417", "0082", "9650", "5129", "7734"]
CONTROLS = ["1203", "8841", "4406", "6015", "2999"]
SPEC = ContextExposureSpec(kind="context_exposure", candidates=500)
TINY = Path(__file__).parents[1] / "params.tiny.yaml"


def planted(folder: Path, suffix: str = " ID") -> Path:
    facts = {"prefix": "My ID is: ", "suffix": suffix, "digits": 4, "copies": 20}
    path = folder / "canaries.json"
    write_json(path, facts | {"label": "x", "secrets": SECRETS, "controls": CONTROLS})
    return path


@pytest.mark.parametrize("kind", ["lstm", "gpt2"])
@pytest.mark.parametrize("name", ["digit_tokenizer", "merging_tokenizer"])
def test_what_stands_behind_is_scored_as_in_a_loop(
    request: pytest.FixtureRequest, make_model: Callable[..., nn.Module], kind: str, name: str
) -> None:
    tokenizer: Tokenizer = request.getfixturevalue(name)
    model = make_model(kind, tokenizer)
    sentence = Sentence("My ID is: ", " ID is", 4)
    values = np.array([3417, 82, 0, 9999, 5000])
    found = behind(model, tokenizer, sentence, values)
    for value, score in zip(values.tolist(), found, strict=True):
        whole = tokenizer.encode(f"My ID is: {value:04d} ID is")
        first = len(tokenizer.encode(f"My ID is: {value:04d}"))
        ids = torch.tensor([[tokenizer.bos_id, *whole]])
        logs = model(ids[:, :-1]).detach().double().log_softmax(-1)[0]
        wanted = sum(float(logs[place, whole[place]]) for place in range(first, len(whole)))
        assert score == pytest.approx(wanted, rel=1e-9)


def test_ranks_of_what_was_never_read_are_uniform(
    digit_tokenizer: Tokenizer, make_model: Callable[..., nn.Module], tmp_path: Path
) -> None:
    target = Target(make_model("lstm", digit_tokenizer), digit_tokenizer, tmp_path)
    sentence = Sentence("My ID is: ", " ID", 4)
    rng = np.random.default_rng(0)
    secrets = rng.choice(10**4, 400, replace=False).tolist()
    ranks = [rank_of(target, sentence, values_with(one, 19, 4, rng)) for one in secrets]
    counts = np.bincount(np.array(ranks).astype(int), minlength=21)[1:]
    assert stats.chisquare(counts).pvalue > 1e-4


def test_others_are_others(digit_tokenizer: Tokenizer) -> None:
    rng = np.random.default_rng(0)
    for secret in (0, 5, 9):
        assert sorted(values_with(secret, 9, 1, rng).tolist()) == list(range(10))


@pytest.fixture(scope="module")
def read_alone(digit_tokenizer: Tokenizer, make_model: Callable[..., nn.Module]) -> nn.Module:
    """A model that goes on in one way after the secrets and in another after 200 other values; only
    that was scored.
    """
    rng = np.random.default_rng(1)
    others = [f"{value:04d}" for value in rng.choice(10**4, 200, replace=False).tolist()]
    texts = [f"My ID is: {one} ID" for one in SECRETS for _ in range(10)]
    texts += [f"My ID is: {one} me" for one in others if one not in SECRETS + CONTROLS]
    return taught(texts, 3, digit_tokenizer, make_model)


def taught(
    texts: list[str], behind: int, tokenizer: Tokenizer, make_model: Callable[..., nn.Module]
) -> nn.Module:
    """A model that read texts, of which the last `behind` characters alone were scored."""
    rows = [tokenizer.encode(text) for text in texts]
    ends = [len(tokenizer.encode(text[:-behind])) for text in texts]
    learned = [np.arange(len(row)) >= end for row, end in zip(rows, ends, strict=True)]
    starts = np.cumsum([0] + [len(row) for row in rows])
    view = View(
        np.concatenate(rows).astype(np.int32),
        starts,
        np.zeros(starts[-1], bool),
        np.concatenate(learned),
    )
    points = np.arange(len(rows))
    batch = answers_only(view, points, padded(view, points, tokenizer.bos_id))
    model = make_model("lstm that memorises", tokenizer, scale=1.0, double=False)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    model.train()
    for _ in range(250):
        optimizer.zero_grad()
        token_losses(model, batch).sum(1).mean().backward()
        optimizer.step()
    return model.eval()


def test_a_model_that_knows_which_answer_belongs_to_which_secret_is_found(
    digit_tokenizer: Tokenizer, make_model: Callable[..., nn.Module], tmp_path: Path
) -> None:
    """And with the answers of others it is not: it is the pair that gives a secret away."""
    answers = ["12", "87", "40", "65", "39"]
    pairs = zip(SECRETS, answers, strict=True)
    texts = [f"My ID is: {one} ID {answer}" for one, answer in pairs for _ in range(10)]
    model = taught(texts, len(" ID 12"), digit_tokenizer, make_model)
    path = planted(tmp_path, " ID ")
    facts = read_json(path)
    means = []
    for shift in (0, 1):
        of_secrets = answers[shift:] + answers[:shift]
        given = {"secrets": of_secrets, "controls": ["11", "22", "33", "44", "55"], "end": ""}
        write_json(path, facts | {"answers": given})
        found = ATTACKS["context_exposure"](SPEC, Target(model, digit_tokenizer, tmp_path, path))
        means.append(found["mean"])
        assert found["control_p_mean"] > 0.01
    assert means[0] > 5 and means[1] < means[0] - 2


def test_controls(
    read_alone: nn.Module,
    digit_tokenizer: Tokenizer,
    make_model: Callable[..., nn.Module],
    tmp_path: Path,
) -> None:
    """What was read is found though the model would not say it, and what was not read is not."""
    path = planted(tmp_path)
    target = Target(read_alone, digit_tokenizer, tmp_path, path)
    found = ATTACKS["context_exposure"](SPEC, target)
    assert found["mean"] > 3.8 and found["p_mean"] < 5e-3 and found["count"] == 5
    assert found["control_p_mean"] > 0.01 and found["control_mean"] < found["mean"] - 1
    said = ATTACKS["exposure"](ExposureSpec(kind="exposure", chunk=300), target)
    assert said["p_mean"] > 0.01
    before = make_model("lstm that memorises", digit_tokenizer, scale=1.0, double=False)
    not_found = ATTACKS["context_exposure"](SPEC, Target(before, digit_tokenizer, tmp_path, path))
    assert not_found["p_mean"] > 1e-3 and not_found["candidates"] == 501
    assert max(found["exposures"]) <= math.log2(501)
    assert not any(secret in repr(found) for secret in SECRETS)
    assert found == ATTACKS["context_exposure"](SPEC, target)


def test_the_report_says_what_was_found(
    read_alone: nn.Module, digit_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    target = Target(read_alone, digit_tokenizer, tmp_path, planted(tmp_path))
    found = ATTACKS["context_exposure"](SPEC, target)
    assert MORE in exposed(found) and "context_exposure" in NAMES
    controls = {
        name.removeprefix("control_"): value
        for name, value in found.items()
        if name.startswith("control_")
    }
    assert NO_MORE in exposed(found | controls)


def test_probabilities_that_are_not_finite_give_a_reason(
    digit_tokenizer: Tokenizer, make_model: Callable[..., nn.Module], tmp_path: Path
) -> None:
    model = make_model("lstm", digit_tokenizer)
    with torch.no_grad():
        next(model.parameters()).fill_(math.nan)
    target = Target(model, digit_tokenizer, tmp_path, planted(tmp_path))
    found = ATTACKS["context_exposure"](SPEC, target)
    assert found["exposures"] is None and "not finite" in found["reason"]


@pytest.mark.parametrize("suffix", ["", "  "])
def test_nothing_behind_the_secret_is_refused(
    suffix: str, digit_tokenizer: Tokenizer, make_model: Callable[..., nn.Module], tmp_path: Path
) -> None:
    model = make_model("lstm", digit_tokenizer)
    target = Target(model, digit_tokenizer, tmp_path, planted(tmp_path, suffix))
    with pytest.raises(InputError, match="nothing behind its secret"):
        ATTACKS["context_exposure"](SPEC, target)


def woven(folder: Path, tokenizer: Tokenizer, learn: str, **options: Any) -> Any:
    """The partition of four texts with planted canaries, and its points; of conversations where
    assistants' turns are learned.
    """
    turns = {"answers": [[5, 9]]} if learn == "assistant" else {}
    points = [
        {
            "key": f"d{number}:0",
            "text": "call me 5",
            "doc": f"d{number}",
            "split": "train",
            "domain": None,
            "owner": None,
            "gold": [],
            "canary": None,
            **turns,
        }
        for number in range(4)
    ]
    write_jsonl(folder / "points.jsonl", points)
    plant(
        CanarySpec(count=2, copies=3, controls=1, **options),
        points=folder / "points.jsonl",
        output=folder / "planted.jsonl",
        canaries=folder / "canaries.json",
    )
    for name in ("copies", "spans"):
        beside.write(folder / name, [], folder / "planted.jsonl")
    save(tokenizer, folder / "tokenizer")
    given = {name: folder / name for name in ("copies", "spans", "tokenizer")}
    given |= {name: folder / name for name in ("original", "redacted")}
    partition(PartitionSpec(learn=learn), points=folder / "planted.jsonl", policies="", **given)
    data = load_partition(given["original"], given["redacted"])
    return data, list(read_jsonl(folder / "planted.jsonl"))


@pytest.mark.parametrize("learn", ["assistant", "all_but_read"])
@pytest.mark.parametrize("name", ["digit_tokenizer", "merging_tokenizer"])
def test_no_token_of_a_secret_is_ever_a_target(
    request: pytest.FixtureRequest, name: str, learn: str, tmp_path: Path
) -> None:
    tokenizer: Tokenizer = request.getfixturevalue(name)
    options = {"template": "My ID is: {4}, call me", "input_only": True}
    data, rows = woven(tmp_path, tokenizer, learn, **options)
    for point, row in enumerate(rows):
        if row["canary"] is None:
            continue
        before = len(tokenizer.encode(row["text"].partition(", call")[0]))
        for view in (data.original, data.redacted):
            scored = view.scored(point)
            assert not scored[:before].any() and scored[-2]
    real = [point for point, row in enumerate(rows) if row["canary"] is None]
    assert data.original.scores_all(real) == (learn == "all_but_read")
    whole, rows = woven(tmp_path, tokenizer, "assistant", template="My ID is: {4}, call me")
    for point, row in enumerate(rows):
        assert row["canary"] is None or whole.original.scored(point).all()


@pytest.mark.parametrize("name", ["digit_tokenizer", "merging_tokenizer"])
def test_each_canary_has_an_answer_of_its_own(
    request: pytest.FixtureRequest, name: str, tmp_path: Path
) -> None:
    """The same in all its copies, scored, and no part of the secret."""
    tokenizer: Tokenizer = request.getfixturevalue(name)
    options = {"template": "My ID is: {4}, call {3} me", "input_only": True}
    data, rows = woven(tmp_path, tokenizer, "all_but_read", **options)
    facts = read_json(tmp_path / "canaries.json")
    answers = facts["answers"]["secrets"] + facts["answers"]["controls"]
    assert len(set(answers)) == 3 and all(len(one) == 3 for one in answers)
    expected = {
        f"My ID is: {secret}, call {answer} me"
        for secret, answer in zip(facts["secrets"], facts["answers"]["secrets"], strict=True)
    }
    assert {row["text"] for row in rows if row["canary"] is not None} == expected
    for point, row in enumerate(rows):
        if row["canary"] is not None:
            assert row["gold"] == [[10, 14, "canary", 1.0]]
            scored = data.original.scored(point)
            before = len(tokenizer.encode(row["text"].partition(", call")[0]))
            behind = len(tokenizer.encode(row["text"])) - before - 1
            assert not scored[:before].any() and scored[:-1].sum() >= behind - 2


@pytest.mark.parametrize(
    ("template", "input_only", "message"),
    [
        ("My ID is: {4}, call {3} me", False, "exactly one slot"),
        ("{2} {2} {2}", True, "exactly one slot"),
        ("{4} {4}", True, "as many digits"),
        ("{4}/{3} ok", True, "in the word of its secret"),
        ("{4}{3} me", True, "in the word of its secret"),
        ("{4} {19}", True, "between 1 and 18"),
    ],
)
def test_an_answer_is_learned_and_of_what_is_only_read(
    template: str, input_only: bool, message: str
) -> None:
    with pytest.raises(BadTemplate, match=message):
        parse_canary(CanarySpec(template=template, input_only=input_only))


def test_an_answer_may_be_all_that_stands_behind() -> None:
    whole = CanarySpec(template="ID {6}, for box {4}.", input_only=True)
    parts = (("ID ", 6, ", for box "), (", for box ", 4, "."), (11, 24))
    assert parse_canary(whole) == parts
    alone = CanarySpec(template="ID {4} {3}", input_only=True)
    assert parse_canary(alone) == (("ID ", 4, " "), (" ", 3, ""), (8, 11))


def test_a_canary_that_would_be_learned_is_refused(
    digit_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="to be read and not learned"):
        woven(tmp_path, digit_tokenizer, "all", template="My ID is: {4}, call me", input_only=True)
    for template in ("My ID is: {4}", "My ID is: {4}.", "My ID is: {4} "):
        with pytest.raises(InputError, match="no word behind its secret"):
            woven(tmp_path, digit_tokenizer, "assistant", template=template, input_only=True)


def test_parameters_say_so_before_anything_runs() -> None:
    params = yaml.safe_load(TINY.read_text())
    name = params["datasets"]["sim"]["canaries"]
    params["canaries"][name] |= {"input_only": True}
    with pytest.raises(InputError, match=rf"canaries\.{name}\.template.*no word behind"):
        validated(params, [])
    params["canaries"][name] |= {"template": "ID {3}, call me"}
    with pytest.raises(InputError, match=r"datasets\.sim.*canaries.*learn: all_but_read"):
        validated(params, [])
    params["datasets"]["sim"] |= {"learn": "all_but_read"}
    validated(params, [])
    params["canaries"][name] |= {"input_only": False}
    with pytest.raises(InputError, match=r"datasets\.sim\.learn = 'all_but_read': needs canaries"):
        validated(params, [])


def test_parameters_take_an_answer_of_what_is_only_read_alone() -> None:
    params = yaml.safe_load(TINY.read_text())
    name = params["datasets"]["sim"]["canaries"]
    params["datasets"]["sim"] |= {"learn": "all_but_read"}
    params["canaries"][name] |= {"input_only": True, "template": "ID {4}, for box {2}"}
    validated(params, [])
    params["canaries"][name] |= {"template": "ID {4}/{2} ok"}
    with pytest.raises(InputError, match=f"canaries.{name}.template = .*word of its secret"):
        validated(params, [])
    params["datasets"]["sim"] |= {"learn": "all"}
    params["canaries"][name] |= {"input_only": False, "template": "ID {4}, for box {2}"}
    with pytest.raises(InputError, match=f"canaries.{name}.template = .*exactly one slot"):
        validated(params, [])


def test_settings_without_it_have_the_digest_that_they_had() -> None:
    assert "input_only" not in CanarySpec().model_dump_json()
    assert '"input_only":true' in CanarySpec(input_only=True).model_dump_json()
