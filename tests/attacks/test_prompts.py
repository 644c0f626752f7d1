"""Prompts, held-out utterances and secrets of domains, on a few dialogues written out here."""

import pytest

from confide.attacks.domains.prompts import own_secrets, read
from confide.errors import InputError
from confide.files.io import write_jsonl
from confide.specs import LeakSpec

SPEC = LeakSpec(kind="leak", prompts=["AIR"], targets=["TV"], judges={"words": "words"})


def row(doc: str, split: str, domain: str | None, text: str, *secrets: str) -> dict:
    gold = [[text.index(secret), text.index(secret) + len(secret), "id", 1.0] for secret in secrets]
    return {"key": f"{doc}:0", "split": split, "domain": domain, "text": text, "gold": gold}


ROWS = [
    row("1", "train", "AIR", "<_soc_> <AIR> USR: my code is abc 12345 <_eoc_>", "abc 12345"),
    row(
        "2",
        "train",
        "TV",
        "<_soc_> <TV> USR: box 900-77-31, code ABC-12345 or ab1 <_eoc_>",
        "900-77-31",
        "ABC-12345",
        "ab1",
    ),
    row(
        "3",
        "test",
        "AIR",
        "<_soc_> <AIR> USR: hi <AIR> SYS: USR: who? <AIR> SYS: <AIR> USR: bye <_eoc_>",
    ),
    row("4", "test", "AIR", "<_soc_> <AIR> USR: alone <_eoc_>"),
    row("5", "test", "AIR", "<_soc_> <AIR> BOT: yes <AIR> USR: no <_eoc_>"),
    row("6", "test", "TV", "<_soc_> USR: the film SYS: which, or busy:USR:? <_eoc_>"),
    row("7", "valid", "TV", "<_soc_> USR: a SYS: b <_eoc_>"),
]


@pytest.fixture
def points(tmp_path):
    write_jsonl(tmp_path / "points.jsonl", ROWS)
    return tmp_path / "points.jsonl"


def test_prompts_end_with_the_next_speakers_control_token(points):
    found = read(SPEC, points).prompts
    assert [(prompt.dialogue, prompt.text) for prompt in found] == [
        ("3", "<_soc_> <AIR> USR: hi <AIR> SYS:"),
        ("3", "<_soc_> <AIR> USR: hi <AIR> SYS: USR: who? <AIR> SYS:"),
        ("3", "<_soc_> <AIR> USR: hi <AIR> SYS: USR: who? <AIR> SYS: <AIR> USR:"),
        ("5", "<_soc_> <AIR> BOT: yes <AIR> USR:"),
    ]
    fewer = SPEC.model_copy(update={"dialogues": 1, "prefixes": 2, "prompts": ["AIR", "TV"]})
    assert [prompt.text for prompt in read(fewer, points).prompts[2:]] == [
        "<_soc_> USR: the film SYS:"
    ]


def test_held_out_text_is_what_was_said(points):
    found = read(SPEC, points).held_out
    assert [one.text for one in found["AIR"]] == ["hi", "USR: who?", "bye", "alone", "yes", "no"]
    assert [one.text for one in found["TV"]] == ["the film", "which, or busy:USR:?"]
    assert len(read(SPEC.model_copy(update={"held_out": 2}), points).held_out["AIR"]) == 2


def test_every_domain_has_a_control_token(points):
    assert read(SPEC, points).controls == (
        "<_soc_>",
        "<_eoc_>",
        "USR:",
        "SYS:",
        "BOT:",
        "<AIR>",
        "<TV>",
    )


def test_own_secrets_are_long_enough_and_in_no_other_domains_training_text_in_any_form(points):
    assert own_secrets(points, "TV", 6) == [
        "900-77-31"
    ]  # ABC-12345 is the other domain's abc 12345
    assert own_secrets(points, "TV", 3) == ["900-77-31", "ab1"]
    assert read(SPEC, points).counts == {"TV": 1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prompts": ["SEA"]}, "prompts = 'SEA': unknown: one of AIR, NEWS, TV"),
        ({"targets": ["air"]}, "targets = 'air': unknown"),
        ({"prompts": ["NEWS"]}, "prompts = 'NEWS': has no point in the test split"),
        (
            {"dialogues": 1, "prompts": ["TALK"]},
            ("prompts = 'TALK': none of its first test points is a dialogue"),
        ),
    ],
)
def test_domains_that_cannot_be_asked(points, change, message):
    extra = [row("8", "train", "NEWS", "x")]
    extra += (
        [row("9", "test", "TALK", "USR: 12345678")]
        if "TALK" in change["prompts" if "prompts" in change else "targets"]
        else []
    )
    write_jsonl(points, [*ROWS, *extra])
    with pytest.raises(InputError, match=message) as error:
        read(SPEC.model_copy(update=change), points)
    assert str(points) in str(error.value) and "12345678" not in str(error.value)


def test_points_without_domains(points):
    write_jsonl(points, [row("1", "test", None, "USR: a SYS: b")])
    with pytest.raises(InputError, match="the points name none"):
        read(SPEC, points)
