"""What comes out of a model that is prompted: canaries and training secrets, and their nulls."""

from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from confide.attacks.exposure.candidates import Sentence
from confide.attacks.exposure.extraction import common_prompt
from confide.attacks.registry import ATTACKS
from confide.attacks.statistics.metrics import at_least
from confide.attacks.target import Target
from confide.files.io import write_json, write_jsonl
from confide.report.pages.attempts import written_out
from confide.specs import ExtractionSpec
from confide.text.tokenizer import Tokenizer, train_bpe

SECRETS = ["417", "530", "286"]
SPEC = ExtractionSpec(kind="extraction", samples=300, label="code")


def planted(folder: Path, **changed: Any) -> Path:
    """Canaries of three digits."""
    facts = {"prefix": "my code is ", "suffix": " ok", "digits": 3, "copies": 2, "label": "canary"}
    path = folder / "canaries.json"
    write_json(path, facts | {"secrets": SECRETS, "controls": ["907", "118"]} | changed)
    return path


def row(number: int, split: str) -> dict[str, Any]:
    """A point with a code of its own."""
    code = str(1000 + 53 * number)
    text = f"guest {number}: room {code} please"
    start = text.index(code)
    gold = [[start, start + 4, "code", 1.0]]
    return {"key": f"{number}", "doc": f"{number}", "text": text, "split": split, "gold": gold}


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("extraction") / "points.jsonl"
    split = ["train"] * 12 + ["test"] * 12
    write_jsonl(path, [row(number, split[number]) for number in range(24)])
    return path


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    texts = [row(number, "train")["text"] for number in range(24)] + ["my code is 0123456789 ok"]
    return train_bpe(texts * 3, vocab_size=300)


@pytest.fixture(scope="module")
def knowing(
    points: Path,
    tokenizer: Tokenizer,
    make_model: Callable[..., Any],
    fit: Callable[..., None],
) -> Any:
    """A model that knows its training text by heart."""
    model = make_model("gpt2", tokenizer, scale=1.0, double=False)
    learnt = [f"my code is {secret} ok" for secret in SECRETS] * 3
    learnt += [row(number, "train")["text"] for number in range(12)]
    fit(model, tokenizer, learnt, 800, enough=2.6)
    return model


def test_the_chance_of_so_many_is_that_of_all_subsets() -> None:
    """Counted by going through every draw of four among nine, of which three are marked."""
    draws = list(combinations(range(9), 4))
    for found in range(5):
        share = np.mean([sum(one < 3 for one in draw) >= found for draw in draws])
        assert at_least(found, population=9, marked=3, drawn=4) == pytest.approx(share, abs=1e-12)


def test_a_model_that_knows_its_text_gives_it_away(
    knowing: Any, tokenizer: Tokenizer, points: Path, tmp_path: Path
) -> None:
    found = ATTACKS["extraction"](SPEC, Target(knowing, tokenizer, points, planted(tmp_path)))
    assert found["canaries_out"] == found["canaries"] == 3 and found["p_canaries"] < 1e-6
    assert found["controls_out"] == 0
    assert found["members"] == found["non_members"] == 12
    assert found["members_out"] >= 11 and found["non_members_out"] <= 1
    assert found["p_members"] < 1e-4 and found["rate_members_low"] > 0.5
    assert found["values"] <= SPEC.samples and found["candidates"] == 1000
    for line in written_out(found):
        assert line.startswith("more than chance")


def test_a_model_that_never_saw_the_text_gives_nothing_away(
    tokenizer: Tokenizer, points: Path, tmp_path: Path, make_model: Callable[..., Any]
) -> None:
    model = make_model("lstm", tokenizer, scale=0.5)
    found = ATTACKS["extraction"](SPEC, Target(model, tokenizer, points, planted(tmp_path)))
    assert found["members_out"] == 0 and found["p_members"] == 1
    assert found["p_canaries"] > 0.05
    for line in written_out(found):
        assert line.startswith("no more than chance")


def test_the_p_value_of_canaries_holds_its_level(tmp_path: Path) -> None:
    """Values that know nothing of the canaries: at most 5 of 100 are significant at 5 %."""
    rng = np.random.default_rng(0)
    significant = 0
    for _ in range(2000):
        canaries = set(rng.choice(1000, 10, replace=False).tolist())
        written = set((np.abs(rng.normal(0, 100, 300)).astype(int) % 1000).tolist())
        p = at_least(len(canaries & written), population=1000, marked=10, drawn=len(written))
        significant += p <= 0.05
    assert 20 < significant < 120


@pytest.mark.parametrize("prefix", ["my code is ", "room 47"])
def test_the_prompt_is_what_all_candidates_share(tokenizer: Tokenizer, prefix: str) -> None:
    """Also where the last digits of the prefix join with the secret's first ones."""
    sentence = Sentence(prefix, " ok", 3)
    prompt = common_prompt(tokenizer, sentence)
    rows = [tokenizer.encode(text) for text in sentence.texts(np.arange(1000))]
    assert prompt and sum(row[: len(prompt)] == prompt for row in rows) >= 990


def test_without_canaries_and_secrets_there_is_a_reason(
    tokenizer: Tokenizer, tmp_path: Path, make_model: Callable[..., Any]
) -> None:
    empty = tmp_path / "points.jsonl"
    write_jsonl(empty, [row(0, "train") | {"gold": []}])
    model = make_model("lstm", tokenizer)
    found = ATTACKS["extraction"](SPEC, Target(model, tokenizer, empty))
    assert found["reason"] == "none in this corpus" and list(written_out(found)) == []


def test_what_is_not_finite_is_said(
    tokenizer: Tokenizer, points: Path, tmp_path: Path, make_model: Callable[..., Any]
) -> None:
    broken = make_model("lstm", tokenizer)
    with torch.no_grad():
        next(broken.parameters()).fill_(float("nan"))
    found = ATTACKS["extraction"](SPEC, Target(broken, tokenizer, points, planted(tmp_path)))
    assert "finite" in found["reason"]


def test_the_same_seed_gives_the_same_numbers_and_no_secret_is_written(
    knowing: Any, tokenizer: Tokenizer, points: Path, tmp_path: Path
) -> None:
    target = Target(knowing, tokenizer, points, planted(tmp_path))
    found = ATTACKS["extraction"](SPEC, target)
    assert found == ATTACKS["extraction"](SPEC, target)
    written = {value for value in found.values() if isinstance(value, str)}
    assert written == {"code"}
