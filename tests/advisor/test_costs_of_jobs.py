"""What jobs would take, by what is known of them."""

import json
from contextlib import chdir
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import csv, parquet

from confide.advisor import forecast as module
from confide.advisor.forecast import PRIVATE, Forecast, parted, surveyed, views
from confide.advisor.rates import (
    ALIKE,
    BEFORE,
    ELSEWHERE,
    GUESSED,
    IMPORT,
    OF_RUNS,
    OF_TOKENS,
    TOKEN,
    UNKNOWN,
    Rate,
    kind_of,
    read_benchmark,
    read_rates,
    short,
    study_of,
)
from confide.advisor.rehearsal import CHARACTERS, Rehearsal, Text
from confide.config import jobs
from confide.config.params import load
from confide.runtime.workflow_log import WorkflowJob
from confide.specs import LinesSpec, SplitSpec, TableSpec, TokenizerSpec
from confide.stages.evaluate import TRAINED
from confide.types import Partition, View

HEAD = "s\th:m:s\tmax_rss\tmax_vms\n"
REHEARSAL = Rehearsal(seconds=40.0, per_token=2e-3, memory_mb=600.0, weights_mb=3.0)
RATES = {
    IMPORT: Rate(2.0),
    TOKEN: Rate(1e-3),
    "split": Rate(1.0, 90.0, {"mb": 0.1, "1000_points": 0.02, "1000_secrets": 0.5}),
    "tokenizer": Rate(1.0, 90.0, {"mb": 0.2}),
    "redact": Rate(1.0, 90.0, {"mb": 40.0}),
    "attack exposure": Rate(5.0, 400.0),
    "evaluate": Rate(3.0, 400.0, {OF_TOKENS: 0.25}),
    "study": Rate(2.5, 130.0, {OF_RUNS: 0.5}),
    "summary": Rate(2.5, 130.0, {OF_RUNS: 0.5}),
}


@pytest.fixture
def forecast(fresh, monkeypatch) -> Forecast:
    """Of a project with nothing built, on a machine half as fast as the other one."""
    monkeypatch.setattr(module, "read_rates", lambda: RATES)
    monkeypatch.setattr(module, "importing", lambda: 4.0)
    monkeypatch.setattr(module, "rehearse", lambda *_: REHEARSAL)
    monkeypatch.chdir(fresh.folder)
    return Forecast(load())


def job(rule: str, benchmark: str, **wildcards) -> WorkflowJob:
    return WorkflowJob(rule=rule, outputs=("x",), benchmark=benchmark, wildcards=wildcards)


def test_measurements_of_snakemake_are_read(tmp_path):
    file = tmp_path / "a.tsv"
    file.write_text(f"{HEAD}1.5\t0:00:01\t20.5\t1\n53.76\t0:00:53\t741.20\t9\n")
    cost = read_benchmark(file)
    assert (cost.seconds, cost.memory_mb, cost.source) == (53.76, 741.2, BEFORE)
    file.write_text(f"{HEAD}0.01\t0:00:00\tNA\tNA\n")
    assert read_benchmark(file).memory_mb == 0


def test_what_was_done_before_counts_first_then_what_is_like_it(forecast):
    run = next(run for run in forecast.runs.values() if run.row.method == "dpsgd")
    twins = [other.run for other in forecast.runs.values() if other.row == run.row]
    file = f"logs/benchmarks/train/{run.run}.tsv"
    train = job("train", file, run=run.run)
    assert forecast.cost(train).source == GUESSED
    for twin in twins:
        if twin != run.run:
            other = f"logs/benchmarks/train/{twin}.tsv"
            forecast.before[other] = module.Cost(seconds=7.0, memory_mb=70.0, source=BEFORE)
    if len(twins) > 1:
        assert (forecast.cost(train).seconds, forecast.cost(train).source) == (7.0, ALIKE)
    forecast.before[file] = module.Cost(seconds=9.0, source=BEFORE)
    assert (forecast.cost(train).seconds, forecast.cost(train).source) == (9.0, BEFORE)


def test_training_is_a_start_and_what_was_rehearsed(forecast):
    run = next(run for run in forecast.runs.values() if not run.row.trajectory)
    cost = forecast.cost(job("train", "logs/none.tsv", run=run.run))
    assert cost.seconds == 40.0 + module.STARTS * 4.0
    assert (cost.memory_mb, cost.disk_mb, cost.source) == (600.0, 3.0, GUESSED)


