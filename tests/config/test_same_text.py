"""One text is not public under one name and protected under another."""

import os
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest
import yaml

from confide.commands.generate import texts
from confide.config import jobs
from confide.config.definitions import is_made_here
from confide.config.params import validated
from confide.config.same_text import meet, same_text
from confide.corpora.lines import Shard, raw_lines
from confide.errors import InputError
from confide.files.io import Range, write_jsonl
from confide.report.pages.card import card
from confide.specs import (
    CustomerSimSpec,
    LinesSpec,
    MultiDogoSpec,
    SamplingSpec,
    TokenizerSpec,
    WikiTextSpec,
)
from confide.specs.data import SchemaGuidedSpec
from tests.project import ROOT

RUNS = ("again", "dpsgd")
SIZES = {"train": 60, "valid": 10, "test": 20}


def dogo(**given):
    return MultiDogoSpec(reader="multidogo", **({"sizes": SIZES} | given))


def sgd(**given):
    return SchemaGuidedSpec(reader="sgd", **({"sizes": SIZES} | given))


def wikitext(**given):
    return WikiTextSpec(reader="wikitext", **given)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (dogo(), dogo(), True),
        (dogo(), dogo(domain_tokens=False), True),  # the same customers, written otherwise
        (dogo(), dogo(skip=SIZES), False),
        (dogo(), dogo(skip={"train": 30, "valid": 10, "test": 20}), True),
        (dogo(), dogo(skip=SIZES, seed=1), True),  # what is of train here may be of test there
        (dogo(domains=["AIRLINE"]), dogo(domains=["MEDIA"]), False),
        (sgd(domains=["BANKS"]), sgd(domains=["MEDIA"]), False),
        (sgd(domains=["BANKS"]), sgd(domains=["banks"]), True),  # as the reader writes them
        # whose domain it is, where a dialogue is of several
        (sgd(domains=["BANKS"]), sgd(domains=["MULTI"], several="multi"), True),
        (sgd(), sgd(skip=SIZES), False),
        (sgd(), sgd(skip=SIZES, several="multi"), True),
        (sgd(splits="drawn"), sgd(skip=SIZES), True),
        # the archive may be of these files
        (sgd(domains=["BANKS"]), sgd(domains=["BANKS"], path="data/own/sgd"), True),
        (sgd(domains=["BANKS"]), sgd(domains=["MEDIA"], path="data/own/sgd"), False),
        # whose splits are the publisher's, and not drawn
        (sgd(), sgd(skip=SIZES, path="data/own/sgd"), True),
        (sgd(path="data/own/sgd"), sgd(skip=SIZES, path="data/own/sgd"), False),
        (wikitext(lines=400), wikitext(skip=400), False),
        (wikitext(lines=400), wikitext(skip=399), True),
        (wikitext(), wikitext(skip=400), True),
        (wikitext(skip=2, lines=3), wikitext(skip=5, lines=3), False),
        (dogo(), CustomerSimSpec(reader="customersim", sizes=SIZES), False),
    ],
)
def test_archives_are_compared_by_what_is_read_of_them(first, second, same):
    assert same_text(first, second) is same_text(second, first) is same


def test_paths_are_compared_as_files(tmp_path):
    (tmp_path / "mail").mkdir()
    for name in ("a.jsonl", "mail/one.jsonl", "b.jsonl"):
        (tmp_path / name).write_text('{"text": "a"}\n')
    os.link(tmp_path / "a.jsonl", tmp_path / "hard.jsonl")
    os.symlink(tmp_path / "a.jsonl", tmp_path / "soft.jsonl")
    lines = {
        name: LinesSpec(reader="lines", path=str(tmp_path / name))
        for name in ("a.jsonl", "hard.jsonl", "soft.jsonl")
    }
    assert same_text(lines["a.jsonl"], lines["hard.jsonl"]) and same_text(
        lines["a.jsonl"], lines["soft.jsonl"]
    )
    folder, inside, other = (
        LinesSpec(reader="lines", path=str(tmp_path / name))
        for name in ("mail", "mail/one.jsonl", "b.jsonl")
    )
    assert same_text(folder, inside) and not same_text(inside, other)


def tiny():
    return yaml.safe_load((ROOT / "tests/params.tiny.yaml").read_text())


def test_a_run_does_not_read_as_public_what_it_protects():
    given = tiny()
    given["corpora"]["public"] = given["corpora"][
        "sim"
    ]  # the tokenizer and the warm start are made of the protected text
    with pytest.raises(
        InputError, match="protects the corpus sim, and the corpus public, which it reads as public"
    ):
        validated(given, [])


