"""The user's own corpus: splits by document and author, and one clear line for every malformed
input.
"""

import json
import os
import re
import shutil
import subprocess
from collections import defaultdict

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from confide.corpora import READERS, lines
from confide.corpora import read_own as read
from confide.corpora.lines import Places, Plan, Shard, form_of, objects
from confide.corpora.lines import _names as lines_of
from confide.corpora.lines import records as records_of
from confide.errors import InputError
from confide.files.io import Range
from confide.specs import LinesSpec, MessagesSpec, TableSpec


def write(folder, rows, name="corpus.jsonl"):
    path = folder / name
    path.write_bytes(
        b"".join(row if isinstance(row, bytes) else orjson.dumps(row) + b"\n" for row in rows)
    )
    return path


def records(path, **options):
    return list(read(LinesSpec(reader="lines", path=str(path), **options)))


def test_fields_are_read(tmp_path):
    row = {
        "text": "Call Ann at 5.",
        "doc": "d",
        "author": "a",
        "domain": "x",
        "split": "test",
        "spans": [[12, 13, "n"], [5, 8, "p"]],
    }
    (record,) = records(write(tmp_path, [row]))
    assert (record.text, record.doc, record.author, record.domain, record.split) == (
        "Call Ann at 5.",
        "d",
        "a",
        "x",
        "test",
    )
    assert [record.text[s.start : s.end] for s in record.spans] == ["Ann", "5"]


WRITTEN = [{"doc": f"synthetic-1-{number}", "text": "a"} for number in (1, 2)]
READ = [{"doc": "redacted-text-1", "text": "a"}]


def test_texts_of_a_model_are_read_from_a_file_that_says_so(tmp_path):
    header = {"synthetic": {"run": "crt/g0-s0", "texts": 2}}
    own = {"doc": "mine", "text": "b"}
    names = [row.doc for row in records(write(tmp_path, [header, *WRITTEN, own]))]
    assert names == ["synthetic-1-1", "synthetic-1-2", "mine"]
    for rows in (
        [own, *WRITTEN],
        [own | {"doc": None}, b'{"doc": "synthetic-1-1","text":"a"}\n'],
        [own, *READ],
    ):
        with pytest.raises(InputError, match=r":2.*doc.*(synthetic-1|redacted-text)-1 .*a model"):
            records(write(tmp_path, rows))
    assert records(write(tmp_path, [own, {"doc": "synthetic-1-1b", "text": "a"}]))


def test_plain_text_is_a_document_a_line(tmp_path):
    path = write(tmp_path, ["\ufeffone\r\n\n  \ntwo é\nthree".encode()], "corpus.txt")
    found = records(path)
    assert [(r.text, r.doc) for r in found] == [
        ("one", "line-1"),
        ("two é", "line-4"),
        ("three", "line-5"),
    ]


def test_nul_and_astral_characters_survive(tmp_path):
    (record,) = records(write(tmp_path, [{"text": "a\0b😀c", "spans": [[3, 4, "x"]]}]))
    assert (
        record.text == "a\0b😀c"
        and record.text[record.spans[0].start : record.spans[0].end] == "😀"
    )


SECRET = "hunter2"
BAD = {
    b'{"text": "hunter2"': ("malformed", None),
    b'{"text": "hunter2\\ud800"}': ("malformed", None),
    b'{"text": "hunter2\xff"}': ("malformed", None),
    b'["hunter2"]': ("object", None),
    b'{"text": 3}': ("string", "text"),
    b'{"text": null}': ("string", "text"),
    b'{"doc": "d"}': ("missing", "text"),
    b'{"text": "hunter2", "lable": "d"}': ("unknown", "lable"),
    b'{"text": "hunter2", "doc": 5}': ("string", "doc"),
    b'{"text": "hunter2", "split": "dev"}': ("one of", "split"),
    b'{"text": "hunter2", "spans": [[0, 8, "x"]]}': ("range", "spans"),
    b'{"text": "hunter2", "spans": [[-1, 2, "x"]]}': ("range", "spans"),
    b'{"text": "hunter2", "spans": [[2, 2, "x"]]}': ("range", "spans"),
    b'{"text": "hunter2", "spans": [[0, 4, "x"], [3, 6, "x"]]}': ("overlap", "spans"),
    b'{"text": "hunter2", "spans": [[0, "4", "x"]]}': ("list of", "spans"),
    b'{"text": "hunter2", "spans": [[true, 4, "x"]]}': ("list of", "spans"),
    b'{"text": "hunter2", "spans": [[0, 4]]}': ("list of", "spans"),
    b'{"text": "hunter2", "spans": {"a": 1}}': ("list of", "spans"),
    b'{"text": "hunter2 <MASK>", "spans": [[8, 14, "x"]]}': ("masked already", "spans"),
    b'{"text": "<MASK> <MASK>", "spans": [[0, 13, "x"]]}': ("masked already", "spans"),
    b'{"text": "a <MASK>12 b", "spans": [[6, 10, "x"]]}': ("cuts a <MASK>", "spans"),
    b'{"text": "12<MASK>", "spans": [[0, 3, "x"]]}': ("cuts a <MASK>", "spans"),
}


