"""Valid files of every corpus format, all of whose texts hold one secret, and what reads them."""

import csv
import json
import tarfile
from collections.abc import Callable
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import pyarrow.parquet

from confide.corpora.archives import archive
from confide.specs import SplitSpec, parse
from confide.stages.fetch import _collect, _open_tar
from confide.stages.split import split

SECRET = "S3CRET-4711-ZEBRA"
SPLITS = ("train", "dev", "test")


def own_lines(count: int = 96) -> list[dict[str, Any]]:
    text = "My name is {0} Byron and my code is {1}, is it on seat 12?"
    rows = []
    for index in range(count):
        said = text.format(f"N{index:03}", SECRET if index % 3 else f"{1000 + index}")
        place = said.index(" is ") + 4
        row = {
            "text": said,
            "doc": f"d{index // 2}",
            "author": f"a{index % 5}",
            "domain": "ABC"[index // 4 % 2],
        }
        row["split"] = ("train", "train", "valid", "test")[index // 8 % 4]
        rows.append(row | {"spans": [[place, place + 4, "name"]]})
    return rows


def jsonl(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def packed(members: dict[str, str]) -> bytes:
    """A fetched archive."""
    return jsonl([{"path": path, "text": text} for path, text in members.items()])


def dialogues(path: Path, folder: str, extra: dict[str, Any]) -> bytes:
    """Files of schema-guided dialogues for each split; the one to be changed is that of train."""
    for split_name in SPLITS:
        turns = [
            {
                "speaker": "USER",
                "turn_id": "0",
                "utterance": f"I am {SECRET}.",
                "frames": [
                    {
                        "service": "Banks_1",
                        "slots": [{"slot": "receiver", "start": 5, "exclusive_end": 22, **extra}],
                    }
                ],
            },
            {"speaker": "SYSTEM", "turn_id": "1", "utterance": "Very well.", "frames": []},
        ]
        found = [
            {"dialogue_id": f"{split_name}_{n}", "services": ["Banks_1"], "turns": turns}
            for n in range(3)
        ]
        place = path / folder / split_name / "dialogues_001.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(found))
    return (path / folder / "train" / "dialogues_001.json").read_bytes()


def annotated(folder: Path) -> bytes:
    for split_name in SPLITS:
        place = folder / "airline" / f"{split_name}.tsv"
        place.parent.mkdir(parents=True, exist_ok=True)
        rows = [
            f"c{split_name}{n}\t{turn}\tit is {SECRET}\tO O name"
            for n in range(3)
            for turn in range(2)
        ]
        place.write_text(
            "\n".join(["conversationId\tturnNumber\tutterance\tslot-labels", *rows]) + "\n"
        )
    return (folder / "airline" / "train.tsv").read_bytes()


def unannotated(folder: Path) -> bytes:
    folder.mkdir(exist_ok=True)
    roles = ("customer", "agent")
    rows = [
        f'c{n:04}-1,{turn},"it is {SECRET}, so",{roles[turn % 2]}'
        for n in range(12)
        for turn in range(3)
    ]
    content = "\n".join(["conversationId,turnNumber,utterance,authorRole", *rows]) + "\n"
    (folder / "airline.tsv").write_text(content)
    return content.encode()


MESSAGE = (
    f"From: Ada <ada@x.org>\nDate: Mon, 1 Jan 2001 10:0{{0}}:00 +0000\nMIME-Version: 1.0\n"
    f"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain; charset=utf-8\n"
    f"Content-Transfer-Encoding: quoted-printable\n\nI am {SECRET} {{0}} =C3=A9.\n"
    f"On Monday, Bo wrote:\n> no\n--b--\n"
)
TREE = (
    "# newdoc id = d{0}\n# text = {1} met Ada "
    ".\n1\t{1}\tB-PER\t-\t-\n2\tmet\tO\t-\t-\n3\tAda\tB-PER\t-\t-\n4\t.\tO\t-\t-\n\n"
)
DIALOG = (
    "SYS: Hello, may I have your full name?\nUSR: I am Ada Byron.\nSYS: Thanks.\nUSR: It is "
    f"{SECRET} 123-12345-1234\n"
)


def mails(folder: Path) -> bytes:
    (folder / "mail/inbox").mkdir(parents=True)
    for number in range(12):
        (folder / f"mail/inbox/{number}.").write_text(MESSAGE.format(number))
    return (folder / "mail/inbox/3.").read_bytes()


def tarball(folder: Path) -> bytes:
    """A tar.xz of CustomerSim's layout."""
    buffer = BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name in ("train", "valid", "test"):
            for number in range(3):
                data = DIALOG.encode()
                info = tarfile.TarInfo(f"customersim/{name}/dial-{number}.txt")
                info.size = len(data)
                tar.addfile(info, BytesIO(data))
    return buffer.getvalue()


def points_of(folder: Path, corpus: dict[str, Any], raw: Path | None = None) -> None:
    spec = parse(SplitSpec, {"corpus": corpus, "point": "sentence"})
    split(spec, raw=raw, output=folder / "points.jsonl")


def read_tar(path: Path) -> None:
    _collect(archive("customersim"), _open_tar(path))


# name: kind of mutation, where the file lies, what makes it in a folder (bytes), what reads it
# there
Corpus = tuple[str, str, Callable[[Path], bytes], Callable[[Path], None]]


def fetched(reader: str, members: dict[str, str], **more: Any) -> Corpus:
    read = {"reader": reader, **more}
    return (
        "lines",
        "raw.jsonl",
        lambda folder: packed(members),
        lambda folder: points_of(folder, read, folder / "raw.jsonl"),
    )


def own(
    kind: str,
    place: str,
    make: Callable[[Path], bytes],
    reader: str,
    path: str | None = None,
    **more: Any,
) -> Corpus:
    return (
        kind,
        place,
        make,
        lambda folder: points_of(
            folder, {"reader": reader, "path": str(folder / (path or place)), **more}
        ),
    )


def rows_of_text() -> Any:
    """The lines as a table of Arrow; spans are JSON, as CSV has them."""
    return pyarrow.Table.from_pylist(
        [row | {"spans": json.dumps(row["spans"])} for row in own_lines()]
    )


def csv_rows(folder: Path) -> bytes:
    buffer = StringIO()
    table = csv.DictWriter(buffer, rows_of_text().column_names)
    table.writeheader()
    table.writerows(rows_of_text().to_pylist())
    return buffer.getvalue().encode()


def parquet(folder: Path) -> bytes:
    buffer = BytesIO()
    pyarrow.parquet.write_table(rows_of_text(), buffer, row_group_size=40)
    return buffer.getvalue()


def saved(folder: Path) -> bytes:
    """The Arrow file of a folder that datasets saved; its other files lie there."""
    (folder / "saved").mkdir(exist_ok=True)
    (folder / "saved/state.json").write_text('{"_data_files": [{"filename": "data.arrow"}]}')
    buffer = BytesIO()
    with pyarrow.ipc.new_stream(buffer, rows_of_text().schema) as writer:
        writer.write_table(rows_of_text(), max_chunksize=40)
    return buffer.getvalue()


COLUMNS = {key: key for key in ("doc", "author", "domain", "split", "spans")}
SPEECHES = "\n\n".join(f"{'ABC'[n % 3]}:\nI am {SECRET}. So, {n}!" for n in range(30))
POSTS = [
    {"author": f"u{n % 3}", "normalizedBody": f"post {n} of {SECRET}", "body": "x"}
    for n in range(40)
]
TREES = {
    f"{name}.iob2": "".join(TREE.format(f"{name}{n}", SECRET) for n in range(4)) for name in SPLITS
}
CORPORA: dict[str, Corpus] = {
    "lines (JSON)": own("lines", "own.jsonl", lambda folder: jsonl(own_lines()), "lines"),
    "lines (text)": own(
        "bytes", "own.txt", lambda folder: f"line of {SECRET}\n".encode() * 40, "lines"
    ),
    "table (CSV)": own("bytes", "own.csv", csv_rows, "table", **COLUMNS),
    "table (Parquet)": own("bytes", "own.parquet", parquet, "table", **COLUMNS),
    "table (datasets)": own("bytes", "saved/data.arrow", saved, "table", "saved", **COLUMNS),
    "mail (messages)": own("bytes", "mail/inbox/3.", mails, "mail", "mail", least=2),
    "mail (mbox)": own(
        *(
            "bytes",
            "box.mbox",
            lambda folder: "".join(f"From x\n{MESSAGE.format(n)}\n" for n in range(9)).encode(),
            "mail",
        ),
        layout="mbox",
        least=2,
    ),
    "reddit": own("lines", "posts.jsonl", lambda folder: jsonl(POSTS), "reddit"),
    "multidogo (annotated)": own("bytes", "airline/train.tsv", annotated, "multidogo", "."),
    "multidogo (unannotated)": own(
        "bytes",
        "dogo/airline.tsv",
        lambda f: unannotated(f / "dogo"),
        "multidogo",
        "dogo",
        part="unannotated",
    ),
    "sgd": own(
        "json",
        "sgd/train/dialogues_001.json",
        lambda folder: dialogues(folder, "sgd", {}),
        "sgd",
        "sgd",
    ),
    "multiwoz22": own(
        *(
            "json",
            "woz/train/dialogues_001.json",
            lambda folder: dialogues(folder, "woz", {"value": SECRET}),
            "multiwoz22",
            "woz",
        )
    ),
    "dialog_files": fetched(
        "dialog_files",
        {f"{s}/dial-{n}.txt": DIALOG for s in ("train", "valid", "test") for n in range(3)},
    ),
    "speeches": fetched("speeches", {"input.txt": SPEECHES}, least=2),
    "treebank": fetched("treebank", TREES),
    "wikitext": fetched(
        "wikitext",
        {
            f"{name}.txt": f" = {SECRET} = \n a line of 12\n" * 9
            for name in ("train", "valid", "test")
        },
    ),
    "archive (tar.gz)": (
        "bytes",
        "a.tar.gz",
        tarball,
        lambda folder: read_tar(folder / "a.tar.gz"),
    ),
}
