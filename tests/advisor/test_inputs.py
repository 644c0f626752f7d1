"""`confide init` tells what kind of corpus a file or folder is, and writes its reader."""

import csv
import json
import mailbox
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from confide.advisor.inputs import Asked, recognised
from confide.cli import main
from confide.config.params import load
from confide.corpora import READERS
from confide.errors import InputError

SECRET = "Zebulon Quackenbush"
COUNT = 740
BODIES = [f"I told {SECRET} about it, number {number}." for number in range(COUNT)]


def read_of(path: Path, **asked: Any) -> dict[str, Any]:
    return recognised(path, Asked(**asked)).spec.model_dump(exclude_defaults=True)


def write_csv(path: Path, header: list[str], rows: list[list[Any]], **options: Any) -> None:
    with open(path, "w", newline="", encoding=options.pop("encoding", "utf-8")) as file:
        csv.writer(file, **options).writerows([header, *rows])


def dataset(folder: Path, table: pa.Table) -> None:
    folder.mkdir()
    with pa.ipc.new_stream(str(folder / "data.arrow"), table.schema) as writer:
        writer.write_table(table)
    (folder / "state.json").write_text('{"_data_files": [{"filename": "data.arrow"}]}')


def mail(number: int) -> EmailMessage:
    message = EmailMessage()
    message["From"] = f"a{number % 20}@x.com"
    message["Date"] = f"Mon, 1 Jan 2001 10:{number // 60:02}:{number % 60:02}"
    message.set_content(BODIES[number])
    return message


def as_plain(path: Path) -> None:
    path.write_text("\n".join(BODIES))


def as_lines(path: Path) -> None:
    path.write_text("".join(json.dumps({"text": body}) + "\n" for body in BODIES))


def as_chats(path: Path) -> None:
    turns = ([{"role": "user", "content": body}] for body in BODIES)
    path.write_text("".join(json.dumps({"messages": turn}) + "\n" for turn in turns))


def as_csv(path: Path) -> None:
    rows = [[number, f"a{number}", body] for number, body in enumerate(BODIES)]
    write_csv(
        path, ["id", "author", "body"], rows, delimiter="\t" if path.suffix == ".tsv" else ";"
    )


def as_parquet(path: Path) -> None:
    splits = [
        ("train", "dev", "test")[number % 10 - 7 if number % 10 > 7 else 0]
        for number in range(COUNT)
    ]
    pq.write_table(pa.table({"text": BODIES, "split": splits, "score": [0.5] * COUNT}), path)


def as_chat_dataset(path: Path) -> None:
    turns = [[{"role": "user", "content": body}] for body in BODIES]
    dataset(path, pa.table({"messages": turns, "author": [f"a{n}" for n in range(COUNT)]}))


def as_mbox(path: Path) -> None:
    box = mailbox.mbox(path)
    for number in range(COUNT):
        box.add(mail(number))
    box.close()


def as_maildir(path: Path) -> None:
    mailbox.Maildir(path)
    for number in range(9):
        (path / f"cur/{number}.host:2,S").write_bytes(mail(number).as_bytes())


def written_corpus(folder: Path) -> dict[str, Any]:
    """The corpus of the params.yaml that init wrote into a folder."""
    corpus: dict[str, Any] = yaml.safe_load((folder / "params.yaml").read_text())["corpora"]["mine"]
    return corpus


def as_letters(path: Path) -> None:
    path.mkdir()
    for number in range(9):
        (path / f"{number}.eml").write_bytes(mail(number).as_bytes())


