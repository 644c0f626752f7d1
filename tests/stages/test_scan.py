"""The leak scanner: a leak fails and is never shown, a clean study passes, what cannot be searched
is an error.
"""

import gzip
import json
from pathlib import Path

import pytest

from confide.cli import main
from confide.errors import Failure, InputError
from confide.files.io import read_json, sha256, write_json, write_jsonl
from confide.specs import ScanSpec
from confide.stages.scan import scan

PHONE = "555-123-4567"
NAME = "Mary Smith-Jones"
CANARY = "482913"
TEXT = b"""{"loss": 0.4829130, "epoch": 12, "note": "nothing here"}
2026-11-21 15:52:00,123 step 48291 of 4829130 Mary smiths 555-123-456 x482913
"""


@pytest.fixture
def study(tmp_path) -> dict[str, object]:
    """Private and public points, canaries, and a folder of released files in which nothing
    leaks.
    """
    texts = [
        f"USR: I am {NAME}.",
        f"USR: Call {PHONE}",
        "USR: yes",
        "USR: Houston Street",
        "USR: tea 12",
    ]
    spans = [
        (NAME, "name"),
        (PHONE, "phone"),
        None,
        ("Houston Street", "address"),
        ("12", "number"),
    ]
    rows = []
    for text, span in zip(texts, spans, strict=True):
        start = text.index(span[0]) if span else 0
        rows.append(
            {
                "key": text[5:8],
                "text": text,
                "gold": [[start, start + len(span[0]), span[1], 1.0]] if span else [],
            }
        )
    write_jsonl(tmp_path / "points.jsonl", rows)
    write_jsonl(tmp_path / "public.jsonl", [{"text": "SYS: We are at houston street."}])
    planted = {
        "secrets": [CANARY],
        "controls": ["777123"],
        "audits": [{"secret": "999888", "in": True}],
        "label": "canary",
    }
    write_json(tmp_path / "canaries.json", planted)
    released = tmp_path / "released"
    (released / "models").mkdir(parents=True)
    (released / "log.txt").write_bytes(TEXT + b" in Houston Street, 12")
    (released / "models" / "empty").write_bytes(b"")
    return {
        "points": [tmp_path / "points.jsonl"],
        "canaries": [tmp_path / "canaries.json"],
        "public": [tmp_path / "public.jsonl"],
        "published": [],
        "files": [released],
        "output": tmp_path / "scan.json",
    }


def clean(published: int) -> dict[str, int]:
    """Totals of the study without a hit, its two files and so many published ones."""
    own = {"files": 2, "kilobytes": 1}
    return own | {"published": published, "hits": 0, "leaking_files": 0}


def test_a_clean_study(study):
    scan(ScanSpec(), **study)
    first = study["output"].read_bytes()
    report = json.loads(first)
    counts = {"secrets": 7, "marked": 4, "searched": 5, "too_short": 1, "public": 1}
    assert counts.items() <= report["secrets"].items()
    assert report["secrets"]["labels"] == {
        "name": 1,
        "phone": 1,
        "secrets": 1,
        "controls": 1,
        "audits": 1,
    }
    assert report["totals"] == clean(published=0)
    scan(ScanSpec(), **study)
    assert study["output"].read_bytes() == first


def test_of_what_a_corpus_marks_it_is_counted_what_is_looked_for(study):
    """What is too short, or stands in public text, is not."""
    scan(ScanSpec(), **study)
    counts = json.loads(study["output"].read_bytes())["secrets"]
    assert (counts["marked"], counts["marked_searched"]) == (4, 2)
    row = {"key": "a", "text": "PIN 4711", "gold": [[4, 8, "pin", 1.0]]}
    write_jsonl(study["points"][0], [row])
    scan(ScanSpec(), **study)
    counts = json.loads(study["output"].read_bytes())["secrets"]
    assert (counts["marked"], counts["marked_searched"], counts["searched"]) == (1, 0, 3)


