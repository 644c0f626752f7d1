"""params.yaml: what is refused, and how the refusal reads; what the sample sheet expands to."""

from pathlib import Path

import orjson
import pyarrow
import pyarrow.parquet as pyarrow_parquet
import pytest
import yaml
from pydantic import TypeAdapter

from confide.config import jobs, studies
from confide.config.definitions import FIGURES
from confide.config.layers import keys_at
from confide.config.params import SCHEMA, load, schema, validated
from confide.config.rows import row_problems
from confide.errors import InputError
from confide.provenance.terms import PARTITION, TEXT, terms
from confide.specs import (
    ClassifierFitSpec,
    ClassifierPolicySpec,
    DomainPolicySpec,
    GPT2Spec,
    KeywordPolicySpec,
    NeighboursSpec,
    NerPolicySpec,
    Params,
    PipelineSpec,
    PresetPolicySpec,
    RecallSpec,
    RunSpec,
    TokenizerSpec,
    TreebankSpec,
    UnionPolicySpec,
    WordsPolicySpec,
    parse,
)
from confide.specs.data import USUAL, CorpusSpec

ROOT = Path(__file__).parents[2]
TINY = ROOT / "tests/params.tiny.yaml"


def edited(tmp_path: Path, old: str, new: str) -> Path:
    """The tiny file with one place changed."""
    text = TINY.read_text()
    assert text.count(old) >= 1, old
    path = tmp_path / "params.yaml"
    path.write_text(text.replace(old, new, 1))
    return path


def line_of(path: Path, text: str) -> int:
    return next(
        number for number, line in enumerate(path.read_text().splitlines(), 1) if text in line
    )


@pytest.mark.parametrize("file", [ROOT / "params.yaml", TINY])
def test_the_projects_own_files_are_valid(file):
    load(file)


