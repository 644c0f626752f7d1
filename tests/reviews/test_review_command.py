"""`confide review` as it is typed: in a terminal, gone on with, and refused."""

import os
import stat
from pathlib import Path

import orjson
import pytest
from toy import corpus

from confide import cli
from confide.certify.review import ANY
from confide.commands.review import best, prospects
from confide.config import jobs
from confide.config.params import load as load_params
from confide.reviews.marks import load, sample_of
from confide.reviews.session import Session
from confide.stages.redact import redact

TINY = Path(__file__).parents[1] / "params.tiny.yaml"
HOSTILE = "it is \x1b[2J Zoë N1, \u202eNO N2"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project in which a corpus was redacted."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_bytes(TINY.read_bytes())
    params = load_params(tmp_path / "params.yaml")
    name = next(iter(params.datasets))
    folder = tmp_path / "data/work" / name
    files = corpus(folder, [f"{HOSTILE} {n}" for n in range(30)])
    for old, new in (("points", "points.jsonl"), ("copies", "copies.jsonl")):
        files[old].rename(folder / new)
    (folder / "g0").mkdir()
    files["spans"].unlink()
    spans = folder / "g0/spans.jsonl"
    redact(jobs.redaction(params, name, 0.0), points=folder / "points.jsonl", output=spans)
    return name


def typed(monkeypatch, capsys, lines, *flags, params="params.yaml"):
    """Status and output of a review in a terminal in which these lines are typed."""
    given = iter(lines)

    def ask(_):
        try:
            return next(given)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", ask)
    old = os.umask(0o022)
    try:
        status = cli.main(["review", params, *flags, "--terminal"])
    finally:
        os.umask(old)
    said = capsys.readouterr()
    return status, said.out + said.err


