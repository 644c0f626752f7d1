"""A secret is found in every container, plain or nested."""

import base64
import bz2
import gzip
import html
import io
import lzma
import re
import sqlite3
import zipfile
import zlib
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from planted_forms import png
from safetensors.numpy import save_file

from confide.errors import InputError
from confide.report.figures import style
from confide.scan.containers import searchable, streams
from confide.scan.search import Searcher

PHONE = "555-123-4567"
CANARY = "482913"
SECRETS = {0: PHONE, 1: CANARY}
SEARCHER = Searcher(SECRETS)
CODED = base64.b64encode


def found(path: Path) -> list[tuple[int, str]]:
    return [tuple(hit) for stream in streams(path) for hit in SEARCHER.hits(stream)]


def zipped(name: str, data: bytes, kind: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", kind) as archive:
        archive.writestr("empty", b"")
        archive.writestr(name, data)
    return out.getvalue()


def database(text: bytes) -> bytes:
    """With overflow pages, so that a value is cut in pieces that lie apart."""
    memory = sqlite3.connect(":memory:")
    memory.execute("pragma page_size = 512")
    memory.execute('create table "a ""b" (id integer primary key, note text, more blob)')
    memory.executemany(
        'insert into "a ""b" (note, more) values (?, ?)',
        [(f"row {n}", bytes(9)) for n in range(200)],
    )
    memory.execute('insert into "a ""b" (note) values (?)', (text.decode(),))
    memory.commit()
    return memory.serialize()


def arrays(text: bytes) -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, ids=np.arange(1000), text=np.frombuffer(text, np.uint8))
    return out.getvalue()


def glyphs(text: bytes, shift: int) -> bytes:
    uses = b"\n ".join(
        b'<use xlink:href="#DejaVuSans-%x" transform="translate(1 0)"/>' % (code - shift)
        for code in text
    )
    return b"<svg><g><path d='M 1 2'/></g>\n <g>" + uses + b"</g></svg>"


def data_uri(kind: bytes, data: bytes) -> bytes:
    return (
        b'<!DOCTYPE html><p>A figure</p><img src="data:'
        + kind
        + b";base64,"
        + CODED(data)
        + b'" alt="none">'
    )


CONTAINERS = {
    "raw": lambda text: text,
    "gzip": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zip": lambda text: zipped("a.txt", text),
    "zip of gzip": lambda text: zipped("a.txt.gz", gzip.compress(text)),
    "zip of zip": lambda text: zipped("a.zip", zipped("a.txt", text)),
    "npz": arrays,
    "png tEXt": lambda text: png(b"tEXt", b"Title\0" + text),
    "png zTXt": lambda text: png(b"zTXt", b"Title\0\0" + zlib.compress(text)),
    "png iTXt": lambda text: png(b"iTXt", b"Title\0\0\0en\0\0" + text),
    "png iTXt compressed": lambda text: png(b"iTXt", b"Title\0\1\0en\0\0" + zlib.compress(text)),
    "sqlite": database,
    "html": lambda text: (
        b"<html><p>So</p><p>" + html.escape(text.decode()).encode() + b"</p></html>"
    ),
    "html inline": lambda text: (
        b"<html><p>" + text[:3] + b"<b class='x'>" + text[3:] + b"</b></p></html>"
    ),
    "html entities": lambda text: (
        b"<html><p>" + b"".join(b"&#x%x;" % code for code in text) + b"</p></html>"
    ),
    "svg tspans": lambda text: (
        b"<svg><text>" + b"\n".join(b"<tspan>%c</tspan>" % code for code in text) + b"</text></svg>"
    ),
    "svg texts": lambda text: (
        b"<svg>" + b"\n".join(b"<g><text x='1'>%c</text></g>" % code for code in text) + b"</svg>"
    ),
    "svg glyphs by code": lambda text: glyphs(text, 0),
    "svg glyphs by place": lambda text: glyphs(text, 29),
    "data uri": lambda text: data_uri(b"text/plain", text),
    "data uri of png": lambda text: data_uri(
        b"image/png", png(b"zTXt", b"Title\0\0" + zlib.compress(text))
    ),
    "data uri of svg in zip": lambda text: zipped(
        "report.html", data_uri(b"image/svg+xml", glyphs(text, 29))
    ),
}