INPUTS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "a.txt": (as_plain, {"reader": "lines"}, "plain text in UTF-8, a document a line"),
    "a.jsonl": (as_lines, {"reader": "lines"}, "JSON lines in UTF-8, by the file's name"),
    "chats.jsonl": (as_chats, {"reader": "messages"}, 'with the key "messages": conversations'),
    "a.csv": (
        as_csv,
        {"reader": "table", "text": "body", "author": "author", "delimiter": ";"},
        "a table, .csv: text from body (the only column of several words), author from author; "
        "not read: id (--doc COLUMN: what belongs together; "
        "--secrets COLUMNS: what is secret in the text beside it)\n",
    ),
    "a.tsv": (as_csv, {"reader": "table", "text": "body", "author": "author"}, "a table, .tsv"),
    "a.parquet": (
        as_parquet,
        {"reader": "table", "split": "split"},
        "a table, .parquet: text from text (by its name), split from split; "
        "not read: score (--doc COLUMN: what belongs together; --author COLUMN: who ",
    ),
    "chats": (as_chat_dataset, {"reader": "messages"}, "a folder that datasets saved, column mess"),
    "a.mbox": (
        as_mbox,
        {"reader": "mail", "layout": "mbox"},
        "an mbox file, as it begins with From",
    ),
}