@pytest.mark.parametrize("line", BAD)
def test_malformed_line_is_named_by_file_line_and_key_without_its_text(tmp_path, line):
    message, key = BAD[line]
    path = write(tmp_path, [{"text": "fine"}, b"\n", line + b"\n"])
    with pytest.raises(InputError) as error:
        records(path)
    text = str(error.value)
    assert (
        text.startswith(f"{path}:3: ")
        and message in text
        and "\n" not in text
        and SECRET not in text
    )
    assert key is None or f" {key}" in text


def test_a_secret_of_which_a_part_is_masked_is_one(tmp_path):
    """What is masked already is none: of ten in a corpus, one missed secret would be a tenth."""
    row = {"text": "Mr <MASK> Jones", "spans": [[0, 15, "name"], [10, 15, "surname"]]}
    for span in row["spans"]:
        (record,) = records(write(tmp_path, [row | {"spans": [span]}]))
        assert [list(found[:3]) for found in record.spans] == [span]


def test_bad_utf8_in_plain_text_names_the_line(tmp_path):
    with pytest.raises(InputError, match=r"corpus.txt:2: not UTF-8"):
        records(write(tmp_path, [b"fine\nhunter2 \xff\n"], "corpus.txt"))


@pytest.mark.parametrize("name", ["corpus.txt", "corpus.jsonl"])
def test_empty_missing_and_folder(tmp_path, name):
    with pytest.raises(InputError, match="no documents"):
        records(write(tmp_path, [b"\n \n"], name))
    with pytest.raises(InputError, match="cannot be read"):
        records(tmp_path / f"absent-{name}")
    with pytest.raises(InputError, match="cannot be read"):
        records(tmp_path)


def test_shares_that_leave_no_train_are_refused(tmp_path):
    with pytest.raises(InputError, match="train"):
        records(write(tmp_path, [{"text": "a"}]), valid=0.5, test=0.5)


def test_shares_are_about_right_and_the_seed_matters(tmp_path):
    path = write(tmp_path, [{"text": "a", "doc": f"d{n}"} for n in range(4000)])
    found = [r.split for r in records(path, valid=0.2, test=0.1)]
    assert (
        abs(found.count("valid") / 4000 - 0.2) < 0.03
        and abs(found.count("test") / 4000 - 0.1) < 0.03
    )
    assert found == [r.split for r in records(path, valid=0.2, test=0.1)]
    assert found != [r.split for r in records(path, valid=0.2, test=0.1, seed=1)]


def test_split_of_a_document_does_not_depend_on_the_rest_of_the_file(tmp_path):
    rows = [{"text": "a", "doc": f"d{n}", "author": f"a{n % 70}"} for n in range(300)]
    forward = {r.doc: r.split for r in records(write(tmp_path, rows))}
    backward = {r.doc: r.split for r in records(write(tmp_path, rows[::-1]))}
    assert forward == backward and len(set(forward.values())) == 3