WRONG = [  # a place in the tiny file, what it becomes, the key that the error names, what it says
    (
        "lr: 0.02, batch_size: 64, epochs",
        "lr: high, batch_size: 64, epochs",
        "recipes.pretrain.lr = 'high'",
        "valid number",
    ),
    ("epochs: 1", "epochs: 0", "recipes.pretrain.epochs = 0", "greater than or equal to 1"),
    (
        "sim: { corpus: sim, canaries",
        "sim: { corpus: sim, review: data/own/reviews/sim.json, canaries",
        "datasets.sim.review = 'data/own/reviews/sim.json'",
        "is of one policy, and runs of this dataset have several gammas",
    ),
    ("epochs: 1", "epoch: 1", "recipes.pretrain.epoch = 1", "unknown key"),
    (
        "policies:",
        "policies:\n  mine: { kind: preset, names: [emial] }",
        "policies.mine.names.0 = 'emial'",
        "'email', 'phone'",
    ),
    (
        "policies:",
        "policies:\n  mine: { kind: words, path: nowhere.txt }",
        "policies.mine.path = 'nowhere.txt'",
        "there is no such file",
    ),
    (
        "policies:",
        "policies:\n  mine: { kind: words, path: README.md }",
        "policies.mine.path = 'README.md'",
        "its first line is not a random comment",
    ),
    (
        "policies:",
        "policies:\n  mine: { kind: union, policies: [{ kind: preset, names: [email] }, "
        "{ kind: words, path: nowhere.txt }] }",
        "policies.mine.policies.1.path = 'nowhere.txt'",
        "there is no such file",
    ),
    (
        "epochs: 1",
        "epochs: 1, physical_batch_size: 8, physical_tokens: 64",
        "recipes.pretrain.physical_tokens = 64",
        "leave out one of them",
    ),
    (
        "epochs: 1",
        "epochs: 1, gradient_checkpointing: true",
        "runs.public.model = 'lstm'",
        "has no blocks",
    ),
    (
        "epochs: 1",
        "epochs: 1, shard: true",
        "runs.public.model = 'lstm'",
        "is no causal_lm, which recipes.pretrain.shard needs",
    ),
    ("count: 3", "count: .nan", "canaries.id3x4.count = nan", "finite"),
    (
        "reader: customersim",
        "reader: nosuch",
        "corpora.sim.reader = 'nosuch'",
        "not one of 'customersim'",
    ),
    ("kind: exposure", "kinds: exposure", "attacks.exposure.kind:", "is missing"),
    ("valid: 10, ", "", "corpora.sim.sizes.valid:", "is missing"),
    ("valid: 10", "valid: [10]", "corpora.sim.sizes.valid = 'list'", "valid integer"),
    ("  crt: {", "  crt: 7\n  crt2: {", "runs.crt = 7", "valid dictionary"),
    (
        "gammas: [0.1]",
        "gammas: [0.1, 1.5]",
        "runs.redacted.gammas.1 = 1.5",
        "less than or equal to 1",
    ),
    (
        "corpus: sim,",
        "corpus: sym,",
        "datasets.sim.corpus = 'sym'",
        "is not defined under corpora: sim, public",
    ),
    (
        "canaries: id3x4",
        "canaries: idx",
        "datasets.sim.canaries = 'idx'",
        "is not defined under canaries: id3x4",
    ),
    (
        "policy: digits",
        "policy: letters",
        "datasets.sim.policy = 'letters'",
        "is not defined under policies",
    ),
    (
        "conservative: capitals",
        "conservative: x",
        "datasets.sim.conservative = 'x'",
        "is not defined under policies",
    ),
    (
        "tokenizer: bpe",
        "tokenizer: b",
        "datasets.sim.tokenizer = 'b'",
        "is not defined under tokenizers: bpe",
    ),
    (
        "bpe, corpus: public",
        "bpe, corpus: pub",
        "tokenizers.bpe.corpus = 'pub'",
        "is not defined under corpora",
    ),
    (
        "dataset: public",
        "dataset: nope",
        "runs.public.dataset = 'nope'",
        "is not defined under datasets",
    ),
    ("model: lstm", "model: gru", "runs.public.model = 'gru'", "is not defined under models: lstm"),
    ("recipe: pretrain", "recipe: p", "runs.public.recipe = 'p'", "is not defined under recipes"),
    (
        "privacy: eps3",
        "privacy: eps4",
        "runs.dpsgd.privacy = 'eps4'",
        "is not defined under privacy: eps3",
    ),
    ("init: public", "init: private", "runs.crt.init = 'private'", "is not defined under runs"),
    (
        "[exposure, address, game",
        "[exposure, mia, game",
        "runs.nonprivate.attacks.1 = 'mia'",
        "is not defined under attacks",
    ),
    (
        "runs: [nonprivate,",
        "runs: [none,",
        "studies.tiny.runs.0 = 'none'",
        "is not defined under runs",
    ),
    (
        "select: [tiny]",
        "select: [tiny, big]",
        "select.1 = 'big'",
        "is not defined under studies: tiny",
    ),
    (
        "method: crt",
        "method: crtt",
        "runs.crt.method = 'crtt'",
        "not one of nonprivate, redacted, dpsgd, crt",
    ),
    (
        "method: crt, recipe: quick, privacy: eps3",
        "method: crt, recipe: quick",
        "runs.crt.privacy:",
        "crt adds noise",
    ),
    ("quick, privacy: eps3", "quick", "runs.dpsgd.privacy:", "dpsgd adds noise"),
    ("init: public", "init: crt", "runs.crt.init = 'crt'", "in a circle: crt <- crt"),
    (
        "{ dataset: public,",
        "{ init: crt, dataset: public,",
        "runs.public.init = 'crt'",
        "circle: public <- crt <- public",
    ),
    (
        "My ID is: {3}",
        "My ID is: 341",
        "canaries.id3x4.template = 'My ID is: 341'",
        "one slot of digits",
    ),
    (
        "My ID is: {3}",
        "{3} and {3}",
        "canaries.id3x4.template = '{3} and {3}'",
        "one slot of digits",
    ),
    (
        "code is {4}",
        "code is",
        "canaries.id3x4.game.template = 'The access code is'",
        "one slot of digits",
    ),
    (
        "canaries: id3x4, ",
        "",
        "runs.nonprivate.attacks.0 = 'exposure'",
        "the dataset sim has no canaries",
    ),
    ("epsilon: 3.0", "delta: 0.001", "privacy.eps3:", "either epsilon or noise_multiplier"),
    (
        "epsilon: 3.0",
        "epsilon: 3.0, noise_multiplier: 1.0",
        "privacy.eps3:",
        "either epsilon or noise_multiplier",
    ),
    ("bpe, corpus: public,", "bpe,", "tokenizers.bpe.corpus:", "kind bpe needs it"),
    (
        "epsilon: 3.0",
        "noise_multiplier: 1.0e-160",
        "privacy.eps3.noise_multiplier",
        "greater than or equal to 0.000001",
    ),
    (
        "epsilon: 3.0",
        "noise_multiplier: 1.0e+160",
        "privacy.eps3.noise_multiplier",
        "less than or equal to 1000000000",
    ),
    ("utility", "futility", "studies.tiny.figures.1 = 'futility'", "not one of tradeoff"),
    ("  redacted: {", "  red-acted: {", "runs.red-acted:", "letters, digits and _"),
    ("  address: {", "  evaluate: {", "attacks.evaluate:", "is taken"),
    ("gammas: [0.1]", "gammas: [0.1, 0.1]", "runs.redacted.gammas = 'list'", "twice"),
    ("[nonprivate, redacted,", "[nonprivate, nonprivate,", "studies.tiny.runs = 'list'", "twice"),
    (
        "lira, shadows: few",
        "lira, shadows: many",
        "attacks.lira.shadows = 'many'",
        "is not defined under shadows: few",
    ),
    (
        "lira, shadows: few, limit: 20",
        "lira, shadows: few, limit: 30",
        "attacks.lira.limit = 30",
        "shadows.few has 20",
    ),
    ("models: 4", "models: 5", "shadows.few.models = 5", "multiple of 2"),
    ("select: [tiny]", "select: []", "select = 'list'", "at least 1 item"),
    ("select: [tiny]", "select: [tiny]\nextra: 1", "extra = 1", "unknown key"),
    (
        "select: [tiny]",
        f"select: [tiny]\nextra: 0x{'f' * 9000}",
        "extra = a very long number",
        "unknown key",
    ),
]