@pytest.mark.parametrize("name", INPUTS)
def test_init_takes_what_people_have(
    tmp_path: Path,
    name: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write, expected, said = INPUTS[name]
    write(tmp_path / name)
    assert main(["init", str(tmp_path / name)]) == 0
    shown = capsys.readouterr().out
    written = (tmp_path / "params.yaml").read_text()
    corpus = yaml.safe_load(written)["corpora"]["mine"]
    assert corpus == expected | {"path": name} and said in shown
    for text in (shown, written):
        assert not {"Zebulon", "Quackenbush", "told", "a1@x.com"} & {*text.split()}
    monkeypatch.chdir(tmp_path)
    assert load().corpora["mine"].model_dump(exclude_defaults=True) == corpus


def test_folders_of_mail(tmp_path: Path) -> None:
    as_maildir(tmp_path / "Mail")
    as_letters(tmp_path / "letters")
    (tmp_path / "boxes").mkdir()
    (tmp_path / "boxes/a.mbox").write_bytes(b"From a\n")
    (tmp_path / "profile").mkdir()
    (tmp_path / "profile/Inbox").write_bytes(b"From a\n")
    for name, layout, said in (
        ("Mail", {"layout": "maildir", "least": 1}, "a Maildir, as it has cur and new"),
        ("letters", {"least": 1}, "a folder of messages, as files begin with their headers"),
        ("boxes", {"layout": "mbox"}, "a folder of mbox files"),
        ("profile", {"layout": "mbox"}, "a folder of mbox files"),
    ):
        found = recognised(tmp_path / name, Asked())
        expected = {"reader": "mail", "path": str(tmp_path / name)} | layout
        assert found.spec.model_dump(exclude_defaults=True) == expected
        assert found.said.startswith(said)


def test_of_mail_most_messages_are_read(tmp_path: Path) -> None:
    """Customers write once or twice; of those with one message it is in train."""
    path = tmp_path / "post.mbox"
    counts = {"ann": 12, "bo": 3, "cy": 3} | {f"one{number}": 1 for number in range(4)}
    for least, more in ((3, {}), (2, {f"two{number}": 2 for number in range(20)})):
        lines = [
            f"From x\nFrom: {name}@x.org\nDate: Mon, 1 Jan 2024 10:00:00\n\nHello {number}\n\n"
            for name, count in (counts | more).items()
            for number in range(count)
        ]
        path.write_text("".join(lines))
        found = recognised(path, Asked())
        assert getattr(found.spec, "least", None) == least
        assert f"who have {least} messages or more" in found.said


def test_a_table_says_which_columns_there_are_and_no_value(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = [[number, body, f"a few words {SECRET}", "x"] for number, body in enumerate(BODIES[:9])]
    write_csv(path, ["id", "subject", "body", "my note"], rows)
    with pytest.raises(InputError, match=r"holds the texts\? --column, one of: subject, body$"):
        read_of(path)
    write_csv(path, ["id", "my subject", "body", "my note"], rows)
    with pytest.raises(InputError, match=r"--column, one of: the name of column 2, body$"):
        read_of(path)
    assert read_of(path, column="body", author="id")["author"] == "id"
    assert read_of(path, column="my note")["text"] == "my note"
    with pytest.raises(
        InputError, match="--column = 'boddy': there is no such column: did you mean b"
    ):
        read_of(path, column="boddy")
    with pytest.raises(InputError, match="--author = 'who': there is no such column"):
        read_of(path, column="body", author="who")


@pytest.mark.parametrize(
    "header",
    [
        ["4711", SECRET, "a"],
        [f"I told {SECRET} of it", "a", "b"],
        ["a", SECRET, "b"],
        ["a@b.com", "c", SECRET],
    ],
)
def test_a_file_without_a_header_shows_nothing(tmp_path: Path, header: list[str]) -> None:
    path = tmp_path / "t.csv"
    write_csv(path, header, [[*BODIES[:2], "b"]] * 9)
    for column in (None, "text"):
        with pytest.raises(InputError) as error:
            read_of(path, column=column)
        assert not {"Zebulon", "Quackenbush", "told", "4711"} & {*str(error.value).split()}


def test_what_is_no_corpus_is_one_line(tmp_path: Path) -> None:
    def fails(message: str, path: Path, **asked: Any) -> None:
        with pytest.raises(InputError, match=message) as error:
            read_of(path, **asked)
        assert "\n" not in str(error.value)

    fails("cannot be read: No such file", tmp_path / "nosuch")
    fails("is none of the folders that are known", tmp_path)
    (tmp_path / "note.txt").write_text("no mail\n")
    fails("is none of the folders that are known", tmp_path)
    fails("--column = 'body': is no table", tmp_path / "note.txt", column="body")
    (tmp_path / "n.parquet").write_bytes(b"PAR1")
    fails("no file of Parquet", tmp_path / "n.parquet")
    pq.write_table(pa.table({"n": [1]}), tmp_path / "n.parquet")
    fails("has no column of text", tmp_path / "n.parquet")


def test_columns_of_secrets_are_named_by_the_user(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "chats.csv"
    rows = [f"{n},Hello I am Kim{n} Lee and wait,Kim{n} Lee,k{n}@x.org\n" for n in range(700)]
    path.write_text("".join(["id,text,customer,mail\n", *rows]))
    assert main(["init", str(path), "--secrets", "customer,post"]) == 2
    assert "--secrets = 'post': there is no such column" in capsys.readouterr().err
    assert main(["init", str(path), "--secrets", "customer, mail"]) == 0
    shown = capsys.readouterr().out
    counted = "customer (in 200 of 200 rows), mail (in none of 200 rows)"
    assert f"secrets from {counted}; not read: id (--doc" in shown and "customer " in shown
    corpus = written_corpus(tmp_path)
    assert corpus == {"reader": "table", "path": "chats.csv", "secrets": ["customer", "mail"]}
    (tmp_path / "note.txt").write_text("no table\n")
    chats = tmp_path / "talks.jsonl"
    talk = {"messages": [{"role": "user", "content": "I am Ann Lee"}], "customer": "Ann Lee"}
    chats.write_text(json.dumps(talk) + "\n")
    found = recognised(chats, Asked(secrets=("customer",)))
    assert found.spec.secrets == ["customer"] and "secrets from customer" in found.said
    with pytest.raises(
        InputError, match="--secrets = 'costumer': no line .* did you mean customer"
    ):
        recognised(chats, Asked(secrets=("costumer",)))
    chats.write_text('{"text": "I am Ann Lee"}\n')
    with pytest.raises(InputError, match="--secrets = 'a': is for tables and conversations"):
        recognised(chats, Asked(secrets=("a",)))
    with pytest.raises(InputError, match="--secrets = 'a': is no table"):
        recognised(tmp_path / "note.txt", Asked(secrets=("a",)))


def test_keys_of_conversations_are_named_or_not_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "chats.jsonl"
    rows = [
        {
            "messages": [
                {"role": "user", "content": f"Hello, order {n} is late", "name": "k"},
                {"role": "assistant", "content": None, "tool_calls": []},
                {"role": "assistant", "content": "I look and wait"},
            ],
            "user_id": n // 4,
            "model": "m",
        }
        for n in range(2400)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["init", str(path), "--author", "user_id"]) == 0
    unread = ["messages.name", "messages.tool_calls", "model"]
    corpus = written_corpus(tmp_path)
    assert sorted(corpus.pop("unread")) == unread
    assert corpus == {"reader": "messages", "path": "chats.jsonl", "author": "user_id"}
    shown = capsys.readouterr().out
    assert "author from user_id; not read: model, messages.name, messages.tool_calls (" in shown
    assert "600 authors" in shown and "--author COLUMN" not in shown
    text = path.read_text()
    path.write_text(text.replace('"model"', '"author"'))
    assert "author" in recognised(path, Asked(author="user_id")).spec.unread
    for flag, message in (
        ("model_", "--author = 'model_': no line has such a key: did you mean model"),
        ("messages.name", "no line has such a key"),
        ("zzz", "there are messages, user_id, model$"),
    ):
        path.write_text(text + json.dumps({"messages": [], "my name is Bob Ray": 1}) + "\n")
        with pytest.raises(InputError, match=message):
            recognised(path, Asked(author=flag))
    path.write_text(text + json.dumps({"messages": [], "spans": []}) + "\n")
    with pytest.raises(InputError, match="spans: stands beside messages"):
        recognised(path, Asked())


@pytest.mark.parametrize("as_text", [False, True])
def test_conversations_of_a_table_are_found_as_lists_and_as_json(
    tmp_path: Path, as_text: bool
) -> None:
    talk: Any = [{"role": "user", "content": "Hello and wait for me", "name": "k"}]
    cell = json.dumps(talk) if as_text else talk
    rows = [{"messages": cell, "user": n, "model": "m"} for n in range(9)]
    path = tmp_path / "chats.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    found = recognised(path, Asked(author="user"))
    assert found.spec.unread == ["messages.name"] and found.spec.author == "user"
    assert "author from user; not read: model (--doc COLUMN" in found.said
    assert [record.author for record in READERS["messages"](found.spec)][:2] == ["0", "1"]


def test_rows_of_one_conversation_come_into_one_split(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "chats.csv"
    rows = [f"c{n // 4},Hello and wait for number {n}\n" for n in range(2400)]
    path.write_text("".join(["conversation,text\n", *rows]))
    assert main(["init", str(path), "--doc", "conversation"]) == 0
    corpus = written_corpus(tmp_path)
    assert corpus == {"reader": "table", "path": "chats.csv", "doc": "conversation"}
    assert "doc from conversation" in capsys.readouterr().out


def test_an_ending_in_capitals_is_one(tmp_path: Path) -> None:
    as_lines(tmp_path / "A.JSONL")
    found = recognised(tmp_path / "A.JSONL", Asked())
    assert found.said == "JSON lines in UTF-8, by the file's name"
    (record, *_) = READERS["lines"](found.spec)
    assert not record.text.startswith("{")


def test_splits_of_a_folder_are_said(tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    parts.mkdir()
    for name in ("train", "test"):
        pq.write_table(pa.table({"text": ["a"], "split": ["x"]}), parts / f"{name}-0.parquet")
    found = recognised(parts, Asked())
    words = ": text from text (by its name), test as the folder has them; not read: split"
    assert words in found.said
    assert found.spec.model_dump(exclude_defaults=True) == {"reader": "table", "path": str(parts)}


def test_an_encoding_is_named_by_the_user(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("".join(f"für {number} é ß\n" for number in range(800)).encode("cp1252"))
    assert main(["init", str(path)]) == 2
    assert "a.txt:1: not UTF-8 at byte 1 of the line" in capsys.readouterr().err
    assert main(["init", str(path), "--encoding", "utf-7"]) == 2
    assert "--encoding = 'utf-7': expected one of cp1252, latin-1" in capsys.readouterr().err
    assert main(["init", str(path), "--encoding", "cp1252"]) == 0
    assert "plain text in CP1252" in capsys.readouterr().out
    corpus = written_corpus(tmp_path)
    assert corpus == {"reader": "lines", "path": "a.txt", "encoding": "cp1252"}
