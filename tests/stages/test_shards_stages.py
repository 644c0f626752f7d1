"""Stages over shards: neither their size nor the number of processes shows in any byte, and a
failure leaves nothing behind.
"""

import os
import signal
from pathlib import Path

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from confide.data import vectors
from confide.data.gathering import share_of
from confide.data.partition_files import load_partition
from confide.errors import InputError
from confide.files import buckets, shards
from confide.policies import POLICIES
from confide.provenance.terms import digest_of_specs
from confide.specs import DedupSpec, PartitionSpec, RecallSpec, RedactSpec
from confide.stages.copies import copies
from confide.stages.dedup import dedup
from confide.stages.digests import digests
from confide.stages.gather import gather
from confide.stages.partition import partition
from confide.stages.recall import recall
from confide.stages.redact import redact
from confide.stages.repeats import repeats
from confide.text.digests import BLOCK
from confide.text.tokenizer import save, train_bpe
from tests import beside
from tests.nightly import nightly
from tests.terms import TEXT

TOKENIZER = train_bpe(["call me at 12 or 345, please", "my name's Ann Lee", "café 😀 ok"] * 5, 300)
REDACT = RedactSpec(
    policy={"kind": "regex", "patterns": {"number": r"\d+"}},
    conservative={"kind": "regex", "patterns": {"capital": "[A-Z]"}},
)
SETTINGS = digest_of_specs(REDACT)
RECALL = RecallSpec(text=TEXT, redact=REDACT, reads=[])
WRITTEN = ("copies", "spans", "original", "redacted", "recall")


ALL = PartitionSpec(scope="all")
KEYED = DedupSpec(digest="hmac-sha1")


def chain(folder: Path, threads: int, spec: PartitionSpec = ALL) -> dict[str, bytes]:
    """All stages after points; what each wrote."""
    at = {
        name: folder / name
        for name in ("points", "copies", "spans", "tokenizer", "original", "redacted")
    }
    dedup(DedupSpec(), points=at["points"], output=at["copies"], threads=threads)
    redact(REDACT, points=at["points"], output=at["spans"], threads=threads)
    recall(
        RECALL, points=at["points"], spans=at["spans"], output=folder / "recall", threads=threads
    )
    partition(spec, **at, policies=SETTINGS, threads=threads)
    assert {path.name for path in folder.iterdir()} == {*at, "recall"}  # nothing temporary is left
    return {name: (folder / name).read_bytes() for name in WRITTEN}


def without_closings(made: dict[str, bytes]) -> dict[str, bytes]:
    def kept(name: str) -> bytes:
        lines = made[name].splitlines(keepends=True)
        return b"".join(line for line in lines if not line.startswith(b'{"complete"'))

    return made | {name: kept(name) for name in ("copies", "spans")}


def in_shares(
    folder: Path, count: int, threads: int = 1, spec: PartitionSpec = ALL
) -> dict[str, bytes]:
    """What `count` jobs wrote that share all stages that can be shared, put together."""
    at = {name: folder / name for name in ("points", "copies", "spans", "tokenizer")}
    shares = shares_of(count)
    digests_of(folder, count)
    repeats_of(folder, count)
    at["copies"].write_bytes(copies_of(folder, count))
    parts = {
        name: [folder / f"{name}-{share}" for share in shares]
        for name in ("spans", "originals", "redacteds", "owners")
    }
    for share, part in zip(shares, parts["spans"], strict=True):
        redact(REDACT, points=at["points"], output=part, share=share, threads=threads)
    at["spans"].write_bytes(b"".join(part.read_bytes() for part in parts.pop("spans")))
    for index, share in enumerate(shares):
        partition(
            spec,
            **at,
            policies=SETTINGS,
            original=parts["originals"][index],
            redacted=parts["redacteds"][index],
            owners=parts["owners"][index],
            share=share,
            threads=threads,
        )
    gather(**parts, original=folder / "original", redacted=folder / "redacted")
    return {name: (folder / name).read_bytes() for name in WRITTEN if name != "recall"}


def shares_of(count: int) -> list[str]:
    """As Snakemake numbers them."""
    return [f"{number}-of-{count}" for number in range(1, count + 1)]