def test_a_corpus_that_marks_nothing_is_not_called_searched(study):
    rows = [{"key": "a", "text": f"My ID is: {CANARY}", "gold": [[10, 16, "canary", 1.0]]}]
    write_jsonl(study["points"][0], rows)
    page = study["output"].with_name("scan.html")
    scan(ScanSpec(), **study, html=page)
    report = json.loads(study["output"].read_bytes())
    assert report["secrets"]["marked"] == 0 and report["secrets"]["searched"] == 3
    assert "the corpus marks no secrets of its own" in page.read_text()
    scan(ScanSpec(), **study | {"canaries": []}, html=page)
    assert "marks no secrets" not in page.read_text()


@pytest.mark.parametrize(
    ("leak", "label", "index"),
    [
        (NAME, "name", 0),
        (PHONE, "phone", 1),
        ("999888", "audits", 4),
        ("777123", "controls", 5),
        (CANARY, "secrets", 6),
    ],
)
def test_a_leak_fails_and_is_not_shown(study, leak, label, index, capsys):
    path = study["files"][0] / "models" / "notes.gz"
    path.write_bytes(gzip.compress(TEXT + f"\n<{leak}> {leak.upper()}".encode()))
    with pytest.raises(Failure) as failure:
        scan(ScanSpec(), **study)
    assert str(failure.value) == f"{path}: 2 hits ({label})"
    report = read_json(study["output"])
    (row,) = (row for row in report["files"] if row["hits"])
    assert row["path"] == str(path) and row["labels"] == {label: 2} and row["secrets"] == [index]
    flags = [f"--{name}={value}" for name, value in study.items() if isinstance(value, Path)]
    flags += [
        part
        for name, value in study.items()
        if isinstance(value, list)
        for part in (f"--{name}", *map(str, value))
    ]
    assert main(["scan", "--spec", "{}", *flags]) == 1
    shown = capsys.readouterr()
    assert f"confide scan: failed: {path}: 2 hits ({label})" in shown.err.splitlines()
    for text in (shown.err, shown.out, study["output"].read_text()):
        assert leak.lower() not in text.lower()


def test_a_secret_in_a_file_name_is_not_shown(study):
    path = study["files"][0] / f"model of {NAME}.bin"
    path.write_bytes(gzip.compress(NAME.encode())[:-5])
    with pytest.raises(InputError) as error:
        scan(ScanSpec(), **study)
    path.write_bytes(b"fine")
    with pytest.raises(Failure) as failure:
        scan(ScanSpec(), **study)
    for text in (str(failure.value), str(error.value), study["output"].read_text()):
        assert "its name holds a secret" in text and "mary" not in text.lower()


def test_a_published_file_is_not_looked_into(study):
    vocabulary = study["files"][0] / "vocabulary.json"
    vocabulary.write_text(NAME)
    with pytest.raises(Failure, match="vocabulary.json: 1 hits"):
        scan(ScanSpec(), **study)
    page = study["output"].with_name("page.html")
    # by another name for the same file
    named = vocabulary.parent / ".." / vocabulary.parent.name / vocabulary.name
    scan(ScanSpec(), **study | {"published": [named]}, html=page)
    report = read_json(study["output"])
    assert report["totals"] == clean(published=1)
    (row,) = (row for row in report["files"] if row["published"])
    assert row["path"] == str(vocabulary) and row["sha256"] == sha256(vocabulary)
    assert "stands in any of 2 files" in page.read_text()
    assert "vocabularies whose digest is known (1)" in page.read_text()


def test_the_name_of_a_published_file_is_looked_at(study):
    path = study["files"][0] / f"vocabulary of {NAME}.json"
    path.write_text("fine")
    with pytest.raises(Failure, match="its name holds a secret"):
        scan(ScanSpec(), **study | {"published": [path]})


def test_what_stands_in_a_published_file_is_still_looked_for_elsewhere(study):
    vocabulary = study["files"][0] / "vocabulary.json"
    vocabulary.write_text(NAME)
    (study["files"][0] / "log.txt").write_text(NAME)
    with pytest.raises(Failure, match="log.txt: 1 hits"):
        scan(ScanSpec(), **study | {"published": [vocabulary]})


