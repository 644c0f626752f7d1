"""The neighbour test against the complete stages run on files, against recall, and against policies
that must not pass.
"""

import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import orjson
import pytest
import yaml
from tested_neighbours import BLIND, CODE, corpus_of, run, upper, write

from confide.certify.findings import check_findings
from confide.data import gold_columns
from confide.data import neighbours as core
from confide.data.gold_columns import read
from confide.data.neighbours import Kind, Secret, compare, draw, lot_of, quotas
from confide.data.partition_files import load_partition
from confide.data.redaction import finder_of
from confide.files import shards
from confide.files.io import read_json, sha256
from confide.policies import POLICIES
from confide.policies.regex import regex
from confide.provenance.terms import digest_of_specs
from confide.specs import (
    CanarySpec,
    CustomerSimSpec,
    DedupSpec,
    EverythingPolicySpec,
    PartitionSpec,
    RecallSpec,
    RedactSpec,
    SplitSpec,
)
from confide.stages.dedup import dedup
from confide.stages.partition import partition
from confide.stages.plant import plant
from confide.stages.recall import recall
from confide.stages.redact import redact
from confide.stages.split import split
from confide.text.found_values import FoundValue, FoundValues
from confide.text.tokenizer import load, save, train_bpe
from confide.types import MASK, Span
from tests.terms import TEXT