def digests_of(folder: Path, count: int, spec: DedupSpec = KEYED) -> None:
    """What looks for copies first, in so many jobs with one key."""
    (folder / "key").write_bytes(os.urandom(BLOCK))
    for share in shares_of(count):
        digests(
            spec,
            points=folder / "points",
            key=folder / "key",
            share=share,
            output=folder / f"digests-{share}",
        )


def repeats_of(folder: Path, count: int) -> None:
    """What comes next."""
    files = [folder / f"digests-{share}" for share in shares_of(count)]
    for share in shares_of(count):
        output = folder / f"repeats-{share}"
        repeats(points=folder / "points", digests=files, share=share, output=output)


def copies_of(folder: Path, count: int) -> bytes:
    """What the last jobs write, put together."""
    files = [folder / f"repeats-{share}" for share in shares_of(count)]
    whole = b""
    for share in shares_of(count):
        copies(
            points=folder / "points",
            digests=folder / f"digests-{share}",
            repeats=files,
            share=share,
            output=folder / "copies-of-share",
        )
        whole += (folder / "copies-of-share").read_bytes()
    return whole


def write(folder: Path, points: list[dict], end: str = "\n", blank: int = 0) -> None:
    """points: JSON lines, with some blank ones between, and a tokenizer."""
    lines = [
        orjson.dumps(point) + end.encode() + b" \n" * (blank and index % blank == 0)
        for index, point in enumerate(points)
    ]
    (folder / "points").write_bytes(b"".join(lines))
    save(TOKENIZER, folder / "tokenizer")


text = st.lists(
    st.sampled_from(["<MASK>", "é", "😀", "12 ", "345", " Ann", "call me ", "\n", "ok"]), max_size=5
).map("".join)
fields = st.fixed_dictionaries(
    {
        "text": text,
        "split": st.sampled_from(["train", "train", "valid"]),
        "domain": st.sampled_from([None, "a", "b", "ü"]),
        "owner": st.sampled_from([None, "u", "v", "w"]),
        "gold": st.just([]),
    }
)


def with_gold(index: int, row: dict) -> dict:
    """A point whose first number, if any, is a secret."""
    start = row["text"].find("12")
    return (
        {"key": f"d:{index}"} | row | {"gold": [[start, start + 2, "x", 1.0]] if start >= 0 else []}
    )


# A corpus, how its lines end and what stands between them, and the size of shards.
CUT = {
    "rows": st.lists(fields, max_size=40),
    "end": st.sampled_from(["\n", "\r\n"]),
    "blank": st.integers(0, 3),
    "size": st.sampled_from([1, 200, 700]),
}


def written(folders: pytest.TempPathFactory, rows: list[dict], end: str, blank: int) -> Path:
    """A folder of its own with the points and a tokenizer."""
    folder = folders.mktemp("s")
    write(folder, [with_gold(index, row) for index, row in enumerate(rows)], end, blank)
    return folder


@settings(max_examples=20)
@given(**CUT)
def test_the_size_of_shards_does_not_show(tmp_path_factory, rows, end, blank, size):
    """But in the lines that close what is said of each."""
    folder = written(tmp_path_factory, rows, end, blank)
    whole = chain(folder, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "SIZE", size)
        patch.setattr(buckets, "SHARE", 500)
        patch.setattr(buckets, "LARGEST", 200)
        assert without_closings(chain(folder, 1)) == without_closings(whole)


@settings(max_examples=20)
@given(**CUT, count=st.integers(1, 7))
def test_the_number_of_jobs_does_not_show(tmp_path_factory, rows, end, blank, size, count):
    folder = written(tmp_path_factory, rows, end, blank)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "SIZE", size)
        patch.setattr(buckets, "SHARE", 500)
        whole = chain(folder, 1)
        shared = in_shares(folder, count)
    assert shared == {name: whole[name] for name in shared}


@pytest.fixture
def corpus(tmp_path):
    texts = ["call me at 12", "Ann", "<MASK> 12", "café 345", "ok", "call me at 12\nAnn", "ok"] * 30
    rows = [
        {
            "text": text,
            "split": "train",
            "domain": "ab"[i % 2],
            "owner": None if i % 3 else f"u{i % 9}",
        }
        for i, text in enumerate(texts)
    ]
    write(tmp_path, [with_gold(index, row) for index, row in enumerate(rows)])
    return tmp_path


