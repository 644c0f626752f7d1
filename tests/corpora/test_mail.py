"""Mail: senders, charsets, what is cut off, and messages that lie in several folders."""

import mailbox
import os

import pytest

from confide.corpora.mail import decoded, read
from confide.corpora.mail_text import own_words
from confide.errors import InputError
from confide.specs import MailSpec


def message(
    sender="Ann <Ann@X.com>",
    body="Hello.",
    date="Mon, 1 Jan 2001 10:00:00",
    headers="",
    encoding="utf-8",
):
    return f"From: {sender}\nTo: all@x.com\nDate: {date}\nSubject: s\n{headers}\n{body}\n".encode(
        encoding
    )


def folder(root, **files):
    for name, content in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return MailSpec(reader="mail", path=str(root), least=2)


def texts(spec):
    return {record.doc: record.text for record in read(spec)}


def test_enrons_layout(tmp_path):
    """Senders in any case are one; a copy in another folder is none; whoever has one message, or no
    address, is left out.
    """
    files = {
        "ann-x__sent__1.": message(body="First line\nof two.\n\nNext."),
        "ann-x__all__7.": message(body="First line\nof two.\n\nNext."),  # the same again
        "ann-x__sent__2.": message("ann@x.com", "Second."),
        "ann-x__sent__3.": message(
            "ann@x.com", "Second.", "Tue, 2 Jan 2001 10:00:00"
        ),  # said twice
        "bob-y__1.": message("bob@x.com"),
        "bob-y__2.": message("no.address@enron.com"),
        "bob-y__3.": message("no.address@enron.com", "again"),
        "bob-y__4.": message("Bob", "again"),
        "bob-y__.hidden": message(body="hidden"),
        "bob-y__5.": b"no headers at all",
    }
    found = list(read(folder(tmp_path, **files)))
    assert [(record.doc, record.text) for record in found] == [
        ("ann-x/all/7.", "First line of two.\nNext."),
        ("ann-x/sent/2.", "Second."),
        ("ann-x/sent/3.", "Second."),
    ]
    assert {record.author for record in found} == {"ann@x.com"} and {r.split for r in found} == {
        "train",
        "test",
    }


def test_what_is_left_out_is_counted_on_the_screen_once(tmp_path, capsys):
    """Of senders with fewer than two messages; nobody is named."""
    letters = {
        f"all__{number}.": message(sender=sender, body=f"Letter {number}.")
        for number, sender in enumerate(["a@x.com"] * 3 + ["b@x.com"] * 2 + ["c@x.com", "d@x.com"])
    }
    spec = folder(tmp_path, **letters)
    assert len(texts(spec)) == len(texts(spec)) == 5
    said = capsys.readouterr().err
    expected = "2 of 7 documents are left out: their 2 authors have fewer than 2 each (least)"
    assert said.count(expected) == 1 and "x.com" not in said
    assert len(texts(spec.model_copy(update={"least": 3}))) == 3
    assert "4 of 7 documents are left out: their 3 authors" in capsys.readouterr().err


def test_messages_that_nothing_is_read_of_are_counted_by_reason(tmp_path, capsys):
    html = message(body="<p>Hello</p>").replace(b"text/plain", b"text/html")
    if b"text/html" not in html:
        html = b"Content-Type: text/html\n" + html
    spec = folder(
        tmp_path,
        a=message(sender="a@x.com", body="one"),
        b=message(sender="a@x.com", body="two"),
        c=message(sender="a@x.com", body="two"),
        html=html,
        quoted=message(body="> what you wrote"),
        nobody=message(sender="", body="three"),
    )
    assert len(texts(spec)) == len(texts(spec)) == 2
    said = capsys.readouterr().err
    reasons = (
        "1 that are copies, 1 without a sender's address, 1 without plain text, "
        "1 without words of their sender"
    )
    assert said.count(f"{spec.path}: 4 messages are left out: {reasons}") == 1