POLICY = yaml.safe_load((Path(__file__).parents[2] / "params.yaml").read_text())["policies"]
SIMULATED = RedactSpec(
    policy=POLICY["customersim"], conservative=POLICY["customersim_conservative"]
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A simulated corpus with 3 canaries planted 4 times each, and a tokenizer."""
    folder = tmp_path_factory.mktemp("corpus")
    spec = CustomerSimSpec(
        reader="customersim", sizes={"train": 40, "valid": 3, "test": 3}, users=300
    )
    split(SplitSpec(corpus=spec), output=folder / "raw")
    plant(
        CanarySpec(count=3, copies=4, controls=1),
        points=folder / "raw",
        output=folder / "points",
        canaries=folder / "c",
    )
    save(train_bpe((point.text for point in read(folder / "points")), 400), folder / "tokenizer")
    return folder


# Against the truth
# --------------------------------------------------------------------------------------------------


def complete(folder, points, redaction, scope, tokenizer):
    """All data stages on files: the bytes that training reads, and the partition."""
    folder.mkdir()
    paths = {name: folder / name for name in ("points", "copies", "spans", "original", "redacted")}
    write(paths["points"], points)
    dedup(DedupSpec(), points=paths["points"], output=paths["copies"])
    redact(redaction, points=paths["points"], output=paths["spans"])
    policies = digest_of_specs(redaction)
    partition(PartitionSpec(scope=scope), **paths, tokenizer=tokenizer, policies=policies)
    return paths["redacted"].read_bytes(), load_partition(paths["original"], paths["redacted"])


def literal(points, secret):
    """D' of the whole corpus with this one occurrence masked."""
    text = secret.text[: secret.start] + MASK + secret.text[secret.end :]
    return [
        point._replace(text=text, gold=[]) if point.key == secret.key else point for point in points
    ]


def masked(points, secret):
    """D' of the whole corpus, written down once more: first copy masked, later ones a whole
    <MASK>.
    """
    second = []
    first = True
    for point in points:
        hit = (
            point.split == "train"
            and point.text == secret.text
            and (MASK not in point.text or point.key == secret.key)
        )
        text = point.text[: secret.start] + MASK + point.text[secret.end :] if first else MASK
        second.append(point._replace(text=text, gold=[]) if hit else point)
        first = first and not hit
    return second


def contextual(spec):
    """A policy that finds only numbers where <MASK> stands in the text, too."""
    usual = regex(spec)
    return lambda text: [
        span for span in usual(text) if MASK not in text or text[span.start].isdigit()
    ]


@pytest.mark.parametrize(
    ("kind", "scope"),
    [("missing", "private"), ("missing", "all"), ("contextual", "private"), ("silent", "private")],
)
def test_the_local_result_is_that_of_the_complete_stages(
    tmp_path, corpus, monkeypatch, kind, scope
):
    redaction = SIMULATED.model_copy(update={"miss_rate": 0.4})
    if kind == "contextual":
        monkeypatch.setitem(POLICIES, "regex", contextual)
    if kind == "silent":  # pi_c notices nothing but telephone numbers
        noticed = redaction.conservative.model_copy(
            update={"patterns": {"phone": POLICY["customersim"]["patterns"]["phone"]}}
        )
        redaction = redaction.model_copy(update={"conservative": noticed})
    points = list(read(corpus / "points"))
    kinds = Counter(secret.kind for secret in core.secrets_of(points))
    wanted = quotas({kind: size for kind, size in kinds.items() if not kind.planted}, 20)
    drawn = draw(core.secrets_of(points), {Kind(True, "canary"): 0} | wanted, lot=b"3")
    drawn += [secret for secret in core.secrets_of(points) if secret.label == "canary"][4:6]
    find = finder_of(redaction)
    words = load(corpus / "tokenizer")
    tester = core.Tester(
        core.process_of(find, PartitionSpec(scope=scope), words),
        core.touched(points, drawn),
        dedup=True,
    )
    before, first = complete(tmp_path / "d", points, redaction, scope, corpus / "tokenizer")
    kinds = set()
    for index, secret in enumerate(drawn):
        after, second = complete(
            tmp_path / str(index), masked(points, secret), redaction, scope, corpus / "tokenizer"
        )
        outcome, alone = tester.test(secret)
        assert (before == after) == (outcome.kind == "same")
        assert outcome == compare(first, second)
        kinds.add(outcome.kind)
        if secret.label == "canary":
            text = literal(points, secret)
            place = tmp_path / f"literal-{index}"
            assert alone == compare(
                first, complete(place, text, redaction, scope, corpus / "tokenizer")[1]
            )
    assert {
        "missing": {"same", "private"},
        "contextual": {"same", "private"},
        "silent": {"same", "exposed"},
    }[kind] <= kinds


@pytest.mark.parametrize("gamma", [0, 0.1, 0.5])
def test_all_secrets_of_a_context_free_policy_agree_with_recall(tmp_path, corpus, gamma):
    redaction = SIMULATED.model_copy(update={"miss_rate": gamma})
    redact(redaction, points=corpus / "points", output=tmp_path / "spans")
    spec = RecallSpec(text=TEXT, redact=redaction, reads=[])
    recall(
        spec, points=corpus / "points", spans=tmp_path / "spans", output=tmp_path / "recall.json"
    )
    known = read_json(tmp_path / "recall.json")
    found = run(tmp_path / "n", corpus / "points", redaction)
    assert (
        found["census"]
        and found["secrets"] == found["sampled"] == known["occurrences"]["secrets"] > 100
    )
    assert found["gamma"] == known["miss_rate"] and found["worst_label"] == known["worst_label"]
    assert found["gamma_upper"] >= known["miss_rate_upper"]  # one of more bounds that hold together
    assert found["unique"]["different"] == known["unique"]["missed"]
    assert found["planted"]["secrets"] == known["planted"]["secrets"] == 12
    assert {label: row["different"] for label, row in found["labels"].items()} == {
        label: row["missed"] for label, row in known["labels"].items()
    }
    assert (gamma > 0) == (found["gamma"] > 0)
    assert found["misaligned"] == found["delta2"] == found["occurrences"]["unstable"] == 0


# Policies and stages that must not pass
# -------------------------------------------------------------------------------


def test_a_policy_that_finds_everything_leaves_no_trace(tmp_path):
    found = run(tmp_path, corpus_of("my code is [123456]", "and [654321]?", "fine"), CODE)
    assert (found["gamma"], found["delta2"], found["secrets"], found["sampled"]) == (0, 0, 2, 2)
    assert found["gamma_upper"] == pytest.approx(
        1 - (0.05 / 4) ** (1 / 2)
    )  # four bounds hold together
    assert found["note"] is None


def test_a_missed_secret_changes_one_private_point(tmp_path):
    found = run(tmp_path, corpus_of("my code is [123456]", "and [654321]?"), BLIND)
    assert (found["gamma"], found["delta2"], found["misaligned"], found["gamma_upper"]) == (
        1,
        0,
        0,
        1,
    )


def test_a_missed_secret_leaves_a_trace_even_where_its_mask_would_be_filled_with_it(tmp_path):
    missing = BLIND.model_copy(update={"conservative": EverythingPolicySpec(kind="everything")})
    points = corpus_of("my code is [123456]")
    only = FoundValues([FoundValue("is", "123456", "")])
    assert only.fill(f"my code is {MASK}", 0, "d:0") == points[0].text
    spans = tmp_path / "spans"
    write(tmp_path / "points", points)
    redact(missing, points=tmp_path / "points", output=spans)
    measured = tmp_path / "recall.json"
    spec = RecallSpec(text=TEXT, redact=missing, reads=[])
    recall(spec, points=tmp_path / "points", spans=spans, output=measured)
    found = run(tmp_path / "n", points, missing, partition=PartitionSpec(fill="public"))
    assert found["gamma"] == 1
    check_findings(read_json(measured), found, measured, merge_masks=False)


def test_a_silent_conservative_policy_exposes(tmp_path):
    silent = BLIND.model_copy(update={"conservative": BLIND.policy})
    found = run(tmp_path, corpus_of("my code is [123456]", "<MASK> said [654321]"), silent)
    assert (found["gamma"], found["delta2"], found["delta2_upper"]) == (
        1,
        0.5,
        pytest.approx(upper(1, 2)),
    )


def test_a_policy_that_looks_at_the_word_before_is_unstable(tmp_path, monkeypatch):
    """It finds a code, but a name only behind a code; masked, the code is none, and the name
    shows.
    """

    def fickle(spec):
        def find(text):
            words = text.split(" ")
            spans = []
            place = 0
            for before, word in zip(["", *words], words, strict=False):
                if word.isdigit() or (word.istitle() and before.isdigit()):
                    spans.append(Span(place, place + len(word), "found"))
                place += len(word) + 1
            return spans

        return find

    monkeypatch.setitem(POLICIES, "regex", fickle)
    points = corpus_of("code [123456] Ann waits", "code [654321] please", "hello [234567] Bo")
    found = run(
        tmp_path,
        points,
        CODE.model_copy(update={"conservative": EverythingPolicySpec(kind="everything")}),
    )
    assert found["occurrences"]["unstable"] == found["occurrences"]["different"] == 2
    assert found["labels"]["code"]["unstable"] == 2 and found["gamma"] == pytest.approx(2 / 3)
    assert found["delta2"] == 0


def test_deduplication_that_merges_masked_texts_is_caught(tmp_path, monkeypatch):
    """A text with <MASK> taken for a copy makes two points of one; the partition refuses such a
    corpus.
    """

    def merging(rows, digest):
        seen = set()
        for key, text, part, _ in rows:
            if part == "train" and text in seen:
                yield key
            seen.add(text)

    points = corpus_of("my code is <MASK>", "my code is [123456]", "other [111111]")
    assert run(tmp_path, points, CODE)["misaligned"] == 0
    monkeypatch.setattr(core, "copies", merging)
    found = run(tmp_path, points, CODE)
    assert (found["misaligned"], found["gamma"], found["delta2"]) == (1, 0.5, 0.5)


def test_copies_masked_and_left_alone(tmp_path):
    points = corpus_of(*["my code is [123456]"] * 3, "other")
    found = run(tmp_path / "masked", points, CODE)
    assert (found["gamma"], found["misaligned"]) == (0, 0)
    # literally: the first copy masked, the second becomes the first (1 point changes); a later one
    # masked is no <MASK> (1)
    assert found["literal"] == {"exposed": 0, "points": 1}
    assert (found["gamma_literal"], found["doubled_literal"]) == (1, 0)
    found = run(tmp_path / "missed", points, BLIND)
    assert (found["gamma"], found["misaligned"], found["literal"]["points"]) == (
        1,
        0,
        2,
    )  # both the first and the second
    assert found["doubled_literal"] == pytest.approx(1 / 3)
    kept = run(tmp_path / "kept", points, CODE, partition=PartitionSpec(dedup=False))
    assert (kept["gamma"], kept["gamma_literal"]) == (0, 0)


def test_occurrences_and_unique_strings(tmp_path):
    """One string in ten texts, missed: ten occurrences are one trial, not ten; the bound is the
    larger of both.
    """
    points = corpus_of(
        *[f"{word} [123456]" for word in "abcdefghij"],
        *[f"code [{n}]" for n in range(100000, 100010)],
    )
    once = CODE.policy.model_copy(update={"patterns": {"code": r"\b1000\d\d\b"}})
    found = run(tmp_path, points, CODE.model_copy(update={"policy": once}))
    assert [found[name]["secrets"] for name in ("occurrences", "unique")] == [20, 11]
    assert [found[name]["different"] for name in ("occurrences", "unique")] == [10, 1]
    assert found["gamma"] == 0.5
    assert found["gamma_upper"] == pytest.approx(max(upper(10, 20), upper(1, 11)))


# Sampling and reporting
# -----------------------------------------------------------------------------------------------


def test_samples_are_uniform_without_replacement_and_do_not_depend_on_order():
    secrets = [Secret(f"d:{i}", "x" * 9, 0, 1 + i % 3, "code") for i in range(40)]
    ten = {Kind(False, "code"): 10}
    drawn = draw(secrets, ten, lot=b"1")
    assert len(set(drawn)) == 10
    assert draw(secrets[::-1], ten, lot=b"1") == drawn != draw(secrets, ten, lot=b"2")
    assert sorted(draw(secrets, {Kind(False, "code"): 99}, lot=b"1")) == sorted(secrets)
    counts = np.zeros(40)
    for number in range(800):
        for secret in draw(secrets, ten, str(number).encode()):
            counts[int(secret.key[2:])] += 1
    assert (
        (counts - 200) ** 2 / 200
    ).sum() < 62  # chi squared, 39 degrees of freedom, without-replacement: p < .01


def test_the_lot_changes_with_any_byte_of_the_points(tmp_path):
    file = tmp_path / "points.jsonl"
    lots = set()
    for content in ("a", "b", "a"):
        file.write_text(content)
        lots |= {lot_of(file, 0), lot_of(file, 1)}
    assert len(lots) == 4


def test_a_sample_is_no_census(tmp_path, corpus):
    found = run(tmp_path, corpus / "points", SIMULATED, sample=30)
    assert found["sampled"] == 30 < found["secrets"] and not found["census"]
    rare = min(row["unique"]["secrets"] for row in found["labels"].values())
    assert found["gamma_upper"] == pytest.approx(
        1 - (0.05 / (4 * len(found["labels"]))) ** (1 / rare)
    )
    assert found == run(tmp_path, corpus / "points", SIMULATED, sample=30)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("as_written", [True, False])
@pytest.mark.parametrize("sample", [30, 10_000])
def test_neither_shards_nor_processes_show(
    tmp_path, corpus, monkeypatch, sample, as_written, threads
):
    """Of points as our stages write them, and of others, which are read row by row."""
    rows = [orjson.loads(line) for line in (corpus / "points").read_bytes().splitlines()]
    if not as_written:
        rows = [dict(reversed(row.items())) for row in rows]
    points = tmp_path / "points"
    points.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    shutil.copy(corpus / "tokenizer", tmp_path / "tokenizer")
    whole = run(tmp_path / "whole", points, SIMULATED, sample=sample)
    if sample > len(rows):  # a census has no lot
        assert run(tmp_path / "written", corpus / "points", SIMULATED, sample=sample) == whole
    monkeypatch.setattr(shards, "SIZE", 5000)
    monkeypatch.setattr(gold_columns, "SPARE", 5)
    assert len(shards.shards(points)) > 5
    assert run(tmp_path / "parts", points, SIMULATED, threads, sample=sample) == whole


@pytest.mark.parametrize(
    "points", [corpus_of("no secret", "none"), corpus_of("[123456]", split="test"), []]
)
def test_without_gold_rates_are_null(tmp_path, points):
    found = run(tmp_path, points, CODE)
    assert [found[name] for name in ("gamma", "gamma_upper", "delta2", "delta2_upper")] == [
        None
    ] * 4
    assert (found["secrets"], found["labels"]) == (0, {}) and "names no secrets" in found["note"]


def test_it_says_what_it_was_measured_on(tmp_path):
    """A tokenizer that told no texts apart would find no secret that leaves a trace: its digest
    stands there, too.
    """
    reads = [
        {"stage": "tokenizer", "source": "bpe", "public": True},
        {"stage": "policy", "source": "code", "public": True},
    ]
    given = {"partition": PartitionSpec(dedup=False, scope="all"), "reads": reads}
    found = run(tmp_path, corpus_of("my code is [123456]"), CODE, **given)
    assert found["terms"] == TEXT | {
        **{"point": "turn", "policies": digest_of_specs(CODE), "everything_private": False},
        **{"dedup": False, "scope": "all", "merge_masks": False},
    }
    assert [read["digest"] for read in found["reads"]] == [sha256(tmp_path / "tokenizer"), None]


def test_no_text_is_written(tmp_path):
    run(tmp_path, corpus_of("the word is [hunter2]"), CODE)
    assert b"hunter" not in (tmp_path / "neighbours.json").read_bytes()