def test_a_blank_author_is_nobody(tmp_path):
    """Else all who have no name would be one person, and in one split."""
    rows = [{"text": "a", "doc": f"d{n}", "author": " " * (n % 2)} for n in range(400)]
    rows[0]["author"] = "ann"
    found = records(write(tmp_path, rows))
    assert [record.author for record in found] == ["ann", *[None] * 399]
    assert len({record.split for record in found[1:]}) == 3
    named = {"text": "one\ntwo", "doc": "d", "author": ""}
    path = write(tmp_path, [*rows, named, named | {"author": "bob"}])
    assert [record.author for record in records(path)][-2:] == [None, "bob"]
    table = tmp_path / "own.csv"
    table.write_text('text,who\n"one two",\nthree,ann\nfour," "\n')
    spec = TableSpec(reader="table", path=str(table), author="who")
    assert [record.author for record in READERS["table"](spec, None)] == [None, "ann", None]


@pytest.mark.parametrize("in_one_go", [True, False])
def test_a_blank_document_is_a_line_s_own(tmp_path, in_one_go, monkeypatch):
    """Else all lines without a name would be one document, and in one split."""
    rows = [{"text": "a", "doc": " " * (n % 2)} for n in range(300)]
    path = write(tmp_path, [*rows, {"text": "b", "doc": "d"}])
    if not in_one_go:
        monkeypatch.setattr(lines, "objects", lambda *_, **__: None)
    found = records(path)
    assert [record.doc for record in found] == [f"line-{n}" for n in range(1, 301)] + ["d"]
    assert len({record.split for record in found}) == 3


rows = st.lists(
    st.fixed_dictionaries(
        {"text": st.just("t")},
        optional={"doc": st.sampled_from("abcdefgh"), "author": st.sampled_from("abcdefgh")},
    ),
    min_size=1,
    max_size=30,
)


@settings(max_examples=60)
@given(rows)
def test_documents_and_authors_are_whole(tmp_path_factory, rows):
    seen = defaultdict(set)
    for record in records(write(tmp_path_factory.mktemp("rows"), rows), valid=0.3, test=0.3):
        seen["doc", record.doc].add(record.split)
        if record.author:
            seen["author", record.author].add(record.split)
    assert all(len(splits) == 1 for splits in seen.values())


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("abcdefgh")), max_size=12))
def test_groups_are_the_connected_components(links):
    places = Places()
    groups = {node: {node} for node in "abcdefgh"}
    for one, other in links:
        places.link(one, other)
        joined = groups[one] | groups[other]  # brute force
        groups |= dict.fromkeys(joined, joined)
    assert {node: places.group(node) for node in groups} == {
        node: min(group) for node, group in groups.items()
    }


def test_given_split_holds_for_the_whole_document_and_may_not_change(tmp_path):
    rows = [
        {"text": "a", "doc": "d"},
        {"text": "b", "doc": "d", "split": "test"},
        {"text": "c", "doc": "d"},
    ]
    assert [r.split for r in records(write(tmp_path, rows), valid=0, test=0)] == ["test"] * 3
    with pytest.raises(InputError, match=r":4: split"):
        records(write(tmp_path, [*rows, {"text": "e", "doc": "d", "split": "train"}]))


def test_given_names_never_meet_automatic_ones(tmp_path):
    rows = [
        {"text": "a"},
        {"text": "b", "doc": "line-1"},
        {"text": "c", "doc": "doc-line-1"},
        {"text": "d", "doc": "x"},
    ]
    docs = [r.doc for r in records(write(tmp_path, rows))]
    assert docs == ["line-1", "doc-line-1", "doc-doc-line-1", "x"]


def test_json_escapes_are_decoded(tmp_path):
    assert records(write(tmp_path, [json.dumps({"text": "é\n😀"}).encode()]))[0].text == "é\n😀"


usual = st.fixed_dictionaries(
    {"text": st.text('ab" :\t\\é', max_size=6)},
    optional={
        "doc": st.sampled_from(["d", "e", "line-1", None]),
        "author": st.sampled_from(["ann", "bob", None]),
        "domain": st.sampled_from(["bank", None]),
        "split": st.sampled_from(["train", "test", None]),
        "spans": st.lists(
            st.tuples(st.integers(0, 4), st.integers(0, 6), st.just("x")), max_size=2
        ),
    },
)
written = usual.map(orjson.dumps) | st.sampled_from(
    [
        b"",
        b" ",
        b"[]",
        b'{"text":"a"} {"text":"b"}',
        b'{"text":"a","doc":"d"',
        b'"doc":"d"}',
        b'{"text":"a","text":"b"}',
        b'{"text" :"a"}',
        b'{"text":"a","other":1}',
        b'{"text":"a"}\r',
        b'{"text":"\xff"}',
        b'{"text":"a","doc":{"x":{}}}',
        b'{"text":"a","spans":[[0,1,"x"]],"spans":[]}',
        b'{"text":"<MASK>","spans":[[0,6,"x"]]}',
        b'{"text":"a <MASK>","spans":[[0,8,"x"]]}',
    ]
)