def test_the_number_of_processes_does_not_show(corpus, monkeypatch):
    monkeypatch.setattr(shards, "SIZE", 500)
    whole = chain(corpus, 1)
    assert whole["copies"].count(b"\n") > 100 and whole["spans"]
    monkeypatch.setattr(buckets, "SHARE", 2000)
    monkeypatch.setattr(buckets, "LARGEST", 500)
    assert chain(corpus, 3) == whole


def test_failures_of_a_policy_are_summed_over_processes(corpus, monkeypatch, capsys):
    def fails(text):
        if "345" in text:
            raise RuntimeError(text)
        return []

    monkeypatch.setitem(POLICIES, "regex", lambda spec: fails)
    monkeypatch.setattr(shards, "SIZE", 500)
    redact(REDACT, points=corpus / "points", output=corpus / "spans", threads=3)
    assert "failed on 30 points" in capsys.readouterr().err
    assert (corpus / "spans").read_bytes().count(b'"failed":true') == 30


@pytest.mark.parametrize("threads", [1, 3])
def test_a_malformed_line_is_named_by_its_number(corpus, monkeypatch, threads):
    lines = (corpus / "points").read_bytes().splitlines()
    lines[4], lines[99] = b"", b'{"key": "cut off'
    (corpus / "points").write_bytes(b"\n".join(lines) + b"\n")
    monkeypatch.setattr(shards, "SIZE", 500)
    for stage, spec in ((dedup, DedupSpec()), (redact, REDACT)):
        with pytest.raises(InputError, match="points:100: malformed"):
            stage(spec, points=corpus / "points", output=corpus / "out", threads=threads)
        assert {path.name for path in corpus.iterdir()} == {"points", "tokenizer"}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "name, edit",
    [
        ("copies", lambda lines: [*lines[:70], *lines[71:], lines[70]]),
        ("spans", lambda lines: [*lines[:50], lines[60], *lines[51:]]),
        ("spans", lambda lines: lines[::-1]),
        (
            "spans",
            lambda lines: [
                *lines,
                orjson.dumps({"key": "z", "spans": [], "conservative": True, "at": 10**9}),
            ],
        ),
    ],
)
def test_findings_that_do_not_belong_to_the_points_are_refused(
    corpus, monkeypatch, threads, name, edit
):
    monkeypatch.setattr(shards, "SIZE", 500)
    chain(corpus, 1)
    lines = (corpus / name).read_bytes().splitlines()
    (corpus / name).write_bytes(b"\n".join(edit(lines)) + b"\n")
    at = {key: corpus / key for key in ("points", "copies", "spans", "tokenizer")}
    with pytest.raises(InputError, match=name):
        partition(
            PartitionSpec(),
            **at,
            policies=SETTINGS,
            original=corpus / "o",
            redacted=corpus / "r",
            threads=threads,
        )
    assert not [
        path
        for path in corpus.iterdir()
        if path.name.startswith((".", "o", "r")) and path.stem in (".o", "o", "r")
    ]