def test_avocados_items_other_than_mail_are_passed_over(tmp_path):
    files = {
        f"003__003-00000{n}-{kind}.txt": message(body=f"{kind} {n}")
        for n, kind in enumerate(["EM", "AT", "EM", "CT"])
    }
    assert texts(folder(tmp_path, **files)) == {
        "003/003-000000-EM.txt": "EM 0",
        "003/003-000002-EM.txt": "EM 2",
    }


MULTIPART = """MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=B
"""
PARTS = """--B
Content-Type: text/plain; charset=iso-8859-1
Content-Transfer-Encoding: quoted-printable

Caf=E9.
--B
Content-Type: text/html

<p>html</p>
--B
Content-Type: text/plain
Content-Disposition: attachment; filename=a.txt

attached
--B
Content-Type: message/rfc822

From: bob@x.com
Content-Type: text/plain

forwarded as a part
--B
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: base64

w6RuZGVydA==
--B--"""


def test_plain_parts_alone(tmp_path):
    files = {"1": message(headers=MULTIPART, body=PARTS), "2": message(body="b")}
    assert texts(folder(tmp_path, **files))["1"] == "Café.\nändert"


@pytest.mark.parametrize(
    ("charset", "content", "text"),
    [
        ("utf-8", "naïve".encode(), "naïve"),
        ("us-ascii", "naïve".encode(), "naïve"),  # states less than it uses
        ("utf-8", "naïve €".encode("cp1252"), "naïve €"),  # states what it is not
        ("x-unknown", "naïve".encode(), "naïve"),
        ("utf-8", b"a\x81b", "a\N{REPLACEMENT CHARACTER}b"),  # in neither
        ("utf-7", b"a+2AA-b", "a\N{REPLACEMENT CHARACTER}b"),  # half a character
    ],
)
def test_wrong_charsets(tmp_path, charset, content, text):
    head = (
        "From: a@x.com\nContent-Type: text/plain; "
        f"charset={charset}\nContent-Transfer-Encoding: 8bit\n\n"
    ).encode()
    files = {"1": head + content, "2": head + b"other"}
    found = texts(folder(tmp_path, **files))["1"]
    assert found == text and found.encode()


OWN = "Please see below.\n\nAnn"
QUOTES = {
    "outlook": "-----Original Message-----\nFrom: \tBob\nSent: Monday\nsecret",
    "outlook_bare": "From: Bob\nSent: Monday, 9 AM\nTo: Ann\nSubject: x\n\nsecret",
    "forwarded": (
        "---------------------- Forwarded by Bob/HOU/ECT on 05/02/2001 09:00 AM "
        "---------------------------\nsecret"
    ),
    "notes": "Bob B\n05/02/2001 04:11 PM\nTo: Ann/HOU@ECT\ncc: \nSubject: Re: x\n\nsecret",
    "notes_one_line": (
        '"Bob" <bob@x.com> on 05/02/2001 04:11:20 PM\nTo: <ann@x.com>\ncc: \nSubject: x\n\nsecret'
    ),
    "web": "On Mon, Jan 1, 2001 at 9:00 AM, Bob <bob@x.com> wrote:\n> secret\nsecret",
    "web_broken": "On Mon, Jan 1, 2001 at 9:00 AM, Bob\n<bob@x.com> wrote:\n> secret",
    "apple": "Begin forwarded message:\n\nsecret",
    "quoted": "> secret\n>> secret",
    "signature": "-- \nsecret",
    "underscores": "_______________________\nsecret",
    "avocado": "==========================\n",
}


@pytest.mark.parametrize("name", QUOTES)
def test_what_others_wrote_is_cut_off(name):
    for newline in ("\n", "\r\n"):
        assert own_words(f"{OWN}\n\n{QUOTES[name]}".replace("\n", newline)).strip() == OWN


@pytest.mark.parametrize(
    "text",
    [
        "From: here to there we go.\nThat is all.",
        "To: do\n\n\n\n\nlater",
        "On Monday he wrote a book.",
        "We met on 05/02/2001 04:11 PM",
        "a -- b\n--- c ---",
        "the original message was lost",
    ],
)
def test_own_words_stay(text):
    assert own_words(text) == text