@pytest.mark.parametrize("secret", [PHONE, CANARY])
@pytest.mark.parametrize("name", CONTAINERS)
def test_every_container_is_opened(name, secret, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(CONTAINERS[name](secret.encode()))
    assert {SECRETS[hit] for hit, _ in found(path)} == {secret}
    path.write_bytes(CONTAINERS[name](b"5" + secret.encode()[:-1]))
    assert not found(path)


def test_pixels_of_a_png_are_not_read_and_what_follows_its_end_is(tmp_path):
    path = tmp_path / "figure.png"
    secret = CANARY.encode()
    path.write_bytes(png(b"IDAT", b" " + secret + b" "))
    assert not found(path)
    path.write_bytes(png(b"IDAT", b"") + b" " + secret)
    assert found(path) == [(1, "exact")]


def test_values_that_pages_of_a_database_cut_in_two(tmp_path):
    path = tmp_path / "mlflow.db"
    hidden = 0
    for behind in range(1000, 1020):  # two pages, which are filled from the end
        path.write_bytes(database(b"x" * 600 + b" " + PHONE.encode() + b" " + b"y" * behind))
        hidden += not list(SEARCHER.hits([path.read_bytes()]))
        assert (0, "exact") in found(path)
    assert hidden > 5


def test_other_values_of_a_database(tmp_path):
    path = tmp_path / "some.db"
    with sqlite3.connect(path) as file:
        file.execute("pragma writable_schema = on")
        foreign = ("table", "a", "a", 0, "create virtual table a using nobody_knows (b)")
        file.execute("insert into sqlite_master values (?, ?, ?, ?, ?)", foreign)
        file.execute("create table numbers (number integer) strict")
        file.execute(f"insert into numbers values ({CANARY})")
    assert found(path) == [(1, "exact")]


def test_neighbours_on_a_page_are_not_joined(tmp_path):
    path = tmp_path / "table.html"
    path.write_bytes(
        b"<table><td>482</td><td>913</td></table> <p>482</p><p>913</p> "
        b"<text>48</text><text>2913</text>"
    )
    assert not found(path)


def test_safetensors_metadata(tmp_path):
    path = tmp_path / "model.safetensors"
    weights = {"w": np.random.default_rng(0).standard_normal(100_000).astype(np.float32)}
    save_file(weights, path, {"note": f"trained for {CANARY}"})
    assert found(path) == [(1, "exact")]
    save_file(weights, path)
    assert not found(path)


def test_a_matplotlib_figure_without_its_comments(tmp_path):
    with style.settings():
        drawn = style.figure(3, 2)
        drawn.add_subplot().set_title(f"My ID is {CANARY}")
        style.save(drawn, tmp_path / "figure")
    path = tmp_path / "figure.svg"
    assert len(found(path)) == 3  # in the raw bytes, and in both views of the whole text
    path.write_text(re.sub(r"<!--.*?-->", "", path.read_text(), flags=re.DOTALL))
    assert found(path) == [(1, "exact")]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (gzip.compress(b"a" * 1000)[:-9], "EOFError"),
        (gzip.compress(b"text")[:10] + b"\xff" * 30, "error"),
        (zipped("a", b"b" * 99)[:-40], "BadZipFile"),
        (png(b"zTXt", b"Title\0\0" + zlib.compress(bytes(999))[:-6]), "EOFError"),
        (png(b"tEXt", b"a")[:-12], "EOFError"),
        (database(b"text")[:600], "DatabaseError"),
        (
            zipped("1", zipped("2", zipped("3", zipped("4", zipped("5", b"text"))))),
            "nested too deep",
        ),
    ],
    ids=[
        "cut gzip",
        "gzip of noise",
        "cut zip",
        "cut zTXt",
        "cut PNG",
        "cut database",
        "five zips",
    ],
)
def test_what_cannot_be_opened_is_an_error(tmp_path, content, reason):
    path = tmp_path / "damaged"
    path.write_bytes(content)
    with pytest.raises(InputError, match=reason) as error, searchable(str(path)):
        found(path)
    assert str(error.value).startswith(f"{path}: cannot be searched: ")


def test_what_a_killed_process_left_is_to_be_deleted(tmp_path):
    path = tmp_path / ".utility.png.other-node.17.tmp"
    path.write_bytes(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(InputError, match="killed has left it: delete it"), searchable(str(path)):
        found(path)


@pytest.mark.parametrize("kind", [3, 42])
def test_a_pdf_of_matplotlib(tmp_path, kind):
    path = tmp_path / "figure.pdf"
    with matplotlib.rc_context({"pdf.fonttype": kind}):
        drawn = Figure()
        drawn.text(0.5, 0.5, f"My ID is {CANARY}")
        drawn.savefig(path)
    assert {SECRETS[hit] for hit, _ in found(path)} == {CANARY}
