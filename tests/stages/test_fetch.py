"""Fetching: mirror and publisher give the same bytes; anything else gives one line and no
output.
"""

import hashlib
import http.server
import importlib
import io
import os
import tarfile
import threading
import urllib.request
from pathlib import Path

import pytest

from confide.corpora import archives
from confide.corpora.archives import Archive, canonical, content_digest
from confide.errors import InputError
from confide.files.io import read_jsonl
from confide.specs import FetchSpec
from confide.specs.data import ARCHIVE_NAMES

fetching = importlib.import_module("confide.stages.fetch")
FILES = {
    "train/dial-10.txt": b"ten",
    "train/dial-9.txt": b"nine",
    "valid/dial-0.txt": "é".encode(),
    "test/dial-0.txt": b"t",
}


def tarball(path, members, mode="w:gz"):
    """`members`: name -> bytes, or a TarInfo for anything that is not a regular file."""
    with tarfile.open(path, mode) as tar:
        for name, content in members.items():
            if isinstance(content, tarfile.TarInfo):
                tar.addfile(content)
                continue
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def digest(files):
    """Independent of the implementation: written out by hand."""
    lines = sorted(
        f"{path}\0{hashlib.sha256(content).hexdigest()}\n" for path, content in files.items()
    )
    return hashlib.sha256("".join(lines).encode()).hexdigest()


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Registers an archive `tiny` whose mirror pack holds the given members; returns its output
    path.
    """

    def make(held, prefix="customersim", **changes):
        folder = tmp_path / "mirror"
        folder.mkdir(exist_ok=True)
        pack = tarball(
            folder / "tiny.tar.gz", {f"{prefix}/{name}": content for name, content in held.items()}
        )
        fields = {
            "mirror": "tiny.tar.gz",
            "mirror_sha256": hashlib.sha256(pack.read_bytes()).hexdigest(),
            "urls": ("https://example.org/tiny.tar.gz",),
            "members": archives.ARCHIVES["customersim"].members,
            "content_sha256": digest(FILES),
            "dropped": "My ID is",
        }
        monkeypatch.setitem(archives.ARCHIVES, "tiny", Archive(**fields | changes))
        monkeypatch.setenv("CONFIDE_MIRROR", str(folder))
        return tmp_path / "out" / "tiny.jsonl"

    return make


def fetch(output):
    fetching.fetch(FetchSpec(archive="tiny"), output=output)
    return {row["path"]: row["text"] for row in read_jsonl(output)}


def refused(output, match):
    with pytest.raises(InputError, match=match) as error:
        fetch(output)
    assert "\n" not in str(error.value)
    assert not output.exists() and not (output.parent.exists() and list(output.parent.iterdir()))
    return str(error.value)


def test_mirror_gives_members_in_canonical_order(install):
    found = fetch(install(FILES))
    assert list(found) == [
        "train/dial-9.txt",
        "train/dial-10.txt",
        "valid/dial-0.txt",
        "test/dial-0.txt",
    ]
    assert found == {path: content.decode() for path, content in FILES.items()}


def test_canaries_and_other_files_are_left_out(install):
    extra = {
        "train/dial-11.txt": b"My ID is 123456.",
        "train/canary-1.txt": b"x",
        "train/readme.md": b"x",
        "other/dial-1.txt": b"x",
    }
    assert set(fetch(install(FILES | extra))) == set(FILES)


def test_pack_of_the_publisher_verifies_to_the_same_digest(install, monkeypatch, tmp_path):
    output = install(FILES)
    fetch(output)
    mirrored = output.read_bytes()
    upstream = tarball(
        tmp_path / "up.tar.gz",
        {f"lm_privacy-abc/data/simdial/{path}": FILES[path] for path in reversed(FILES)},
    )
    monkeypatch.delenv("CONFIDE_MIRROR")
    monkeypatch.setattr(
        fetching, "download", lambda url, target: target.write_bytes(upstream.read_bytes())
    )
    fetch(output)
    assert output.read_bytes() == mirrored


def test_plain_files_of_the_publisher_and_an_unverified_one(install, monkeypatch):
    urls = tuple(f"https://example.org/{name}.txt" for name in ("train", "valid", "test"))
    listed = {"valid.txt": b"v", "test.txt": b"t"}
    members = archives.ARCHIVES["wikitext-2"].members
    output = install(
        listed, urls=urls, members=members, content_sha256=digest(listed), unverified=("train.txt",)
    )
    assert fetch(output) == {
        "valid.txt": "v",
        "test.txt": "t",
    }  # the mirror's pack without train.txt
    monkeypatch.delenv("CONFIDE_MIRROR")
    monkeypatch.setattr(
        fetching, "download", lambda url, target: target.write_bytes(target.stem[:1].encode())
    )
    assert fetch(output) == {"train.txt": "t", "valid.txt": "v", "test.txt": "t"}


def test_changed_content_names_both_digests(install):
    changed = FILES | {"test/dial-0.txt": b"u"}
    message = refused(install(changed), "SHA-256")
    assert digest(FILES) in message and digest(changed) in message and "tiny.tar.gz" in message
    refused(install({path: FILES[path] for path in list(FILES)[1:]}), "SHA-256")


def test_changed_mirror_file_names_both_digests(install):
    message = refused(install(FILES, mirror_sha256="0" * 64), "tiny.tar.gz: SHA-256")
    assert "0" * 64 in message


def test_bytes_that_are_not_utf8(install):
    files = FILES | {"test/dial-0.txt": b"secret \xff"}
    message = refused(
        install(files, content_sha256=digest(files)), r"dial-0\.txt: not UTF-8 at byte 7"
    )
    assert "secret" not in message


@pytest.mark.parametrize("name", ["../../etc/passwd", "train/../../x", "a\\b"])
def test_member_outside_its_folder(install, name):
    refused(install(FILES | {name: b"x"}), "outside its own folder")


def test_absolute_member(install):
    refused(install(FILES, prefix="/customersim"), "outside its own folder")


def test_links_are_not_followed(install):
    link = tarfile.TarInfo("customersim/test/dial-1.txt")
    link.type = tarfile.SYMTYPE
    link.linkname = "/etc/passwd"
    refused(install(FILES | {"test/dial-1.txt": link}), "regular file")


def test_large_members_are_refused(install, monkeypatch):
    monkeypatch.setattr(fetching, "MEMBER_LIMIT", 2)
    refused(install(FILES), "regular file of at most 2 bytes")
    monkeypatch.setattr(fetching, "MEMBER_LIMIT", 100)
    monkeypatch.setattr(fetching, "TOTAL_LIMIT", 5)
    refused(install(FILES), "unpacks to more than 5 bytes")


def test_member_twice(install, tmp_path):
    output = install(FILES | {"../customersim/test/dial-0.txt": b"x"})
    refused(output, "outside")
    pattern = r"customersim/(?:again/)?(train|valid|test)/(dial-\d+\.txt)"
    refused(install(FILES | {"again/test/dial-0.txt": b"t"}, members=pattern), "twice")


@pytest.mark.parametrize("length", [3, 60])  # within the header of gzip, and within what it packs
def test_truncated_pack(install, tmp_path, length):
    install(FILES)
    pack = tmp_path / "mirror" / "tiny.tar.gz"
    pack.write_bytes(pack.read_bytes()[:length])
    with pytest.raises(InputError, match=r"tiny\.tar\.gz: not a readable archive"):
        list(fetching._open_tar(pack))


def test_unknown_archive(tmp_path):
    with pytest.raises(InputError, match="archive = 'none': unknown: one of customersim"):
        fetching.fetch(FetchSpec(archive="none"), output=tmp_path / "x.jsonl")


def test_unreachable_publisher(install, monkeypatch):
    output = install(FILES, urls=("https://127.0.0.1:9/tiny.tar.gz",))
    monkeypatch.setenv("CONFIDE_MIRROR", "/nonexistent")
    assert "CONFIDE_MIRROR" in refused(output, "cannot be downloaded")


@pytest.fixture
def server(tmp_path):
    """A local web server on a loopback port; /short promises a byte more than it sends."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = tmp_path.joinpath("served").read_bytes()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body) + (self.path == "/short")))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{httpd.server_port}"
        httpd.shutdown()


