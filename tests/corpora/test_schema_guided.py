"""Schema-Guided Dialogues and MultiWOZ 2.2 on files made here, faults by file and line, and the
real archive read naively.
"""

import copy
import json
import os
import re
from collections import Counter

import orjson
import pytest

from confide.corpora.schema_guided import read
from confide.errors import InputError
from confide.files.io import read_jsonl, write_jsonl
from confide.specs import FetchSpec, MultiWozSpec, SchemaGuidedSpec
from confide.stages.fetch import fetch

MIRROR = os.environ.get("CONFIDE_MIRROR")
needs_mirror = pytest.mark.skipif(not MIRROR, reason="CONFIDE_MIRROR is not set")


def slot(name, utterance, words, **more):
    start = utterance.index(words)
    return {"slot": name, "start": start, "exclusive_end": start + len(words), **more}


def turn(speaker, utterance, *slots, service="Banks_1", **more):
    return {
        "speaker": speaker,
        "utterance": utterance,
        "frames": [{"service": service, "slots": list(slots)}],
        **more,
    }


ASK = " Send $5 to\nAmir. "
SAY = "Call 01223 812660 about $5."
SGD = {
    "dialogue_id": "1_00000",
    "services": ["Banks_1"],
    "turns": [
        turn("USER", ASK, slot("amount", ASK, "$5"), slot("recipient_name", ASK, "Amir")),
        turn("SYSTEM", SAY, slot("phone_number", SAY, "01223 812660")),
    ],
}
TAXI = "A taxi from there to the station."
HOTEL = "Ref X1Y2Z3, Acorn House, CB4 1DA."
WOZ = {
    "dialogue_id": "PMUL0001.json",
    "services": ["taxi", "hotel"],
    "turns": [
        {
            "turn_id": "0",
            "speaker": "USER",
            "utterance": TAXI,
            "frames": [
                {
                    "service": "taxi",
                    "slots": [
                        {
                            "slot": "taxi-departure",
                            "copy_from": "hotel-name",
                            "value": ["acorn house"],
                        }
                    ],
                },
                {"service": "hotel", "slots": []},
            ],
        },
        turn(
            "SYSTEM",
            HOTEL,
            slot("hotel-ref", HOTEL, "X1Y2Z3", value="X1Y2Z3"),
            slot("hotel-name", HOTEL, "Acorn House", value="Acorn House"),
            slot("hotel-postcode", HOTEL, "CB4 1DA", value="CB4 1DA"),
            service="hotel",
            turn_id="1",
        ),
    ],
}


def dialogue(base, **more):
    return copy.deepcopy(base) | more


def archive(folder, **parts):
    rows = [
        {"path": f"{name}/dialogues_001.json", "text": json.dumps(part, indent=1)}
        for name, part in parts.items()
    ]
    write_jsonl(folder / "raw", rows)
    return folder / "raw"


def woz(folder, text=None, split="train", **parts):
    """Folder of the publisher's layout; `text` is that of one file."""
    for name, part in parts.items():
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "dialogues_001.json").write_text(json.dumps(part, indent=2))
    if text is not None:
        (folder / split).mkdir(exist_ok=True)
        (folder / split / "dialogues_002.json").write_bytes(
            text if isinstance(text, bytes) else text.encode()
        )
    (folder / "dialog_acts.json").write_text("{}")
    return MultiWozSpec(reader="multiwoz22", path=str(folder))


def values(record):
    return [(span.label, record.text[span.start : span.end]) for span in record.spans]