def test_a_vocabulary_from_files_is_not_public_by_the_name_of_a_corpus():
    given = tiny()
    given["tokenizers"]["bpe"] = {"kind": "gpt2", "source": "mine", "corpus": "public"}
    with pytest.raises(
        InputError, match=r"tokenizers\.bpe\.corpus = 'public': has no meaning for kind gpt2"
    ):
        validated(given, [])
    params = validated(tiny(), [])
    words = TokenizerSpec(kind="gpt2", source="mine", corpus="public")
    changed = params.model_copy(update={"tokenizers": {"bpe": words}})
    assert not jobs.tokenizer_read(changed, "bpe").public


@pytest.mark.parametrize("kind", ["gpt2", "pretrained"])
def test_the_archive_of_gpt2_alone_is_public_undeclared(kind):
    params = validated(tiny(), [])
    words = TokenizerSpec(kind=kind, source="archive")
    changed = params.model_copy(update={"tokenizers": {"bpe": words}})
    assert jobs.tokenizer_read(changed, "bpe").public is (kind == "gpt2")


def test_what_a_classifier_starts_from_is_public_only_if_it_is_declared():
    for public in (False, True):
        given = tiny()
        fit = {"kind": "classifier", "pretrained": "roberta", "public": public}
        given["domain_policies"] = {"windows": {"corpus": "public", "fit": fit}}
        given["policies"]["digits"] = {"kind": "classifier", "model": "windows"}
        params = validated(given, [])
        (run, *_) = jobs.of_row(params, "crt")
        told = {
            read.source: read.public for read in jobs.reads(params, run) if read.stage == "policy"
        }
        assert told["digits: roberta"] is public and told["digits: windows"]


@pytest.mark.parametrize(
    "place",
    [
        "data/work/domain_policies/own.json",
        "models/crt/g0-s0",
        "./data/tokenizers/bpe.json",
        "results/runs/crt/g0-s0/exposure.json",
    ],
)
def test_what_the_workflow_makes_is_not_declared_public(place):
    given = tiny()
    given["policies"]["own"] = {"kind": "keyword", "model": place, "public": True}
    with pytest.raises(InputError, match=r"policies\.own\.model = .*: is made by this workflow"):
        validated(given, [])
    for _ in range(2):  # however deep in unions it stands
        given["policies"]["own"] = {"kind": "union", "policies": [given["policies"]["own"]]}
        with pytest.raises(InputError, match=r"policies\.own\.model = .*: is made by this"):
            validated(given, [])


