"""No file makes the search endless or large: what unfolds is bounded, and memory hardly grows with
the number of secrets.
"""

import base64
import bz2
import gzip
import lzma
import subprocess
import sys
import time
import zipfile
import zlib
from io import BytesIO

import pytest
from planted_forms import NAME, file_of, kerned, numbered, pdf, png, stream

from confide.errors import InputError
from confide.scan import pdf as pdf_reader
from confide.scan import png as png_reader
from confide.scan import unfolding
from confide.scan.containers import searchable, streams
from confide.scan.search import Searcher

SEARCHER = Searcher({0: NAME})
ZEROS = bytes(4 << 20)


def found(path) -> list[str]:
    with searchable(str(path)):
        return [hit.kind for stream_ in streams(path) for hit in SEARCHER.hits(stream_)]


def zipped(*members: bytes) -> bytes:
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, member in enumerate(members):
            archive.writestr(str(number), member)
    return out.getvalue()


def data_uri(content: bytes) -> bytes:
    return (
        b"<svg><image href='data:application/gzip;base64,"
        + base64.b64encode(content)
        + b"'/></svg>"
    )


BOMBS = {
    "gzip": gzip.compress(ZEROS),
    "bzip2": bz2.compress(ZEROS),
    "xz": lzma.compress(ZEROS),
    "zlib": zlib.compress(ZEROS),
    "zip": zipped(ZEROS),
    "zip of many": zipped(*[ZEROS[: 1 << 18]] * 16),
    "zip of gzip": zipped(gzip.compress(ZEROS)),
    "gzip of zlib": gzip.compress(zlib.compress(ZEROS)),
    "data URI": data_uri(gzip.compress(ZEROS)),
    "zTXt": png(b"zTXt", b"a\0\0" + zlib.compress(ZEROS)),
    "iTXt": png(b"iTXt", b"a\0\1\0en\0\0" + zlib.compress(ZEROS)),
    "iCCP": png(b"iCCP", b"a\0\0" + zlib.compress(ZEROS)),
    "PDF": pdf(stream(2, ZEROS)),
    "PDF of many streams": pdf(*[stream(number, ZEROS[: 1 << 18]) for number in range(16)]),
    "PDF of many tables": pdf(*numbered(NAME * 400), *[numbered(NAME)[1]] * 400),
}


@pytest.mark.parametrize("name", BOMBS)
def test_what_unfolds_to_too_much_is_an_error_that_names_the_file(tmp_path, monkeypatch, name):
    path = tmp_path / "bomb"
    path.write_bytes(BOMBS[name])
    monkeypatch.setattr(unfolding, "ALWAYS", 1 << 20)
    monkeypatch.setattr(unfolding, "TIMES", 1)
    with pytest.raises(InputError, match=r"bomb: cannot be searched: .*too large \(TooLarge\)"):
        found(path)


@pytest.mark.parametrize("name", BOMBS)
def test_the_same_is_searched_within_the_real_bounds(tmp_path, name):
    path = tmp_path / "large"
    path.write_bytes(BOMBS[name])
    assert set(found(path)) <= {"exact"} if "tables" in name else not found(path)


def test_chunks_and_streams_are_bounded_one_by_one(tmp_path, monkeypatch):
    path = tmp_path / "file"
    monkeypatch.setattr(png_reader, "LARGEST", 1000)
    path.write_bytes(png(b"tEXt", b"a" * 1001))
    with pytest.raises(InputError, match="TooLarge"):
        found(path)
    path.write_bytes(png(b"IDAT", b"a" * 1001))
    assert not found(path)
    monkeypatch.setattr(pdf_reader, "LARGEST", 1000)
    for content in (
        pdf(stream(2, b"a" * 1001)),
        pdf(b" " * 1001),
        pdf(*[stream(2, b"a" * 400)] * 3),
    ):
        path.write_bytes(content)
        with pytest.raises(InputError, match="TooLarge"):
            found(path)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("pack", [zlib.compress, gzip.compress, lambda data: pdf(stream(2, data))])
