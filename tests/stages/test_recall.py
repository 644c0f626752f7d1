"""Recall and miss rates against hand counts, scipy's exact interval, and the closed form for no
misses.
"""

import hashlib
import tracemalloc

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from confide.dp.accounting.bounds import clopper_pearson
from confide.errors import InputError
from confide.files import buckets, columns, shards
from confide.files.io import read_json, write_jsonl
from confide.policies import covered
from confide.provenance.terms import digest_of_specs
from confide.specs import ReadSpec, RecallSpec
from confide.stages.recall import recall
from tests import beside
from tests.terms import TEXT


@given(
    st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    st.floats(0.6, 0.99),
)
def test_bound_is_the_exact_one_sided_interval(case, confidence):
    events, trials = case
    exact = (
        binomtest(events, trials, alternative="less").proportion_ci(confidence, method="exact").high
    )
    assert clopper_pearson(events, trials, confidence) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("trials", [1, 200, 5000])
def test_bound_without_events_has_a_closed_form(trials):
    assert clopper_pearson(0, trials, 0.95) == pytest.approx(1 - 0.05 ** (1 / trials), rel=1e-12)


def test_published_examples_and_ends():
    assert clopper_pearson(0, 200, 0.95) == pytest.approx(
        0.0149, abs=5e-5
    )  # 200 points without a miss
    assert clopper_pearson(20, 200, 0.95) == pytest.approx(0.142, abs=5e-4)  # recall 90 %
    assert clopper_pearson(3, 3, 0.95) == 1.0


@given(
    st.sets(st.tuples(st.integers(0, 9), st.integers(1, 3))), st.integers(0, 9), st.integers(1, 5)
)
def test_covered_means_every_character(spans, start, size):
    ranges = sorted([a, a + length, "x", 1.0] for a, length in spans)
    inside = {i for a, b, *_ in ranges for i in range(a, b)}
    assert covered(start, start + size, ranges) == (set(range(start, start + size)) <= inside)


def span(start, end, label):
    return [start, end, label, 1.0]


POINTS = [  # key, text, split, gold
    ("a:0", "id 12 name Al", "train", [span(3, 5, "id"), span(11, 13, "name")]),
    (
        "a:1",
        "id 12 name Al",
        "train",
        [span(3, 5, "id"), span(11, 13, "name")],
    ),  # the same text: not a new point
    ("a:2", "again 12", "train", [span(6, 8, "id")]),
    ("a:3", "bare Bo", "train", [span(5, 7, "name")]),
    ("a:4", "nothing 7", "train", []),
    ("a:5", "public", "train", []),
    ("a:6", "<MASK> 12", "train", [span(7, 9, "id")]),
    ("a:7", "<MASK> 12", "train", [span(7, 9, "id")]),
    ("b:0", "test Bo", "test", [span(5, 7, "name")]),
]
OWNERS = {"a:0": "ann", "a:1": "bob", "a:2": "ann"}  # all others are nobody's
FINDINGS = [
    {
        "key": "a:0",
        "spans": [span(3, 5, "digits")],
        "conservative": True,
    },  # Al missed, its point noticed
    {"key": "a:1", "spans": [span(3, 5, "digits")], "conservative": True},
    {
        "key": "a:2",
        "spans": [span(6, 7, "digits")],
        "conservative": True,
    },  # one character short: missed
    {
        "key": "a:4",
        "spans": [span(8, 9, "digits")],
        "conservative": False,
    },  # touches no gold secret
    {"key": "a:6", "spans": [], "conservative": True, "failed": True},
    {"key": "a:7", "spans": [span(7, 9, "digits")], "conservative": True},
    {"key": "b:0", "spans": [span(5, 7, "digits")], "conservative": True},
]


REDACT = {
    "policy": {"kind": "regex", "patterns": {"digits": r"\d+"}},
    "conservative": {"kind": "everything"},
}
READS = [{"stage": "policy", "source": "digits", "public": True}]
SPEC = RecallSpec(text=TEXT, redact=REDACT, reads=READS, confidence=0.9)


def run(tmp_path, points=POINTS, findings=FINDINGS):
    rows = [dict(zip(("key", "text", "split", "gold"), point, strict=True)) for point in points]
    rows = [row | {"owner": OWNERS.get(row["key"])} for row in rows]
    write_jsonl(tmp_path / "p", rows)
    beside.write(tmp_path / "s", findings, tmp_path / "p", digest_of_specs(SPEC.redact))
    recall(SPEC, points=tmp_path / "p", spans=tmp_path / "s", output=tmp_path / "recall.json")
    return read_json(tmp_path / "recall.json")


def test_it_says_what_it_was_measured_on(tmp_path):
    """The text as it was named, and policies by the digest of the specification that the stage
    itself was given.
    """
    result = run(tmp_path)
    policies = hashlib.sha256(SPEC.redact.model_dump_json().encode()).hexdigest()
    assert result["terms"] == TEXT | {
        "point": "turn",
        "policies": policies,
        "everything_private": True,
    }
    assert result["reads"] == [READS[0] | {"digest": None}]