def test_reading_takes_longer_by_the_model_and_starting_by_the_machine(forecast):
    name, run = next(
        (name, run)
        for run in forecast.runs.values()
        for name in run.row.attacks
        if forecast.attacks[name] == "exposure"
    )
    cost = forecast.cost(job("attack", "logs/none.tsv", run=run.run, attack=name))
    start = module.STARTS * 2.0
    assert cost.seconds == pytest.approx(2 * start + 2 * (5.0 - start))
    assert cost.source == ELSEWHERE


def test_an_evaluation_takes_longer_by_the_tokens_that_it_reads(forecast):
    run = next(run for run in forecast.runs.values() if run.row.dataset == "sim")
    evaluate = job("evaluate", "logs/none.tsv", run=run.run)
    forecast.texts_of_runs[run.home] = Text({"train": 9999, "valid": 7, "test": 1000}, 4.0, 0.3)
    read = (1000 + TRAINED) * 5 / 1000  # thousands of tokens
    assert forecast.cost(evaluate).seconds == pytest.approx(2 * 3.0 + 2 * 0.25 * read)


def test_data_stages_take_their_time_for_megabytes_points_and_secrets(forecast):
    (source, spec), *_ = forecast.sources.items()
    text = surveyed(spec)
    points = sum(text.points.values()) / 1000
    more = 0.1 * text.characters / 1e6 + 0.02 * points + 0.5 * PRIVATE * points
    cost = forecast.cost(job("split", "logs/none.tsv", source=source))
    assert cost.seconds == pytest.approx(2 * (1.0 + more))


def test_jobs_that_share_a_text_take_their_part_of_it(forecast):
    """Redaction in shares is as much work as in one job, but that each job starts."""
    one = forecast.cost(job("redact", "a.tsv", dataset="sim", gamma="0"))
    share = forecast.cost(job("redact_share", "b.tsv", dataset="sim", gamma="0", share="2-of-4"))
    start = 2.0 * RATES["redact"].seconds
    assert one.seconds > start and one.disk_mb > 0
    assert share.seconds - start == pytest.approx((one.seconds - start) / 4)
    assert share.disk_mb == pytest.approx(one.disk_mb / 4)


def test_a_tokenizer_takes_its_time_for_the_text_that_it_is_trained_on(forecast):
    corpus = forecast.params.tokenizers["bpe"].corpus
    source = jobs.source_name(corpus, jobs.POINT, 0)
    text = surveyed(forecast.sources[source])
    trained = forecast.cost(job("tokenizer", "logs/none.tsv", tokenizer="bpe"))
    assert trained.seconds == pytest.approx(2 * (1.0 + 0.2 * text.characters / 1e6))
    published = TokenizerSpec(kind="gpt2", source="archive", public=True)
    forecast.params.tokenizers["bpe"] = published
    assert forecast.cost(job("tokenizer", "logs/none.tsv", tokenizer="bpe")).seconds == 2.0


def test_pages_take_longer_by_the_runs_of_their_study(forecast):
    name = next(iter(forecast.params.studies))
    of_study = len(jobs.runs_of(forecast.params, [name]))
    forecast.runs = dict.fromkeys(range(of_study + 3))  # of more studies
    study = forecast.cost(job(f"study_{name}", "logs/none.tsv"))
    assert study.seconds == pytest.approx(2 * (2.5 + 0.5 * of_study))
    summary = forecast.cost(job("summary", "logs/none.tsv"))
    assert summary.seconds == pytest.approx(2 * (2.5 + 0.5 * len(forecast.runs)))


def test_what_nobody_knows_is_unknown(forecast):
    assert forecast.cost(job("fetch", "logs/none.tsv", archive="sgd")).source == UNKNOWN
    assert not forecast.cost(job("fetch", "logs/none.tsv", archive="sgd")).is_known