@pytest.mark.parametrize(("old", "new", "key", "message"), WRONG)
def test_errors_are_one_line_with_file_line_key_value(tmp_path, old, new, key, message):
    path = edited(tmp_path, old, new)
    with pytest.raises(InputError) as caught:
        load(path)
    text = str(caught.value)
    assert text.startswith(f"{path}:") and "\n" not in text
    assert f": {key}" in text and message in text


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("epochs: 1", "epochs: 0", "pretrain: {"),
        ("gammas: [0.1]", "gammas: [0.1, 1.5]", "redacted: {"),
        ("valid: 10, ", "", "sim: { reader"),
        ("select: [tiny]", "select: [tiny, big]", "select:"),
        ("method: crt", "method: crtt", "crt: { dataset"),
        ("utility", "futility", "figures:"),
    ],
)
def test_errors_name_the_line_of_the_value(tmp_path, old, new, place):
    path = edited(tmp_path, old, new)
    with pytest.raises(InputError, match=f":{line_of(path, place)}: "):
        load(path)


def test_a_key_defined_twice_is_refused(tmp_path):
    path = edited(tmp_path, "  dpsgd: {", "  crt: {")
    with pytest.raises(
        InputError, match=rf":{line_of(path, 'init: public')}: runs.crt: is defined twice"
    ):
        load(path)


def test_broken_yaml_and_missing_files_are_one_line(tmp_path):
    path = edited(tmp_path, "select: [tiny]", "select: [tiny")
    with pytest.raises(InputError, match="malformed YAML") as caught:
        load(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="No such file"):
        load(tmp_path / "nosuch.yaml")
    (tmp_path / "empty.yaml").write_text("")
    with pytest.raises(InputError, match="empty.yaml"):
        load(tmp_path / "empty.yaml")


def test_a_character_that_yaml_forbids_has_a_line(tmp_path):
    path = edited(tmp_path, "select: [tiny]", "select: [tiny] # äöü \x01")
    with pytest.raises(InputError, match=f":{line_of(path, 'select:')}: malformed YAML: special"):
        load(path)


@pytest.mark.parametrize(
    ("old", "new", "meant"),
    [
        ("\nrecipes:\n", "\nrecepies:\n", "recepies = 'dict': unknown key: did you mean recipes?"),
        ("\nselect:", "\nselects:", "unknown key: did you mean select?"),
        ("epochs: 1", "epoch: 1", "unknown key: did you mean epochs?"),
        ("hidden: 16 }", "hiden: 16 }", "lstm.hiden = 16: unknown key: did you mean hidden?"),
        ("train: 60", "trains: 60", "sim.sizes.trains = 60: unknown key: did you mean train?"),
        ("group: 5", "groups: 5", "attacks.address.groups = 5: unknown key: did you mean group?"),
        ("experiment:", "experimnt:", "unknown key: did you mean experiment?"),
        ("epochs: 1", "xyzzy: 1", "recipes.pretrain.xyzzy = 1: unknown key"),
    ],
)
def test_a_misspelt_key_is_named_before_the_one_that_is_missing(tmp_path, old, new, meant):
    path = edited(tmp_path, old, new)
    with pytest.raises(InputError) as caught:
        load(path)
    assert str(caught.value).endswith(meant)


def test_the_keys_of_a_place_are_those_of_its_type():
    schema = Params.model_json_schema()
    assert keys_at(schema, ()) == list(Params.model_fields)
    assert keys_at(schema, ("runs", "any")) == list(RunSpec.model_fields)
    union = ("policies", "any", "union", "policies", 0, "regex")
    assert keys_at(schema, union) == ["kind", "patterns"]
    assert keys_at(schema, ("nosuch", "any")) == keys_at(schema, ("select", 0)) == []


@pytest.mark.parametrize("pattern", ["[a", "(?P<x>", "x*", "a{99999}{99999}"])
@pytest.mark.parametrize("inside", ["{}", "{{ kind: union, policies: [{}] }}"])
def test_a_pattern_that_cannot_be_used_is_refused_before_any_job(tmp_path, pattern, inside):
    table = f"{{ kind: regex, patterns: {{ fine: '\\d', wrong: '{pattern}' }} }}"
    block = "\npolicies:\n"
    path = edited(tmp_path, block, f"{block}  bad: {inside.format(table)}\n")
    with pytest.raises(InputError) as caught:
        load(path)
    place = f":{line_of(path, 'bad:')}: policies.bad."
    assert place in str(caught.value) and f"patterns.wrong = '{pattern}'" in str(caught.value)


@pytest.mark.parametrize(
    "uri",
    [
        "https://someone:word@host/mlflow",
        "https://someone:wo/rd@host",
        "postgresql+psycopg2://someone:word@host/mlflow",
        "mysql://host/mlflow?user=someone&PASSWORD=word",
        "https://host:5000/someone",
        "sqlite:////home/someone/mlflow.db",
        "sqlite:///../someone.db",
    ],
)
def test_an_address_elsewhere_is_refused_and_not_shown(tmp_path, uri):
    """Who wrote the file is perhaps not who runs it; and the address may hold a password."""
    path = edited(tmp_path, "experiment: tiny", f"experiment: tiny, uri: '{uri}'")
    with pytest.raises(InputError, match=r"tracking\.uri: .*set MLFLOW_TRACKING_URI") as caught:
        load(path)
    assert "someone" not in str(caught.value) and str(caught.value).startswith(f"{path}:")


