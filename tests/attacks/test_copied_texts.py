"""A generator that copies one training text in twenty, as docs/synthetic.md tells of it, beside one
that copies none.
"""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from confide.attacks.audits.game import read_audits
from confide.attacks.texts.audit import Written, audited
from confide.attacks.texts.sides import read
from confide.files.io import read_json, read_jsonl
from confide.specs import CanarySpec, CustomerSimSpec, SplitSpec, TextAuditSpec, parse
from confide.stages.plant import plant
from confide.stages.split import split
from tests.project import ROOT

pytestmark = pytest.mark.slow

COPIED = 1 / 20
TEXTS = 5000
SIZES = {"train": 600, "valid": 100, "test": 600}
CANARIES = {
    "template": "My ID is: {6}",
    "count": 10,
    "copies": 20,
    "controls": 10,
    "game": {"template": "The access code is {6}", "count": 160},
    "inclusion": {"template": "The order code was {6}", "count": 80},
}
PAGE = ROOT / "docs/synthetic.md"
TOLD = (
    r"\((\d+) of 10 surface\) and by the scan "
    r"\((\d+) training secrets, (\d+) held-out ones\): p = 10(\S+)\."
)
EXPONENT = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A simulated corpus with canaries, and another one that has nothing of it."""
    folder = tmp_path_factory.mktemp("copied")
    files = {name: folder / name for name in ("split", "made_up", "points", "canaries")}
    for name, seed in (("split", 0), ("made_up", 99)):
        sim = CustomerSimSpec(reader="customersim", sizes=SIZES, users=5000, seed=seed)
        split(SplitSpec(corpus=sim, point="turn"), output=files[name])
    plant(
        parse(CanarySpec, CANARIES),
        points=files["split"],
        output=files["points"],
        canaries=files["canaries"],
    )
    return files


def audit_of(files: dict[str, Path], copied: float) -> dict[str, Any]:
    """What the audit says of texts, each a copy of a training text with this probability."""
    rng = np.random.default_rng(0)
    train = [row["text"] for row in read_jsonl(files["points"]) if row["split"] == "train"]
    made_up = [row["text"] for row in read_jsonl(files["made_up"])]
    texts = []
    for _ in range(TEXTS):
        source = train if rng.random() < copied else made_up
        texts.append(source[rng.integers(len(source))])
    spec = TextAuditSpec()
    return audited(
        spec,
        Written(texts),
        read(files["points"], spec.limit, np.random.default_rng(spec.seed)),
        read_json(files["canaries"]),
        read_audits(files["canaries"]),
    )


def numbers_of_page() -> list[str]:
    """Canaries, training and held-out secrets, and the p-value, as the page has them."""
    text = " ".join(PAGE.read_text().split())
    (numbers,) = re.findall(TOLD, text)
    return list(numbers)


def test_a_generator_that_copies_one_text_in_twenty_is_caught_as_the_page_says(
    corpus: dict[str, Path],
) -> None:
    metrics = audit_of(corpus, COPIED)
    canaries, secrets, held_out, exponent = numbers_of_page()
    assert metrics["canaries_texts_surfaced"] == int(canaries)
    assert metrics["scan_texts_found"] == int(secrets)
    assert metrics["scan_texts_found_others"] == int(held_out)
    assert int(exponent.translate(EXPONENT)) == round(math.log10(metrics["p_value"]))
    assert metrics["scan_texts_p_value"] < 1e-5
    bounds = [metrics[f"texts_{name}_epsilon_lower"] for name in ("game", "inclusion")]
    text = " ".join(PAGE.read_text().split())
    assert f"Coins show ε ≥ {max(bounds):.2f}" in text
    let_pass = ("points", "secrets", "kernel_points", "kernel_secrets", "nearest_near")
    p_values = [metrics[f"{name}_p_value"] for name in (*let_pass, "nearest_closest")]
    assert min(p_values) * metrics["tests"] > 0.05


def test_one_that_copies_none_is_not_accused(corpus: dict[str, Path]) -> None:
    metrics = audit_of(corpus, 0.0)
    assert metrics["canaries_texts_surfaced"] == 0
    # names and dates that two simulated corpora share, on either side alike
    assert metrics["scan_texts_found"] == metrics["scan_texts_found_others"] == 1
    assert metrics["p_value"] > 0.01
    assert metrics["texts_game_epsilon_lower"] == metrics["texts_inclusion_epsilon_lower"] == 0
