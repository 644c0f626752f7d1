"""What texts are worth: real text as if a model had written it is worth what real text is, noise is
worth nothing, and no text or secret is written.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from confide.errors import InputError
from confide.files.io import read_json, write_jsonl
from confide.specs import WorthJobSpec, parse
from confide.stages.worth import NOT_COVERED, Text, domain_accuracy, from_strings, worth
from confide.text.planted import is_planted
from confide.text.tokenizer import train_bpe
from confide.types import MASK
from tests.points import read_points
from tests.stages.corpus_of_texts import POLICY, made

SETTINGS = {"updates": 30, "embedding": 16, "hidden": 32, "limit": 100, "clusters": 10, "lr": 0.02}
SPEC = {"run": "a/g0-s0", "worth": SETTINGS | {"device": "cpu"}, "policy": POLICY}
TAKEN = ("original", "redacted", "points", "tokenizer")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return made(tmp_path_factory.mktemp("corpus"))


def measured(
    corpus: dict[str, Path],
    folder: Path,
    texts: list[dict[str, Any]],
    asked: dict[str, Any] = SPEC,
    **more: Path,
) -> dict[str, Any]:
    """worth.json of texts that a model might have written."""
    write_jsonl(folder / "texts", [{"synthetic": {}}, *texts])
    given = {name: corpus[name] for name in TAKEN}
    spec = parse(WorthJobSpec, asked)
    worth(spec, texts=folder / "texts", output=folder / "worth.json", **given, **more)
    return read_json(folder / "worth.json")


def own(corpus: dict[str, Path]) -> list[dict[str, Any]]:
    """Training points that nobody planted."""
    rows = [row for row in read_points(corpus["points"]) if row["split"] == "train"]
    return [{"text": row["text"]} for row in rows if not is_planted(row["doc"])]


def test_real_text_is_worth_what_it_is_and_noise_nothing(
    corpus: dict[str, Path], tmp_path: Path
) -> None:
    texts = own(corpus)
    found = measured(corpus, tmp_path, texts, templates=corpus["points"])
    for key in ("texts", "ppl", "bits_per_character", "next_word", "divergence_2"):
        assert found[f"synthetic_{key}"] == pytest.approx(found[f"real_{key}"], rel=1e-6), key
    assert found["covered"] == NOT_COVERED
    assert found["synthetic_slots"] == found["real_slots"] != found["redacted_slots"] == {}
    assert found["redacted_masked"] > 0.1 > found["real_masked"] == 0
    # masks in place of secrets are worth less where secrets are to be told
    assert found["redacted_bits_per_character"] > found["real_bits_per_character"]
    assert found["templates_texts"] > 0 and found["templates_ppl"] < 280
    written = (tmp_path / "worth.json").read_text()
    secrets = {
        row["text"][start:end]
        for row in read_points(corpus["points"])
        for start, end, *_ in row["gold"]
    }
    assert not [secret for secret in secrets if len(secret) > 5 and secret in written]
    noise = [{"text": "zq" * (3 + place % 7)} for place in range(100)]
    other = measured(corpus, tmp_path, noise)
    assert other["synthetic_bits_per_character"] > found["synthetic_bits_per_character"] + 0.5
    assert other["synthetic_divergence_1"] == pytest.approx(1)
    assert other["synthetic_likeness"] < 0.1 < found["synthetic_likeness"]
    assert other["real_ppl"] == found["real_ppl"]  # of the corpus alone


def test_domains_of_a_mix_are_told_by_a_classifier(tmp_path: Path) -> None:
    tokenizer = train_bpe(["a flight", "a letter"], 280)

    def text(names: list[str | None]) -> Text:
        strings = ["a flight" if name == "air" else "a letter" for name in names]
        return from_strings(strings, names, tokenizer, tmp_path)

    tested = text(["air", "air", "mail", None, "land"])
    found = domain_accuracy(text(["air", "mail", None] * 5), tested, tokenizer)
    assert found == {"domain_accuracy": 0.75, "domain_chance": 0.5}  # of land it has no text
    nothing = domain_accuracy(text(["air", None]), tested, tokenizer)
    assert nothing == {"domain_accuracy": None, "domain_chance": None}
    others = domain_accuracy(text(["sea", "rail"] * 5), tested, tokenizer)
    assert others == nothing  # no domain of the corpus


def test_a_classifier_does_not_see_the_token_of_a_domain(tmp_path: Path) -> None:
    tokenizer = train_bpe(["a flight", "a letter"], 280)
    names = ["air", "mail"] * 5
    text = from_strings([f"<{name}> hello" for name in names], list(names), tokenizer, tmp_path)
    assert domain_accuracy(text, text, tokenizer)["domain_accuracy"] == 0.5


def test_texts_that_are_none_are_refused(corpus: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no text"):
        measured(corpus, tmp_path, [])
    assert not (tmp_path / "worth.json").exists()


def test_what_is_written_is_json_of_finite_numbers(corpus: dict[str, Path], tmp_path: Path) -> None:
    found = measured(corpus, tmp_path, [{"text": "a", "domain": "air"}, {"text": "a"}])
    assert found["synthetic_divergence_2"] is None  # no pair of words
    assert json.loads((tmp_path / "worth.json").read_text()) == found


def test_texts_are_shown_with_their_secrets_masked(corpus: dict[str, Path], tmp_path: Path) -> None:
    gold = {
        row["text"][start:end]
        for row in read_points(corpus["points"])
        for start, end, *_ in row["gold"]
    }
    secrets = [secret for secret in sorted(gold) if len(secret) > 5]
    texts = [{"text": f"so my name or number is {secret} as I said"} for secret in secrets]
    asked = SPEC | {"worth": SPEC["worth"] | {"examples": 20}}
    found = measured(corpus, tmp_path, texts, asked)["examples"]
    assert [row["kind"] for row in found] == ["real"] * 20 + ["synthetic"] * 20
    shown = [row["text"] for row in found if row["text"] is not None]
    assert len(shown) > 30 and not [text for text in shown for secret in secrets if secret in text]
    assert any(MASK in text for text in shown) and any("[name]" in text for text in shown)
    assert "examples" not in measured(corpus, tmp_path, texts)  # nobody asked for them


def test_a_student_may_have_a_tokenizer_of_its_own(corpus: dict[str, Path], tmp_path: Path) -> None:
    asked = SPEC | {"worth": SPEC["worth"] | {"vocab_size": 300}}
    found = measured(corpus, tmp_path, own(corpus), asked)
    usual = measured(corpus, tmp_path, own(corpus))
    assert found["synthetic_ppl"] == found["real_ppl"] < usual["real_ppl"]  # shorter tokens
    assert found["synthetic_likeness"] == usual["synthetic_likeness"]
    asked["worth"]["vocab_size"] = 400  # as many as the corpus's tokenizer has
    same = measured(corpus, tmp_path, own(corpus), asked)["real_bits_per_character"]
    assert same == pytest.approx(usual["real_bits_per_character"], rel=0.1)
