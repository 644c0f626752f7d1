"""`confide init` as a user meets it: what it writes, what it refuses, and that it never says what
the corpus says.
"""

import json
from pathlib import Path

import pytest
import yaml

from confide.advisor.choices import LEAST
from confide.cli import main
from confide.config.params import load

SECRET = "Zebulon Quackenbush"


@pytest.fixture
def corpus(tmp_path) -> Path:
    """700 lines with a name each, in a folder of their own."""
    path = tmp_path / "mine/corpus.jsonl"
    path.parent.mkdir()
    with open(path, "w") as file:
        for number in range(700):
            text = f"I told {SECRET} about {number}."
            split = ("train", "valid", "test")[number % 10 - 7 if number % 10 > 7 else 0]
            start = text.index(SECRET)
            spans = [[start, start + len(SECRET), "name"]]
            file.write(
                json.dumps({"text": text, "author": f"a{number}", "split": split, "spans": spans})
                + "\n"
            )
    return path


def test_it_writes_a_file_that_works_where_the_corpus_lies(corpus, capsys, monkeypatch):
    assert main(["init", str(corpus)]) == 0
    shown = capsys.readouterr().out
    target = corpus.parent / "params.yaml"
    monkeypatch.chdir(corpus.parent)
    params = load()
    assert params.corpora["mine"].path == "corpus.jsonl" and params.select == ["own"]
    assert (
        "700 documents" in shown
        and f"written: {target}" in shown
        and f"-d {corpus.parent} prepare, then confide recommend {corpus.parent}\n" in shown
        and "No secrets are known" not in shown
    )
    assert "hides 140 of 140 held-out secrets (100.0%)" in shown and "name 140 of 140" in shown
    assert len(shown.splitlines()) <= 36
    for text in (shown, target.read_text()):
        assert not {*SECRET.split(), "told", "a1"} & set(
            text.replace('"', " ").replace(",", " ").split()
        )


def test_another_folder_and_public_text(corpus, tmp_path, capsys, monkeypatch):
    public = tmp_path / "public.txt"
    public.write_text("nothing to hide here\n" * 30)
    assert (
        main(
            [
                "init",
                str(corpus),
                "--output",
                str(tmp_path / "run"),
                "--public",
                str(public),
                "--epsilon",
                "1",
            ]
        )
        == 0
    )
    monkeypatch.chdir(tmp_path / "run")
    params = load()
    assert (
        Path(params.corpora["mine"].path) == corpus
        and Path(params.corpora["public"].path) == public
    )
    assert params.privacy["budget"].epsilon == 1
    out = capsys.readouterr().out
    assert f"of {public}" in out and "simulated" not in out


