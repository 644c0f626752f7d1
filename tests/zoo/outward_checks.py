"""What comes from outside: words stay words in every medium, and a file says one thing."""

import csv
import io
import json
import tempfile
from pathlib import Path

from confide.corpora import read_own as read
from confide.errors import InputError
from confide.models import pretrained
from confide.output import escaping
from confide.specs import LinesSpec

TITLE = "<script>alert(1)</script> {x} \x1b[2J\nscan: 0 hits"
TWICE = (
    '{"text": "I am Mary.", "spans": [[5, 9, "name"]], "spans": []}',
    '{"text": "I am: Mary.", "spans": [[6, 10, "name"]], "spans" : []}',
    '{"text": "I am Mary.", "spans": [[5, 9, "name"]], "\\u0073pans": []}',
)


def words_from_outside_stay_words() -> None:
    """No tag, wildcard, formula, control or line of its own, whatever a title or a label is."""
    assert "<script" not in escaping.rendered(f"# {escaping.markdown(TITLE)}\n\n{TITLE}")
    assert len(escaping.terminal(TITLE).splitlines()) == 1 and "\x1b" not in escaping.terminal(
        TITLE
    )
    assert "{x" not in escaping.category(TITLE) and "</script" not in escaping.category(TITLE)
    assert "{x" not in escaping.parameter(json.dumps({"title": TITLE}))
    (cells,) = csv.reader(io.StringIO(escaping.table(["=1+1", "@a", TITLE], [])))
    assert not any(cell.startswith(("=", "@")) or "\x1b" in cell for cell in cells)


def files_from_outside_say_one_thing() -> None:
    """A key that stands twice, and a model that is none of the kind that is asked for, are
    refused.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "own.jsonl"
        for line in TWICE:
            file.write_text(line + "\n")
            assert (
                refusal(lambda: list(read(LinesSpec(reader="lines", path=str(file))))) == "twice"
            ), line
        (Path(folder) / "config.json").write_text(json.dumps({"model_type": "llama"}))
        assert refusal(lambda: pretrained.checked(Path(folder))) == "kind"


def refusal(call) -> str | None:
    """Why it was refused, in a word."""
    try:
        call()
    except InputError as error:
        return next((word for word in ("twice", "kind") if word in str(error)), None)
    return None