@settings(deadline=None, max_examples=200)
@given(st.lists(usual.map(orjson.dumps) | written, max_size=4), st.booleans())
def test_lines_read_at_once_are_what_is_read_one_by_one(tmp_path_factory, rows, ends):
    path = tmp_path_factory.mktemp("lines") / "corpus.jsonl"
    path.write_bytes(b"\n".join(rows) + (b"\n" if ends else b""))
    spec = LinesSpec(reader="lines", path=str(path))
    outcomes = []
    for form in (form_of(spec), form_of(spec)._replace(at_once=None)):
        plan = Plan(spec, Places(), form=form)
        shard = Shard(Range(path))
        try:
            outcomes.append([*lines_of(form, shard), *records_of(plan, shard)])
        except InputError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


def test_lines_as_most_are_read_at_once(tmp_path):
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(b'{"text":"a","doc":"d"}\n{"text":"b \\": c"}\n')
    there = objects(Shard(Range(path)))
    assert there is not None and there.starts.tolist() == [0, 23, 42]
    assert objects(Shard(Range(path, 23, 42), 2)) is not None
    for content in (b'{"text":"a"}', b'{"text":"a"}\n\n', b' {"text":"a"}\n', b'{"synthetic":1}\n'):
        path.write_bytes(content)
        assert objects(Shard(Range(path))) is None


def test_other_names_and_types_are_refused_with_what_writes_ours(tmp_path):
    for row, message in (
        ({"body": "hunter2"}, r"unknown key: .*jq -c '\{text: \.body, author"),
        (
            {"text": "a", "id": "hunter2"},
            r"unknown key: .*`jq -c 'del\(\.id\)' FILE` leaves it out",
        ),
        ({"text": "a", "my id": "hunter2"}, r"unknown key: .*jq -c '\{text: \.body, author"),
        ({"text": "a", "author": 17}, r"expected a string; `jq -c '\(\.author\|numbers\)"),
        ({"text": "a", "author": ["hunter2"]}, "expected a string$"),
        ({"text": 17}, r"expected a string$"),
    ):
        with pytest.raises(InputError, match=message) as error:
            records(write(tmp_path, [row]))
        assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (
            {
                "id": "hunter2",
                "conversations": [
                    {"from": "system", "value": "be kind"},
                    {"from": "human", "value": "hello"},
                    {"from": "gpt", "value": "yes"},
                ],
            },
            "system: be kind\nuser: hello\nassistant: yes",
        ),
        ({"instruction": "add", "input": "1", "output": "2"}, "user: add 1\nassistant: 2"),
        ({"instruction": "add", "input": "", "output": "2"}, "user: add\nassistant: 2"),
        ({"instruction": "add", "output": "2"}, "user: add\nassistant: 2"),
        ({"prompt": "hello", "completion": "yes", "id": 1}, "user: hello\nassistant: yes"),
    ],
)
def test_files_for_fine_tuning_are_refused_with_what_writes_messages(tmp_path, row, said):
    path = write(tmp_path, [row])
    with pytest.raises(InputError, match="unknown key: .*the reader messages takes") as error:
        records(path)
    assert "hunter2" not in str(error.value)
    (program,) = re.findall(r"jq -c '([^']+)' FILE", str(error.value))
    if shutil.which("jq") is None:
        pytest.skip("needs jq")
    written = tmp_path / "written.jsonl"
    written.write_bytes(subprocess.check_output(["jq", "-c", program, path]))
    (record,) = read(MessagesSpec(reader="messages", path=str(written)))
    assert record.text == said


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "corpus.jsonl")
    with pytest.raises(InputError, match="is a pipe, which can be read only once"):
        records(tmp_path / "corpus.jsonl")