def test_plain_text_is_a_corpus_too(tmp_path, capsys, monkeypatch):
    path = tmp_path / "corpus.txt"
    path.write_text("".join(f"Line {number} has no known secret\n" for number in range(800)))
    assert main(["init", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "no held-out secrets are known" in shown
    assert "No secrets are known" in shown and "confide review, after prepare" in shown
    monkeypatch.chdir(tmp_path)
    assert list(load().policies) == ["identifiers", "everything"]


def test_a_pass_is_bounded_in_tokens_so_that_one_long_text_costs_no_more(corpus, monkeypatch):
    assert main(["init", str(corpus)]) == 0
    monkeypatch.chdir(corpus.parent)
    assert {recipe.physical_tokens for recipe in load().recipes.values()} == {8_192}


def test_too_few_documents_of_many_sentences_are_cut_into_these(tmp_path, capsys, monkeypatch):
    path = tmp_path / "corpus.txt"
    path.write_text("".join("It is so. That was all. " * 4 + f"Bye {n}.\n" for n in range(200)))
    assert main(["init", str(path)]) == 0
    monkeypatch.chdir(tmp_path)
    assert load().datasets["mine"].point == "sentence"


def test_the_file_names_what_runs_it_here(corpus, monkeypatch):
    monkeypatch.chdir(corpus.parent)
    assert main(["init", corpus.name]) == 0
    assert "`confide run -n` says what a change reruns" in Path("params.yaml").read_text()


def test_another_encoding_is_one_line_that_names_the_flag(tmp_path, capsys):
    path = tmp_path / "corpus.txt"
    path.write_bytes("Grüße\n".encode("latin-1") * 600)
    assert main(["init", str(path)]) == 2
    assert "`confide init --encoding cp1252`" in capsys.readouterr().err


def test_what_is_there_is_kept(corpus, capsys):
    target = corpus.parent / "params.yaml"
    target.write_text("mine")
    assert main(["init", str(corpus)]) == 2 and target.read_text() == "mine"
    assert f"{target}: exists, and is not overwritten" in capsys.readouterr().err


@pytest.fixture
def chat(tmp_path) -> Path:
    """700 lines in lower case, each with a name, half with a number of no interest."""
    path = tmp_path / "chat.jsonl"
    rows = []
    for number in range(700):
        text = f"im zebulon quackenbush {number if number % 2 else ''}"
        spans = [[3, 22, "name"]] + ([[23, len(text), "count"]] if number % 2 else [])
        split = ("train", "valid", "test")[number % 10 - 7 if number % 10 > 7 else 0]
        rows.append({"text": text, "split": split, "spans": spans, "author": f"a{number}"})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_what_presets_cannot_know_is_said_and_what_would(chat, capsys):
    assert main(["init", str(chat)]) == 0
    shown = capsys.readouterr().out
    assert "missed by identifiers: name (140 of 140)" in shown
    assert "kind: words" in shown and "kind: ner" in shown and "zebulon" not in shown
    assert "> number" in shown and "found nothing in 700 points: iban, card" in shown
    policy = yaml.safe_load((chat.parent / "params.yaml").read_text())["policies"]["identifiers"]
    assert policy == {"kind": "preset", "names": ["number"]}


def test_only_labels_that_are_secret_count(chat, capsys):
    assert main(["init", str(chat), "--labels", "count"]) == 0
    shown = capsys.readouterr().out
    assert "hides 70 of 70 held-out secrets" in shown and "kind: words" not in shown
    params = yaml.safe_load((chat.parent / "params.yaml").read_text())
    assert params["datasets"]["mine"]["labels"] == ["count"]
    assert "labels" not in params["datasets"]["public"]


def test_a_label_that_is_not_there_is_one_line(chat, capsys):
    assert main(["init", str(chat), "--labels", "nmae"]) == 2
    error = capsys.readouterr().err
    assert "--labels = 'nmae': no gold span has this label; did you mean name?" in error
    assert main(["init", str(chat), "--labels", "zzz"]) == 2
    assert "there are: count, name" in capsys.readouterr().err
    assert not (chat.parent / "params.yaml").exists()


LINE = '{"text": "secret words"}\n'
BAD = [
    ("corpus.jsonl", None, "cannot be read: No such file"),
    ("corpus.jsonl", "", "holds no documents"),
    ("corpus.txt", "\n \n", "holds no documents"),
    ("corpus.jsonl", LINE + "{", "corpus.jsonl:2: malformed JSON"),
    ("corpus.jsonl", LINE * 300, f"training points (dialogues), and the least is {LEAST}"),
    ("corpus.jsonl", LINE.replace("}", ', "split": "train"}') * 600, "valid: has no text"),
    ("corpus.jsonl", LINE.replace("}", ', "doc": "a"}') * 600, "corpus.jsonl"),
    ("corpus.txt", b"secret \xff words\n" * 600, "corpus.txt:1: not UTF-8 at byte 7"),
]


@pytest.mark.parametrize(("name", "content", "message"), BAD)
def test_what_cannot_be_used_is_one_line(tmp_path, capsys, name, content, message):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert main(["init", str(path)]) == 2
    error = capsys.readouterr().err
    assert (
        message in error and error.count("\n") == 1 and "secret" not in error.replace(str(path), "")
    )
    assert not (tmp_path / "params.yaml").exists()


@pytest.mark.parametrize("epsilon", ["0", "-1", "inf", "nan"])
def test_an_epsilon_that_makes_no_sense(corpus, capsys, epsilon):
    assert main(["init", str(corpus), "--epsilon", epsilon]) == 2
    assert "must be positive" in capsys.readouterr().err


def test_the_study_own_has_the_policy_that_init_writes_where_no_secrets_are_known():
    from confide.advisor.choices import policies

    text = yaml.safe_load((Path(__file__).parents[2] / "params.yaml").read_text())
    own = policies()["identifiers"].model_dump(exclude_defaults=True)
    assert text["policies"]["identifiers"] == own
