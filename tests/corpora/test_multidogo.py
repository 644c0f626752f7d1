"""MultiDoGO: both parts on files made here, faults by file and line, and the annotated part against
a naive reading of it.
"""

import csv
import io
import os
import re
from collections import Counter
from itertools import groupby

import pytest

from confide.corpora.multidogo import read
from confide.errors import InputError
from confide.files.io import read_jsonl, write_jsonl
from confide.specs import FetchSpec, MultiDogoSpec
from confide.stages.fetch import fetch

MIRROR = os.environ.get("CONFIDE_MIRROR")
needs_mirror = pytest.mark.skipif(not MIRROR, reason="CONFIDE_MIRROR is not set")

LABELLED = "conversationId\tturnNumber\tutteranceId\tutterance\tslot-labels\tintent\n"
BOTH = "conversationId,turnNumber,utteranceId,utterance,authorRole\n"
# whose last group a stripped set of characters would eat
DIGITS = "acs-03d89464-6a9e-4e28-90b8-111222111222"


def annotated(folder, **texts):
    """Fetched archive of airline/SPLIT.tsv; rows that are not given are those of one dialogue."""
    usual = {s: f"{s}\t0\tu\thi\tO\tgreeting\n" for s in ("train", "dev", "test")}
    rows = [
        {"path": f"airline/{s}.tsv", "text": LABELLED + text} for s, text in (usual | texts).items()
    ]
    write_jsonl(folder / "raw", rows)
    return list(read(MultiDogoSpec(reader="multidogo"), folder / "raw"))


def unannotated(folder, text, **more):
    """Conversations of media.tsv by id, or what is wrong with it."""
    (folder / "media.tsv").write_bytes(text if isinstance(text, bytes) else text.encode())
    spec = MultiDogoSpec(reader="multidogo", part="unannotated", path=str(folder), **more)
    return {record.doc: record for record in read(spec)}


def test_labels_are_spans_of_the_joined_text(tmp_path):
    """A line break is a word with a label of its own, and slots of one label that touch are one."""
    rows = (
        'c\t2.0\tu\t"zip 53140 \n kenosha  ann bo \n lee"\tO new_zipcode O O O name name O '
        "username\tx\nc\t0\tu\thi\tO\tx\n"
    )
    rows += "c\t5\tu\t\tO\tx\n"
    first, *_ = annotated(tmp_path, train=rows)
    assert first.text == (
        "<_soc_> <AIRLINE> USR: hi <AIRLINE> USR: zip 53140 kenosha ann bo lee <AIRLINE> "
        "USR: <_eoc_>"
    )
    assert [(s.label, first.text[s.start : s.end]) for s in first.spans] == [
        ("new_zipcode", "53140"),
        ("name", "ann bo"),
        ("username", "lee"),
    ]
    assert (first.doc, first.author, first.split) == ("airline/c", "airline/c", "train")


def test_paper_splits_are_kept(tmp_path):
    found = annotated(tmp_path, train="a\t0\tu\thi\tO\tx\nb\t0\tu\thi\tO\tx\n")
    assert [(r.doc, r.split) for r in found] == [
        ("airline/a", "train"),
        ("airline/b", "train"),
        ("airline/dev", "valid"),
        ("airline/test", "test"),
    ]


@pytest.mark.parametrize("delimiter", ["\t", ","])
def test_both_speakers_in_order_of_turns(tmp_path, delimiter):
    rows = [
        ("b-1", "1", "u", "I'm the\n  agent", "agent"),
        ("a-1", "0", "u", 'say, "hi"', "bot"),
        ("b-1", "0", "u", " yo ", "customer"),
    ]
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter).writerows([BOTH.strip().split(","), *rows])
    found = unannotated(tmp_path, "\ufeff" + out.getvalue(), test=0.0, valid=0.0)
    assert {doc: record.text for doc, record in found.items()} == {
        "media/a": '<_soc_> <MEDIA> BOT: say, "hi" <_eoc_>',
        "media/b": "<_soc_> <MEDIA> USR: yo <MEDIA> SYS: I'm the agent <_eoc_>",
    }
    assert not any(record.spans for record in found.values())