def test_an_address_in_the_folder_is_taken(tmp_path):
    uri = "sqlite:///other.db"
    path = edited(tmp_path, "experiment: tiny", f"experiment: tiny, uri: '{uri}'")
    assert load(path).tracking.uri == uri


def test_a_file_whose_name_cannot_be_seen_is_refused():
    """Snakemake shows names as they are, and a terminal would do what they say."""
    config = yaml.safe_load(TINY.read_text())
    config["corpora"]["sim"] = {"reader": "lines", "path": "a\x1b[2J.txt"}
    with pytest.raises(InputError, match=r"corpora\.sim\.path = .*cannot be seen") as caught:
        validated(config, [])
    assert str(caught.value).isprintable()


def test_a_configuration_without_a_file_is_checked_too():
    config = yaml.safe_load(TINY.read_text())
    config["runs"]["crt"]["model"] = "gru"
    with pytest.raises(
        InputError, match=r"^runs.crt.model = 'gru': is not defined under models: lstm$"
    ):
        validated(config, [])


def test_warm_start_needs_the_same_model_and_tokenizer(tmp_path):
    other = "lstm: { kind: lstm, embedding: 16, hidden: 16 }\n  wide: { kind: lstm, hidden: 32 }"
    path = edited(tmp_path, "lstm: { kind: lstm, embedding: 16, hidden: 16 }", other)
    path.write_text(
        path.read_text().replace(
            "crt: { dataset: sim, model: lstm", "crt: { dataset: sim, model: wide"
        )
    )
    with pytest.raises(
        InputError, match="runs.crt.init = 'public': is of the model lstm, not wide"
    ):
        load(path)
    path = edited(tmp_path, "bpe: {", "bpe2: { kind: bpe, corpus: public }\n  bpe: {")
    path.write_text(
        path.read_text().replace(
            "conservative: capitals, tokenizer: bpe", "conservative: capitals, tokenizer: bpe2", 1
        )
    )
    with pytest.raises(
        InputError, match="runs.crt.init = 'public': has the tokenizer bpe, not bpe2"
    ):
        load(path)


def test_schema_is_current():
    assert (ROOT / SCHEMA).read_text() == schema(), "run `make schema`"


def test_figures_are_those_of_the_report():
    from confide.report.figures.registry import FIGURES as drawn

    assert set(FIGURES) == set(drawn)
    for name in (*FIGURES, "table", "workflow"):
        assert len((ROOT / f"workflow/report/{name}.rst").read_text().split()) > 30


# The sample sheet
# --------------------------------------------------------------------------------------------------


@pytest.fixture
def params(tmp_path):
    path = edited(
        tmp_path, "gammas: [0.1], attacks", "gammas: [0.0, 0.05], seeds: [0, 3], attacks"
    )  # of redacted
    return load(path)


@pytest.mark.parametrize(
    ("gamma", "text"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (0.1, "0.1"),
        (0.05, "0.05"),
        (1e-5, "0.00001"),
        (0.1 + 0.2, "0.30000000000000004"),
    ],
)
def test_gamma_in_names_has_no_exponent_and_reads_back(gamma, text):
    assert jobs.gamma_text(gamma) == text and float(text) == gamma


def test_a_row_is_trained_once_per_gamma_and_seed(params):
    names = [run.run for run in jobs.of_row(params, "redacted")]
    assert names == ["redacted/g0-s0", "redacted/g0-s3", "redacted/g0.05-s0", "redacted/g0.05-s3"]


def test_selected_runs_come_after_their_starts_and_once(params):
    names = list(jobs.runs_of(params, params.select))
    assert len(names) == len(set(names)) == 10
    assert names.index("public/g0-s0") < names.index("crt/g0.1-s0")


def test_only_what_is_selected_is_built(params):
    fewer = params.model_copy(
        update={"studies": {"tiny": params.studies["tiny"].model_copy(update={"runs": ["dpsgd"]})}}
    )
    assert list(jobs.runs_of(fewer, fewer.select)) == ["dpsgd/g0-s0"]


def test_partitions_differ_where_data_do(params):
    run = jobs.of_row(params, "redacted")[2]
    assert run.partition == "sim/g0.05-dedup"
    assert (
        jobs.Run("x", run.row.model_copy(update={"dedup": False}), 0.0, 0, "x").partition
        == "sim/g0-nodedup"
    )


def test_warm_starts_are_public_only_along_the_whole_line(params):
    crt = jobs.of_row(params, "crt")[0]
    assert jobs.training(params, crt).init_public
    spec = params.runs["public"].model_copy(update={"init": "nonprivate"})
    tainted = params.model_copy(update={"runs": {**params.runs, "public": spec}})
    assert not jobs.training(tainted, crt).init_public
    assert [run.name for run in jobs.ancestors(tainted, crt)] == ["public", "nonprivate"]


def test_datasets_without_canaries_plant_none(params):
    assert jobs.canaries(params, "public").count == 0 and jobs.canaries(params, "sim").count == 3


def test_corpora_are_cut_once_per_way(params):
    window = params.datasets["sim"].model_copy(update={"point": "window", "window": 12})
    more = params.model_copy(
        update={"datasets": {**params.datasets, "cut": window, "again": window}}
    )
    found = jobs.sources(more)
    assert (
        list(found) == ["sim-turn", "public-turn", "sim-window12"]
        and found["sim-window12"].window == 12
    )