def test_shorter_secrets_on_demand(study):
    # the name of the test's own folder may hold two digits that are a secret
    file = r"(log\.txt|its name holds a secret\))"
    with pytest.raises(Failure, match=rf"{file}: \d hits \(number\)"):
        scan(ScanSpec(min_length=2), **study)


def test_every_row_has_the_digest_of_what_was_searched(study):
    scan(ScanSpec(), **study)
    rows = {row["path"]: row["sha256"] for row in read_json(study["output"])["files"]}
    assert rows and rows == {path: sha256(path) for path in rows}
    changed = study["files"][0] / "log.txt"
    changed.write_text("another text")
    assert rows[str(changed)] != sha256(changed)


def nothing_private(study):
    return study | {"points": [], "canaries": []}


def neither_gold_nor_canaries(study):
    write_jsonl(study["points"][0], [{"key": "a", "text": "abc", "gold": []}])
    return study | {"canaries": []}


def all_of_it_public(study):
    rows = [json.loads(line) for line in study["points"][0].read_text().splitlines()]
    write_jsonl(study["public"][0], [{"text": row["text"]} for row in rows])
    return study | {"canaries": []}


@pytest.mark.parametrize(
    ("change", "warning"),
    [
        (nothing_private, None),
        (
            neither_gold_nor_canaries,
            "no secret was looked for: the private datasets have neither gold spans nor canaries",
        ),
        (
            all_of_it_public,
            "no secret was looked for: of 4 secrets 1 are too short and 3 stand in public text",
        ),
    ],
)
def test_a_search_for_nothing_says_so(study, capsys, change, warning):
    scan(ScanSpec(), **change(study))
    printed = capsys.readouterr().err
    found = read_json(study["output"])
    assert found["secrets"]["searched"] == 0
    if warning is None:
        assert found["warning"] is None and "WARNING" not in printed
    else:
        assert (
            found["warning"].startswith(warning) and f"confide scan: WARNING: {warning}" in printed
        )


def test_no_size_of_a_file_is_a_number_that_may_be_a_secret(study, tmp_path):
    """The next search reads this one's report."""
    size = 123456
    rows = [{"key": "a", "text": f"My order is {size}", "gold": [[12, 18, "order", 1.0]]}]
    write_jsonl(study["points"][0], rows)
    (study["files"][0] / "weights").write_bytes(b"x" * size)
    reports = {name: tmp_path / f"first.{name}" for name in ("csv", "html", "sarif")}
    paths = {"table": reports["csv"], "html": reports["html"], "sarif": reports["sarif"]}
    scan(ScanSpec(), **study, **paths)
    again = {"files": [study["output"], *reports.values()], "output": tmp_path / "again.json"}
    scan(ScanSpec(), **(study | again))


def test_missing_files(study, tmp_path):
    (study["files"][0] / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="link: cannot be searched: No such file"):
        scan(ScanSpec(), **study)
    with pytest.raises(InputError, match="absent: cannot be searched: No such file"):
        scan(ScanSpec(), **(study | {"files": [tmp_path / "absent"]}))
    with pytest.raises(InputError, match=r"absent\.json: cannot be read"):
        scan(ScanSpec(), **(study | {"canaries": [tmp_path / "absent.json"]}))
    with pytest.raises(InputError, match="no regular file"):
        scan(ScanSpec(), **(study | {"files": [Path("/dev/null")]}))


def test_a_secret_in_the_name_of_what_cannot_be_read_is_not_printed(study, tmp_path):
    (study["files"][0] / f"{CANARY}.txt").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="its name holds a secret.*cannot be searched") as error:
        scan(ScanSpec(), **study)
    assert CANARY not in str(error.value)


def test_a_span_outside_of_its_text(study, tmp_path):
    write_jsonl(
        tmp_path / "points.jsonl", [{"key": "a", "text": "abc", "gold": [[1, 9, "name", 1.0]]}]
    )
    with pytest.raises(InputError, match=r"points\.jsonl:1: gold"):
        scan(ScanSpec(), **study)
