"""A corpus as Parquet shards: what the reader `table` gives back, and what others read."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from confide.commands import export as module
from confide.commands.export import export
from confide.config.params import load
from confide.corpora import READERS
from confide.errors import InputError
from confide.files.io import write_jsonl
from confide.specs import TableSpec
from confide.types import SPLITS, Record

TINY = Path(__file__).parents[1] / "params.tiny.yaml"
TALKS = [
    {"text": f"call {number} or\nZoë", "author": f"a{number % 3}", "domain": "x", "split": split}
    for number, split in enumerate(["train", "train", "test", "train", "valid", "train", "train"])
]
TALKS[1] |= {"spans": [[5, 6, "number"], [10, 13, "name"]], "doc": "seven"}
TALKS[3] |= {"author": None, "domain": None, "text": "no secret"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the simulated corpus and one of lines, in which we are."""
    monkeypatch.chdir(tmp_path)
    given = yaml.safe_load(TINY.read_text())
    given["corpora"]["talks"] = {"reader": "lines", "path": "talks.jsonl"}
    Path("params.yaml").write_text(yaml.safe_dump(given))
    write_jsonl(Path("talks.jsonl"), TALKS)
    return tmp_path


def read_back(folder: Path) -> dict[str, list[Record]]:
    """The documents of a folder of shards by split, in order."""
    names = {name: name for name in ("doc", "author", "domain", "spans")}
    spec = TableSpec(reader="table", path=str(folder), **names)
    return by_split(READERS["table"](spec, None))


def by_split(records: Iterator[Record]) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {split: [] for split in SPLITS}
    for record in records:
        found[record.split].append(record)
    return found


def said(record: Record) -> tuple[Any, ...]:
    return record.text, record.author, record.domain, record.spans


@pytest.mark.parametrize("name", ["sim", "talks"])
@pytest.mark.parametrize("group", [1, 300, module.GROUP])
def test_the_reader_of_tables_gives_the_same_documents(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, group: int
) -> None:
    monkeypatch.setattr(module, "GROUP", group)
    monkeypatch.setattr(module, "SHARD", 2)
    export(name, output=Path("shards"))
    corpus = load().corpora[name]
    expected = by_split(READERS[corpus.reader](corpus, None))
    found = read_back(Path("shards"))
    for split in SPLITS:
        assert list(map(said, found[split])) == list(map(said, expected[split])), split
    named = {record.doc for records in expected.values() for record in records} - {None}
    again = {record.doc for records in found.values() for record in records}
    assert ("seven" in again) if name == "talks" else (named == again)


def test_files_say_their_split_and_how_many_there_are(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GROUP", 1)
    monkeypatch.setattr(module, "SHARD", 2)
    export("talks", output=Path("shards"))
    names = sorted(file.name for file in Path("shards").iterdir())
    train = [f"train-{number:05}-of-00003.parquet" for number in range(3)]
    assert names == ["test-00000-of-00001.parquet", *train, "valid-00000-of-00001.parquet"]
    groups = [pq.ParquetFile(Path("shards", file)).metadata.num_row_groups for file in train]
    assert groups == [2, 2, 1]


def test_a_split_without_documents_stays_so(folder: Path) -> None:
    write_jsonl(Path("talks.jsonl"), [row | {"split": "train"} for row in TALKS])
    export("talks", output=Path("shards"))
    assert len(list(Path("shards").iterdir())) == 3
    found = read_back(Path("shards"))
    assert [len(found[split]) for split in SPLITS] == [len(TALKS), 0, 0]


def test_what_is_printed_reads_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export("talks", output=Path("shards"))
    corpora = yaml.safe_load(capsys.readouterr().out.splitlines()[-1])
    spec = TableSpec(**corpora["shards"])
    assert {record.author for record in READERS["table"](spec, None)} == {"a0", "a1", "a2", None}


def test_what_cannot_be_written_leaves_nothing(folder: Path) -> None:
    with pytest.raises(InputError, match="'nosuch': is no corpus of params.yaml: there are public"):
        export("nosuch", output=Path("shards"))
    with pytest.raises(InputError, match=r"did you mean talks\?"):
        export("talk", output=Path("shards"))
    write_jsonl(Path("talks.jsonl"), [*TALKS, {"words": "no text"}])
    with pytest.raises(InputError, match=r"talks\.jsonl"):
        export("talks", output=Path("shards"))
    assert not Path("shards").exists() and not list(folder.glob(".shards*"))
    write_jsonl(Path("talks.jsonl"), [*TALKS, {"text": "a", "domain": ""}])
    with pytest.raises(InputError, match="has an author or a domain without a name"):
        export("talks", output=Path("shards"))
    write_jsonl(Path("talks.jsonl"), [{"synthetic": {}}, *TALKS])
    with pytest.raises(InputError, match="holds texts that a certified model wrote"):
        export("talks", output=Path("shards"))
    Path("shards").mkdir()
    with pytest.raises(InputError, match="exists, and is not overwritten"):
        export("sim", output=Path("shards"))