def test_rows_that_look_alike_get_their_names(params):
    twin = {**params.runs, "twin": params.runs["crt"].model_copy(update={"recipe": "pretrain"})}
    study = params.studies["tiny"].model_copy(update={"runs": ["crt", "twin", "dpsgd"]})
    rows = list(
        studies.rows_of(
            params.model_copy(update={"runs": twin, "studies": {"tiny": study}}), "tiny"
        )
    )
    assert [row.variant for row in rows] == ["crt", "twin", None]


def test_reports_are_told_the_levels_of_their_study_and_the_domains_of_rows(params):
    twin = params.runs | {"other": params.runs["redacted"].model_copy(update={"domains": ["A"]})}
    study = params.studies["tiny"].model_copy(
        update={"runs": ["redacted", "other"], "ppl_levels": [9.0, 5.0]}
    )
    found = studies.study(
        params.model_copy(update={"runs": twin, "studies": {"tiny": study}}), "tiny"
    )
    assert found.ppl_levels == [9.0, 5.0]
    assert {(run.name, run.variant, tuple(run.domains or ())) for run in found.runs} == {
        ("redacted", None, ()),
        ("other", None, ("A",)),
    }


def test_the_users_corpus_must_be_there_once_it_is_selected(tmp_path):
    simulated = (
        "sim: { reader: customersim, sizes: { train: 60, valid: 10, test: 20 }, users: 500 }"
    )
    path = edited(tmp_path, simulated, "sim: { reader: lines, path: nowhere.jsonl }")
    with pytest.raises(
        InputError,
        match=r"params\.yaml:\d+: corpora\.sim\.path = 'nowhere\.jsonl': there is no such file",
    ):
        load(path)


AUTHORS = ("{ epsilon: 3.0 }", "{ epsilon: 3.0, unit: author }")


TABLE = "sim: { reader: table, path: %s, text: body, author: writer }"


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet"])
def test_a_tables_columns_are_checked_before_any_job(tmp_path, kind):
    simulated = (
        "sim: { reader: customersim, sizes: { train: 60, valid: 10, test: 20 }, users: 500 }"
    )
    file = tmp_path / f"mine.{kind}"
    rows = {"body": ["a line", "another"], "writers": ["ann", "bob"]}
    if kind == "parquet":
        pyarrow_parquet.write_table(pyarrow.table(rows), file)
    else:
        between = {"csv": ",", "tsv": "\t"}[kind]
        lines = [
            between.join(rows),
            *(between.join(row) for row in zip(*rows.values(), strict=True)),
        ]
        file.write_text("\n".join(lines) + "\n")
    path = edited(tmp_path, simulated, TABLE % file)
    line = line_of(path, "reader: table")
    with pytest.raises(InputError) as caught:
        load(path)
    text = str(caught.value)
    assert text.startswith(f"{path}:{line}: corpora.sim.author = 'writer': ")
    assert "no such column: did you mean writers?" in text
    assert "\n" not in text and "ann" not in text
    path.write_text(path.read_text().replace("author: writer ", "author: writers "))
    assert load(path).corpora["sim"].author == "writers"


def test_a_delta_that_protects_nobody_is_refused(tmp_path):
    path = edited(tmp_path, "{ epsilon: 3.0 }", "{ epsilon: 3.0, delta: 0.1 }")
    message = r"params\.yaml:\d+: privacy\.eps3\.delta = 0\.1: .* less than 1 / the number"
    with pytest.raises(InputError, match=message):
        load(path)
    path = edited(tmp_path, "{ epsilon: 3.0 }", "{ epsilon: 3.0, delta: 0.01 }")
    assert load(path).privacy["eps3"].delta == 0.01


@pytest.mark.parametrize(
    ("old", "new", "meant"),
    [
        ("policy: digits", "policy: digit", "digits"),
        ("recipe: pretrain", "recipe: pretrained", "pretrain"),
        ("reader: customersim", "reader: custommersim", "customersim"),
    ],
)
def test_a_misspelt_name_names_the_one_that_was_meant(tmp_path, old, new, meant):
    path = edited(tmp_path, old, new)
    with pytest.raises(InputError) as caught:
        load(path)
    assert str(caught.value).endswith(f"; did you mean {meant}?")


def test_noise_for_authors_wants_texts_that_are_not_deduplicated(tmp_path):
    path = edited(tmp_path, *AUTHORS)
    with pytest.raises(
        InputError,
        match=r"runs\.dpsgd\.dedup = True: privacy\.eps3\.unit protects authors, but deduplication",
    ):
        load(path)


def test_noise_for_authors_wants_no_canaries_that_nobody_wrote(tmp_path):
    """Training would refuse them, after all that is made of the text."""
    path = edited(tmp_path, *AUTHORS)
    rows = yaml.safe_load(path.read_text())
    for row in rows["runs"].values():
        row["dedup"] = False
    path.write_text(yaml.safe_dump(rows))
    with pytest.raises(
        InputError,
        match=r"privacy = 'eps3': protects authors, and the canaries of datasets.sim have none",
    ):
        load(path)