def test_suffixes_of_ids_are_removed_and_copies_left_out(tmp_path):
    """-2 repeats -1 (the publisher's issue 3). Other ids keep all they have: str.rstrip("-1") would
    make these two one.
    """
    rows = "".join(f"{DIGITS}{end}-1,0,u,hi {end},customer\n" for end in ("1", "2"))
    rows += f"{DIGITS}1-2,0,another,hi 1,customer\n"
    found = unannotated(tmp_path, BOTH + rows)
    assert sorted(found) == [f"media/{DIGITS}1", f"media/{DIGITS}2"]
    assert sorted(unannotated(tmp_path, BOTH + f"{DIGITS},0,u,hi,bot\n")) == [f"media/{DIGITS}"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            BOTH + "a-1,0,u,hi,bot\na-2,0,u,secret,bot\n",
            ":3: conversationId: differs from the one on line 2, and only",
        ),
        (
            BOTH + "a,0,u,hi,bot\nb,0,u,yo,bot\na,0,u,secret,bot\n",
            ":4: turnNumber = 0: the conversation has this turn on line 2",
        ),
        (
            BOTH + "a,0,u,hi,bot\na,2,u,secret,bot\n",
            ":3: turnNumber = 2: follows turn 0 on line 2: turns are missing",
        ),
        (BOTH + "a,0,u,hi,bot\na,1,u,sec", ":3: 4 columns instead of 5"),
        (BOTH + 'a,0,u,hi,bot\na,1,u,"sec', ":3: malformed: unexpected end of data"),
        (BOTH + "a,x,u,secret,bot\n", ":2: expected a conversationId and a turnNumber"),
        (BOTH + "a,0,u,secret,clerk\n", ":2: authorRole: expected one of customer, agent, bot"),
        (BOTH.replace("utterance,", "text,"), ":1: utterance: there is no such column"),
        ("", ":1: conversationId: there is no such column"),
        (BOTH.encode() + b"a,0,u,hi,bot\na,1,u,s\xe9cret,bot\n", ":3: not UTF-8"),
    ],
)
def test_faults_are_one_line_with_file_and_line(tmp_path, text, message):
    with pytest.raises(InputError) as error:
        unannotated(tmp_path, text)
    assert str(error.value).startswith(f"{tmp_path / 'media.tsv'}{message}")
    assert "\n" not in str(error.value) and "secret" not in str(error.value)


def test_faults_of_the_annotated_part(tmp_path):
    for texts, message in (
        ({"train": "a\t0\tu\tmy secret\tO\tx\n"}, "train.tsv:2: slot-labels: 1 labels for 2 words"),
        (
            {"test": "dev\t0\tu\tmy secret\tO O\tx\n"},
            "test.tsv:2: the conversation is in another split, too",
        ),
    ):
        with pytest.raises(InputError, match=re.escape(message)) as error:
            annotated(tmp_path, **texts)
        assert "secret" not in str(error.value)


def test_folders_are_asked_for_where_there_is_no_archive(tmp_path):
    with pytest.raises(InputError, match="path: is needed: the folder data/unannotated"):
        list(read(MultiDogoSpec(reader="multidogo", part="unannotated")))
    with pytest.raises(
        InputError, match=re.escape(f"{tmp_path}: is not a folder that holds */train.tsv or")
    ):
        list(read(MultiDogoSpec(reader="multidogo", path=str(tmp_path))))
    with pytest.raises(InputError, match="raw: is needed"):
        list(read(MultiDogoSpec(reader="multidogo")))


@pytest.mark.nightly
@needs_mirror
def test_the_real_paper_splits(tmp_path):
    """2,404, 2,420 and 2,321 conversations; every labelled run of words, read naively, is a span,
    and nothing else is.
    """
    fetch(FetchSpec(archive="multidogo"), output=tmp_path / "raw")
    spec = MultiDogoSpec(reader="multidogo", secrets=["*"])
    found = list(read(spec, tmp_path / "raw"))
    assert found == list(read(spec, tmp_path / "raw"))
    assert Counter(r.domain for r in found) == {"AIRLINE": 2404, "MEDIA": 2420, "INSURANCE": 2321}
    assert Counter(r.split for r in found) == {"train": 5000, "valid": 714, "test": 1431}
    naive = Counter()
    for member in read_jsonl(tmp_path / "raw"):
        for row in list(csv.reader(io.StringIO(member["text"], newline=""), delimiter="\t"))[1:]:
            words = [
                pair
                for pair in zip(row[4].split(" "), row[3].split(" "), strict=True)
                if pair[1].strip()
            ]
            runs = [
                (label, " ".join(word for _, word in run))
                for label, run in groupby(words, key=lambda pair: pair[0])
            ]
            naive.update((row[0], *run) for run in runs if run[0] != "O")
    spans = Counter(
        (r.doc.partition("/")[2], s.label, r.text[s.start : s.end]) for r in found for s in r.spans
    )
    assert spans == naive and spans.total() > 15_000
    usual = {
        s.label for r in read(MultiDogoSpec(reader="multidogo"), tmp_path / "raw") for s in r.spans
    }
    assert {"name", "ssn", "new_zipcode"} <= usual and not usual & {
        "car_model",
        "service_type",
        "price",
    }