def test_identifying_slots_are_gold_where_they_stand(tmp_path):
    raw = archive(tmp_path, train=[SGD], dev=[dialogue(SGD, services=["Hotels_2"])])
    spec = SchemaGuidedSpec(reader="sgd", splits="published")
    with pytest.raises(InputError, match=r"splits = 'published': holds no dialogues in test"):
        list(read(spec, raw))
    raw = archive(tmp_path, train=[SGD], dev=[dialogue(SGD, services=["Hotels_2"])], test=[SGD])
    train, valid, test = read(SchemaGuidedSpec(reader="sgd"), raw)
    assert train.text == (
        "<_soc_> <BANKS> USR: Send $5 to Amir. <BANKS> SYS: Call 01223 812660 about $5. <_eoc_>"
    )
    assert values(train) == [("recipient_name", "Amir"), ("phone_number", "01223 812660")]
    assert (train.doc, train.author, train.domain, train.split) == (
        "train/1_00000",
        "train/1_00000",
        "BANKS",
        "train",
    )
    assert (valid.doc, valid.domain, valid.split) == (
        "dev/1_00000",
        "HOTELS",
        "valid",
    ) and test.split == "test"
    (money, *_) = read(SchemaGuidedSpec(reader="sgd", secrets=["amount"]), raw)
    assert values(money) == [("amount", "$5")]


def test_splits_are_drawn_where_one_is_not_there(tmp_path):
    parts = {
        "train": [dialogue(SGD, dialogue_id=f"1_{n}") for n in range(7)],
        "dev": [SGD, dialogue(SGD, dialogue_id="9")],
    }
    raw = archive(tmp_path, **parts, test=[SGD])
    published = Counter(record.split for record in read(SchemaGuidedSpec(reader="sgd"), raw))
    assert published == {"train": 7, "valid": 2, "test": 1}
    drawn = list(read(SchemaGuidedSpec(reader="sgd", splits="drawn"), raw))
    assert Counter(record.split for record in drawn) == {"train": 6, "valid": 2, "test": 2}
    assert len({record.doc for record in drawn}) == 10
    without = list(read(SchemaGuidedSpec(reader="sgd"), archive(tmp_path, **parts)))
    assert Counter(record.split for record in without) == {"train": 7, "valid": 1, "test": 1}


@pytest.mark.parametrize(
    ("services", "first", "multi"),
    [
        (["Banks_1"], "BANKS", "BANKS"),
        (["Hotels_2", "Hotels_1"], "HOTELS", "HOTELS"),
        ([], "GENERAL", "GENERAL"),
        (["a", "b_2"], "A", "MULTI"),
    ],
)
def test_domain_of_a_dialogue(tmp_path, services, first, multi):
    raw = archive(tmp_path, train=[dialogue(SGD, services=services)])
    for several, domain in (("first", first), ("multi", multi)):
        assert [
            record.domain for record in read(SchemaGuidedSpec(reader="sgd", several=several), raw)
        ] == [domain]


def test_multiwoz_with_its_differences(tmp_path):
    """Frames without slots, values beside ranges, and copied slots, which stand nowhere."""
    spec = woz(tmp_path, train=[WOZ], dev=[WOZ], test=[WOZ])
    train, valid, test = read(spec)
    assert train.text == f"<_soc_> <TAXI> USR: {TAXI} <TAXI> SYS: {HOTEL} <_eoc_>"
    assert values(train) == [
        ("hotel-ref", "X1Y2Z3"),
        ("hotel-name", "Acorn House"),
        ("hotel-postcode", "CB4 1DA"),
    ]
    assert (train.doc, train.domain) == ("train/PMUL0001.json", "TAXI")
    assert (valid.split, test.split) == ("valid", "test")


def woz_slot(**more):
    return json.dumps(
        [dialogue(WOZ, turns=[WOZ["turns"][0], copy.deepcopy(WOZ["turns"][1]) | more])], indent=2
    )