def test_what_policies_miss_on_all_domains_is_not_claimed_of_some(tmp_path):
    path = edited(tmp_path, "method: redacted,", "method: redacted, domains: [AIRLINE],")
    with pytest.raises(
        InputError, match=r"runs\.redacted\.domains = 'AIRLINE': are for ordinary training alone"
    ):
        load(path)
    load(edited(tmp_path, "method: nonprivate,", "method: nonprivate, domains: [AIRLINE],"))


def test_training_behind_a_cover_wants_one(tmp_path):
    rows = yaml.safe_load(TINY.read_text())
    rows["runs"]["crt"]["method"] = "behind_cover"
    file = tmp_path / "params.yaml"
    file.write_text(yaml.safe_dump(rows))
    with pytest.raises(InputError, match="behind_cover needs one whose policy is a cover"):
        load(file)
    dataset = rows["datasets"][rows["runs"]["crt"]["dataset"]]
    rows["policies"]["covering"] = {"kind": "cover", "patterns": {"digit": r"\d"}}
    dataset |= {"policy": "covering", "conservative": "covering"}
    for row in rows["runs"].values():
        row["gammas"] = [0]
    file.write_text(yaml.safe_dump(rows))
    assert load(file).runs["crt"].method == "behind_cover"


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (
            {"kind": "cover", "patterns": {"id": r"ID \d"}},
            r"policies\.new\.patterns\.id = .*: needs a blank",
        ),
        (
            {"kind": "regex", "patterns": {"capital": "(?=[A-Z])"}},
            r"policies\.new\.patterns\.capital = .*: matches no character",
        ),
    ],
)
def test_policies_that_find_nothing_or_would_not_hold_are_refused(tmp_path, policy, message):
    rows = yaml.safe_load(TINY.read_text())
    rows["policies"]["new"] = policy
    file = tmp_path / "params.yaml"
    file.write_text(yaml.safe_dump(rows))
    with pytest.raises(InputError, match=message):
        load(file)


def test_made_up_values_want_all_tokens_to_be_learnt(tmp_path):
    rows = yaml.safe_load(TINY.read_text())
    next(iter(rows["datasets"].values())).update(fill=True, learn="assistant")
    file = tmp_path / "params.yaml"
    file.write_text(yaml.safe_dump(rows))
    with pytest.raises(InputError, match=r"fill = True: would move what is scored"):
        load(file)


@pytest.mark.parametrize(
    ("fill", "message"),
    [
        ("sim", "has text that needs protection: values in place of masks are of a dataset with"),
        ("publik", r"is not defined under datasets: .*; did you mean public\?"),
        ("true", "is not defined under datasets"),
    ],
)
def test_values_in_place_of_masks_are_of_public_text(tmp_path, fill, message):
    """Named is a dataset whose policy finds them; "true" in quotes is a name like another."""
    rows = yaml.safe_load(TINY.read_text())
    rows["datasets"]["sim"]["fill"] = fill
    file = tmp_path / "params.yaml"
    file.write_text(yaml.safe_dump(rows))
    with pytest.raises(InputError, match=rf"datasets\.sim\.fill = .*{message}"):
        load(file)


def test_a_run_says_whose_values_it_read(tmp_path):
    """And what the policy was made of that found them: what it finds in public text tells of it."""
    rows = yaml.safe_load(TINY.read_text())
    words = tmp_path / "customers.txt"
    words.write_text("# 3f9a0c5d7e1b2846a0b1c2d3e4f56789\nAnn Lee\n")
    rows["policies"]["customers"] = {"kind": "words", "path": str(words), "label": "name"}
    other = {"corpus": "public", "public": True, "policy": "customers"}
    rows["datasets"]["names"] = rows["datasets"]["public"] | other
    rows["runs"]["redacted"]["dataset"] = "filled"
    file = tmp_path / "params.yaml"
    for fill, public in (("public", True), ("names", False)):
        rows["datasets"]["filled"] = rows["datasets"]["sim"] | {"fill": fill}
        file.write_text(yaml.safe_dump(rows))
        params = load(file)
        run = jobs.of_row(params, "redacted")[0]
        (read,) = [read for read in jobs.reads(params, run) if read.stage == "values"]
        place = f"data/work/{fill}/found_values.json"
        assert (read.source, read.public, read.artefact) == (fill, public, place)
        assert jobs.data(params, run).fill == fill
        assert "public" in jobs.taken_for_public(params, run)


def test_noised_updates_of_redacted_text_want_masks(tmp_path):
    """Of CRT; those of JFT read the original text, which holds no made-up value."""
    rows = yaml.safe_load(TINY.read_text())
    rows["datasets"][rows["runs"]["crt"]["dataset"]]["fill"] = True
    file = tmp_path / "params.yaml"
    file.write_text(yaml.safe_dump(rows))
    with pytest.raises(InputError, match=r"runs\.crt\.dataset .*fill makes up values by where"):
        load(file)
    rows["runs"]["crt"]["method"] = "jft"
    file.write_text(yaml.safe_dump(rows))
    assert load(file).runs["crt"].method == "jft"


