"""The English Web Treebank (CC BY-SA 4.0).

It has dependency trees in CoNLL-U, and the entities of Universal NER in IOB2. As a corpus it has
one document per annotated text, a sentence a line, with persons, organisations and locations as
gold spans. The mirror has entities for the dev and test documents alone; dev then serves as
training text but for its last tenth of documents, as for WikiText-2. The trees of all documents
serve the stage `pipeline`.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from confide.corpora.archives import by_split, read_members
from confide.errors import InputError
from confide.specs import TreebankSpec
from confide.types import Record, Span, SplitName

# How the treebank calls each split.
NAMES: dict[SplitName, str] = {"train": "train", "valid": "dev", "test": "test"}
COLUMNS = 10  # of CoNLL-U
HEAD = re.compile(r"[0-9]{1,6}")


class Tree(NamedTuple):
    """A sentence with tags and heads; `heads` are indices of words, and the root's is its own."""

    text: str
    words: tuple[str, ...]
    tags: tuple[str, ...]  # of the Penn Treebank
    heads: tuple[int, ...]
    relations: tuple[str, ...]  # of Universal Dependencies; ROOT for the root


def read(spec: TreebankSpec, raw: Path | None = None) -> Iterator[Record]:
    """Documents whose entities are annotated, by split."""
    members = {split: f"{name}.iob2" for split, name in NAMES.items()}
    documents = by_split(raw, members, lambda text: _documents(text, raw))
    for split in NAMES:
        for doc, lines in documents[split]:
            text = ""
            spans = []
            for line, entities in lines:
                spans += [
                    span._replace(start=span.start + len(text), end=span.end + len(text))
                    for span in entities
                ]
                text += line + "\n"
            yield Record(text.removesuffix("\n"), doc, spans=tuple(spans), split=split)


def trees(raw: Path) -> dict[SplitName, list[Tree]]:
    """All sentences by split, in the order of the published lists of files.

    InputError where a file is missing.
    """
    members = dict(read_members(raw))
    by_split: dict[SplitName, list[Tree]] = {}
    for split, name in NAMES.items():
        if f"files.{name}" not in members:
            raise InputError(f"holds no files.{name}", file=raw)
        by_split[split] = []
        for line in members[f"files.{name}"].split():
            path = line.rpartition("/")[2]
            if path not in members:
                raise InputError(
                    "names a file that is not there", file=raw, key=f"files.{name}", value=path
                )
            by_split[split] += parse(members[path], raw)
    return by_split


def parse(text: str, place: Path | None = None) -> Iterator[Tree]:
    """Sentences of a CoNLL-U file.

    Ranges of words (1-2) and empty words (8.1) carry no tree of their own and are left out.
    """
    for comments, rows in _sentences(text):
        rows = [row for row in rows if row[0].isdigit()]
        if not all(
            len(row) == COLUMNS and HEAD.fullmatch(row[6]) and int(row[6]) <= len(rows)
            for row in rows
        ):
            raise InputError(
                f"has a word without {COLUMNS} columns, or whose head is no word of its sentence",
                file=place,
            )
        heads = [int(row[6]) - 1 for row in rows]
        yield Tree(
            comments.get("text", ""),
            tuple(row[1] for row in rows),
            tuple(row[4] for row in rows),
            tuple(index if head < 0 else head for index, head in enumerate(heads)),
            tuple("ROOT" if head < 0 else row[7] for head, row in zip(heads, rows, strict=True)),
        )


def _sentences(text: str) -> Iterator[tuple[dict[str, str], list[list[str]]]]:
    """Comments "# key = value", and the columns of each word."""
    for block in text.replace("\r\n", "\n").split("\n\n"):
        lines = block.split("\n")
        rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
        pairs = (line[1:].partition(" = ") for line in lines if line.startswith("#"))
        if rows:
            yield {key.strip(): value for key, _, value in pairs}, rows


def _documents(text: str, raw: Path | None) -> list[tuple[str, list[tuple[str, list[Span]]]]]:
    """Name of each document, and its sentences with their entities."""
    documents: list[tuple[str, list[tuple[str, list[Span]]]]] = []
    for comments, rows in _sentences(text):
        if "text" not in comments or any(len(row) < 3 for row in rows):
            raise InputError(
                "has a sentence without its text, or a word without its tag", file=raw, key="iob2"
            )
        if "newdoc id" in comments or not documents:
            documents.append((comments.get("newdoc id", ""), []))
        documents[-1][1].append((comments["text"], list(_entities(comments["text"], rows, raw))))
    return documents


def _entities(text: str, rows: list[list[str]], raw: Path | None) -> Iterator[Span]:
    """Entities of a sentence; its words stand in its text, one after the other."""
    places = []
    end = 0
    for row in rows:
        start = text.find(row[1], end)
        if start < 0:
            raise InputError("has a word that its sentence does not hold", file=raw, key="text")
        end = start + len(row[1])
        places.append((start, end, row[2]))
    begins = [index for index, (_, _, tag) in enumerate(places) if tag.startswith("B-")]
    for index, following in pairwise([*begins, len(places)]):
        last = index
        while last + 1 < following and places[last + 1][2].startswith("I-"):
            last += 1
        yield Span(places[index][0], places[last][1], places[index][2][2:])
