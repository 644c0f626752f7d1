"""Policies over many texts: failures stay where they belong, and equal texts are read once."""

from collections.abc import Sequence

from confide.policies.batches import closed
from confide.types import Span


def test_equal_texts_are_read_once_and_each_has_its_spans() -> None:
    read = []

    def find(texts: Sequence[str]) -> list[list[Span]]:
        read.extend(texts)
        if "bad" in texts:
            raise ValueError
        return [[Span(0, len(text), "all", 1.0)] for text in texts]

    policy = closed(find)
    spans = policy(["ok", "thanks", "ok", "ok"])
    assert read == ["ok", "thanks"]
    assert spans == [[Span(0, len(text), "all", 1.0)] for text in ("ok", "thanks", "ok", "ok")]
    assert policy([]) == []
    assert policy(["bad", "ok", "bad"]) == [None, spans[0], None]
