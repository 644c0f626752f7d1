"""Fetch a published corpus: from the folder CONFIDE_MIRROR, or over HTTPS from its publisher.

Nothing is unpacked to disk: members are read in memory, matched by name, size and type, verified
against the recorded digest, and written as canonical JSON lines {"path", "text"}, the same bytes
wherever they came from.
"""

import http.client
import lzma
import os
import tarfile
import tempfile
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from tqdm import tqdm

from confide.corpora.archives import Archive, archive, canonical, content_digest, normal_path
from confide.errors import InputError
from confide.files.io import sha256, write_jsonl
from confide.output.escaping import terminal
from confide.specs import FetchSpec

TIMEOUT = 60  # seconds without a byte
MEMBER_LIMIT = 1 << 27  # bytes of one member
TOTAL_LIMIT = 1 << 32  # bytes of all members together, and of a download
# What tarfile raises of a damaged archive; TypeError of a cut header.
UNREADABLE = (tarfile.TarError, EOFError, OSError, lzma.LZMAError, zlib.error, TypeError)
TARS = (".tar", ".tar.gz", ".tgz", ".tar.xz")


def fetch(spec: FetchSpec, *, output: Path) -> None:
    """Write the archive's members as JSON lines.

    InputError where it cannot be had or a digest differs.

    Guarantees: `output` holds exactly the content whose SHA-256 is recorded, or is not written.
    """
    source = archive(spec.archive)
    folder = os.environ.get("CONFIDE_MIRROR")
    mirrored = Path(folder) / source.mirror if folder else None
    if mirrored is not None and mirrored.is_file():
        _expect(sha256(mirrored), source.mirror_sha256, mirrored)
        members = _collect(source, _open_tar(mirrored))
        place = str(mirrored)
    else:
        members = _download_all(source)
        place = source.urls[0]
    _expect(content_digest(source, members), source.content_sha256, place)
    rows = (
        {"path": path, "text": _decode(members[path], place, path)} for path in canonical(members)
    )
    write_jsonl(output, rows)


def _expect(digest: str, expected: str, file: str | Path) -> None:
    if digest != expected:
        raise InputError(f"SHA-256 is {digest}, expected {expected}", file=file)


def _decode(content: bytes, place: str, path: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 at byte {error.start}", file=place, key=path) from None


def _download_all(source: Archive) -> dict[str, bytes]:
    """Members of every URL of the archive."""
    members: dict[str, bytes] = {}
    for url in source.urls:
        with tempfile.TemporaryDirectory(prefix="confide-") as folder:
            name = url.rsplit("/", 1)[1]
            target = Path(folder) / name
            download(url, target)
            is_tar = name.endswith(TARS)
            files = _open_tar(target, url) if is_tar else iter([(name, target.read_bytes())])
            members.update(_collect(source, files))
    return members


def download(url: str, target: Path) -> None:
    """Stream an https URL to a file with a progress bar on stderr; InputError names the URL."""
    try:
        with _open_url(url) as response, open(target, "wb") as out:
            size = int(response.headers.get("Content-Length") or 0)
            name = terminal(target.name)
            with tqdm(total=size or None, unit="B", unit_scale=True, desc=name) as bar:
                while block := response.read(1 << 16):
                    out.write(block)
                    bar.update(len(block))
                    if bar.n > TOTAL_LIMIT:
                        raise InputError(f"larger than {TOTAL_LIMIT} bytes", file=url)
            if size and bar.n != size:
                raise InputError(f"connection ended after {bar.n} of {size} bytes", file=url)
    except (OSError, urllib.error.URLError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        message = f"cannot be downloaded ({reason}); or set CONFIDE_MIRROR to a folder that has it"
        raise InputError(message, file=url) from error


def _open_url(url: str) -> http.client.HTTPResponse:
    """An open https response; redirects may not leave https."""
    if not url.startswith("https://"):
        raise InputError("only https is allowed", file=url)
    request = urllib.request.Request(url, headers={"User-Agent": "confide"})
    response = urllib.request.urlopen(request, timeout=TIMEOUT)
    if not response.geturl().startswith("https://"):
        response.close()
        raise InputError("was redirected away from https", file=url)
    return response


def _open_tar(path: Path, url: str | None = None) -> Iterator[tuple[str, bytes | None]]:
    """Names of all members in turn, with the bytes of regular files within the limits.

    Anything else has None.
    """
    place = url or path
    total = 0
    try:
        with tarfile.open(path, "r|*") as tar:
            for member in tar:
                total += member.size
                if total > TOTAL_LIMIT:
                    raise InputError(f"unpacks to more than {TOTAL_LIMIT} bytes", file=place)
                _confine(member.name, place)
                is_small = member.size <= MEMBER_LIMIT
                file = tar.extractfile(member) if member.isfile() and is_small else None
                yield member.name, None if file is None else file.read()
    except UNREADABLE as error:
        raise InputError(f"not a readable archive: {error}", file=place) from error


def _confine(name: str, place: str | Path) -> None:
    parts = PurePosixPath(name)
    if parts.is_absolute() or ".." in parts.parts or "\\" in name or "\0" in name:
        raise InputError("has a member outside its own folder", file=place)


def _collect(source: Archive, entries: Iterator[tuple[str, bytes | None]]) -> dict[str, bytes]:
    """Members that the archive's pattern names, by normal path."""
    members: dict[str, bytes] = {}
    for name, content in entries:
        path = normal_path(source, name)
        if path is None:
            continue
        if content is None:
            message = f"not a regular file of at most {MEMBER_LIMIT} bytes"
            raise InputError(message, file=source.mirror, key=path)
        if source.dropped and content.startswith(source.dropped.encode()):
            continue
        if path in members:
            raise InputError("occurs twice", file=source.mirror, key=path)
        members[path] = content
    return members
