"""Tables: the points of JSON lines whatever the format, and one clear line for what is broken."""

import csv
import io
import json
import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from confide.advisor.inputs import is_table
from confide.corpora import READERS, table, table_files
from confide.corpora.known_secrets import folded, marks_of, united
from confide.errors import InputError
from confide.files import arrays, shards
from confide.specs import CorpusSpec, LinesSpec, MessagesSpec, SplitSpec, TableSpec
from confide.stages.split import Cutting, split
from confide.text import turns
from confide.text.scripts import LETTER
from confide.types import Record

SECRET = "hunter2"
OWN = {"doc": "doc", "author": "author", "domain": "domain", "split": "split", "spans": "spans"}
ROWS: list[dict[str, Any]] = [
    {
        "text": f'Row {number}, "said" Ann\nto\tme; a, b é 😀',
        "doc": f"d{number // 2}",
        "author": f"a{number // 4}" if number % 5 else None,
        "domain": "xy"[number // 2 % 2],
        "split": ("train", "train", "valid", "test")[number // 2 % 4],
        "spans": [[number // 10 + 14, number // 10 + 17, "name"]] if number % 3 else None,
    }
    for number in range(60)
]


def schema() -> pa.Schema:
    span = pa.struct([("start", pa.int64()), ("end", pa.int32()), ("label", pa.string())])
    names = [(key, pa.string()) for key in ("text", "doc", "author", "domain", "split")]
    return pa.schema([*names, ("spans", pa.list_(span))])


def arrow(rows: list[dict[str, Any]]) -> pa.Table:
    keys = ("start", "end", "label")
    listed = [
        row | {"spans": row["spans"] and [dict(zip(keys, s, strict=True)) for s in row["spans"]]}
        for row in rows
    ]
    return pa.Table.from_pylist(listed, schema())


def write_csv(path: Path, rows: list[dict[str, Any]], delimiter: str, encoding: str) -> None:
    with open(path, "w", newline="", encoding=encoding) as file:
        table = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        table.writeheader()
        for row in rows:
            table.writerow(row | {"spans": row["spans"] and json.dumps(row["spans"])})


def write_dataset(folder: Path, table: pa.Table, files: int = 1) -> None:
    """What `save_to_disk` of datasets writes."""
    folder.mkdir(parents=True)
    size = -(-table.num_rows // files)
    names = [f"data-{index:05}-of-{files:05}.arrow" for index in range(files)]
    for index, name in enumerate(names):
        with pa.OSFile(str(folder / name), "wb") as out:
            part = table.slice(index * size, size)
            with pa.ipc.new_stream(out, table.schema) as writer:
                writer.write_table(part, max_chunksize=7)
    state = {"_data_files": [{"filename": name} for name in names], "_split": "train"}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text("{}")


def points(corpus: CorpusSpec, folder: Path, threads: int = 1) -> bytes:
    output = folder / "points.jsonl"
    split(SplitSpec(corpus=corpus), output=output, threads=threads)
    return output.read_bytes()


def by_lines(folder: Path, rows: list[dict[str, Any]], **options: Any) -> bytes:
    """The oracle: the same rows as JSON lines."""
    path = folder / "oracle.jsonl"
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return points(LinesSpec(reader="lines", path=str(path), **options), folder)


def as_csv(path: Path, delimiter: str = ",", encoding: str = "utf-8") -> None:
    write_csv(path, ROWS, delimiter, encoding)


def as_parquet(path: Path) -> None:
    pq.write_table(arrow(ROWS), path, row_group_size=11)


def as_dictionaries(path: Path) -> None:
    coded = [pa.chunked_array(arrow(ROWS)[key]).dictionary_encode() for key in ("text", "doc")]
    rest = arrow(ROWS).select(["author", "domain", "split", "spans"])
    pq.write_table(rest.add_column(0, "doc", coded[1]).add_column(0, "text", coded[0]), path)


def as_dataset(path: Path) -> None:
    write_dataset(path, arrow(ROWS), files=3)


FORMATS: dict[str, tuple[Callable[[Path], None], dict[str, Any]]] = {
    "plain.csv": (as_csv, {}),
    "marked.CSV": (lambda path: as_csv(path, encoding="utf-8-sig"), {}),
    "wide.csv": (lambda path: as_csv(path, encoding="utf-16"), {}),
    "tabs.tsv": (lambda path: as_csv(path, "\t"), {}),
    "other.txt": (lambda path: as_csv(path, ";"), {"delimiter": ";"}),
    "rows.parquet": (as_parquet, {}),
    "coded.parquet": (as_dictionaries, {}),
    "saved": (as_dataset, {}),
}


@pytest.mark.parametrize("name", FORMATS)
def test_points_are_those_of_json_lines(tmp_path: Path, name: str) -> None:
    write, options = FORMATS[name]
    write(tmp_path / name)
    corpus = TableSpec(reader="table", path=str(tmp_path / name), **OWN, **options)
    assert points(corpus, tmp_path, threads=2) == by_lines(tmp_path, ROWS)


def parquet_shards(folder: Path, names: Sequence[str]) -> None:
    """ROWS in files of these names, in order, each of several row groups."""
    folder.mkdir()
    size = -(-len(ROWS) // len(names))
    for number, name in enumerate(names):
        part = arrow(ROWS).slice(number * size, size)
        pq.write_table(part, folder / f"{name}.parquet", row_group_size=3)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 1000, 4 << 20])
def test_shards_of_parquet_are_divided_and_give_the_same_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, size: int
) -> None:
    """As Spark, Ray and datatrove write them: names tell no split."""
    parquet_shards(tmp_path / "shards", ["00000", "00001", "00002", "00003"])
    monkeypatch.setattr(shards, "SIZE", size)
    corpus = TableSpec(reader="table", path=str(tmp_path / "shards"), **OWN)
    form = table.form_of(corpus)
    parts = list(form.shards())
    assert [line.number for part in parts for line in form.rows(part)] == [*range(1, len(ROWS) + 1)]
    assert len(parts) >= 4 and (size > 1 or len(parts) > 8)
    assert points(corpus, tmp_path, threads) == by_lines(tmp_path, ROWS)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_row_group_of_any_size_is_cut_in_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    """Of repeated text Parquet holds next to nothing, and each short line has the whole name."""
    rows = [{"text": "a\n" * 500, "doc": f"{number:03}" + "n" * 190} for number in range(21)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    expected = by_lines(tmp_path, rows)
    monkeypatch.setattr(arrays, "MOST", len(expected) // 5)
    monkeypatch.setattr(turns, "RUN", 2000)
    monkeypatch.setattr(Cutting, "alone", lambda *_: pytest.fail("a document is cut alone"))
    corpus = TableSpec(reader="table", path=str(tmp_path / "t.parquet"), doc="doc")
    assert points(corpus, tmp_path, threads) == expected


def test_the_row_of_a_later_group_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "SIZE", 1)
    rows = pa.table({"text": ["a", "b", "c", "d", None, "f"]})
    (tmp_path / "shards").mkdir()
    pq.write_table(rows, tmp_path / "shards/0.parquet", row_group_size=2)
    pq.write_table(rows.slice(0, 2), tmp_path / "shards/1.parquet")
    corpus = TableSpec(reader="table", path=str(tmp_path / "shards"))
    with pytest.raises(InputError, match=r"0\.parquet:5: text: has no text"):
        points(corpus, tmp_path, threads=2)


@pytest.mark.parametrize("threads", [1, 2])
def test_splits_of_names_of_divided_files_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    monkeypatch.setattr(shards, "SIZE", 1)
    names = ["train-0", "validation-0", "test-0"]
    folder = tmp_path / "shards"
    folder.mkdir()
    for name in names:
        pq.write_table(pa.table({"text": [name, name]}), folder / f"{name}.parquet")
    corpus = TableSpec(reader="table", path=str(folder))
    rows = [orjson.loads(line) for line in points(corpus, tmp_path, threads).splitlines()]
    expected = {"train-0": "train", "validation-0": "valid", "test-0": "test"}
    assert len(rows) == 6
    assert all(row["split"] == expected[row["text"]] for row in rows)


def of_texts(folder: Path, *names: str) -> Path:
    """A folder of tables, each of which has its own name for a text."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"text": [name]}), folder / name)
    return folder


def test_what_a_failed_attempt_left_is_not_read(tmp_path: Path) -> None:
    """Spark, Arrow and datasets pass over names that begin so, too."""
    left = ("_temporary/0/attempt/part-0.parquet", "_metadata.parquet", "of/.part-1.parquet")
    folder = of_texts(tmp_path / "spark", "part-0.parquet", "of/part-1.parquet", *left)
    assert [record.text for record in records(folder)] == ["of/part-1.parquet", "part-0.parquet"]
    assert is_table(folder)
    assert not is_table(of_texts(tmp_path / "failed", *left))
    with pytest.raises(InputError, match="failed: path: holds no table"):
        records(tmp_path / "failed")


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("tail", ["", "-0af3"])
def test_a_folder_with_some_of_several_files_is_refused(
    tmp_path: Path, first: int, tail: str
) -> None:
    """Counted from 0, as most do, or from 1; each folder is counted alone."""
    parts = [f"train-{number:05}-of-00003{tail}.parquet" for number in range(first, first + 3)]
    whole = of_texts(tmp_path / "whole", *parts, f"below/{parts[0]}".replace("-of-00003", ""))
    assert len(records(whole)) == 4
    for number, part in enumerate(parts):
        folder = of_texts(tmp_path / f"without-{number}", *parts, "test-0-of-1.parquet")
        (folder / part).unlink()
        with pytest.raises(InputError, match=r"lacks 1 of 3 files train-\*-of-00003") as error:
            records(folder)
        assert str(error.value).startswith(f"{folder}: path: ")
        assert [record.text for record in records(folder / parts[number - 1])]
    apart = of_texts(tmp_path / "apart", parts[0], f"one/{parts[1]}", f"two/{parts[2]}")
    with pytest.raises(InputError, match="lacks 2 of 3 files"):
        records(apart)


@pytest.mark.parametrize(
    ("left", "message"),
    [
        ("train-1-of-2.parquet", r"holds files train-\*-of-2 and train-\*-of-3: give a folder of"),
        ("train-1-of-3-b.parquet", r"holds number 1 of files train-\*-of-3 twice: give a folder"),
    ],
)
def test_what_an_older_save_left_is_refused(tmp_path: Path, left: str, message: str) -> None:
    parts = [f"train-{number}-of-3-a.parquet" for number in range(3)]
    folder = of_texts(tmp_path / "folder", *parts)
    assert len(records(folder)) == 3
    of_texts(folder, left)
    with pytest.raises(InputError, match=message) as error:
        records(folder)
    assert str(error.value).startswith(f"{folder}: path: ")


def test_the_file_that_lacks_is_named_whatever_a_name_counts(tmp_path: Path) -> None:
    folder = of_texts(tmp_path / "few", f"part-7-of-{10**30}.parquet")
    with pytest.raises(InputError, match=rf"files part-\*-of-{10**30}, such as number 0; one file"):
        records(folder)


@pytest.mark.parametrize("name", ["plain.csv", "rows.parquet", "saved"])
def test_only_columns_that_are_named_are_read(tmp_path: Path, name: str) -> None:
    FORMATS[name][0](tmp_path / name)
    corpus = TableSpec(reader="table", path=str(tmp_path / name), seed=3)
    bare = [{"text": row["text"]} for row in ROWS]
    assert points(corpus, tmp_path) == by_lines(tmp_path, bare, seed=3)
    other = TableSpec(reader="table", path=str(tmp_path / name), text="domain", author="doc")
    renamed = [{"text": row["domain"], "author": row["doc"]} for row in ROWS]
    assert points(other, tmp_path) == by_lines(tmp_path, renamed)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_table_of_texts_that_a_model_wrote_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"corpus{suffix}"
    texts = pa.table({"name": ["synthetic-1-1"], "text": ["a"], "split": ["train"]})
    if suffix == ".csv":
        path.write_text("name,text,split\nsynthetic-1-1,a,train\n")
    else:
        pq.write_table(texts, path)
    named = TableSpec(reader="table", path=str(path), doc="name", split="split")
    with pytest.raises(InputError, match=r"doc.*synthetic-1-1 .*a model"):
        points(named, tmp_path)
    nameless = TableSpec(reader="table", path=str(path), split="split")
    assert points(nameless, tmp_path)  # and nobody can tell


def test_an_error_of_a_document_names_the_file_and_row_that_has_it(tmp_path: Path) -> None:
    """And not where its row stands in all of a corpus."""
    path = tmp_path / "t.csv"
    path.write_text('text,name\n"a\nb",one\n\nc,synthetic-1-1\n')
    with pytest.raises(InputError, match=r"t\.csv:5: doc: synthetic-1-1 is how"):
        points(TableSpec(reader="table", path=str(path), doc="name"), tmp_path)
    folder = tmp_path / "folder"
    folder.mkdir()
    for part, side in (("a", "train"), ("b", "test")):
        rows = {"text": ["x", "y"], "doc": [part, "same"], "split": [side, side]}
        pq.write_table(pa.table(rows), folder / f"part-{part}.parquet")
    with pytest.raises(InputError, match=r"part-b\.parquet:2: split: the document is in another"):
        points(TableSpec(reader="table", path=str(folder), doc="doc", split="split"), tmp_path)


def test_numbers_name_documents_and_authors(tmp_path: Path) -> None:
    table = pa.table({"text": ["a", "b", "c"], "id": [7, 7, 8], "who": pa.array([1, 1, None])})
    pq.write_table(table, tmp_path / "t.parquet")
    corpus = TableSpec(
        reader="table", path=str(tmp_path / "t.parquet"), doc="id", author="who", test=0, valid=0
    )
    found = [(record.doc, record.author) for record in READERS["table"](corpus)]
    assert found == [("7", "1"), ("7", "1"), ("8", None)]


@pytest.mark.parametrize("kind", ["saved", "parquet", "csv"])
def test_splits_of_a_folder(tmp_path: Path, kind: str) -> None:
    """A folder with all splits has them; where one is missing, train is divided by its shares."""
    rows = [{key: row[key] for key in ("text", "doc", "author", "spans")} for row in ROWS]
    parts = {"train": rows[:40], "validation": rows[40:48], "test": rows[48:]}
    folder = tmp_path / "table"
    folder.mkdir()
    for name, part in parts.items():
        table = arrow([row | {"domain": None, "split": None} for row in part])
        if kind == "saved":
            write_dataset(folder / name, table)
        elif kind == "parquet":
            pq.write_table(table, folder / f"{name}-00000-of-00001.parquet")
        else:
            write_csv(folder / f"{name}.csv", part, ",", "utf-8")
    described = folder / "dataset_dict.json"
    if kind == "saved":
        described.write_text('{"splits": ["test", "train", "validation"]}')
    named = {"doc": "doc", "author": "author", "spans": "spans"}
    corpus = TableSpec(reader="table", path=str(folder), valid=0.2, test=0.2, **named)
    names = {"train": "train", "validation": "valid", "test": "test"}
    given = [row | {"split": names[name]} for name, part in parts.items() for row in part]
    assert points(corpus, tmp_path) == by_lines(tmp_path, given)
    if kind == "saved":
        described.write_text('{"splits": ["train", "test"]}')
        last = {"split": "test"}
        some = [*parts["train"], *(row | last for row in parts["test"])]
        assert points(corpus, tmp_path) == by_lines(tmp_path, some, valid=0.2, test=0.2)


def test_conversations_in_a_table(tmp_path: Path) -> None:
    chats = [
        {
            "messages": [
                {"role": "user", "content": f"I am Ann{number}", "spans": [[5, 8, "name"]]},
                {"role": "assistant", "content": "Hello\nyou"},
            ],
            "author": f"a{number}",
        }
        for number in range(30)
    ]
    keys = ("start", "end", "label")
    rows = [
        {
            "messages": [
                message
                | {"spans": [dict(zip(keys, span, strict=True)) for span in message["spans"]]}
                if "spans" in message
                else message
                for message in chat["messages"]
            ],
            "author": chat["author"],
            "score": 0.5,
        }
        for chat in chats
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "chats.parquet")
    write_dataset(tmp_path / "saved", pa.Table.from_pylist(rows))
    lines = tmp_path / "chats.jsonl"
    lines.write_bytes(b"".join(orjson.dumps(chat) + b"\n" for chat in chats))
    found = []
    for path in (lines, tmp_path / "chats.parquet", tmp_path / "saved"):
        found.append(points(MessagesSpec(reader="messages", path=str(path)), tmp_path, threads=2))
    assert found[0] == found[1] == found[2]
    texts = [orjson.loads(line) for line in found[0].splitlines()]
    assert [point["text"] for point in texts[:2]] == ["user: I am Ann0", "assistant: Hello you"]
    assert texts[0]["gold"] == [[11, 14, "name", 1.0]] and texts[0]["owner"] == "a0"


CELL = st.text(
    st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=("Cs",)), max_size=12
)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(CELL, CELL), min_size=1, max_size=8),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    # the writer quotes a lone \r by itself only where it is in its line ends
    st.sampled_from([(csv.QUOTE_MINIMAL, "\r\n"), (csv.QUOTE_ALL, "\r\n"), (csv.QUOTE_ALL, "\n")]),
)
def test_whatever_csv_quotes_is_read_again(
    tmp_path_factory: pytest.TempPathFactory,
    cells: list[tuple[str, str]],
    delimiter: str,
    encoding: str,
    written: tuple[Any, str],
) -> None:
    quoting, end = written
    text = io.StringIO(newline="")
    table = csv.writer(text, delimiter=delimiter, quoting=quoting, lineterminator=end)
    table.writerows([("text", "other"), *cells])
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    path.write_bytes(text.getvalue().encode(encoding))
    corpus = TableSpec(reader="table", path=str(path), delimiter=delimiter)
    assert [record.text for record in READERS["table"](corpus)] == [first for first, _ in cells]


def test_quotes_may_mean_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_text('text\tn\n"open\t1\nsaid "so" he\t2\n')
    corpus = TableSpec(reader="table", path=str(path), quotes=False)
    assert [r.text for r in READERS["table"](corpus)] == ['"open', 'said "so" he']
    with pytest.raises(InputError, match=r"t.tsv:2: malformed quotes .*`quotes: false`"):
        list(READERS["table"](TableSpec(reader="table", path=str(path))))


def test_little_is_read_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch has no more rows than it may, whatever the file's own batches and groups hold."""
    table = pa.table({"text": [f"t{number}" for number in range(1000)]})
    pq.write_table(table, tmp_path / "t.parquet")
    write_dataset(tmp_path / "saved", table)
    monkeypatch.setattr(table_files, "BATCH", 3)
    for path in (tmp_path / "t.parquet", tmp_path / "saved/data-00000-of-00001.arrow"):
        sizes = [batch.num_rows for batch in table_files._batches(path, ["text"])]
        assert max(sizes) <= 3 and sum(sizes) == 1000


def records(path: Path, **options: Any) -> list[Record]:
    return list(READERS["table"](TableSpec(reader="table", path=str(path), **options)))


HEAD = b"text,author,split,spans\n"
BAD_CSV: dict[str, tuple[bytes, dict[str, Any], str]] = {
    "fields": (HEAD + b"hunter2,a\n", {}, ":2: has 2 fields, and the header has 4"),
    "later": (HEAD + b'"a\nb",,,\n\nhunter2\n', {}, ":5: has 1 fields"),
    "column": (
        b"Texts,a\nhunter2,b\n",
        {},
        ":1: text: there is no such column: did you mean Texts",
    ),
    "listed": (b"hunter2,b\nhunter2,b\n", {}, "no such column (line 1 has 2)"),
    "alone": (b"body;a\nhunter2;b\n", {}, "line 1 is one column: is the delimiter"),
    "blanks": (b"body,my hunter2\na,b\n", {}, "no such column (line 1 has 2)"),
    "no header": (
        b"hunter2 is here,4711\na,b\n",
        {},
        ":1: text: there is no such column, and line",
    ),
    "twice": (b"text,text\na,b\n", {}, ":1: text: stands twice in the header"),
    "empty": (b"\n\n", {}, "is empty: expected a header"),
    "no rows": (HEAD, {}, "holds no documents"),
    "split": (
        HEAD + b"hunter2,a,hunter2,\n",
        {"split": "split"},
        ":2: split: expected train, valid",
    ),
    "spans": (HEAD + b"hunter2,a,,hunter2\n", {"spans": "spans"}, ":2: spans: expected JSON"),
    "range": (
        HEAD + b'hunter2,a,,"[[0, 9, ""x""]]"\n',
        {"spans": "spans"},
        ":2: spans: [0, 9) is no",
    ),
    "quote": (HEAD + b'"hunter2\n', {}, ":2: malformed quotes"),
    "after": (HEAD + b'"hunter2"x,,,\n', {}, ":2: malformed quotes"),
    "utf-8": (HEAD + b"a,,,\nhunter2 \xe9,,,\n", {}, ":3: not UTF-8 at byte 8 of the line"),
    "nul": (HEAD + b"hunter2\0,,,\n", {}, ":2: holds a NUL byte"),
}


def check_refused(path: Path, options: dict[str, Any], message: str) -> None:
    """Reading the table says what is wrong in one line, without text of the corpus."""
    with pytest.raises(InputError) as error:
        records(path, **options)
    text = str(error.value)
    assert text.startswith(str(path)) and message in text and "\n" not in text
    assert SECRET not in text


@pytest.mark.parametrize("name", BAD_CSV)
def test_what_is_wrong_with_csv_is_one_line_without_text(tmp_path: Path, name: str) -> None:
    content, options, message = BAD_CSV[name]
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    check_refused(path, options, message)


def test_a_document_in_two_splits_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('text,doc,split\n"a\nb",d,train\nc,d,test\n')
    with pytest.raises(InputError, match=r"t.csv:4: split: the document is in another split"):
        records(path, doc="doc", split="split")


def parquet(**columns: Any) -> Callable[[Path], None]:
    return lambda path: pq.write_table(pa.table(columns), path)


BAD_PARQUET: dict[str, tuple[Callable[[Path], Any], dict[str, Any], str]] = {
    "null": (parquet(text=["a", None]), {}, "t.parquet:2: text: has no text: it is null"),
    "number": (parquet(text=[1, 2]), {}, "text: expected a column of text for text"),
    "float": (
        parquet(text=["a"], a=[1.5]),
        {"author": "a"},
        "a: expected a column of text or whole number",
    ),
    "column": (parquet(body=[SECRET]), {}, "text: there is no such column (columns: body)"),
    "close": (parquet(Text=[SECRET]), {}, "did you mean Text?"),
    "no file": (lambda path: path.write_bytes(SECRET.encode() * 9), {}, "no file of Parquet"),
    "empty": (lambda path: path.write_bytes(b""), {}, "no file of Parquet"),
    "encoding": (parquet(text=["a"]), {"encoding": "cp1252"}, "encoding = 'cp1252': is for text"),
    "absent": (lambda path: None, {}, "cannot be read: No such file"),
}


@pytest.mark.parametrize("name", BAD_PARQUET)
def test_what_is_wrong_with_parquet_is_one_line(tmp_path: Path, name: str) -> None:
    write, options, message = BAD_PARQUET[name]
    path = tmp_path / "t.parquet"
    write(path)
    check_refused(path, options, message)


@pytest.mark.parametrize("kind", ["t.parquet", "saved"])
def test_a_file_that_is_cut_off_or_changed_is_refused_or_read(tmp_path: Path, kind: str) -> None:
    """Whatever byte is wrong: an error of one line, or rows; never a fault."""
    path = tmp_path / kind
    FORMATS["rows.parquet" if kind == "t.parquet" else "saved"][0](path)
    file = path if path.is_file() else path / "data-00000-of-00003.arrow"
    whole = file.read_bytes()
    refused = 0
    places = range(0, len(whole), len(whole) // 15)
    changed = [whole[:at] for at in places]
    changed += [whole[:at] + b"\xff\xfe\xfd" + whole[at + 3 :] for at in places]
    for content in changed:
        file.write_bytes(content)
        try:
            records(path, **OWN)
        except InputError as error:
            refused += 1
            assert "\n" not in str(error)
    assert refused > 15


def test_a_folder_of_datasets_that_is_wrong(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    write_dataset(folder, pa.table({"body": ["a"]}))
    with pytest.raises(InputError, match=r"text: there is no such column \(columns: body\)"):
        records(folder)
    state = folder / "state.json"
    for content, message in {
        '{"_data_files": [{"filename": "../other.arrow"}]}': "expected names of files",
        '{"_data_files": []}': "names no files",
        '{"_data_files": 3}': "names no files",
        "{": "malformed JSON",
        '{"_data_files": [{"filename": "gone.arrow"}]}': "cannot be read: No such file",
        '{"_data_files": [{"filename": "a.arrow"}], "_indices_data_files": [1]}': "flatten_indices",
    }.items():
        state.write_text(content)
        with pytest.raises(InputError, match=message):
            records(folder, text="body")
    other = tmp_path / "several"
    other.mkdir()
    with pytest.raises(InputError, match="holds no table"):
        records(other)
    (other / "dataset_dict.json").write_text('{"splits": ["train_sft"]}')
    with pytest.raises(InputError, match="'train_sft': is none of train, validation, test"):
        records(other)
    (other / "dataset_dict.json").unlink()
    (other / "a.csv").write_text("text\na\n")
    (other / "b.tsv").write_text("text\na\n")
    with pytest.raises(InputError, match=r"files of several kinds: .csv, .tsv"):
        records(other)


def test_splits_of_a_folder_leave_no_room_for_a_column_of_splits(tmp_path: Path) -> None:
    for name in ("train", "dev", "test"):
        (tmp_path / f"{name}.csv").write_text("text,split\na,train\n")
    with pytest.raises(InputError, match="the folder has splits of its own"):
        records(tmp_path, split="split")


def test_the_reader_lines_takes_no_table(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_text("text\tn\na\t1\n")
    with pytest.raises(InputError, match="is a table, which the reader table takes"):
        list(READERS["lines"](LinesSpec(reader="lines", path=str(path))))


ENCODED = {
    "utf-8": ("utf-8", None),
    "utf-8 with a mark": ("utf-8-sig", None),
    "utf-16": ("utf-16", None),
    "utf-16, big end first": ("utf-16-be", None),
    "cp1252": ("cp1252", "cp1252"),
    "latin-1": ("latin-1", "latin-1"),
}


@pytest.mark.parametrize("suffix", ["txt", "jsonl"])
@pytest.mark.parametrize("name", ENCODED)
def test_encodings_of_lines_do_not_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, suffix: str
) -> None:
    """UTF-16 has halves that look like line ends: ਊ is 0A 0A, ċ is 01 0B, ऊ 09 0A."""
    monkeypatch.setattr(shards, "SIZE", 200)
    codec, encoding = ENCODED[name]
    extra = "ਊ ċ ऊ 😀" if codec.startswith("utf") else "ß"
    texts = [f"Zeile {number} für é {extra}" for number in range(40)]
    rows = (
        texts if suffix == "txt" else [json.dumps({"text": t}, ensure_ascii=False) for t in texts]
    )
    content = "\r\n".join([*rows[:20], "", *rows[20:]]) + "\r\n"
    expected = tmp_path / f"oracle.{suffix}"
    expected.write_bytes(content.encode())
    path = tmp_path / f"corpus.{suffix}"
    mark = b"\xfe\xff" if codec == "utf-16-be" else b""
    path.write_bytes(mark + content.encode(codec))
    corpus = LinesSpec(reader="lines", path=str(path), encoding=encoding)
    oracle = LinesSpec(reader="lines", path=str(expected))
    assert points(corpus, tmp_path, threads=2) == points(oracle, tmp_path)


UNREADABLE = [
    (
        b"a\nhunter2 \xe9\n",
        None,
        r"corpus:2: not UTF-8 at byte 8 of the line; is all of it in another",
    ),
    (b"a\nhunter2 \x81\n", "cp1252", r"corpus:2: not CP1252 at byte 8 of the line$"),
    (b"a\nhunter2\0\n", None, r"corpus:2: holds a NUL byte"),
    (b"a\nhunter2\0\n", "latin-1", r"corpus:2: holds a NUL byte"),
    (b"\xef\xbb\xbfhunter2\n", "cp1252", r"encoding = 'cp1252': begins with the byte order mark"),
    (
        "\ufeffa\nhunter2".encode("utf-16-le") + b"\0\xd8",
        None,
        r"corpus:2: not UTF-16-LE at byte 14",
    ),
    ("\ufeffa\nhunter2".encode("utf-16-be") + b"\0", None, r"corpus:2: not UTF-16-BE at byte 14"),
    (b"\xff\xfe\0\0h\0\0\0", None, r"corpus:1: holds a NUL byte"),
]


@pytest.mark.parametrize(("content", "encoding", "message"), UNREADABLE)
def test_no_byte_is_replaced(tmp_path: Path, content: bytes, encoding: Any, message: str) -> None:
    path = tmp_path / "corpus"
    path.write_bytes(content)
    corpus = LinesSpec(reader="lines", path=str(path), encoding=encoding)
    with pytest.raises(InputError, match=message) as error:
        list(READERS["lines"](corpus))
    assert SECRET not in str(error.value)


def test_json_lines_that_are_not_utf_8_say_so(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_bytes('{"text": "é"}\n'.encode("latin-1"))
    with pytest.raises(InputError, match=r":1: not UTF-8 at byte 10 .* `encoding: cp1252`"):
        list(READERS["lines"](LinesSpec(reader="lines", path=str(path))))
    corpus = LinesSpec(reader="lines", path=str(path), encoding="latin-1", valid=0, test=0)
    assert [record.text for record in READERS["lines"](corpus)] == ["é"]


@pytest.mark.parametrize("name", ["chats.csv", "chats.parquet"])
def test_values_of_columns_are_secret_in_the_text_of_their_row(tmp_path: Path, name: str) -> None:
    """As they stand in their cell, in any case, and not inside of a longer word."""
    texts = ["I am ann  lee, ANN LEE of Annleeton", "Mail a@b.de to Ann Lee", "no Bo here: Bob"]
    names = ["Ann Lee", "Ann Lee", "Bo"]
    mails = ["", "a@b.de", None]
    table = pa.table({"text": texts, "customer": names, "mail": mails})
    if name.endswith(".csv"):
        pyarrow.csv.write_csv(table, tmp_path / name)
    else:
        pq.write_table(table, tmp_path / name)
    corpus = TableSpec(reader="table", path=str(tmp_path / name), secrets=["customer", "mail"])
    spans = [
        [[5, 13, "customer"], [15, 22, "customer"]],
        [[5, 11, "mail"], [15, 22, "customer"]],
        [],  # two letters stand anywhere by chance
    ]
    marked = [{"text": text, "spans": some} for text, some in zip(texts, spans, strict=True)]
    assert points(corpus, tmp_path) == by_lines(tmp_path, marked)
    with pytest.raises(InputError, match="phone: there is no such column"):
        points(corpus.model_copy(update={"secrets": ["phone"]}), tmp_path)


def test_values_of_a_table_that_was_redacted_before_are_no_secrets(tmp_path: Path) -> None:
    table = pa.table({"text": ["<MASK> wrote", "Ann wrote"], "name": ["<MASK>", "Ann"]})
    pq.write_table(table, tmp_path / "chats.parquet")
    corpus = TableSpec(reader="table", path=str(tmp_path / "chats.parquet"), secrets=["name"])
    marked = [{"text": "<MASK> wrote"}, {"text": "Ann wrote", "spans": [[0, 3, "name"]]}]
    assert points(corpus, tmp_path) == by_lines(tmp_path, marked)


def test_values_are_found_as_texts_write_them(tmp_path: Path) -> None:
    """A column of numbers with gaps is one of fractions, and accents have two encodings."""
    accented = ["Zoë Müller", "Zoe\u0308 Mu\u0308ller"]
    texts = [f"{accented[1]} has 123456", f"{accented[0]} or nan", "12.5 or 7"]
    table = pa.table({"text": texts, "name": [*accented, None], "order": [123456.0, None, 12.5]})
    pq.write_table(table, tmp_path / "chats.parquet")
    corpus = TableSpec(reader="table", path=str(tmp_path / "chats.parquet"))
    found = points(corpus.model_copy(update={"secrets": ["name", "order"]}), tmp_path)
    spans = [[[0, 12, "name"], [17, 23, "order"]], [[0, 10, "name"]], [[0, 4, "order"]]]
    marked = [{"text": text, "spans": some} for text, some in zip(texts, spans, strict=True)]
    assert found == by_lines(tmp_path, marked)


@pytest.mark.parametrize(
    "value", [["Ann Lee"], b"Ann Lee", {"name": "Ann Lee"}, True, datetime(2000, 1, 1)]
)
@pytest.mark.parametrize("reader", ["table", "messages"])
def test_secrets_that_no_text_says_as_they_are_written_are_refused(
    tmp_path: Path, reader: str, value: Any
) -> None:
    """They would be lost without a word."""
    messages = [{"role": "user", "content": "I am Ann Lee"}]
    rows = pa.table({"text": ["I am Ann Lee"], "messages": [messages], "name": [value]})
    pq.write_table(rows, tmp_path / "chats.parquet")
    path = str(tmp_path / "chats.parquet")
    spec = {"table": TableSpec, "messages": MessagesSpec}[reader]
    with pytest.raises(InputError, match="name: is no text, number or day") as error:
        list(READERS[reader](spec(reader=reader, path=path, secrets=["name"])))
    assert "Ann" not in str(error.value)


FLOATS = [
    (pa.array([5120.35], pa.float32()), "pay: holds floats of 32 bits or fewer"),
    (pa.array([5120.35], pa.float32()).dictionary_encode(), "pay: holds floats of 32 bits"),
    (pa.array([12.5], pa.float16()), "pay: holds floats of 32 bits or fewer"),
    (pa.array([2.0**53]), ":1: pay: is a float that lacks digits: the column must be text or who"),
    (pa.array([-1e300]), ":1: pay: is a float that lacks digits: the column must be text or who"),
]


@pytest.mark.parametrize(("column", "message"), FLOATS)
@pytest.mark.parametrize("reader", ["table", "messages"])
def test_secrets_that_floats_do_not_hold_are_refused(
    tmp_path: Path, reader: str, column: pa.Array, message: str
) -> None:
    """No text would say them, and no miss rate would count them."""
    messages = [{"role": "user", "content": "I earn 5120.35"}]
    rows = pa.table({"text": ["I earn 5120.35"], "messages": [messages], "pay": column})
    pq.write_table(rows, tmp_path / "chats.parquet")
    path = str(tmp_path / "chats.parquet")
    spec = {"table": TableSpec, "messages": MessagesSpec}[reader]
    with pytest.raises(InputError) as error:
        list(READERS[reader](spec(reader=reader, path=path, secrets=["pay"])))
    assert str(error.value).startswith(path) and message in str(error.value)
    assert list(READERS[reader](spec(reader=reader, path=path)))


def test_numbers_are_found_with_the_digits_that_their_column_holds(tmp_path: Path) -> None:
    texts = ["170.00 or 170", "9007199254740991", "1234567890123456789"]
    columns = {
        "price": pa.array([Decimal("170.00"), None, None], pa.decimal128(9, 2)),
        "amount": pa.array([170.0, 2.0**53 - 1, math.inf]),
        "card": pa.array([None, None, 1234567890123456789], pa.int64()),
    }
    pq.write_table(pa.table({"text": texts} | columns), tmp_path / "t.parquet")
    found = [
        [(*span[:3],) for span in record.spans]
        for record in records(tmp_path / "t.parquet", secrets=[*columns])
    ]
    marked = [[(0, 6, "price"), (10, 13, "amount")], [(0, 16, "amount")], [(0, 19, "card")]]
    assert found == marked


def test_a_time_that_python_does_not_have_is_refused(tmp_path: Path) -> None:
    times = pa.array([9223372036854775], pa.timestamp("s"))
    pq.write_table(pa.table({"text": ["a"], "time": times}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="is broken, or no file of Parquet"):
        list(
            READERS["table"](
                TableSpec(reader="table", path=str(tmp_path / "a.parquet"), secrets=["time"])
            )
        )


MARKS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 9), st.sampled_from("ab")).map(
        lambda mark: [mark[0], mark[0] + mark[1], mark[2]]
    )
)


@given(MARKS)
def test_marks_that_overlap_become_one(marks: list[Any]) -> None:
    """Whoever finds one of them alone has not found it."""
    given = [[3, 6, "given"], [4, 5, "within"]]  # which overlap each other are the reader's to tell
    kept = united(given[:1], marks)
    assert kept == sorted(kept)
    assert all(left[1] <= right[0] for left, right in pairwise(kept))
    for start, end, _ in [*given[:1], *marks]:
        assert any(one[0] <= start and end <= one[1] for one in kept)
    places = {place for start, end, _ in [*given[:1], *marks] for place in range(start, end)}
    assert places == {place for start, end, _ in kept for place in range(start, end)}
    assert united(given, []) == given


def test_a_part_that_is_given_does_not_hide_the_whole() -> None:
    assert united([[4, 9, "surname"]], [[0, 9, "name"]]) == [[0, 9, "name"]]
    assert united([], [[0, 11, "street"], [4, 19, "place"]]) == [[0, 19, "place"]]
    chained = [[0, 4, "a"], [3, 8, "b"], [7, 13, "longest"]]
    assert united([], chained) == [[0, 13, "longest"]]


@pytest.mark.parametrize(
    ("text", "value", "places"),
    [
        ("你好我叫李明杰想", "李明杰", [(4, 7)]),
        ("안녕하세요 홍길동입니다", "홍길동", [(6, 9)]),
        ("我是Ann Lee，", "Ann Lee", [(2, 9)]),
        ("Annleeton", "Annlee", []),
        ("order#4711 or #47110", "#4711", [(5, 10)]),
        ("Tel+49 170 1", "+49 170 1", [(3, 12)]),
        ("Ann Lee.Regards", "Ann Lee.", [(0, 8)]),
        ("Jose\u0301s", "José", []),
        ("GROSSE STRASSE 5, Große Straße 5", "Große Straße 5", [(0, 16), (18, 32)]),
    ],
)
def test_values_are_found_where_no_space_ends_a_word(text: str, value: str, places: list) -> None:
    marks = marks_of(text, {"name": value})
    assert [(start, end) for start, end, _ in marks] == places


SIGNS = "aAnN éeςσΣıİ\u0301sſkK#4 .一ก_"


PLAIN = "aAnN #4 ._\x1c\n"


def shuffled(signs: str) -> st.SearchStrategy[tuple[str, list[str]]]:
    """A value of these signs, and what stands between its copies."""
    return st.tuples(
        st.text(signs, min_size=3, max_size=5), st.lists(st.text(signs, max_size=3), max_size=9)
    )


@given(shuffled(SIGNS) | shuffled(PLAIN))
@settings(max_examples=100)
def test_values_are_found_where_one_pattern_of_all_finds_them(
    drawn: tuple[str, list[str]],
) -> None:
    """That pattern takes 17 ms to compile, for each value: a corpus is not read with it."""
    value, others = drawn
    words = r"\s+".join(map(re.escape, value.split()))
    if len("".join(value.split())) < 3:
        return
    before, behind = (
        f"(?{side}{LETTER})" if re.match(LETTER, sign) else ""
        for side, sign in (("<!", words[0]), ("!", unicodedata.normalize("NFC", words)[-1]))
    )
    forms = "|".join(unicodedata.normalize(form, words) for form in ("NFC", "NFD"))
    whole = re.compile(f"{before}(?:{forms}){behind}", re.IGNORECASE)
    for text in ("".join(others), value.join(others), value + value.swapcase().join(others)):
        marks = marks_of(text, {"name": value})
        assert [(start, end) for start, end, _ in marks] == [
            match.span() for match in whole.finditer(text)
        ]


def test_letters_of_two_cases_are_those_of_regular_expressions() -> None:
    """But for two Greek letters and a ligature, each of which Unicode has twice."""
    letters = [sign for sign in map(chr, range(0x20000)) if sign.lower() != sign.upper()]
    together = "".join(letters)
    alike = list(map(folded, letters))
    assert folded(together) == "".join(alike)
    for letter in letters[::9]:
        found = {match.group() for match in re.finditer(re.escape(letter), together, re.IGNORECASE)}
        same = {one for one, other in zip(letters, alike, strict=True) if other == folded(letter)}
        assert found == same or letter in "\u0390\u1fd3\u03b0\u1fe3\ufb05\ufb06"


def test_a_file_that_names_its_encoding_is_asked_for_no_other(tmp_path: Path) -> None:
    path = tmp_path / "corpus"
    path.write_bytes(b"\xef\xbb\xbfone\nna\xefve\n")
    with pytest.raises(InputError, match=r":2: not UTF-8 .* begins with a mark of UTF-8: mend"):
        list(READERS["lines"](LinesSpec(reader="lines", path=str(path))))