def test_a_project_is_reviewed_from_any_folder(project, monkeypatch, capsys, tmp_path):
    """Paths in params.yaml are as seen from where it lies."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    text = (tmp_path / "params.yaml").read_text()
    (tmp_path / "words.txt").write_text("# 3f9a0c5d7e1b2846a0b1c2d3e4f56789\nAnna\n")
    policies = "policies:\n  listed: { kind: words, path: words.txt, independent: true }\n"
    changed = text.replace("policies:\n", policies, 1)
    assert changed != text
    (tmp_path / "params.yaml").write_text(changed)
    monkeypatch.chdir(elsewhere)
    flags = ("--dataset", project, "--size", "10")
    status, said = typed(monkeypatch, capsys, [""], *flags, params="../params.yaml")
    assert status == 0 and "1 read, 9 left" in said
    assert "of the dataset in ../params.yaml" in said and "run -d .." in said
    assert (tmp_path / "data/own/reviews" / f"{project}.json").is_file()
    status, said = typed(monkeypatch, capsys, [], *flags, params="params.yaml")
    assert status == 2 and said.startswith("confide review: error: params.yaml: is not there")


def test_what_a_review_can_show_is_that_of_the_worst_label():
    """It is what certificates count, and release refuses where that is everything."""
    words, remedy = prospects({"name": 0.2, "code": 0.9, ANY: 0.1})
    assert "at most 10.0% of all secrets" in words and "90.0% of the label code" in words
    assert remedy.startswith("to bound it more tightly: draw more texts (--size)")
    (words,) = prospects({ANY: 0.1})
    assert "label" not in words
    words, warning = prospects({"name": 0.2, "code": 1.0, ANY: 0.4})
    assert "100.0% of the label code" in words
    assert "would refuse" in warning and "--size" in warning and "--most" in warning


def test_a_review_says_beforehand_what_its_certificate_would_count(
    project, monkeypatch, capsys, tmp_path
):
    flags = ("--dataset", project, "--size", "10")
    _, said = typed(monkeypatch, capsys, [], *flags)
    path = tmp_path / "data/own/reviews" / f"{project}.json"
    begun = load(path)
    work = tmp_path / "data/work" / project
    files = {"points": work / "points.jsonl", "copies": work / "copies.jsonl"}
    policies = begun.terms["policies"]  # whose findings these are: no list, no model
    sample = sample_of(begun, path, spans=work / "g0/spans.jsonl", **files, policies=policies)
    bounds = best(Session(begun, sample, path))
    assert len(bounds) > 1 and max(bounds.values()) >= bounds[ANY]
    assert all(line in said for line in prospects(bounds))


def test_a_review_in_a_terminal_is_saved_and_gone_on_with(project, monkeypatch, capsys, tmp_path):
    flags = ("--dataset", project, "--size", "10", "--by", "A. Reader", "--labels", "name")
    lines = ["name: N1", "N2", "nowhere", "", ":quit"]
    status, said = typed(monkeypatch, capsys, lines, *flags)
    assert status == 0 and "1 read, 9 left, which count as missed" in said
    assert "[[+name: N1]]" in said and "[[+other: N2]]" in said and "! the text does not" in said
    assert "\x1b" not in said and "\u202e" not in said and "\\x1b" in said
    path = tmp_path / "data/own/reviews" / f"{project}.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    review = load(path)
    assert (review.by, review.size, review.reviewed) == ("A. Reader", 10, 1)
    *of_policy, first, second, third, last = review.labels  # "name" was asked for, too
    assert [first, second, third, last] == ["name", "address", "organisation", "other"]
    assert of_policy and not {*of_policy} & {"name", "address", "organisation", "other"}
    assert [label for *_, label in review.marks[0].missed] == ["name", "other"]
    assert "Zo" not in path.read_text() and "N1" not in path.read_text()
    assert load_params(tmp_path / "params.yaml").datasets[project].review is None
    status, said = typed(monkeypatch, capsys, [":back", ":clear", ":undo", "", *[""] * 12], *flags)
    assert status == 0 and "--- 2 of 10, 1 read ---" in said and "10 read, 0 left" in said
    assert load(path).marks[0] == review.marks[0]
    changed = orjson.loads(path.read_bytes())
    assert all(one is not None for one in changed["marks"])


def test_what_a_review_cannot_count_is_never_dropped_in_silence(
    project, monkeypatch, capsys, tmp_path
):
    flags = ("--dataset", project, "--size", "10", "--labels", "name", "--most", "1")
    status, said = typed(monkeypatch, capsys, ["N", "N1", "N2", "", ":quit"], *flags)
    assert status == 0
    for number in (3, 2):  # places of "N", of which none is marked, and N2 beside N1
        assert said.count(f"! has {number} missed secrets, more than `most`") == 1
    review = load(tmp_path / "data/own/reviews" / f"{project}.json")
    assert len(review.marks[0].missed) == 1


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--dataset", "nothing"), "params.yaml: dataset = 'nothing': is not one of"),
        (("--size", "5"), "size = 5: Input should be greater than or equal to 10"),
        (("--most", "0"), "most = 0: Input should be greater than or equal to 1"),
        (("--by", "<b>"), "by = '<b>': String should match"),
        (("--labels", "any label"), "labels = 'any label': stands for all labels"),
        (("--gamma", "0.5"), "g0.5/spans.jsonl: is not there: run `confide run prepare` before"),
        (("--gamma", "7"), "gamma = 7.0: is not in"),
        (("--output", "results/x/review.json"), "lies in results, which others may see"),
    ],
)
def test_what_is_refused_before_anything_is_written(
    project, monkeypatch, capsys, tmp_path, flags, message
):
    before = sorted(tmp_path.rglob("*"))
    given = ("--dataset", project, *flags) if flags[0] != "--dataset" else flags
    status, said = typed(monkeypatch, capsys, [], *given)
    assert status == 2 and message in said and len(said.splitlines()) == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_a_review_is_gone_on_with_as_it_was_drawn(project, monkeypatch, capsys, tmp_path):
    typed(monkeypatch, capsys, [], "--dataset", project, "--size", "10")
    status, said = typed(monkeypatch, capsys, [], "--dataset", project, "--size", "12")
    assert status == 2 and "size = 12: was 10 when this review began" in said
    points = tmp_path / "data/work" / project / "points.jsonl"
    before = points.read_bytes()
    letter = before.index(b'"text":"') + len(b'"text":"')
    points.write_bytes(before[:letter] + b"~" + before[letter + 1 :])
    status, said = typed(monkeypatch, capsys, [], "--dataset", project)
    assert status == 2 and "or of other points or another policy" in said
