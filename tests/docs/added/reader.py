"""The test of docs/add_reader.md: tickets keeps text, and refuses what is malformed.

test_worked_examples.py runs it where the example is applied.
"""

import pytest

from confide.corpora import READERS
from confide.errors import InputError
from confide.specs.data import TicketsSpec


def read(path, text):
    path.write_text(text)
    return list(READERS["tickets"](TicketsSpec(reader="tickets", path=str(path)), None))


def test_text_spans_author_and_split(tmp_path):
    (found,) = read(tmp_path / "a.csv", '7,ada,valid,"a.b, then ""a.b"" but not axb",a.b\n')
    assert (found.doc, found.author, found.split) == ("ticket-7", "ada", "valid")
    assert [found.text[span.start : span.end] for span in found.spans] == ["a.b", "a.b"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("2,bo,test,word", ":2: expected number"),
        ("2,bo,dev,word,", ":2: expected number"),
        ('2,bo,test,"word', "cannot be read as CSV"),
    ],
)
def test_what_is_malformed_is_refused_without_showing_it(tmp_path, row, message):
    with pytest.raises(InputError, match="a.csv") as caught:
        read(tmp_path / "a.csv", f"1,ada,train,word,\n{row}\n")
    assert message in str(caught.value) and "word" not in str(caught.value)