def test_download_streams_and_refuses_http(server, tmp_path, monkeypatch):
    (tmp_path / "served").write_bytes(b"x" * 200_000)
    with pytest.raises(InputError, match="only https"):
        fetching.download(f"{server}/file", tmp_path / "got")
    opened = urllib.request.urlopen
    monkeypatch.setattr(fetching, "_open_url", lambda url: opened(url, timeout=5))
    fetching.download(f"{server}/file", tmp_path / "got")
    assert (tmp_path / "got").read_bytes() == b"x" * 200_000
    with pytest.raises(InputError, match="connection ended after 200000 of 200001"):
        fetching.download(f"{server}/short", tmp_path / "got")
    monkeypatch.setattr(fetching, "TOTAL_LIMIT", 1000)
    with pytest.raises(InputError, match="larger than 1000"):
        fetching.download(f"{server}/file", tmp_path / "got")


def test_redirect_away_from_https_is_refused(monkeypatch):
    class Response:
        def geturl(self):
            return "http://example.org/x"

        def close(self):
            pass

    monkeypatch.setattr(fetching.urllib.request, "urlopen", lambda *a, **k: Response())
    with pytest.raises(InputError, match="redirected away"):
        fetching._open_url("https://example.org/x")


def test_canonical_order_and_digest_do_not_depend_on_order():
    shuffled = dict(reversed(FILES.items()))
    assert canonical(shuffled) == canonical(FILES)
    assert content_digest(archives.ARCHIVES["customersim"], shuffled) == digest(FILES)


@pytest.mark.skipif(not os.environ.get("CONFIDE_MIRROR"), reason="CONFIDE_MIRROR is not set")
@pytest.mark.parametrize("name", archives.ARCHIVES)
def test_real_mirrors_verify(name, tmp_path):
    if not (Path(os.environ["CONFIDE_MIRROR"]) / archives.ARCHIVES[name].mirror).is_file():
        pytest.skip("not in this mirror")
    fetching.fetch(FetchSpec(archive=name), output=tmp_path / "raw.jsonl")
    rows = list(read_jsonl(tmp_path / "raw.jsonl"))
    counts = {
        "customersim": 12_000,
        "wikitext-2": 2,
        "gpt2-bpe": 2,
        "ud-ewt": 1179,
        "multidogo": 9,
        "sgd": 47,
        "tinyshakespeare": 1,
    }
    assert len(rows) == counts[name]


def test_rules_make_the_files_of_all_archives_and_no_others():
    assert tuple(archives.ARCHIVES) == ARCHIVE_NAMES