def test_models_of_policies_are_named_by_their_bytes_or_not_called_public(tmp_path):
    model = tmp_path / "model"
    output = tmp_path / "recall.json"
    read = READS[0] | {"source": "digits: model", "artefact": str(model)}
    spec = SPEC.model_copy(update={"reads": [ReadSpec(**read)]})
    run(tmp_path)
    with pytest.raises(
        InputError, match=r"reads\.policy = .*model': is declared public, but was not found"
    ):
        recall(spec, points=tmp_path / "p", spans=tmp_path / "s", output=output)
    model.write_bytes(b"weights")
    recall(spec, points=tmp_path / "p", spans=tmp_path / "s", output=output)
    assert read_json(output)["reads"][0]["digest"] == hashlib.sha256(b"weights").hexdigest()


def test_a_secret_that_a_copy_alone_marks_stands_in_its_text_all_the_same(tmp_path):
    """Two people marked each text; training reads the first of its copies, secret and all."""
    points = []
    for n in range(5):
        text = f"{n} asks for Roberto"
        points += [
            (f"a{n}:0", text, "train", [span(0, 1, "name")]),
            (f"b{n}:0", text, "train", [span(11, 18, "name")]),
            (f"c{n}:0", text, "train", [span(11, 18, "name")]),
        ]
    result = run(tmp_path, points, [])
    assert (result["multiplicity"], result["multiplicity_distinct"]) == (10, 5)


@pytest.mark.parametrize(
    ("spans", "missed", "shown"),
    [
        ([span(3, 7, "a"), span(8, 13, "a")], 1, 0),  # adjoining masks may be merged
        ([span(3, 13, "a")], 0, 0),
        ([span(3, 7, "a")], 1, 1),
        ([span(4, 13, "a")], 1, 1),
        ([], 1, 1),
    ],
)
def test_white_space_alone_is_all_that_merged_masks_may_hide(tmp_path, spans, missed, shown):
    points = [("d:0", "is Anna Smith", "train", [span(3, 13, "name")])]
    found = [{"key": "d:0", "spans": spans, "conservative": True}] if spans else []
    (counts,) = run(tmp_path, points, found)["labels"].values()
    assert (counts["missed"], counts["shown"]) == (missed, shown)


def test_hand_counts(tmp_path):
    result = run(tmp_path)
    counts = ("secrets", "missed", "unprotected")
    assert [result["labels"]["id"][name] for name in counts] == [5, 2, 0]  # a:2 partly, a:6 failed
    assert [result["labels"]["name"][name] for name in counts] == [
        3,
        3,
        1,
    ]  # Al twice, Bo unnoticed
    assert [result["occurrences"][name] for name in counts] == [8, 5, 1]
    assert [result["unique"][name] for name in counts] == [3, 3, 1]  # 12, Al, Bo
    assert result["labels"]["id"]["unique"] == {"secrets": 1, "missed": 1, "unprotected": 0}
    assert (result["worst_label"], result["recall"], result["miss_rate"]) == (
        "name",
        0,
        1,
    )  # not the 5 / 8 of both labels
    assert result["delta2"] == 1 / 3
    assert result["labels"]["name"]["delta2_given_miss"] == 1 / 3
    assert result["precision"] == 4 / 5
    assert result["spans"] == {"digits": {"found": 5, "precision": 4 / 5}}
    assert result["miss_rate_upper"] == 1.0  # all three unique secrets are missed somewhere
    each = 1 - 0.1 / 6  # three bounds of two labels hold together
    assert result["confidence_each"] == pytest.approx(each)
    assert result["delta2_upper"] == pytest.approx(
        binomtest(1, 2, alternative="less").proportion_ci(each).high
    )  # Al, Bo
    assert result["pools"] == {"public": 2, "private": 6}
    assert result["multiplicity"] == 5  # every point with 12
    assert (
        result["multiplicity_distinct"] == 4
    )  # 12: the first text once, a:2, and both with <MASK>
    assert (
        result["multiplicity_authors"] == 4
    )  # ann twice, bob, and two points of nobody, which might be anybody's
    assert result["multiplicity_authors_distinct"] == 3  # not bob, whose text is a copy of ann's
    assert result["policy_failures"] == 1
    assert result["note"] is None


def test_a_policy_that_finds_nothing_is_said_to(tmp_path, capsys):
    """Of canaries that are planted it may find all."""
    real = ("a:0", "order AB-12", "train", [])
    planted = ("canary-0-0:0", "id 7", "train", [span(3, 4, "canary")])
    of_planted = [{"key": planted[0], "spans": [span(3, 4, "digits")], "conservative": True}]
    run(tmp_path, [real, planted], of_planted)
    said = capsys.readouterr().err
    assert "finds nothing, so that redaction changes nothing in the 2 training" in said
    run(tmp_path)
    assert not capsys.readouterr().err


def test_no_secret_is_written(tmp_path):
    points = [("a:0", "the code is hunter2", "train", [span(12, 19, "id")])]
    run(tmp_path, points, [])
    assert b"hunter2" not in (tmp_path / "recall.json").read_bytes()