FRAME = {"service": "hotel", "slots": [slot("hotel-ref", HOTEL, "X1Y2Z3", value="X1Y2Z4")]}
OUTSIDE = {"service": "hotel", "slots": [{"slot": "hotel-ref", "start": 30, "exclusive_end": 40}]}
BARE = {"service": "hotel", "slots": [{"slot": "hotel-ref", "value": "X1Y2Z3"}]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[\n {"dialogue_id": "1"', ":2: malformed JSON: "),
        ('{"dialogue_id": "1"}', ":1: expected a list of dialogues"),
        ('[{"dialogue_id": 1}]', ":1: [0].dialogue_id: expected a string"),
        ("[3]", ":1: [0].dialogue_id: expected a string"),
        (b'[\n\n"\xe9"]', ":3: not UTF-8"),
        (json.dumps([WOZ, WOZ], indent=2), ":3: its dialogue_id is there twice"),
        (
            json.dumps([{"dialogue_id": "x", "services": []}], indent=2),
            ":3: [0].turns: is missing, or no list",
        ),
        (json.dumps([dialogue(WOZ, services=[1])], indent=2), ":3: [0].services: expected strings"),
        (
            woz_slot(turn_id="0"),
            ":3: [0].turns[1].turn_id: expected 1: a turn is missing, or there twice",
        ),
        (woz_slot(speaker="X"), ":3: [0].turns[1].speaker: expected one of USER, SYSTEM"),
        (woz_slot(utterance=None), ":3: [0].turns[1].utterance: is missing, or no str"),
        (
            woz_slot(frames=[FRAME]),
            ":3: [0].turns[1].frames[0].slots[0]: its value is not what stands at its range",
        ),
        (
            woz_slot(frames=[OUTSIDE]),
            ":3: [0].turns[1].frames[0].slots[0]: [30, 40) is not a range within the 33 characters",
        ),
        (
            woz_slot(frames=[BARE]),
            ":3: [0].turns[1].frames[0].slots[0].start: is missing, or no int",
        ),
    ],
)
def test_faults_are_one_line_with_file_and_line(tmp_path, text, message):
    with pytest.raises(InputError) as error:
        list(read(woz(tmp_path, text)))
    assert str(error.value).startswith(f"{tmp_path / 'train/dialogues_002.json'}{message}")
    assert "\n" not in str(error.value) and "X1Y2" not in str(error.value)


def test_a_folder_without_dialogues_is_refused(tmp_path):
    with pytest.raises(
        InputError,
        match=re.escape(f"{tmp_path}: is not a folder that holds train/dialogues_*.json or"),
    ):
        list(read(woz(tmp_path)))


@pytest.mark.nightly
@needs_mirror
def test_the_real_single_domain_dialogues(tmp_path):
    """5,275 and 640 dialogues; every slot of some files, read naively, is a span of its value in
    the final text.
    """
    fetch(FetchSpec(archive="sgd"), output=tmp_path / "raw")
    found = list(
        read(SchemaGuidedSpec(reader="sgd", secrets=["*"], splits="drawn"), tmp_path / "raw")
    )
    assert Counter(record.doc.partition("/")[0] for record in found) == {"train": 5275, "dev": 640}
    naive = Counter()
    domains = {}
    for member in read_jsonl(tmp_path / "raw"):
        for one in orjson.loads(member["text"]) if member["path"][-6] in "16" else ():
            doc = f"{member['path'].split('/')[0]}/{one['dialogue_id']}"
            domains[doc] = one["services"][0].split("_")[0].upper()
            for said in one["turns"]:
                for place in (place for frame in said["frames"] for place in frame["slots"]):
                    naive[
                        doc,
                        place["slot"],
                        said["utterance"][place["start"] : place["exclusive_end"]],
                    ] += 1
    some = [record for record in found if record.doc in domains]
    assert {record.doc: record.domain for record in some} == domains and len(domains) > 1000
    spans = Counter(
        (record.doc, s.label, record.text[s.start : s.end]) for record in some for s in record.spans
    )
    assert not spans - naive and naive.total() > 10_000
    assert {(label, value) for _, label, value in naive - spans} <= {
        ("location", "Hayward")
    }  # within the name of a theatre
