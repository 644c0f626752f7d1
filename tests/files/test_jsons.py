"""JSON with a key twice, or nested too deep, is refused by file and line: in lines of a corpus, in
every file that is read.
"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.cli import main
from confide.corpora import read_own as read
from confide.dp.ledger import Ledger
from confide.errors import InputError
from confide.files import jsons
from confide.files.io import read_json, read_jsonl
from confide.files.rows import read_rows
from confide.specs import LinesSpec

TEXT = "I am Mary Smith-Jones."
TWICE = (
    '{"text": "%s", "spans": [[5, 21, "name"]], "spans": []}',
    '{"text":"%s","spans":[[5,21,"name"]],"spans":[]}',
    '{"text": "%s", "spans": [[5, 21, "name"]], "\\u0073pans": []}',
    '{"text": "%s", "spans" : [[5, 21, "name"]], "spans"\t:\t[]}',
    '{"text" :"%s","spans":[[5,21,"name"]],"spans"\r:[]}',
    '{"text": "%s", "spans": [[5, 21, "name"]], "spans": null}',
    '{"text" : "%s \\": ", "spans": [[5, 21, "name"]], "spans": []}',
)
ONCE = (
    '{"text": "%s \\"spans\\": \\"spans\\":[]", "spans": [[5, 21, "name"]]}',
    '{"text" : "%s", "spans"\t: [[5, 21, "spans"]]}',
    '{"te\\u0078t": "%s : {[ \\u0073pans", "spans": [[5, 21, "name"]]}',
)


@pytest.mark.parametrize("line", TWICE)
def test_a_line_of_a_corpus_with_a_key_twice_is_refused(tmp_path, line):
    path = tmp_path / "own.jsonl"
    path.write_text(ONCE[0] % TEXT + "\n" + line % TEXT + "\n", newline="")
    with pytest.raises(InputError, match=r"own\.jsonl:2: spans: stands twice") as error:
        list(read(LinesSpec(reader="lines", path=str(path))))
    assert "Mary" not in str(error.value)


@pytest.mark.parametrize("line", ONCE)
def test_keys_that_stand_once_are_read_however_they_are_written(tmp_path, line):
    path = tmp_path / "own.jsonl"
    path.write_text(line % TEXT + "\r\n", newline="")
    (record,) = read(LinesSpec(reader="lines", path=str(path)))
    assert record.text.startswith(TEXT) and [(span.start, span.end) for span in record.spans] == [
        (5, 21)
    ]


def test_a_document_whose_key_is_spelled_otherwise_stays_with_its_author(tmp_path):
    """Two documents of one author, one of which spells its keys with escapes, are in one split."""
    path = tmp_path / "own.jsonl"
    for number in range(20):
        path.write_text(
            json.dumps({"text": "a", "doc": f"x{number}", "author": "A"}) + "\n"
            f'{{"text": "b", "\\u0064oc": "y{number}", "\\u0061uthor": "A"}}\n'
        )
        assert (
            len(
                {
                    record.split
                    for record in read(
                        LinesSpec(reader="lines", path=str(path), valid=0.3, test=0.3)
                    )
                }
            )
            == 1
        )


@pytest.mark.parametrize("field", ['"gold": []', '"\\u0067old": []', '"gold" : []'])
def test_points_with_gold_twice_are_refused(tmp_path, field):
    path = tmp_path / "points.jsonl"
    path.write_text(f'{{"text": "{TEXT}", "gold": [[5, 21, "name", 1.0]], {field}}}\n')
    with pytest.raises(InputError, match=r"points\.jsonl:1: stands twice"):
        list(read_rows(path, "text", "gold"))


PAIRS = st.tuples(st.sampled_from(["a", "b", 'a"', '":', "c:"]), st.deferred(lambda: VALUES))
PLAIN = st.none() | st.integers(-9, 9) | st.text('ab":{}[]\\ \t', max_size=6)
VALUES = (
    PLAIN
    | st.lists(st.deferred(lambda: VALUES), max_size=3)
    | st.lists(PAIRS, max_size=4).map(tuple)
)


def written(value, colon) -> str:
    """JSON in which a tuple is an object of these pairs, keys twice included."""
    if isinstance(value, tuple):
        return (
            "{"
            + ",".join(f"{json.dumps(key)}{colon}{written(one, colon)}" for key, one in value)
            + "}"
        )
    if isinstance(value, list):
        return "[" + ",".join(written(one, colon) for one in value) + "]"
    return json.dumps(value)


def twice(value) -> bool:
    if isinstance(value, tuple):
        keys = [key for key, _ in value]
        return len(set(keys)) < len(keys) or any(twice(one) for _, one in value)
    return isinstance(value, list) and any(map(twice, value))


@given(VALUES, st.sampled_from([":", ": ", " :", "\t:", "\r:", "\n: "]))
def test_it_is_refused_exactly_where_a_key_stands_twice(value, colon):
    text = written(value, colon)
    if twice(value):
        with pytest.raises(jsons.Repeated):
            jsons.loads(text)
    else:
        assert jsons.loads(text) == json.loads(text)


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_depth_is_limited_exactly(opening, closing):
    jsons.loads(opening * jsons.DEEPEST + "1" + closing * jsons.DEEPEST)
    for levels in (jsons.DEEPEST + 1, 300, 1000):
        with pytest.raises(jsons.Nested):
            jsons.loads(opening * levels + "1" + closing * levels)


@pytest.mark.parametrize(
    "read_it", [read_json, lambda path: list(read_jsonl(path)), Ledger.from_file]
)
def test_every_reader_of_files_refuses_both(tmp_path, read_it):
    path = tmp_path / "x.jsonl"
    for text, message in (
        ('{"hash": "a", "hash": "b"}', "hash: stands twice"),
        ('{"a":' + "[" * 100 + "]" * 100 + "}", "nested deeper"),
    ):
        path.write_text(text)
        with pytest.raises(
            InputError, match=rf"x\.jsonl(:1)?: {message}|x\.jsonl(:1)?: is {message}"
        ):
            read_it(path)


DEEP = [
    '{"version": 1, "seal": "x", "run": "r", "claims": [], "policy": {"a": %s}, "asked": {"a": %s}}'
    % (("[" * 300 + "]" * 300,) * 2),
    '{"asked":' * 300 + "1" + "}" * 300,
    "[" * 300 + "]" * 300,
]


@pytest.mark.parametrize(
    "text", [*DEEP, '{"run": "a", "claims": [], "policy": {}, "seal": "x", "seal": "y"}']
)
@pytest.mark.parametrize(
    "command",
    [
        ["verify", "{}"],
        ["audit", "check", "{}", "{}"],
        ["release", "{}", "--study", "nowhere", "--output", "out"],
        ["study", "--spec", "@{}", "--results", "r", "--models", "m", "--output", "o"],
    ],
)
def test_a_certificate_that_is_nested_deep_is_one_line(
    tmp_path, capsys, monkeypatch, command, text
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deep.json").write_text(text)
    assert main([word.format("deep.json") for word in command]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        f"confide {command[-3] if command[0] == 'audit' else command[0]}: error: deep.json: "
    )
    assert "is nested deeper than 64 levels" in line or "seal: stands twice" in line