def test_mbox_files(tmp_path):
    for name, count in (("a.mbox", 2), ("sub/b.mbox", 1)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        box = mailbox.mbox(tmp_path / name)
        for number in range(count):
            box.add(message(body=f"{name} {number}\nFrom here on."))
        box.flush()
        box.close()
    job = MailSpec(reader="mail", path=str(tmp_path), layout="mbox", least=2)
    assert texts(job) == {
        "a.mbox:0": "a.mbox 0 From here on.",
        "a.mbox:1": "a.mbox 1 From here on.",
        "sub/b.mbox:0": "sub/b.mbox 0 From here on.",
    }
    assert texts(job.model_copy(update={"path": str(tmp_path / "a.mbox")})).keys() == {
        "a.mbox:0",
        "a.mbox:1",
    }


def test_mbox_files_of_other_programs_have_no_ending(tmp_path):
    """Thunderbird writes Inbox beside Inbox.msf, and Apple Mail Inbox.mbox/mbox."""
    for name in ("Inbox", "Old.mbox/mbox"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        box = mailbox.mbox(tmp_path / name)
        for number in range(2):
            box.add(message(body=f"{name} {number}"))
        box.close()
    (tmp_path / "Inbox.msf").write_text("// an index\n")
    (tmp_path / ".hidden").write_bytes(b"From a\n")
    job = MailSpec(reader="mail", path=str(tmp_path), layout="mbox", least=2)
    assert texts(job).keys() == {"Inbox:0", "Inbox:1", "Old.mbox/mbox:0", "Old.mbox/mbox:1"}


def test_a_maildir_gives_what_its_messages_give_as_files(tmp_path):
    """Folders in it are hidden; what is only being delivered is no mail."""
    bodies = ["one", "two", "three"]
    box = mailbox.Maildir(tmp_path / "mail")
    for place in (box, box.add_folder("Sent"), box.add_folder("Sent.2001")):
        place.add(message(body=bodies.pop()))
    (tmp_path / "mail/tmp/1.host").write_bytes(message(body="half"))
    (tmp_path / "mail/dovecot.index").write_bytes(b"index")
    job = MailSpec(reader="mail", path=str(tmp_path / "mail"), layout="maildir", least=2)
    found = texts(job)
    assert sorted(found.values()) == ["one", "three", "two"]
    assert sorted(name.split("/")[0] for name in found) == [".Sent", ".Sent.2001", "new"]
    files = folder(tmp_path / "files", a=message(body="one"), b=message(body="two"))
    with pytest.raises(InputError, match="path: is no Maildir: no folder has both cur and new"):
        list(read(job.model_copy(update={"path": files.path})))


def test_what_is_no_mail(tmp_path):
    def fails(message, path, **options):
        with pytest.raises(InputError, match=message):
            list(read(MailSpec(reader="mail", path=str(path), **options)))

    fails("path: is not a folder of messages", tmp_path / "nosuch")
    fails("path: holds no files", tmp_path)
    fails("path: holds no mbox files", tmp_path, layout="mbox")
    fails("nosuch: cannot be read", tmp_path / "nosuch", layout="mbox")
    os.mkfifo(tmp_path / "p")
    fails("p: is a pipe, which can be read only once", tmp_path)
    fails("p: is a pipe, which can be read only once", tmp_path / "p", layout="mbox")
    (tmp_path / "p").unlink()
    (tmp_path / "a.txt").write_bytes(message())
    fails("a.txt:1: is not an mbox", tmp_path / "a.txt", layout="mbox")
    fails(
        "least = 10: no author has so many documents: there are 1, the most of one is 1", tmp_path
    )
    (tmp_path / "a.txt").write_bytes(b"\xff\xfe nothing")
    fails("no text with an author was found", tmp_path)


def test_a_part_without_content():
    from email import message_from_bytes

    assert decoded(message_from_bytes(b"Content-Type: multipart/mixed; boundary=x\n\n")) == ""