def test_chunks_want_texts_that_are_not_deduplicated(tmp_path):
    text = TINY.read_text().replace(
        "conservative: capitals,", "conservative: everything, pack: 32,"
    )
    text = text.replace("method: selective", "method: dpsgd")
    path = tmp_path / "params.yaml"
    path.write_text(text.replace("policies:", "policies:\n  everything: { kind: everything }", 1))
    with pytest.raises(
        InputError,
        match=r"runs\.\w+\.dedup = True: datasets\.\w+\.pack lays points end to end, but dedup",
    ):
        load(path)


def test_one_text_is_not_public_here_and_protected_there(tmp_path):
    leak = (
        "leak: { corpus: sim, public: true, policy: digits, conservative: digits, tokenizer: bpe }"
    )
    path = edited(tmp_path, "datasets:", f"datasets:\n  {leak}")
    with pytest.raises(
        InputError,
        match=r"datasets\.sim\.public = False: the dataset leak of the same text says True",
    ):
        load(path)


def test_what_the_workflow_does_not_make_is_public_only_if_it_is_declared(params):
    def reads_of(**blocks):
        changed = params.model_copy(
            update={name: {**getattr(params, name), **new} for name, new in blocks.items()}
        )
        return {
            (read.stage, read.public, read.artefact)
            for read in jobs.reads(changed, jobs.of_row(changed, "crt")[0])
        }

    for public in (False, True):
        model = GPT2Spec(kind="gpt2", pretrained="models/mine", public=public)
        assert ("pretrained", public, "models/mine") in reads_of(models={"lstm": model})
        words = TokenizerSpec(kind="gpt2", source="models/mine", public=public)
        assert ("tokenizer", public, None) in reads_of(tokenizers={"bpe": words})
        names = NerPolicySpec(kind="ner", model="models/names", public=public)
        both = UnionPolicySpec(kind="union", policies=[names, params.policies["digits"]])
        for policy in (names, both):
            assert ("policy", public, "models/names") in reads_of(
                policies={params.datasets["sim"].policy: policy}
            )
    archive = TokenizerSpec(kind="gpt2", source="archive")
    assert ("tokenizer", True, None) in reads_of(tokenizers={"bpe": archive})


def test_a_policy_that_learns_from_a_protected_treebank_is_not_public(params):
    names = NerPolicySpec(kind="ner", model="small")
    ready = params.model_copy(update={"pipelines": {"small": PipelineSpec(treebank="ud-ewt")}})

    def public(**dataset) -> list[bool]:
        tree = params.datasets["sim"].model_copy(update={"corpus": "tree"} | dataset)
        corpora = params.corpora | {"tree": TreebankSpec(reader="treebank")}
        given = {"corpora": corpora, "datasets": params.datasets | {"tree": tree}}
        return [
            read.public
            for read in jobs.policy_reads(ready.model_copy(update=given), "names", names)
        ]

    assert public(public=True) == public(corpus="sim") == [True]
    assert public(public=False) == [False]


def test_a_policy_is_made_of_what_it_names_and_not_of_another_kind_s_namesake(params):
    """A pipeline and a domain classifier may share a name: what the classifier started from is in
    no pipeline.
    """
    fit = ClassifierFitSpec(kind="classifier", pretrained="roberta-base")
    pipeline = PipelineSpec(treebank="ud-ewt")
    fitted = DomainPolicySpec(corpus="public", fit=fit)
    both = params.model_copy(
        update={"pipelines": {"small": pipeline}, "domain_policies": {"small": fitted}}
    )
    entities = jobs.policy_reads(both, "names", NerPolicySpec(kind="ner", model="small"))
    assert [read.artefact for read in entities] == ["data/work/pipelines/small.spacy"]
    domains = jobs.policy_reads(
        both, "topics", ClassifierPolicySpec(kind="classifier", model="small")
    )
    assert [read.artefact for read in domains] == [
        "data/work/domain_policies/small.safetensors",
        "roberta-base",
    ]
    keywords = jobs.policy_reads(
        both, "words", KeywordPolicySpec(kind="keyword", model="small")
    )  # of a fit that is none
    assert [read.artefact for read in keywords] == ["data/work/domain_policies/small.json"]


def test_a_list_of_words_counts_as_protected_text_unless_declared(params):
    """Without the declaration nothing finite is claimed; the list is an input of what reads it."""
    own = WordsPolicySpec(kind="words", path="data/own/names.txt")
    both = UnionPolicySpec(
        kind="union", policies=[own, PresetPolicySpec(kind="preset", names=["email"])]
    )
    reads = jobs.policy_reads(params, "mine", both)
    assert [(read.source, read.public, read.artefact) for read in reads] == [
        ("mine: data/own/names.txt", False, "data/own/names.txt"),
        ("mine", True, None),
    ]
    declared = own.model_copy(update={"independent": True})
    assert [read.public for read in jobs.policy_reads(params, "mine", declared)] == [True]
    named = params.model_copy(update={"policies": {**params.policies, "mine": both}})
    assert jobs.files_of(named, "mine") == ["data/own/names.txt"]


