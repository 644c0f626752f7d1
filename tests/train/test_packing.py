"""Packed points against a slow oracle: one stream per domain as a Python list, cut by hand; and
what cannot be packed.
"""

from collections import defaultdict
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.config import jobs
from confide.config.params import load
from confide.data.partition_files import within
from confide.dp.ledger import Ledger
from confide.errors import InputError
from confide.files.io import read_jsonl
from confide.models.batches import padded
from confide.train.packing import pack, packed
from confide.train.pools import pool_sizes
from confide.types import MASK, Packing, Partition, View
from tests.config.test_params import edited
from tests.stages.killing import killed
from tests.stages.test_partition import finding
from tests.stages.test_partition import point as line_of
from tests.stages.test_partition import run as written
from tests.stages.test_train import PRIVACY, RECIPE, outputs, partition, run, spec, vocabulary

__all__ = ["vocabulary"]

END = 1
BOTH = ("original", "redacted")


def view_of(texts: list[list[int]]) -> View:
    """Tokens above 50 are private."""
    ids = np.array([token for text in texts for token in text], np.int32)
    return View(ids, np.cumsum([0, *map(len, texts)]).astype(np.int64), ids > 50)


def made(points: list[tuple[list[int], list[int], int, int]]) -> Partition:
    """A partition of (original, redacted, split, domain); secrets are tokens above 75."""
    first, second, split, domain = ([point[field] for point in points] for field in range(4))
    original = view_of(first)
    count = len(points)
    flags = (
        np.ones(count, bool),
        np.zeros(count, bool),
        np.array(split, np.uint8),
        np.array(domain, np.int32),
    )
    return Partition(
        original,
        view_of(second),
        original.ids > 75,
        *flags,
        np.arange(count, dtype=np.int32),
        ("a", "b"),
    )


def texts(view: View) -> list[list[int]]:
    return [view[point].tolist() for point in range(len(view))]


tokens = st.lists(st.integers(2, 99), max_size=7)
corpora = st.lists(st.tuples(tokens, tokens, st.integers(0, 2), st.integers(-1, 1)), max_size=12)