def test_a_corpus_is_counted_or_scaled_by_the_size_of_its_file(tmp_path, monkeypatch):
    file = tmp_path / "a.jsonl"
    lines = [json.dumps({"text": "abcd efgh\nijkl", "doc": str(at)}) for at in range(100)]
    file.write_text("\n".join(lines) + "\n")
    spec = SplitSpec(corpus=LinesSpec(reader="lines", path=str(file)), point="turn")
    with chdir(tmp_path):
        text = surveyed(spec)
        assert sum(text.points.values()) == 200
        assert text.tokens == 13 / 2 / CHARACTERS
        assert text.lengths["train"].max() == 3  # of "abcd efgh", in tokens of four characters
        monkeypatch.setattr(module, "SAMPLE", 50)
        assert 198 <= sum(surveyed(spec).points.values()) <= 202
        file.unlink()
        assert surveyed(spec) is None


def test_other_fields_and_forms_of_a_file_count_for_no_text(tmp_path, monkeypatch):
    """Of 300 texts, of which 50 are looked at, in each form in which a user may have them."""
    monkeypatch.setattr(module, "SAMPLE", 50)
    texts = [f"parcel {at}\nplease" for at in range(300)]
    lines = [json.dumps({"text": text, "doc": f"{at:0300}"}) for at, text in enumerate(texts)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
    table = pyarrow.table({"text": texts, "other": ["long " * 90] * 300})
    parquet.write_table(table, tmp_path / "a.parquet")
    (tmp_path / "parts").mkdir()
    for at in range(6):
        parquet.write_table(table.slice(50 * at, 50), tmp_path / f"parts/{at}.parquet")
    csv.write_csv(table, tmp_path / "a.csv")
    (tmp_path / "csv").mkdir()
    for at in range(2):
        csv.write_csv(table.slice(150 * at, 150), tmp_path / f"csv/{at}.csv")

    def points(reader, name):
        kind = {"lines": LinesSpec, "table": TableSpec}[reader]
        corpus = kind(reader=reader, path=str(tmp_path / name))
        text = surveyed(SplitSpec(corpus=corpus, point="dialogue"))
        return None if text is None else sum(text.points.values())

    for reader, name in (("lines", "a.jsonl"), ("table", "a.parquet"), ("table", "a.csv")):
        assert points(reader, name) == pytest.approx(300, abs=3)
    assert points("table", "parts") == 300
    assert points("table", "csv") is None  # nobody knows without reading it


def test_one_long_document_is_seen_before_and_after_its_partition_is_made(
    forecast, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps({"text": "ab " * 4, "split": "train"})] * 99
    lines.append(json.dumps({"text": "ab " * 8000, "split": "train"}))
    Path("long.jsonl").write_text("\n".join(lines) + "\n")
    corpus = LinesSpec(reader="lines", path="long.jsonl")
    guessed = surveyed(SplitSpec(corpus=corpus, point="dialogue"))
    assert guessed.lengths["train"].max() == 6000 and guessed.tokens < 70
    run = next(iter(forecast.runs.values()))
    for file in views(run):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    starts = np.array([0, 3, 6, 5006])
    view = View(np.zeros(5006, np.int32), starts, np.zeros(5006, bool))
    flags = np.zeros(3, bool)
    split = np.array([0, 1, 0], np.uint8)
    made = Partition(view, view, view.private, flags, flags, split, split, split)
    monkeypatch.setattr(module, "load_partition", lambda *_: made)
    text = parted(run)
    assert {name: each.tolist() for name, each in text.lengths.items()} == {
        "train": [3, 5000],
        "valid": [3],
        "test": [],
    }
    told = {}
    monkeypatch.setattr(module, "rehearse", lambda _, text, *__: told.update(text=text))
    forecast.vocabulary = lambda _: (50, 0)
    forecast.cost(job("train", "logs/none.tsv", run=run.run))
    assert told["text"].lengths["train"].max() == 5000


def test_kinds_are_those_of_the_table():
    assert study_of("gate_my_study") == "my_study"
    assert study_of("gate") is None and study_of("domain_policy") is None
    assert short("gate_my_study") == "gate" and short("domain_policy") == "domain_policy"
    attack = job("attack", "x", run="a/g0-s0", attack="address")
    assert kind_of(attack, {"address": "membership"}) == "attack membership"
    rates = read_rates()
    assert {IMPORT, TOKEN, "split", "train", "attack membership", "gate"} <= set(rates)
    assert all(rate.seconds > 0 for rate in rates.values())