def test_without_gold_rates_are_null(tmp_path):
    result = run(tmp_path, [(key, text, split, []) for key, text, split, _ in POINTS])
    names = (
        "recall",
        "precision",
        "miss_rate",
        "miss_rate_upper",
        "delta2",
        "delta2_upper",
        "multiplicity",
    )
    assert [result[name] for name in names] == [None] * 7
    assert "names no secrets" in result["note"]
    assert result["pools"] == {"public": 2, "private": 6}


def test_planted_secrets_are_no_secrets_of_the_corpus(tmp_path):
    """Half of the corpus's own are missed; what was planted, and is found, changes none of its
    rates.
    """
    own = [(f"d{n}:0", f"id {n}", "train", [span(3, 4, "id")]) for n in range(4)]
    found = [
        {"key": f"d{n}:0", "spans": [span(3, 4, "digits")], "conservative": True} for n in (0, 1)
    ]
    alone = run(tmp_path, own, found)
    names = ["canary-0-0:0", "canary-0-1:0", "audit-game-0:0"]
    planted = [
        (name, f"id {n % 2 + 7}", "train", [span(3, 4, "id")]) for n, name in enumerate(names)
    ]
    spans = [{"key": name, "spans": [span(3, 4, "digits")], "conservative": True} for name in names]
    both = run(tmp_path, own + planted, found + spans)
    assert alone["miss_rate"] == 0.5 and both["planted"] == {
        "secrets": 3,
        "missed": 0,
        "unprotected": 0,
    }
    assert both == alone | {"planted": both["planted"], "pools": both["pools"]}
    only = run(tmp_path, planted, spans)
    assert (
        only["miss_rate"] is only["recall"] is only["multiplicity"] is None
        and only["planted"]["secrets"] == 3
    )


@pytest.mark.parametrize(
    "findings",
    [FINDINGS[1::-1], [{"key": "zz", "spans": [], "conservative": True}], [{"spans": []}]],
)
def test_spans_of_other_points_are_refused(tmp_path, findings):
    with pytest.raises(InputError):
        run(tmp_path, findings=findings)
    assert not (tmp_path / "recall.json").exists()


def test_labels_that_are_no_secrets_do_not_count(tmp_path):
    """And one that is named as secret, and that no secret has, counts as missed."""
    everything = run(tmp_path)

    def counted(*labels):
        text = SPEC.text.model_copy(update={"labels": list(labels)})
        spec = SPEC.model_copy(update={"text": text})
        recall(spec, points=tmp_path / "p", spans=tmp_path / "s", output=tmp_path / "recall.json")
        return read_json(tmp_path / "recall.json")

    ids = counted("id")
    assert list(ids["labels"]) == ["id"] and ids["worst_label"] == "id"
    assert ids["miss_rate"] == everything["labels"]["id"]["miss_rate"] == 2 / 5
    assert ids["pools"] == everything["pools"] and ids["terms"]["labels"] == ["id"]
    wrong = counted("id", "nmae")
    assert (wrong["worst_label"], wrong["recall"], wrong["miss_rate_upper"]) == ("nmae", 0, 1)
    spec = SPEC.model_copy(update={"named": ["phone"]})  # a column of which no value was found
    recall(spec, points=tmp_path / "p", spans=tmp_path / "s", output=tmp_path / "recall.json")
    named = read_json(tmp_path / "recall.json")
    assert named["labels"].keys() == everything["labels"].keys() | {"phone"}
    assert named["labels"]["phone"]["secrets"] == 0 and named["miss_rate_upper"] == 1


def write_secrets(folder, count):
    """Points that each hold a secret of their own, as `split` writes them, and findings."""
    points = b""
    findings = []
    for number in range(count):
        point = {
            "key": f"d{number}:0",
            "text": f"id {number:06}",
            "doc": f"d{number}",
            "split": "train",
            "domain": None,
            "owner": f"u{number % 7}" if number % 2 else None,
            "gold": [span(3, 9, "id")],
            "canary": None,
        }
        finding = {
            "key": point["key"],
            "spans": [span(3, 9, "digits")],
            "conservative": True,
            "at": len(points),
        }
        points += orjson.dumps(point) + b"\n"
        findings.append(finding)
    (folder / "p").write_bytes(points)
    beside.write(folder / "s", findings, folder / "p", digest_of_specs(SPEC.redact))


def test_memory_does_not_grow_with_the_secrets(tmp_path, monkeypatch):
    """Records of four times as many different secrets are never held together."""
    monkeypatch.setattr(shards, "SIZE", 1 << 16)
    monkeypatch.setattr(columns, "LARGEST", 1 << 17)
    monkeypatch.setattr(buckets, "LARGEST", 1 << 17, raising=False)

    def peak(count):
        write_secrets(tmp_path, count)
        paths = {"points": tmp_path / "p", "spans": tmp_path / "s"}
        tracemalloc.start()
        recall(SPEC, **paths, output=tmp_path / "recall.json")
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert read_json(tmp_path / "recall.json")["unique"]["secrets"] == count
        return most

    peak(100)  # loads what is loaded once
    assert peak(8000) < 1.3 * peak(2000)
