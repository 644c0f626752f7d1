"""Ledger: run lengths, resumption to the same bytes, and every kind of tampering."""

import hashlib
import json
from dataclasses import replace

import pytest

from confide.dp.ledger import START, Ledger, check
from confide.errors import InputError
from confide.types import Release, StateRelease, Step
from tests.releases import exact, noised

EXACT = exact()
NOISY = noised(sigma=1.1)
OTHER = replace(NOISY, noise_multiplier=1.2)
EVENTS = [EXACT, EXACT, NOISY, NOISY, NOISY, 1, EXACT, EXACT, NOISY, 2, OTHER, NOISY, 3]


def play(ledger: Ledger, events: list) -> Ledger:
    """Each update leaves the random state that its place in the history gives it."""
    for event in events:
        if isinstance(event, Release):
            done = sum(release.count for release in ledger.releases())
            ledger.append(
                event, hashlib.sha256(bytes([done])).hexdigest() if event.step.noisy else None
            )
        else:
            ledger.epoch(event)
    return ledger


def started() -> Ledger:
    ledger = Ledger()
    ledger.start("this/g0-s0", settings="0" * 64, code="abc", noise="system", arithmetic="float32")
    ledger.read("tokenizer", "bpe", public=True, digest="1" * 64)
    ledger.init("other/g0-s0", public=False, ledger=play(Ledger(), [NOISY]).dump())
    return ledger


def test_equal_consecutive_releases_become_one_line():
    assert [release.count for release in play(Ledger(), EVENTS).releases()] == [2, 3, 2, 1, 1, 1]


def test_epochs_give_the_releases_since_the_mark_before():
    found = [
        (number, [release.count for release in since])
        for number, since in play(Ledger(), EVENTS).epochs()
    ]
    assert found == [(1, [2, 3]), (2, [2, 1]), (3, [1, 1])]


@pytest.mark.parametrize("split", range(len(EVENTS) + 1))
def test_interrupted_anywhere_it_continues_to_the_same_bytes(split):
    whole = play(started(), EVENTS).dump()
    resumed = Ledger.load(play(started(), EVENTS[:split]).dump())
    assert play(resumed, EVENTS[split:]).dump() == whole


def test_the_chain_is_sha256_of_sorted_json():
    previous = START
    for text in play(started(), EVENTS).dump().splitlines():
        line = json.loads(text)
        claimed = line.pop("hash")
        assert line["previous"] == previous
        previous = hashlib.sha256(
            json.dumps(line, sort_keys=True, separators=(",", ":")).encode()
        ).hexdigest()
        assert claimed == previous
    assert play(started(), EVENTS).head == previous


def test_a_regulariser_is_in_the_line_of_its_steps_and_no_other():
    regularised = replace(EXACT, step=replace(EXACT.step, regulariser="triplet"))
    ledger = play(Ledger(), [EXACT, regularised, regularised, NOISY])
    lines = [line["release"]["step"] for line in ledger.lines()]
    usual = {"view", "pool", "noisy", "tokens", "state"}  # as ledgers have always had them
    assert [line.keys() - usual for line in lines] == [set(), {"regulariser"}, set()]
    assert all(usual <= line.keys() for line in lines) and lines[1]["regulariser"] == "triplet"
    assert Ledger.load(ledger.dump()).releases() == [EXACT, replace(regularised, count=2), NOISY]
    for step in (
        replace(NOISY.step, regulariser="triplet"),
        replace(EXACT.step, regulariser="other"),
    ):
        with pytest.raises(ValueError, match="regulariser"):
            check(
                replace(NOISY if step.noisy else EXACT, step=step), "0" * 64 if step.noisy else None
            )


def test_looking_at_a_ledger_does_not_change_it():
    ledger = play(Ledger(), [NOISY])
    ledger.dump(), ledger.head, ledger.releases()
    assert [release.count for release in play(ledger, [NOISY]).releases()] == [2]


def test_a_warm_start_names_the_head_of_its_source():
    (start,) = started().events("init")
    assert (start["source"], start["public"], start["ledger"]) == (
        "other/g0-s0",
        False,
        play(Ledger(), [NOISY]).head,
    )


@pytest.mark.parametrize("number", range(10))
def test_an_altered_field_names_file_and_line(tmp_path, number):
    lines = play(started(), EVENTS).dump().splitlines()
    line = json.loads(lines[number])
    line["index"] = line["index"] + 1 if "release" not in line else line["index"]
    if "release" in line:
        line["release"]["noise_multiplier"] += 1.0
    lines[number] = json.dumps(line)
    path = tmp_path / "ledger.jsonl"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match=rf"ledger\.jsonl:{number + 1}: hash: was altered"):
        Ledger.from_file(path)


