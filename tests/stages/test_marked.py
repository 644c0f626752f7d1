"""What a person marked, as points that a search and a veil read."""

import pytest

from confide.cli import main
from confide.errors import Failure, InputError
from confide.files.io import read_json, read_jsonl, write_json
from confide.reviews.marks import Marks, save
from confide.specs import MarkedSpec, ScanSpec, TextSpec
from confide.stages.marked import marked
from confide.stages.scan import scan
from tests.reviews.toy import CODE, begun, corpus, edited, finished
from tests.terms import TEXT

TEXTS = [
    *[f"my code is {100000 + n}" for n in range(20)],
    *[f"room N{1000000 + n} please" for n in range(5)],
    *[f"thanks to {'x' * n} y" for n in range(1, 20)],
]
SPEC = MarkedSpec(text=TextSpec(**TEXT), redact=CODE)


@pytest.fixture
def files(tmp_path):
    return corpus(tmp_path / "corpus", TEXTS)


def test_marks_are_gold_spans_of_their_texts(files, tmp_path):
    path = tmp_path / "review.json"
    finished(files, path, size=500)
    output = tmp_path / "marked.jsonl"
    others = {name: str(file) for name, file in files.items()}
    arguments = [f"--{name}={file}" for name, file in {"review": path, **others}.items()]
    assert main(["marked", "--spec", SPEC.model_dump_json(), *arguments, f"--output={output}"]) == 0
    rows = list(read_jsonl(output))
    assert {row["text"] for row in rows} == {text for text in TEXTS if text.startswith("room")}
    assert all(row["gold"] == [[5, 13, "name", 1.0]] for row in rows)


def test_a_search_finds_what_was_marked(files, tmp_path):
    """No gold span knows of it: without the marks nothing would be looked for."""
    path = tmp_path / "review.json"
    finished(files, path, size=500)
    output = tmp_path / "marked.jsonl"
    marked(SPEC, review=path, output=output, **files)
    released = tmp_path / "released"
    released.mkdir()
    (released / "report.md").write_text("who asked for room n1000003?")
    given = {"canaries": [], "public": [], "published": [], "files": [released]}
    counts = tmp_path / "scan.json"
    scan(ScanSpec(), points=[files["points"]], output=counts, **given)
    assert read_json(counts)["secrets"]["searched"] == 0
    with pytest.raises(Failure, match=r"report.md: 1 hits \(name\)"):
        scan(ScanSpec(), points=[files["points"], output], output=counts, **given)
    assert read_json(counts)["secrets"] | {"patterns": 0} == {
        "secrets": 5,
        "marked": 5,
        "marked_searched": 5,
        "too_short": 0,
        "public": 0,
        "searched": 5,
        "patterns": 0,
        "labels": {"name": 5},
    }


def test_without_marks_there_is_nothing_to_look_for(files, tmp_path):
    review, _ = begun(files, size=20)
    path = tmp_path / "review.json"
    save(path, review.model_copy(update={"marks": [Marks(), *review.marks[1:]]}))
    output = tmp_path / "marked.jsonl"
    marked(SPEC, review=path, output=output, **files)
    assert not list(read_jsonl(output))
    counts = tmp_path / "scan.json"
    write_json(tmp_path / "file.json", {})
    given = {"canaries": [], "public": [], "published": [], "files": [tmp_path / "file.json"]}
    scan(ScanSpec(), points=[output], output=counts, **given)
    assert read_json(counts)["secrets"]["searched"] == 0


def test_a_review_of_other_findings_is_refused(files, tmp_path):
    path = tmp_path / "review.json"
    review, _ = finished(files, path, size=500)
    output = tmp_path / "marked.jsonl"
    edited(path, terms=review.terms | {"policies": "0" * 64})
    with pytest.raises(InputError, match="terms.policies"):
        marked(SPEC, review=path, output=output, **files)
    assert not output.exists()
