"""docs/figures/texts.svg shows what the policy, deduplication and partition make of four texts."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("texts_figure", ROOT / "tools/texts_figure.py")
texts_figure = importlib.util.module_from_spec(spec)
spec.loader.exec_module(texts_figure)


def test_each_text_is_read_as_the_code_has_it():
    read = ["".join(piece.text for piece in line.after) for line in texts_figure.lines()]
    assert read == ["Hello.", "Sure, <MASK>.", "sure, betty sims.", "<MASK>"]
    assert [line.updates for line in texts_figure.lines()] == ["exact"] + ["with noise"] * 3


def test_what_is_marked_in_the_texts():
    kinds = [{piece.kind for piece in line.after} for line in texts_figure.lines()]
    assert kinds == [{"plain"}, {"plain", "redacted"}, {"plain", "secret"}, {"copy"}]


def test_the_figure_is_what_would_be_drawn(monkeypatch, tmp_path):
    assert texts_figure.main(["--check"]) == 0
    monkeypatch.setattr(texts_figure, "FIGURE", tmp_path / "texts.svg")
    assert texts_figure.main(["--check"]) == 1
    assert texts_figure.main([]) == 0 and texts_figure.main(["--check"]) == 0