@given(corpora, st.integers(2, 9))
def test_chunks_are_the_points_of_a_domain_end_to_end(points, size):
    data = made(points)
    found, most = packed(data, size, END, BOTH)
    expected = {name: [] for name in BOTH}
    held = [1]
    domains = []
    for domain in sorted({point[3] for point in points if point[2] == 0}):
        own = {}
        for number, name in enumerate(BOTH):
            stream = []
            owners = []
            for index, point in enumerate(points):
                if point[2] == 0 and point[3] == domain:
                    stream += [*point[number], END]
                    owners += [index] * len(point[number]) + [None]
            pieces = [
                stream[:-1][at : at + size - 1]
                for at in range(0, max(1, len(stream) - 1), size - 1)
            ]
            chunks_of = defaultdict(set)
            for place, index in enumerate(owners):
                if index is not None:
                    chunks_of[index].add(place // (size - 1))
            held += map(len, chunks_of.values())
            assert [token for piece in pieces for token in piece] == stream[:-1] and {
                len(piece) for piece in pieces[:-1]
            } <= {size - 1}
            own[name] = pieces
        count = max(map(len, own.values()))
        domains += [domain] * count
        for name in BOTH:
            expected[name] += own[name] + [[]] * (count - len(own[name]))
    rest = [point for point in points if point[2] != 0]
    for number, name in enumerate(BOTH):
        view = found.view(name)
        assert texts(view) == expected[name] + [point[number] for point in rest]
        assert (view.private == (view.ids > 50)).all()
    assert (found.secret == (found.original.ids > 75)).all()
    assert found.domain.tolist() == domains + [point[3] for point in rest]
    assert found.split.tolist() == [0] * len(domains) + [point[2] for point in rest]
    assert found.private.all() and not found.copy.any()
    assert found.owner.tolist() == [-1] * len(domains) + [
        index for index, point in enumerate(points) if point[2] != 0
    ]
    assert most == max(held)
    assert {
        len(array)
        for array in (found.original, found.redacted, found.private, found.copy, found.owner)
    } == {len(found.split)}


@given(corpora, st.integers(2, 9), st.data())
def test_as_many_other_tokens_move_no_more_chunks_than_are_claimed(points, size, data):
    """A whole point changes at most `most` chunks of each view, tokens in a row that are fewer than
    a chunk's at most two.
    """
    train = [index for index, point in enumerate(points) if point[2] == 0]
    if not train:
        return
    chosen = data.draw(st.sampled_from(train))
    texts_of = points[chosen][:2]
    length = [len(text) for text in points[chosen][:2]]
    starts = [data.draw(st.integers(0, count)) for count in length]

    def changed(other: list[list[int]]) -> tuple[list[int], int]:
        after = [
            (*other, *point[2:]) if index == chosen else point for index, point in enumerate(points)
        ]
        (one, most), (two, same) = (
            packed(made(list(some)), size, END, BOTH) for some in (points, after)
        )
        assert most == same and len(one.split) == len(two.split)
        return [
            sum(x != y for x, y in zip(texts(one.view(n)), texts(two.view(n)), strict=True))
            for n in BOTH
        ], most

    whole, most = changed(
        [[101 - token for token in text] for text in texts_of]
    )  # 2..99, and none stays
    assert max(whole) <= most
    runs = [
        [
            101 - token if start <= place < start + size - 1 else token
            for place, token in enumerate(text)
        ]
        for text, start in zip(texts_of, starts, strict=True)
    ]
    assert max(changed(runs)[0]) <= min(2, most)


def test_a_chunk_larger_than_everything_is_one_per_domain():
    data = made(
        [([2, 3], [4], 0, 0), ([5], [5], 0, 1), ([6, 7, 8], [6, 7], 0, 0), ([9], [9], 2, 0)]
    )
    found, most = packed(data, 1024, END, BOTH)
    assert texts(found.original) == [[2, 3, END, 6, 7, 8], [5], [9]] and texts(found.redacted)[
        0
    ] == [4, END, 6, 7]
    assert most == 1


def test_what_is_read_of_the_redacted_text_does_not_depend_on_the_original():
    """The views differ in their number of chunks; where only the redacted one is read, nothing
    tells how many there were.
    """
    short, long = (
        made([([60] * size, [50], 0, 0), ([2, 3], [2, 3], 0, 0), ([4], [4], 1, 0)])
        for size in (1, 30)
    )
    alone = [packed(data, 4, END, ("redacted",))[0] for data in (short, long)]
    both = [packed(data, 4, END, BOTH)[0] for data in (short, long)]
    assert texts(alone[0].redacted) == texts(alone[1].redacted) == [[50, END, 2], [3], [4]]
    assert pool_sizes(alone[0])["all"] == pool_sizes(alone[1])["all"] == 2
    assert texts(alone[1].original) == [[], [], [4]]
    assert pool_sizes(both[0])["all"] == 2 and pool_sizes(both[1])["all"] == 11  # negative control


def test_masking_a_secret_in_the_raw_text_leaves_redacted_chunks_the_same(tmp_path):
    text = "call me at 12 or 345, please"
    secret = (17, 20)
    rest = [line_of(1, "my name's Ann Lee"), line_of(2, "cafe ok", "valid")]
    found = []
    for side, (words, span) in {
        "D": (text, secret),
        "D'": (text[:17] + MASK + text[20:], None),
    }.items():
        data = written(
            tmp_path / side, [line_of(0, words), *rest], (), [finding(0, span)] if span else []
        )
        data = replace(data, private=np.ones(3, bool))
        found.append({method: pack(spec(method, pack=5), data, END) for method in ("crt", "dpsgd")})
    first, second = ((side["crt"], side["dpsgd"]) for side in found)
    assert (
        texts(first[0][0].redacted) == texts(second[0][0].redacted) and first[0][1] == second[0][1]
    )
    assert (
        pool_sizes(first[0][0]) == pool_sizes(second[0][0])
        and (first[0][0].split == second[0][0].split).all()
    )
    changed = [
        one != other
        for one, other in zip(
            *(texts(side[1][0].original) for side in (first, second)), strict=False
        )
    ]
    assert (
        sum(changed) > 2
    )  # negative control: of the original text every chunk behind the secret moves


def test_a_chunk_fits_as_many_positions():
    found, _ = packed(partition(), 16, END, BOTH)
    batch = padded(found.original, found.pool("all"), END)
    assert batch.inputs.shape[1] == 16 and (batch.inputs[:, 0] == END).all()


def everything_private() -> Partition:
    data = partition()
    return replace(data, private=np.ones(60, bool))


@pytest.mark.parametrize(
    ("method", "redact", "views"),
    [
        ("crt", True, "redacted"),
        ("redacted", True, "redacted"),
        ("crt", False, "original"),
        ("dpsgd", True, "original"),
        ("nonprivate", True, "original"),
        ("jft", True, "original redacted"),
        ("schedule", True, "original redacted"),
    ],
)
def test_a_job_packs_the_views_that_it_reads(method, redact, views):
    found, packing = pack(spec(method, pack=16, redact=redact), everything_private(), END)
    assert packing.views == views and packing.tokens == 16 and packing.most == 2
    tokens = {
        name: sum(len(found.view(name)[point]) for point in found.pool("all")) for name in BOTH
    }
    assert {name for name in BOTH if tokens[name]} == set(views.split())


FEWER = RECIPE.model_copy(update={"noisy_batch_size": 4, "epochs": 2, "redaction_schedule": "step"})


@pytest.mark.parametrize("method", ["nonprivate", "redacted", "dpsgd", "crt", "jft", "schedule"])
def test_training_reads_chunks_and_says_so_in_its_ledger(
    method: str, tmp_path: Path, vocabulary: Path
) -> None:
    wanted = spec(method, pack=16).model_copy(update={"recipe": FEWER})
    made = run(tmp_path, vocabulary, wanted, everything_private())
    rows = list(read_jsonl(made["metrics"]))
    ledger = Ledger.from_file(made["ledger"])
    assert all(row["valid_ppl"] > 1 for row in rows)
    (line,) = ledger.events("packed")
    assert (line["tokens"], line["most"]) == (16, 2)
    size = len(pack(wanted, everything_private(), END)[0].pool("all"))
    assert size < 48 / 2
    rates = {release.sample_rate for release in ledger.releases() if release.step.noisy}
    assert rates == ({4 / size} if method in ("dpsgd", "crt", "jft", "schedule") else set())
    plain = run(
        tmp_path / "plain",
        vocabulary,
        wanted.model_copy(update={"pack": None}),
        everything_private(),
    )
    assert not Ledger.from_file(plain["ledger"]).events("packed")
    assert {row["valid_tokens"] for row in rows} == {
        row["valid_tokens"] for row in read_jsonl(plain["metrics"])
    }


def test_a_killed_job_says_it_once(tmp_path: Path, vocabulary: Path) -> None:
    wanted = spec("dpsgd", pack=16).model_copy(update={"recipe": FEWER})
    whole = run(tmp_path / "whole", vocabulary, wanted, everything_private())
    killed(5, lambda: run(tmp_path / "killed", vocabulary, wanted, everything_private()))
    assert (tmp_path / "killed" / "checkpoint").exists()
    run(tmp_path / "killed", vocabulary, wanted, everything_private())
    again = outputs(tmp_path / "killed")
    assert again["ledger"].read_bytes() == whole["ledger"].read_bytes()
    assert again["model"].read_bytes() == whole["model"].read_bytes()


def test_domains_are_chosen_before_packing():
    chosen = within(everything_private(), ["mail"], Path("r"))
    found, _ = pack(spec("dpsgd", pack=16), chosen, END)
    assert set(found.domain[found.pool("all")]) == {1}


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        (spec("selective", pack=16), "whole points"),
        (spec("triplet", pack=16), "many authors"),
        (
            spec("dpsgd", pack=16, privacy=PRIVACY.model_copy(update={"unit": "author"})),
            "privacy.unit: author",
        ),
        (
            spec("dpsgd", pack=16).model_copy(
                update={"recipe": RECIPE.model_copy(update={"batching": "author"})}
            ),
            "many authors",
        ),
    ],
)
def test_what_cannot_read_chunks_is_refused(wanted, says):
    with pytest.raises(InputError, match=f"pack = 16: .*{says}"):
        pack(wanted, everything_private(), END)