@pytest.mark.parametrize("file", [ROOT / "params.yaml", TINY])
def test_what_stages_measure_on_is_what_training_says_it_was_trained_on(file):
    """Recall and neighbours get the run's own terms, as a command line carries them; and reads, but
    for the model's own.
    """
    params = load(file)
    for run in jobs.runs_of(params, params.studies).values():
        trained = jobs.data(params, run).model_dump()
        before = jobs.reads(params, run)
        told = jobs.recall(params, run.row.dataset, float(jobs.gamma_text(run.gamma)))
        told = parse(RecallSpec, orjson.loads(told.model_dump_json()))
        found = terms(told.text, told.redact)
        assert USUAL | found == USUAL | {key: (USUAL | trained)[key] for key in TEXT}
        assert told.reads == [read for read in before if read.stage == "policy"] != []
        told = jobs.neighbours(
            params, run.row.dataset, float(jobs.gamma_text(run.gamma)), run.row.dedup
        )
        told = parse(NeighboursSpec, orjson.loads(told.model_dump_json()))
        found = terms(told.text, told.redact, told.partition)
        shared = {key: (USUAL | trained)[key] for key in (*TEXT, *PARTITION)}
        assert {key: (USUAL | found)[key] for key in shared} == shared
        assert trained.keys() - found.keys() - {"texts"} == {"public"}
        assert told.reads == [read for read in before if read.stage != "pretrained"]


@pytest.mark.parametrize(
    ("corpus", "texts"),
    [
        ({"reader": "lines", "path": "a.txt"}, "documents"),
        ({"reader": "table", "path": "a.csv"}, "documents"),
        ({"reader": "mail", "path": "a.mbox", "layout": "mbox"}, "documents"),
        ({"reader": "wikitext"}, "documents"),
        ({"reader": "messages", "path": "a.jsonl"}, "dialogues"),
        ({"reader": "sgd"}, "dialogues"),
        ({"reader": "dialog_files"}, "dialogues"),
    ],
)
def test_a_point_is_part_of_a_dialogue_only_where_the_corpus_has_dialogues(params, corpus, texts):
    text = TypeAdapter(CorpusSpec).validate_python(corpus)
    run = jobs.of_row(params, "crt")[0]
    name = params.datasets[run.row.dataset].corpus
    of_corpus = params.model_copy(update={"corpora": params.corpora | {name: text}})
    assert jobs.data(of_corpus, run).texts == texts


def test_a_start_read_through_what_is_not_public_is_not_public(params):
    words = TokenizerSpec(kind="bpe", corpus="sim", vocab_size=300)
    tainted = params.model_copy(update={"tokenizers": {**params.tokenizers, "bpe": words}})
    assert not jobs.training(tainted, jobs.of_row(tainted, "crt")[0]).init_public


def selective(tmp_path: Path, *changes: tuple[str, str]) -> Path:
    """The tiny file with crt made selective."""
    path = edited(tmp_path, "method: crt", "method: selective")
    text = path.read_text()
    for old, new in changes:
        assert text.count(old) >= 1, old
        text = text.replace(old, new)
    path.write_text(text)
    return path


@pytest.mark.parametrize("method", ["atdp", "sa_adp"])
def test_noise_that_goes_by_the_text_is_given_and_not_calibrated(method, tmp_path):
    path = edited(tmp_path, "method: crt", f"method: {method}")
    with pytest.raises(InputError, match=r"runs\.crt\.privacy = 'eps3': has no noise_multiplier"):
        load(path)
    path.write_text(path.read_text().replace("{ epsilon: 3.0 }", "{ noise_multiplier: 1.0 }"))
    assert load(path).runs["crt"].method == method


def test_selective_training_wants_a_recurrent_model_and_known_noise_if_published(tmp_path):
    assert load(selective(tmp_path)).runs["crt"].method == "selective"
    gpt2 = (
        "lstm: { kind: lstm, embedding: 16, hidden: 16 }",
        "lstm: { kind: gpt2, layers: 1, width: 8, heads: 2 }",
    )
    with pytest.raises(
        InputError, match=r"runs\.crt\.model = 'lstm': is no recurrent model, which selective needs"
    ):
        load(selective(tmp_path, gpt2))
    published = ("noisy_batch_size: 64,", "noisy_batch_size: 64, private_state: published,")
    with pytest.raises(InputError, match=r"runs\.crt\.privacy = 'eps3': has no noise_multiplier"):
        load(selective(tmp_path, published))
    load(selective(tmp_path, published, ("{ epsilon: 3.0 }", "{ noise_multiplier: 1.0 }")))
    params = load(selective(tmp_path))
    authors = params.privacy["eps3"].model_copy(update={"unit": "author"})
    params = params.model_copy(update={"privacy": params.privacy | {"eps3": authors}})
    problems = [problem.message for problem in row_problems(params, params.runs["crt"])]
    assert "protects authors, but selective tells tokens apart" in problems
    exact = ("{ epsilon: 3.0 }", "{ epsilon: 3.0, noise: discrete_gaussian }")
    assert load(selective(tmp_path, exact)).privacy["eps3"].discrete
    with pytest.raises(
        InputError,
        match=r"runs\.crt\.privacy = 'eps3': has discrete noise, and private_state: noise adds",
    ):
        load(
            selective(
                tmp_path,
                exact,
                ("noisy_batch_size: 64,", "noisy_batch_size: 64, private_state: noise,"),
            )
        )
    with pytest.raises(InputError, match=r"recipes\.quick\.private_state = 'kept'"):
        load(
            selective(
                tmp_path, ("noisy_batch_size: 64,", "noisy_batch_size: 64, private_state: kept,")
            )
        )