def test_lists_and_weights_of_the_workflow_are_not_declared_public(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place = "data/work/sim-turn/points.jsonl"
    (tmp_path / place).parent.mkdir(parents=True)
    (tmp_path / place).touch()
    given = tiny()
    given["policies"]["own"] = {"kind": "words", "path": place, "independent": True}
    with pytest.raises(InputError, match=r"policies\.own\.path = .*: is made by this workflow"):
        validated(given, [])
    del given["policies"]["own"]
    fit = {"kind": "classifier", "pretrained": "models/crt/g0-s0", "public": True}
    given["domain_policies"] = {"windows": {"corpus": "public", "fit": fit}}
    with pytest.raises(InputError, match=r"windows\.fit\.pretrained = .*: is made by this"):
        validated(given, [])


def test_a_released_model_is_not_declared_public(tmp_path):
    """It tells of the text that it was trained on: fine-tuned on that once more, both would count,
    and the second certificate would name the first as public.
    """
    certified = {"run": "crt/g0-s0", "claims": [], "headline": {}}
    certified["headline"] |= {"record_epsilon": 3.0, "delta": 1e-5, "relation": "replace_one"}
    certified["headline"] |= {"record_unit": "one turn"}
    of_model = {"base": "a model", "adapter": False, "audits": [], "against": []}
    with patch("confide.report.pages.card.page", return_value="All claims."):
        text = card(certified, **of_model)
    released = tmp_path / "released" / "transformers"
    released.mkdir(parents=True)
    (released / "README.md").write_text(text)
    given = tiny()
    given["models"]["own"] = {"kind": "gpt2", "pretrained": str(released), "public": True}
    given["runs"]["again"] = given["runs"]["dpsgd"] | {"model": "own"}
    with pytest.raises(InputError, match=r"models\.own\.pretrained = .*confide release.*init"):
        validated(given, [])
    given["models"]["own"]["public"] = False
    validated(given, [])
    given["tokenizers"]["own"] = {"kind": "gpt2", "source": str(released), "public": True}
    with pytest.raises(InputError, match=r"tokenizers\.own\.source = .*confide release"):
        validated(given, [])
    (released / "README.md").write_text("---\nlicense: apache-2.0\n---\nA model.\n")
    validated(given, [])


TOKENIZER = SimpleNamespace(encode=lambda prompt: [])


def one_text_each(model, encoded, *_):
    return [[SimpleNamespace(text="my code", stopped=True)] for _ in encoded]


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("data/synthetic/crt/g0-s0/synthetic.jsonl", "is made by this workflow"),
        ("./data/work/sim-turn/points.jsonl", "is made by this workflow"),
        ("texts.jsonl", "holds texts of a model"),
        ("utf-8-sig.jsonl", "holds texts of a model"),  # as some editors save it
        ("utf-16.jsonl", "holds texts of a model"),
        ("cut.jsonl", "holds texts of a model"),  # its first line is gone
        ("read.jsonl", "holds texts of a model"),  # that it has read, and the first line is gone
        ("generated.jsonl", "holds texts of a model"),
    ],
)
def test_what_a_model_wrote_is_not_declared_public(tmp_path, monkeypatch, place, message):
    monkeypatch.chdir(tmp_path)
    first = {"synthetic": {"run": "crt/g0-s0", "texts": 1}}
    write_jsonl(tmp_path / "texts.jsonl", [first, {"doc": "synthetic-1-1", "text": "my code"}])
    (tmp_path / "cut.jsonl").write_text((tmp_path / "texts.jsonl").read_text().partition("\n")[2])
    write_jsonl(tmp_path / "read.jsonl", [{"doc": "redacted-text-1", "text": "my code"}])
    written = texts(SimpleNamespace(), TOKENIZER, ["", ""], spec=SamplingSpec(), seed=0)
    with monkeypatch.context() as patched:
        patched.setattr("confide.commands.generate.continued", one_text_each)
        patched.setattr("confide.commands.generate.ending", lambda tokenizer: None)
        write_jsonl(tmp_path / "generated.jsonl", written)
    for encoding in ("utf-8-sig", "utf-16"):
        file = tmp_path / f"{encoding}.jsonl"
        file.write_text((tmp_path / "texts.jsonl").read_text(), encoding=encoding)
        read = [line.content for line in raw_lines(Shard(Range(file)))]
        assert len(read) == 1  # the texts are a corpus in any of these
    given = tiny()
    given["corpora"]["written"] = {"reader": "lines", "path": place}
    given["datasets"]["written"] = given["datasets"]["sim"] | {"corpus": "written"}
    del given["datasets"]["written"]["canaries"]
    given["runs"]["again"] = given["runs"]["dpsgd"] | {"dataset": "written", "attacks": []}
    params = validated(given, [])
    synthetic = [jobs.data(params, jobs.of_row(params, row)[0]).synthetic for row in RUNS]
    assert synthetic == [place.endswith(".jsonl") and "/" not in place, False]
    given["datasets"]["written"]["public"] = True
    with pytest.raises(InputError, match=rf"datasets\.written\.public = .*{message}"):
        validated(given, [])


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_a_link_within_a_folder_leads_to_the_same_text(tmp_path, monkeypatch, link):
    """As in a cache of files that are named by their content, or an archive that was unpacked."""
    monkeypatch.chdir(tmp_path)
    for folder in ("own", "public", "data/work/sim"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "own/train.csv").write_text("text\nmy code is 4711\n")
    (tmp_path / "data/work/sim/points.jsonl").write_text("{}\n")
    assert not meet(Path("own"), Path("public")) and not is_made_here("public")
    link(tmp_path / "own/train.csv", tmp_path / "public/a.csv")
    (tmp_path / "public/again").symlink_to(tmp_path / "public")
    assert meet(Path("own"), Path("public")) and meet(Path("public"), Path("own/train.csv"))
    assert not is_made_here("public")
    link(tmp_path / "data/work/sim/points.jsonl", tmp_path / "public/b.jsonl")
    assert is_made_here("public")


def test_no_cover_is_made_to_miss_a_share_of_secrets():
    given = tiny()
    given["policies"]["digits"] = {"kind": "cover", "patterns": {"digit": r"\d"}}
    message = r"runs\.redacted\.gammas = .*: policies\.digits covers"
    with pytest.raises(InputError, match=message):
        validated(given, [])
    for row in given["runs"].values():
        row.pop("gammas", None)
    validated(given, [])


@pytest.mark.parametrize("depth", [1, 2])
def test_no_cover_is_united_with_other_policies(depth):
    given = tiny()
    given["policies"]["digits"] = {"kind": "cover", "patterns": {"digit": r"\d"}}
    for _ in range(depth):
        given["policies"]["digits"] = {"kind": "union", "policies": [given["policies"]["digits"]]}
    with pytest.raises(InputError, match=r"policies\.digits\.policies: unite a cover with others"):
        validated(given, [])