@pytest.mark.parametrize("name", ["copies", "spans"])
def test_a_share_that_was_cut_short_is_refused(corpus, monkeypatch, name):
    """At a line's end, where what is left reads like a share with less to say."""
    monkeypatch.setattr(shards, "SIZE", 500)
    chain(corpus, 1)
    lines = (corpus / name).read_bytes().splitlines(keepends=True)
    closings = [place for place, line in enumerate(lines) if b'"complete"' in line]
    end = closings[len(closings) // 2]
    short = lines[: end - 3] + lines[end + 1 :]
    (corpus / name).write_bytes(b"".join(short))
    with pytest.raises(InputError, match=f"{name}: is cut short or changed, or of other"):
        parted(corpus)


def parted(folder: Path) -> None:
    """Part what lies in the folder, whatever was done to it."""
    at = {key: folder / key for key in ("points", "copies", "spans", "tokenizer")}
    views = {"original": folder / "o", "redacted": folder / "r"}
    partition(PartitionSpec(), **at, **views, policies=SETTINGS)


@pytest.mark.parametrize("name", ["copies", "spans"])
@pytest.mark.parametrize("place", [0, 3, -2])
def test_a_line_that_is_missing_is_noticed(corpus, monkeypatch, name, place):
    """A finding less would show a secret, a copy less would have one read more often."""
    monkeypatch.setattr(shards, "SIZE", 500)
    chain(corpus, 1)
    lines = (corpus / name).read_bytes().splitlines(keepends=True)
    del lines[[i for i, line in enumerate(lines) if b'"key"' in line][place]]
    (corpus / name).write_bytes(b"".join(lines))
    with pytest.raises(InputError, match=f"{name}: is cut short or changed, or of other"):
        parted(corpus)


@pytest.mark.parametrize("share", ["1-of-3", "2-of-3", "3-of-3"])
def test_a_share_that_another_policy_wrote_is_refused(corpus, monkeypatch, share):
    """By a job of earlier parameters, which ends last and takes the place of the newer file."""
    monkeypatch.setattr(shards, "SIZE", 500)
    in_shares(corpus, 3)
    older = REDACT.model_copy(update={"miss_rate": 0.9})
    redact(older, points=corpus / "points", output=corpus / f"spans-{share}", share=share)
    parts = [corpus / f"spans-{one}" for one in shares_of(3)]
    (corpus / "spans").write_bytes(b"".join(part.read_bytes() for part in parts))
    with pytest.raises(InputError, match="spans: .* or of other points or another policy"):
        parted(corpus)
    with pytest.raises(InputError, match="spans: .* or of other points or another policy"):
        recall(RECALL, points=corpus / "points", spans=corpus / "spans", output=corpus / "out")


def test_findings_of_points_that_were_edited_since_are_refused(corpus, monkeypatch):
    """Also where no byte moved."""
    monkeypatch.setattr(shards, "SIZE", 500)
    chain(corpus, 1)
    content = (corpus / "points").read_bytes()
    place = content.index(b'"text":"') + len(b'"text":"')
    edited = content[:place] + b"7" + content[place + 1 :]
    assert edited != content and len(edited) == len(content)
    (corpus / "points").write_bytes(edited)
    with pytest.raises(InputError, match="is cut short or changed, or of other points"):
        parted(corpus)


def test_findings_without_the_place_of_their_point_are_refused(corpus, monkeypatch):
    monkeypatch.setattr(shards, "SIZE", 500)
    chain(corpus, 1)
    lines = [orjson.loads(line) for line in (corpus / "spans").read_bytes().splitlines()]
    (corpus / "spans").write_bytes(
        b"".join(orjson.dumps({k: v for k, v in row.items() if k != "at"}) + b"\n" for row in lines)
    )
    with pytest.raises(InputError, match=r"spans:\d+: at: missing"):
        recall(RECALL, points=corpus / "points", spans=corpus / "spans", output=corpus / "out")


def test_a_killed_process_is_an_error(corpus, monkeypatch):
    monkeypatch.setitem(
        POLICIES, "regex", lambda spec: lambda text: os.kill(os.getpid(), signal.SIGKILL)
    )
    monkeypatch.setattr(shards, "SIZE", 500)
    with pytest.raises(InputError, match="was killed"):
        redact(REDACT, points=corpus / "points", output=corpus / "spans", threads=2)
    assert {path.name for path in corpus.iterdir()} == {"points", "tokenizer"}


@pytest.mark.parametrize("count", [2, 3, nightly(50)])
def test_shares_with_several_processes_each(corpus, monkeypatch, count):
    monkeypatch.setattr(shards, "SIZE", 500)
    whole = chain(corpus, 1)
    shared = in_shares(corpus, count, threads=2)
    assert shared == {name: whole[name] for name in shared}


def test_shares_of_conversations_of_which_only_answers_are_learned(corpus):
    spec = PartitionSpec(learn="assistant")
    lines = [orjson.loads(line) for line in (corpus / "points").read_bytes().splitlines()]
    write(corpus, [line | {"answers": [[0, len(line["text"]) // 2]]} for line in lines])
    whole = chain(corpus, 1, spec)
    shared = in_shares(corpus, 3, spec=spec)  # of one shard: two shares are empty
    assert shared == {name: whole[name] for name in shared}


def test_shares_are_put_together_piece_by_piece(corpus, monkeypatch):
    monkeypatch.setattr(shards, "SIZE", 500)
    monkeypatch.setattr(vectors, "PIECE", 7)  # entries
    whole = chain(corpus, 1)
    shared = in_shares(corpus, 3)
    assert shared == {name: whole[name] for name in shared}


def first_starts_late(vector: np.ndarray) -> None:
    vector[0] = 1


def falls(vector: np.ndarray) -> None:
    vector[1] = vector[-1] + 1


def last_ends_early(vector: np.ndarray) -> None:
    vector[-1] -= 1


def is_below(vector: np.ndarray) -> None:
    vector[-1] = -2


def is_beyond(vector: np.ndarray) -> None:
    vector[-1] = 100


@pytest.mark.parametrize(
    ("file", "name", "change", "message"),
    [
        ("originals", "ids", is_below, "ids: a token has no number below 0"),
        ("redacteds", "starts", first_starts_late, "starts: does not cut the token ids"),
        ("redacteds", "starts", falls, "starts: does not cut the token ids"),
        ("originals", "starts", last_ends_early, "starts: does not cut the token ids"),
        ("redacteds", "split", is_beyond, "split: index out of range"),
        ("redacteds", "domain", is_below, "domain: index out of range"),
        ("redacteds", "domain", is_beyond, "domain: there are 2 names"),
        ("redacteds", "copy", None, "copy: expected .* entries"),
        ("originals", "secret", None, "secret: expected .* entries"),
        ("originals", "learned", np.zeros(0, np.bool_), "learned: expected .* entries"),
    ],
)
def test_a_share_whose_vectors_do_not_fit_is_refused(
    corpus, monkeypatch, file, name, change, message
):
    """`change`: of a vector, None to shorten it, or one that is added."""
    monkeypatch.setattr(shards, "SIZE", 500)
    in_shares(corpus, 2)
    path = corpus / f"{file}-2-of-2"
    arrays = load_file(path)
    if change is None:
        arrays[name] = arrays[name][:-1]
    elif isinstance(change, np.ndarray):
        arrays[name] = change
    else:
        change(arrays[name])
    with safe_open(path, "numpy") as content:
        metadata = content.metadata()
    save_file(arrays, path, metadata)
    before = (corpus / "original").read_bytes()
    with pytest.raises(InputError, match=f"{file}-2-of-2: {message}"):
        gathered(corpus, 2)
    assert (corpus / "original").read_bytes() == before


def test_a_share_of_which_only_answers_are_learned_goes_with_no_other(corpus, monkeypatch):
    monkeypatch.setattr(shards, "SIZE", 500)
    in_shares(corpus, 2)
    for name in ("originals", "redacteds"):
        path = corpus / f"{name}-2-of-2"
        with safe_open(path, "numpy") as content:
            metadata = content.metadata()
        arrays = load_file(path)
        save_file(arrays | {"learned": np.ones(len(arrays["ids"]), np.bool_)}, path, metadata)
    with pytest.raises(
        InputError, match="originals-2-of-2: learned: is in some of the files alone"
    ):
        gathered(corpus, 2)


@pytest.mark.parametrize("count", range(1, 9))
@pytest.mark.parametrize("size", [1, 150, 10**6])
def test_each_range_falls_to_one_share(corpus, monkeypatch, count, size):
    monkeypatch.setattr(shards, "SIZE", size)
    ranges = shards.shards(corpus / "points")
    of = [shards.of_share(ranges, f"{number + 1}-of-{count}") for number in range(count)]
    assert [one for some in of for one in some if one.start != one.end] == ranges
    loads = [len(some) for some in of]
    assert max(loads) - min(loads) <= 1


@pytest.mark.parametrize("share", ["", "0-of-3", "4-of-3", "1/3", "1-of-0", "1-of-3 ", "-1-of-3"])
def test_words_that_are_no_share_are_refused(corpus, share):
    with pytest.raises(InputError, match="share = .*: expected a share such as 2-of-8"):
        redact(REDACT, points=corpus / "points", output=corpus / "spans", share=share)
    assert not (corpus / "spans").exists()


@pytest.mark.parametrize(
    ("kind", "content", "message"),
    [
        ("owners-2-of-2", ["u"], "there are 1 names, and the share has more"),
        ("owners-1-of-2", {"u": 0}, "owners: expected a list of names"),
        ("owners-1-of-2", b'["u"]', "owners: is missing"),
        ("owners-1-of-2", b"[", "malformed JSON"),
        ("originals-2-of-2", b"cut off", "corrupt safetensors file"),
        ("redacteds-1-of-2", None, "cannot be read"),
    ],
)
def test_a_share_that_is_not_whole_is_named(corpus, monkeypatch, kind, content, message):
    monkeypatch.setattr(shards, "SIZE", 500)
    chain(corpus, 1)
    in_shares(corpus, 2)
    for name in ("original", "redacted"):
        (corpus / name).unlink()
    if content is None:
        (corpus / kind).unlink()
    elif isinstance(content, bytes):
        (corpus / kind).write_bytes(content)
    else:
        said = orjson.loads((corpus / kind).read_bytes())
        (corpus / kind).write_bytes(orjson.dumps(said | {"owners": content}))
    files = {
        name: [corpus / f"{name}-{number}-of-2" for number in (1, 2)]
        for name in ("originals", "redacteds", "owners")
    }
    with pytest.raises(InputError, match=message) as raised:
        gather(**files, original=corpus / "original", redacted=corpus / "redacted")
    assert kind in str(raised.value)
    assert not (corpus / "original").exists() and not (corpus / "redacted").exists()


@pytest.mark.parametrize(
    ("kind", "other", "message"),
    [
        # a share twice, and another one not at all
        ("originals redacteds owners", "1-of-3", "share = .*1-of-3.*: expected the share 2-of-3"),
        ("originals", "1-of-3", "redacteds-2-of-3: share: is of another share than"),
        ("redacteds", "1-of-3", "redacteds-2-of-3: share: is of another share than"),
        ("owners", "1-of-3", "owners-2-of-3: share: is of another share than"),
    ],
)
def test_shares_in_each_others_place_are_refused(corpus, monkeypatch, kind, other, message):
    monkeypatch.setattr(shards, "SIZE", 500)
    in_shares(corpus, 3)
    for name in kind.split():
        (corpus / f"{name}-2-of-3").write_bytes((corpus / f"{name}-{other}").read_bytes())
    with pytest.raises(InputError, match=message):
        gathered(corpus, 3)


def of_other_settings(folder: Path) -> PartitionSpec:
    return ALL.model_copy(update={"dedup": False})


def of_other_spans(folder: Path) -> PartitionSpec:
    """One of the last share is gone."""
    beside.write(folder / "spans", beside.read(folder / "spans")[:-1], folder / "points", SETTINGS)
    return ALL


def of_another_tokenizer(folder: Path) -> PartitionSpec:
    save(train_bpe(["other words"] * 5, 280), folder / "tokenizer")
    return ALL


@pytest.mark.parametrize("change", [of_other_settings, of_other_spans, of_another_tokenizer])
def test_shares_that_were_made_of_something_else_are_refused(corpus, monkeypatch, change):
    monkeypatch.setattr(shards, "SIZE", 500)
    in_shares(corpus, 2)
    partition(
        change(corpus),
        **{name: corpus / name for name in ("points", "copies", "spans", "tokenizer")},
        policies=SETTINGS,
        original=corpus / "originals-2-of-2",
        redacted=corpus / "redacteds-2-of-2",
        owners=corpus / "owners-2-of-2",
        share="2-of-2",
    )
    with pytest.raises(InputError, match="originals-2-of-2: share: was not made of what"):
        gathered(corpus, 2)


def test_what_was_said_of_other_points_is_refused(corpus, monkeypatch):
    """Before a share is made of it."""
    monkeypatch.setattr(shards, "SIZE", 500)
    in_shares(corpus, 2)
    with open(corpus / "points", "ab") as file:
        file.write(b"\n")
    at = {name: corpus / name for name in ("points", "copies", "spans", "tokenizer")}
    with pytest.raises(InputError, match="copies: is cut short or changed, or of other"):
        partition(
            ALL,
            **at,
            policies=SETTINGS,
            original=corpus / "o",
            redacted=corpus / "r",
            owners=corpus / "w",
            share="2-of-2",
        )


def test_a_share_is_taken_for_no_partition_and_a_partition_for_no_share(corpus, monkeypatch):
    monkeypatch.setattr(shards, "SIZE", 500)
    in_shares(corpus, 2)
    with pytest.raises(InputError, match="originals-1-of-2: share: is a share of the points"):
        load_partition(corpus / "originals-1-of-2", corpus / "redacteds-1-of-2")
    whole = corpus / "original", corpus / "redacted"
    load_partition(*whole)
    with pytest.raises(InputError, match="original: share: is no share of the points"):
        share_of(*whole, corpus / "owners-1-of-2")


def gathered(folder: Path, count: int) -> None:
    """Put so many shares together."""
    files = {
        name: [folder / f"{name}-{share}" for share in shares_of(count)]
        for name in ("originals", "redacteds", "owners")
    }
    gather(**files, original=folder / "original", redacted=folder / "redacted")


def test_files_of_one_kind_too_few_are_refused(corpus):
    with pytest.raises(InputError, match="as many files of each kind, not 0, 1 and 1"):
        gather(
            originals=[],
            redacteds=[corpus / "r"],
            owners=[corpus / "o"],
            original=corpus / "original",
            redacted=corpus / "redacted",
        )


@pytest.mark.parametrize("digest", ["hmac-sha1", "sha1"])
def test_copies_of_several_jobs_are_those_of_one(corpus, monkeypatch, digest):
    spec = DedupSpec(digest=digest)
    monkeypatch.setattr(shards, "SIZE", 500)
    dedup(spec, points=corpus / "points", output=corpus / "copies")
    digests_of(corpus, 3, spec)
    repeats_of(corpus, 3)
    assert copies_of(corpus, 3) == (corpus / "copies").read_bytes() != b""


def test_each_key_gives_other_digests_and_no_file_holds_text(corpus, monkeypatch):
    monkeypatch.setattr(shards, "SIZE", 500)
    made = []
    for _ in range(2):
        digests_of(corpus, 2)
        made.append((corpus / "digests-1-of-2").read_bytes())
    # The first line counts digests in each bucket, which another key spreads otherwise.
    bodies = [one.partition(b"\n")[2] for one in made]
    assert bodies[0] != bodies[1]
    assert len(bodies[0]) == len(bodies[1]) > 0
    secret = orjson.loads((corpus / "points").read_bytes().splitlines()[0])["text"]
    assert not any(secret.encode() in one for one in made)


def other_key(folder: Path) -> None:
    kept = (folder / "digests-1-of-2").read_bytes()
    digests_of(folder, 2)
    (folder / "digests-1-of-2").write_bytes(kept)


def other_points(folder: Path) -> None:
    with open(folder / "points", "ab") as file:
        file.write(b"\n")


def swapped(folder: Path) -> None:
    first, second = folder / "digests-1-of-2", folder / "digests-2-of-2"
    kept = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(kept)


def cut(folder: Path) -> None:
    file = folder / "digests-2-of-2"
    file.write_bytes(file.read_bytes()[:-8])


def no_json(folder: Path) -> None:
    (folder / "digests-2-of-2").write_bytes(b"text\n")


def no_text(folder: Path) -> None:
    """A name that is not in UTF-8."""
    file = folder / "digests-2-of-2"
    file.write_bytes(file.read_bytes().replace(b'"key":"', b'"key":"\xff', 1))


def falling(folder: Path) -> None:
    """Ends of buckets that would have memory read that is not theirs."""
    file = folder / "digests-2-of-2"
    head, _, rest = file.read_bytes().partition(b"\n")
    fields = orjson.loads(head)
    fields["buckets"][0] = fields["buckets"][-1] + 5
    file.write_bytes(orjson.dumps(fields) + b"\n" + rest)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (other_key, "was not made with the key of"),
        (other_points, "belongs to other points"),
        (swapped, "share = .*1-of-2.*: expected another share"),
        (cut, "it is not whole"),
        (no_json, "is no file of digests"),
        (no_text, "is no file of digests"),
        (falling, "is no file of digests"),
    ],
)
def test_digests_that_do_not_belong_together_are_refused(corpus, monkeypatch, spoil, message):
    monkeypatch.setattr(shards, "SIZE", 500)
    digests_of(corpus, 2)
    spoil(corpus)
    with pytest.raises(InputError, match=message):
        repeats_of(corpus, 2)
    assert not (corpus / "repeats-1-of-2").exists()


@pytest.mark.parametrize(
    ("name", "readers"),
    [("digests-1-of-2", (repeats_of, copies_of)), ("repeats-2-of-2", (copies_of,))],
)
def test_a_bit_that_changed_is_noticed(corpus, monkeypatch, name, readers):
    """Else a copy less would be found, and a text read more often than is claimed."""
    monkeypatch.setattr(shards, "SIZE", 500)
    digests_of(corpus, 2)
    repeats_of(corpus, 2)
    content = bytearray((corpus / name).read_bytes())
    for place in range(content.index(b"\n") + 1, len(content), 37):
        content[place] ^= 1
        (corpus / name).write_bytes(content)
        with pytest.raises(InputError, match=f"{name}: is damaged: make it again"):
            for reader in readers:
                reader(corpus, 2)
        content[place] ^= 1


def test_copies_are_not_named_by_digests_of_another_key_or_share(corpus, monkeypatch):
    monkeypatch.setattr(shards, "SIZE", 500)
    digests_of(corpus, 2)
    repeats_of(corpus, 2)
    digests_of(corpus, 2)
    with pytest.raises(InputError, match="was not made with the key of"):
        copies_of(corpus, 2)
    repeats_of(corpus, 2)
    swapped(corpus)
    with pytest.raises(InputError, match="expected another share"):
        copies_of(corpus, 2)


def test_digests_are_not_taken_for_repeats_nor_the_reverse(corpus, monkeypatch):
    """Copies of other shares would be missing, and none would be found at all."""
    monkeypatch.setattr(shards, "SIZE", 500)
    digests_of(corpus, 2)
    repeats_of(corpus, 2)
    for share in shares_of(2):
        kept = (corpus / f"digests-{share}").read_bytes()
        (corpus / f"digests-{share}").write_bytes((corpus / f"repeats-{share}").read_bytes())
        (corpus / f"repeats-{share}").write_bytes(kept)
    with pytest.raises(InputError, match="kind = 'digests': expected a file of repeats"):
        copies_of(corpus, 2)
    with pytest.raises(InputError, match="kind = 'repeats': expected a file of digests"):
        repeats_of(corpus, 2)


def test_plain_digests_of_another_time_are_refused(corpus, monkeypatch):
    """Of a corpus as long as this one, perhaps: plain ones depend on no key that would tell."""
    monkeypatch.setattr(shards, "SIZE", 500)
    plain = DedupSpec(digest="sha1")
    digests_of(corpus, 2, plain)
    kept = (corpus / "digests-1-of-2").read_bytes()
    digests_of(corpus, 2, plain)
    (corpus / "digests-1-of-2").write_bytes(kept)
    with pytest.raises(InputError, match="was not made with the key of"):
        repeats_of(corpus, 2)


def test_no_files_at_all_are_refused(corpus):
    digests_of(corpus, 1)
    output = {"points": corpus / "points", "share": "1-of-1", "output": corpus / "made"}
    with pytest.raises(InputError, match="digests: expected a file of each share"):
        repeats(**output, digests=[])
    with pytest.raises(InputError, match="repeats: expected a file of each share"):
        copies(**output, digests=corpus / "digests-1-of-1", repeats=[])
    assert not (corpus / "made").exists()


@pytest.mark.parametrize("alone", ["share", "owners"])
def test_a_share_that_could_not_be_gathered_is_refused(corpus, alone):
    chain(corpus, 1)
    at = {key: corpus / key for key in ("points", "copies", "spans", "tokenizer")}
    given = {"share": "1-of-2", "owners": corpus / "owners"}
    views = {"original": corpus / "o", "redacted": corpus / "r"}
    with pytest.raises(InputError, match="goes with owners"):
        partition(ALL, **at, **views, policies=SETTINGS, **{alone: given[alone]})
    assert not (corpus / "o").exists()


def test_a_key_that_is_no_key_is_refused(corpus):
    (corpus / "key").write_bytes(b"short")
    with pytest.raises(InputError, match=f"key: expected {BLOCK} bytes"):
        digests(
            DedupSpec(),
            points=corpus / "points",
            key=corpus / "key",
            share="1-of-1",
            output=corpus / "digests",
        )
    assert not (corpus / "digests").exists()