def test_public_points_are_not_packed():
    with pytest.raises(InputError, match="pack = 16: needs every training point private"):
        pack(spec("dpsgd", pack=16), partition(), END)


def test_parameters_are_refused_by_key(tmp_path):
    text = edited(tmp_path, "conservative: capitals", "pack: 64, conservative: capitals")
    with pytest.raises(
        InputError, match=r"datasets.sim.conservative = 'capitals': is not of kind everything"
    ):
        load(text)
    with pytest.raises(InputError, match=r"datasets.sim.pack = 1: .*greater than or equal to 2"):
        load(edited(tmp_path, "conservative: capitals", "pack: 1, conservative: capitals"))
    private = edited(tmp_path, "conservative: capitals", "pack: 64, conservative: all").read_text()
    private = private.replace("digits: {", "all: { kind: everything }\n  digits: {", 1)
    private = private.replace("recipe: quick,", "recipe: quick, dedup: false,")
    text.write_text(private)
    with pytest.raises(
        InputError, match=r"runs.selective.dataset = 'sim': is packed: .*whole points"
    ):
        load(text)
    text.write_text(private.replace("method: selective", "method: dpsgd"))
    params = load(text)
    runs = {name: jobs.of_row(params, name)[0] for name in ("crt", "public")}
    assert [jobs.training(params, run).pack for run in runs.values()] == [64, None]
    assert jobs.certification(params, runs["crt"]).train.data.everything_private


def test_packing_is_what_a_ledger_line_holds():
    ledger = Ledger()
    packing = asdict(Packing(tokens=1024, most=3, views="original"))
    ledger.packed(**packing)
    (line,) = Ledger.load(ledger.dump()).events("packed")
    assert {key: line[key] for key in packing} == packing


def test_a_point_of_another_domain_shifts_the_chunks_of_both():
    """So what takes a point's place must have its domain, as claims of chunks say."""
    points = [([10 * place + 2, 10 * place + 3], [2, 3], 0, place // 4) for place in range(8)]
    other = [(*points[0][:3], 1), *points[1:]]
    first, second = (
        texts(packed(made(some), 6, END, BOTH)[0].original) for some in (points, other)
    )
    of_another_text = [([4, 5], [4, 5], 0, 0), *points[1:]]
    third = texts(packed(made(of_another_text), 6, END, BOTH)[0].original)
    assert sum(chunk not in second for chunk in first) > 2
    assert sum(chunk not in third for chunk in first) == 1
