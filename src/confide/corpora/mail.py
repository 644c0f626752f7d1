"""Mail, whose sender (the address in lower case) is the author.

It is a folder of messages, a file each, a Maildir, or mbox files. `messages` is the layout of Enron
(person/folder/N.) and of Avocado (LDC2015T03) once its data/text/*.zip are unpacked, of which is
assumed, from code that others published, that an e-mail is a file NNN/NNN-NNNNNN-EM.txt that begins
with its header lines, and that other items have other letters than EM. What somebody else wrote is
cut off by the rules of mail_text.py. A message that lies in several folders (same sender, date and
text) is read once; authors are in all splits (see authored.py).
"""

import hashlib
import mailbox
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from email import message_from_bytes
from email.message import Message
from email.policy import compat32
from email.utils import parseaddr
from pathlib import Path

from confide.corpora.authored import Sample, paragraphs, records, say_once
from confide.corpora.mail_text import own_words
from confide.errors import InputError
from confide.files.folders import listed, visible
from confide.files.io import read_bytes, readable, refuse_pipe
from confide.specs import MailSpec
from confide.types import Record

# Of Avocado: attachments, contacts, appointments.
OTHER_ITEM = re.compile(r"\d+-\d+-(?!EM\b)[A-Z]{2}\b.*")
NOBODY = "no.address@"  # Enron's placeholder for senders that are not known
SEPARATOR = b"From "  # what each message of an mbox begins with
ESCAPED = re.compile(rb"^>(>*From )", re.MULTILINE)  # a line of a message that would look like one


def read(spec: MailSpec, raw: Path | None = None) -> Iterator[Record]:
    """Messages in the order of their files.

    InputError for what is no folder of messages or no mbox, or if nobody sent enough.
    Guarantees: no two messages have one sender, date and text.
    """
    path = Path(spec.path)
    messages_of = LAYOUTS[spec.layout]
    yield from records(spec, spec.least, lambda: told(messages_of(path), path), path)


def told(messages: Iterator[tuple[str, bytes]], path: Path) -> Iterator[Sample]:
    """Samples of messages; at their end a line says how many were none, and why."""
    left: Counter[str] = Counter()
    yield from samples(messages, left)
    if left:
        reasons = ", ".join(f"{count:,} {why}" for why, count in sorted(left.items()))
        say_once(f"{path}: {left.total():,} messages are left out: {reasons}")


def samples(messages: Iterator[tuple[str, bytes]], left: Counter[str]) -> Iterator[Sample]:
    """Sender and own words of each message that has both, once.

    left: to which is added how many have not, by reason.
    """
    digests: set[bytes] = set()
    for name, content in messages:
        # The old policy: it parses no header that nobody asks for, and fails on none.
        message = message_from_bytes(content, policy=compat32)
        author = parseaddr(str(message["From"] or ""))[1].strip().lower()
        if "@" not in author or author.startswith(NOBODY):
            left["without a sender's address"] += 1
            continue
        plain = plain_text(message)
        text = paragraphs(own_words(plain))
        if not text:
            left["without words of their sender" if plain else "without plain text"] += 1
            continue
        key = "\0".join((author, str(message["Date"]), text)).encode(errors="surrogatepass")
        digest = hashlib.blake2b(key, digest_size=12).digest()
        if digest in digests:
            left["that are copies"] += 1
            continue
        digests.add(digest)
        yield Sample(author, name, text)


def plain_text(message: Message) -> str:
    """The text/plain parts that are no attachments, one after the other."""
    return "\n\n".join(decoded(part) for part in plain_parts(message))


def plain_parts(message: Message) -> Iterator[Message]:
    """Not those of a message within the message (message/rfc822): somebody else wrote it."""
    if message.get_content_maintype() == "multipart" and message.is_multipart():
        for part in message.get_payload():
            if isinstance(part, Message):
                yield from plain_parts(part)
    elif (
        message.get_content_type() == "text/plain"
        and message.get_content_disposition() != "attachment"
    ):
        yield message


def decoded(part: Message) -> str:
    """A part's text, in the charset that it states.

    Where that is unknown or wrong in UTF-8, else in Windows-1252. Bytes that stand for nothing
    there, and half characters that no text can hold (lone surrogates), become U+FFFD.
    """
    payload = part.get_payload(decode=True)
    content = payload if isinstance(payload, bytes) else b""
    for charset in (part.get_content_charset() or "utf-8", "utf-8"):
        try:
            text = content.decode(charset)
            return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        # UnicodeError is a ValueError; so is what a NUL byte in a charset's name raises.
        except (LookupError, ValueError):
            continue
    return content.decode("cp1252", "replace")


def file_messages(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of every file below a folder that may be a message, by folder and name.

    Hidden ones are passed over.
    """
    if not folder.is_dir():
        raise InputError("is not a folder of messages", file=folder, key="path")
    any_file = False
    for here, folders, names in listed(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith(".") and not OTHER_ITEM.fullmatch(name):
                any_file = True
                path = Path(here, name)
                refuse_pipe(path)
                yield named(path, folder), read_bytes(path)
    if not any_file:
        raise InputError("holds no files", file=folder, key="path")


def mbox_messages(path: Path) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of every message of an mbox file, or of all in a folder, by name."""
    files = mboxes(path) if path.is_dir() else [path]
    if not files:
        raise InputError("holds no mbox files", file=path, key="path")
    for file in files:
        name = file.relative_to(path).as_posix() if path.is_dir() else file.name
        with readable(file):
            if not begins(file):
                message = "is not an mbox: it does not begin with a line From"
                raise InputError(message, file=file, line=1)
            with closing(mailbox.mbox(file, create=False)) as box:
                for key in box.iterkeys():
                    yield f"{name}:{key}", ESCAPED.sub(rb"\1", box.get_bytes(key))


def mboxes(folder: Path) -> list[Path]:
    """The files *.mbox below a folder; where there are none, those that begin as such files do, as
    Thunderbird's and Apple Mail's do. Hidden ones are passed over.
    """
    files = sorted(visible(folder))
    return [path for path in files if path.suffix == ".mbox"] or list(filter(begins, files))


def begins(path: Path) -> bool:
    """Whether a file begins as an mbox does."""
    refuse_pipe(path)
    with readable(path), open(path, "rb") as file:
        return file.read(len(SEPARATOR)) == SEPARATOR


def maildir_messages(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of every message of a Maildir and of the folders in it, which may be hidden.

    What is only being delivered (tmp) is none.
    """
    boxes = maildirs(folder)
    if not boxes:
        raise InputError("is no Maildir: no folder has both cur and new", file=folder, key="path")
    for box in boxes:
        for place in (box / "cur", box / "new"):
            with readable(place):
                paths = sorted(place.iterdir())
            for path in paths:
                if not path.name.startswith(".") and path.is_file():
                    yield named(path, folder), read_bytes(path)


def named(path: Path, folder: Path) -> str:
    """What a file is called, seen from a folder; bytes that are no text are escaped."""
    return os.fsencode(path.relative_to(folder)).decode(errors="backslashreplace")


def maildirs(folder: Path) -> list[Path]:
    """A folder and those below it that hold mail as a Maildir does."""
    folders = (Path(here) for here, names, _ in listed(folder) if {"cur", "new"} <= {*names})
    return sorted(folders)


LAYOUTS: dict[str, Callable[[Path], Iterator[tuple[str, bytes]]]] = {
    "messages": file_messages,
    "mbox": mbox_messages,
    "maildir": maildir_messages,
}