def test_three_deep_and_no_deeper(tmp_path, pack, depth):
    path = tmp_path / "nested"
    data = file_of(NAME)
    for _ in range(depth):
        data = pack(data)
    path.write_bytes(data)
    if depth <= 3:
        assert "exact" in found(path)
    else:
        with pytest.raises(InputError, match="nested too deep"):
            found(path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (zlib.compress(file_of(NAME) * 900)[:-6], "EOFError"),
        (pdf(b"2 0 obj\n<< /Length 9 >>\nstream\nabc"), "EOFError"),
        (pdf(stream(2, b"abc")[:-30] + b"\nendstream"), "EOFError|error"),
        (pdf(stream(2, b"abc", b"/Filter /LZWDecode", packed=False)), "Unreadable"),
        (pdf(stream(2, b"abc", b"/DecodeParms << /Predictor 12 >>")), "Unreadable"),
        (pdf(stream(2, kerned(NAME)), b"5 0 obj\n<< /Encrypt 6 0 R >>\nendobj\n"), "Unreadable"),
        (
            pdf(stream(2, b"<0001> Tj"), b"9 0 obj\n<< /Encoding /Identity-H >>\nendobj\n"),
            "Unreadable",
        ),
        (pdf(stream(2, b"beginbfrange <0000> <FFFFFF> <0041> endbfrange")), "Unreadable"),
    ],
    ids=[
        "cut zlib",
        "endless stream",
        "cut stream",
        "LZW",
        "predictor",
        "encrypted",
        "numbers without a table",
        "long range",
    ],
)
def test_what_cannot_be_read_is_an_error(tmp_path, content, reason):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(InputError, match=reason):
        found(path)


HOSTILE = {
    "escapes": b"(" + b"\\(" * (1 << 20),
    "strings": b"(a" * (1 << 20),
    "digits": b"<0" * (1 << 20),
    "tables": b"beginbfchar beginbfrange " * (1 << 16),
    "ranges": b"beginbfrange " + b"<0> <0> [ " * (1 << 17),
    "blanks": b"beginbfrange " + b"<0>" + b" " * (1 << 20),
    "dictionaries": b"<<" * (1 << 20),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_pdf_takes_no_longer_than_its_length(tmp_path, name):
    path = tmp_path / "file.pdf"
    path.write_bytes(pdf(stream(2, HOSTILE[name])))
    begun = time.process_time()
    assert not found(path)
    assert time.process_time() - begun < 20  # seconds; the square of its length would take hours


def test_pixels_of_a_pdf_are_passed_over(tmp_path):
    path = tmp_path / "file.pdf"
    for head in (
        b"/Subtype /Image",
        b"/Filter /DCTDecode",
        b"/Type /XRef /DecodeParms << /Predictor 12 >>",
    ):
        path.write_bytes(pdf(stream(2, file_of(NAME), head, packed=b"Filter" not in head)))
        assert set(found(path)) <= {"exact"} if b"Filter" in head else not found(path)


@pytest.mark.parametrize(
    "text",
    [
        b"x^2 + y^2 = " + NAME.encode(),
        b"x\x01" + NAME.encode(),
        b"x\x9c" + NAME.encode() + b" etc.",
    ],
)
def test_what_only_begins_like_a_zlib_stream_is_text(tmp_path, text):
    path = tmp_path / "formula.txt"
    path.write_bytes(text)
    assert "exact" in found(path)


MEMORY = """
import sys
from confide.scan.search import Searcher
import confide.stages.scan
count = int(sys.argv[1])
secrets = {
    number: f"Customer {number:06d} {number * 7919 % 99991:05d} Ltd" for number in range(count)
}
searcher = Searcher(secrets)
blocks = (b'{"loss": 0.25, "text": "Customer service, please hold"}\\n' * 20_000 for _ in range(3))
assert not list(searcher.hits(blocks))
assert [hit.secret for hit in searcher.hits([secrets[count // 2].upper().encode()])] == [count // 2]
# getrusage counts the parent, too
(peak,) = [line for line in open("/proc/self/status") if line.startswith("VmHWM:")]
print(int(peak.split()[1]) // 1024)
"""


@pytest.mark.nightly
def test_a_hundred_thousand_secrets_fit_into_200_megabytes():
    small, large = (
        int(
            subprocess.run(
                [sys.executable, "-c", MEMORY, count], capture_output=True, text=True, check=True
            ).stdout
        )
        for count in ("1000", "100000")
    )
    assert small < 100 and large < 200