def test_removed_moved_and_rehashed_lines_are_refused():
    lines = play(Ledger(), EVENTS).dump().splitlines()
    for broken in (
        lines[1:],
        [lines[0], *lines[2:]],
        [lines[1], lines[0], *lines[2:]],
        [*lines, lines[-1]],
    ):
        with pytest.raises(InputError, match="does not follow"):
            Ledger.load("\n".join(broken), "l")
    line = json.loads(lines[1])
    line["release"]["count"] = 1
    line.pop("hash")
    line["hash"] = hashlib.sha256(
        json.dumps(line, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()
    with pytest.raises(InputError, match="l:3: previous: does not follow"):
        Ledger.load("\n".join([lines[0], json.dumps(line), *lines[2:]]), "l")


@pytest.mark.parametrize("text", ["{", "[]", '{"index": 0}', '{"hash": "0"}'])
def test_malformed_lines_are_refused(text):
    with pytest.raises(InputError, match="l:1"):
        Ledger.load(text, "l")


@pytest.mark.parametrize(
    "content",
    [
        {"event": "reset"},
        {"event": "epoch", "n": "1"},
        {"event": "epoch", "n": True},
        {"event": "start", "run": "r", "settings": "0", "code": "c"},
        {"event": "read", "stage": "tokenizer", "source": "x", "public": 1, "digest": None},
        {"release": {"step": {"view": "redacted", "pool": "all", "noisy": False}}, "random": None},
        {"event": "init", "source": "x", "public": "yes", "ledger": None},
        {"release": {"step": {"view": "raw", "pool": "all", "noisy": False}}},
        {"event": "epoch", "n": 1, "epsilon": 0.1},
    ],
)
def test_unknown_events_are_refused_even_if_well_hashed(content):
    line = {"index": 0} | content | {"previous": START}
    line["hash"] = hashlib.sha256(
        json.dumps(line, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()
    with pytest.raises(InputError, match="l:1: is not a known event"):
        Ledger.load(json.dumps(line), "l")


@pytest.mark.parametrize(
    "change",
    [
        {"sample_rate": 0.0},
        {"sample_rate": 1.5},
        {"noise_multiplier": 0.0},
        {"noise_multiplier": float("nan")},
        {"max_grad_norm": float("inf")},
        {"count": -1},
        {"step": Step(view="raw", pool="private", noisy=True)},
        {"step": Step(view="redacted", pool="some", noisy=True)},
        {"step": Step(view="redacted", pool="private", noisy=True, tokens="some")},
        {"step": Step(view="redacted", pool="private", noisy=True, tokens="private", state="kept")},
        {"step": Step(view="redacted", pool="private", noisy=True, tokens="all", state="noise")},
        {"step": Step(view="redacted", pool="private", noisy=False)},
    ],
)
def test_a_release_that_cannot_be_priced_is_refused(change):
    with pytest.raises(ValueError):
        check(replace(NOISY, **change), "0" * 64)


def test_noised_updates_and_no_others_carry_their_random_state():
    for release, random in ((NOISY, None), (NOISY, "abc"), (EXACT, "0" * 64)):
        with pytest.raises(ValueError, match="random state"):
            Ledger().append(release, random)


def test_noise_that_was_drawn_twice_shows():
    states = play(started(), EVENTS).states()
    assert len(set(states)) == len(states) == 4
    ledger = play(started(), [NOISY, NOISY])
    ledger.append(
        NOISY, ledger.states()[-1]
    )  # no run with what went before: the state did not move
    states = Ledger.load(ledger.dump()).states()
    assert len(states) == 2 and len(set(states)) == 1


def test_states_of_one_kind_of_step_can_be_left_out():
    ledger = play(started(), [NOISY, EXACT])
    ledger.append(
        StateRelease(noise_multiplier=1.1, max_grad_norm=1.0, count=4),
        "f" * 64,
    )
    assert (
        ledger.states() == [*ledger.states(updates_only=True), "f" * 64]
        and len(ledger.states()) == 2
    )


STATES_LINE = (  # of a ledger that an earlier version wrote: its certificate quotes the hash
    '{"index":0,"release":{"step":{"view":"original","pool":"all","noisy":true,"tokens":"private",'
    '"state":"noise"},"sample_rate":1.0,"noise_multiplier":1.1,"max_grad_norm":1.0,"count":4},'
)


def test_a_release_of_states_is_told_from_an_update_and_its_line_is_what_it_was():
    ledger = Ledger()
    shown = StateRelease(noise_multiplier=1.1, max_grad_norm=1.0, count=4)
    ledger.append(shown, "f" * 64)
    assert ledger.dump().startswith(STATES_LINE)
    assert Ledger.load(ledger.dump()).releases() == [shown]
    assert Ledger.load(ledger.dump()).dump() == ledger.dump()
    step = Step(view="original", pool="all", noisy=True, tokens="private", state="noise")
    with pytest.raises(ValueError, match="no update"):
        ledger.append(replace(NOISY, step=step), "e" * 64)


def test_states_that_a_line_calls_sampled_are_refused():
    line = json.loads(STATES_LINE[:-1] + "}") | {"random": "f" * 64, "previous": START}
    line["release"]["sample_rate"] = 0.5
    line["hash"] = hashlib.sha256(
        json.dumps(line, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()
    with pytest.raises(InputError, match="not drawn by chance"):
        Ledger.load(json.dumps(line), "l")


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"pools": {"all": -1}}, "expected counts"),
        ({"pools": {"everything": 1}}, "expected counts"),
        ({"pools": {"all": True}}, "expected counts"),
        ({"authors": {"all": 1.5}}, "expected counts"),
        ({"states": -1}, "states = -1"),
    ],
)
def test_sizes_that_are_no_counts_are_refused(event, message):
    ledger = Ledger()
    ledger.data({}, **({"pools": {"all": 3}, "authors": None, "states": 0} | event))
    with pytest.raises(InputError, match=message):
        Ledger.load(ledger.dump())


def test_the_end_names_weights_by_a_digest():
    ledger = Ledger()
    ledger.end(weights="model.safetensors")
    with pytest.raises(InputError, match="is no SHA-256"):
        Ledger.load(ledger.dump())


def test_a_ledger_that_was_cut_off_does_not_say_that_it_ended():
    ledger = play(started(), EVENTS)
    assert not ledger.ended()
    ledger.end(weights="a" * 64)
    lines = ledger.dump().splitlines()
    assert Ledger.load("\n".join(lines)).ended() and json.loads(lines[-1])["updates"] == 10
    for count in range(len(lines)):
        assert not count or not Ledger.load("\n".join(lines[:count])).ended()
    ledger.epoch(4)
    assert not ledger.ended()
