"""Redacted text that is handed out: what a model read, without what was planted, with claims that
are the model's own, and of no model that read more.
"""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from confide.certify.certificate import sealed
from confide.certify.texts import WRITTEN, certificate_of_texts, check_reads_redacted
from confide.cli import main
from confide.commands.release import (
    MADE_TO_MISS,
    MAY_MISS,
    MISSED,
    STANDING,
    TEXTS,
    TRACES,
    against_texts,
    release,
)
from confide.commands.spend import spend
from confide.commands.verify import verify
from confide.corpora.lines import SYNTHETIC, WRITTEN_NAME
from confide.data.partition_files import write_partitions
from confide.data.redacted_texts import RedactedTexts
from confide.errors import Failure, InputError
from confide.files.io import read_json, sha256, write_json, write_jsonl
from confide.specs.files import CERTIFICATE
from confide.text.planted import audit_doc, canary_doc
from confide.text.tokenizer import Tokenizer, load, save, train_bpe
from confide.train.student import view_of
from confide.types import MASK, SPLITS, Partition
from tests.stages.certified import ASKED, METHODS, certificate, ledger_of
from tests.stages.test_release import checked_by_study
from tests.terms import POOLS

SECRET = "4711"
TRAIN, VALID, TEST = range(len(SPLITS))
POINTS = [  # document, text, as the policy leaves it, split, whether it is a later copy
    ("a", f"my code is {SECRET}", f"my code is {MASK}", TRAIN, False),
    (canary_doc(0, 0), "a canary 123456", f"a canary {MASK}", TRAIN, False),
    ("b", "the order is late", "the order is late", TRAIN, False),
    ("c", f"my code is {SECRET}", MASK, TRAIN, True),
    (audit_doc("game", 3), "a coin 77", f"a coin {MASK}", TRAIN, False),
    ("canary-song", "a bird sings", "a bird sings", TRAIN, False),
    ("b", "still late", "still late", TRAIN, False),
    ("d", "held out", "held out", VALID, False),
    ("e", "held out, too", "held out, too", TEST, False),
]
SHOWN = [f"my code is {MASK}", "the order is late", "a bird sings", "still late"]
# so many more that pools are as large as the ledger says
for pool, text in (("public", "fine"), ("private", f"so {MASK}")):
    there = sum(row[3] == TRAIN and (MASK in row[2]) == (pool == "private") for row in POINTS)
    POINTS += [(f"{pool}-{n}", text, text, TRAIN, False) for n in range(POOLS[pool] - there)]
    SHOWN += [text] * (POOLS[pool] - there)


def partition(tokenizer: Tokenizer, points: list[Any]) -> Partition:
    docs, originals, redacted, splits, copies = zip(*points, strict=True)
    first, second = (view_of(list(map(tokenizer.encode, texts))) for texts in (originals, redacted))
    nobody = np.full(len(docs), -1, np.int32)
    return Partition(
        original=first,
        redacted=second,
        secret=np.zeros(len(first.ids), bool),
        private=np.array([MASK in text for text in redacted]),
        copy=np.array(copies),
        split=np.array(splits, np.uint8),
        domain=nobody,
        owner=nobody,
    )


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with text that was partitioned, before anything is certified."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results/studies/own").mkdir(parents=True)
    tokenizer = train_bpe([text for _, text, *_ in POINTS] * 20, 300)
    save(tokenizer, tmp_path / "words.json")
    folder = tmp_path / "data/work/mine/g0-dedup"
    folder.mkdir(parents=True)
    views = {name: folder / f"{name}.safetensors" for name in ("original", "redacted")}
    write_partitions([partition(tokenizer, POINTS)], **views)
    points_file(tmp_path)
    return tmp_path


def points_file(project: Path, marked: str = SECRET, points: Any = POINTS) -> None:
    """Write the points, in which one string is marked as a secret of the label `code`."""
    rows = []
    for place, (doc, text, _, split, _) in enumerate(points):
        start = text.find(marked)
        gold = [] if start < 0 else [[start, start + len(marked), "code", 1.0]]
        rows.append(
            {"key": f"{doc}:{place}", "text": text, "split": SPLITS[split]} | {"gold": gold}
        )
    write_jsonl(project / "data/work/mine/points.jsonl", rows)


def certify(project: Path, method: str = "redacted", **given: Any) -> Path:
    """The certificate of a model that was trained on the text, whose study has checked it."""
    ledger = ledger_of(METHODS[method])
    ledger.read("tokenizer", "bpe", public=True, digest=sha256(project / "words.json"))
    contents = {"tokenizer": (project / "words.json").read_bytes()}
    certificate(project, [], ledger=ledger, noise_seed=None, **contents, **ASKED[method], **given)
    path = project / CERTIFICATE
    found = read_json(path)
    view = Path("data/work/mine/g0-dedup/redacted.safetensors")
    found["files"]["redacted"] = [{"path": str(view), "sha256": sha256(project / view)}]
    write_json(path, found)
    checked_by_study(project)
    return path


def released(project: Path, **asked: Any) -> Path:
    study = project / "results/studies/own"
    release(project / CERTIFICATE, study=study, output=project / "out", texts=True, **asked)
    return project / "out" / TEXTS


def test_the_texts_are_what_the_model_read_without_what_was_planted(project, capsys):
    certify(project)
    file = released(project, anyway=True)
    content = file.read_bytes()
    first, *lines = [json.loads(line) for line in content.splitlines()]
    assert [line["text"] for line in lines] == SHOWN
    numbers = [line["doc"].removeprefix("redacted-text-") for line in lines]
    assert numbers[:5] == ["1", "2", "3", "2", "4"]  # points of a document share its number
    assert content.startswith(SYNTHETIC)  # so that no dataset calls them public
    assert all(WRITTEN_NAME.fullmatch(line["doc"]) for line in lines)  # nor a part of them
    assert SECRET.encode() not in content
    model = read_json(file.with_name(CERTIFICATE))
    stated = read_json(file.with_name(f"{TEXTS}.{CERTIFICATE}"))
    assert stated["claims"] == model["claims"]
    assert first["synthetic"]["certificate"] == stated["model"]["seal"] == model["seal"]
    capsys.readouterr()
    verify(file)
    said = capsys.readouterr().out
    assert (
        f"{len(SHOWN)} redacted texts, of which all that is claimed of a model of them holds"
        in said
    )
    assert "not checked: that the model was trained on them" in said
    whole = b"".join(path.read_bytes() for path in (project / "out").iterdir())
    assert sha256(project / "data/work/mine/g0-dedup/redacted.safetensors").encode() not in whole


def test_what_the_policy_misses_speaks_against_it(project):
    certify(project)
    with pytest.raises(Failure, match="policy misses some: the texts show these"):
        released(project)
    assert not (project / "out").exists()
    certify(project, measured={"gamma": 0.0, "gamma_upper": 0.01})
    with pytest.raises(Failure) as failure:
        released(project)
    assert MISSED not in str(failure.value)


@pytest.mark.parametrize(
    ("gamma", "labels", "said"),
    [
        (None, {}, [MAY_MISS]),
        (0.0, {"code": {"missed": 1}}, [MISSED]),
        (0.0, None, []),
        (0.3, {"code": {"missed": 0}}, [TRACES]),  # hidden whole, with what stands beside
        (0.3, {"code": {"missed": 1}}, [MISSED]),
        (0.3, None, [MISSED]),  # nobody counted which of the two
    ],
)
def test_what_a_policy_may_miss_speaks_against_it(gamma, labels, said, capsys):
    """A review bounds how much that is, and estimates nothing; counts tell more than a sample."""
    certified = {"policy": {"gamma": gamma}, "asked": {"miss_rate": 0.0}}
    assert against_texts(certified, {"labels": labels}, Counter()) == said
    assert "marked secrets that stand in the texts: 0 (no" in capsys.readouterr().out
    certified["asked"]["miss_rate"] = 0.1
    assert against_texts(certified, {"labels": labels}, Counter()) == [*said, MADE_TO_MISS]


@pytest.mark.parametrize("marked", [0, 2])
def test_what_a_person_marked_is_missed(marked):
    reviewed = {"name": {"marked": marked}, "any label": {"marked": marked}}
    certified = {
        "policy": {"gamma": None, "review_labels": reviewed},
        "asked": {"miss_rate": 0.0},
    }
    said = [MISSED] if marked else [MAY_MISS]
    assert against_texts(certified, {"labels": {}}, Counter()) == said


def test_another_view_than_the_model_read_is_refused(project):
    """A certificate that somebody seals again may name any file, and verify has never seen it."""
    path = certify(project)
    found = read_json(path)
    view = project / "data/work/mine/g0-nodedup/redacted.safetensors"
    view.parent.mkdir()
    tokenizer = load(project / "words.json")
    views = {"original": view.with_name("original.safetensors"), "redacted": view}
    write_partitions([partition(tokenizer, POINTS[:8])], **views)
    points_file(project, points=POINTS[:8])
    entry = {"path": str(view.relative_to(project)), "sha256": sha256(view)}
    found["files"]["redacted"] = [entry]
    write_json(path, sealed(found))
    checked_by_study(project)
    with pytest.raises(InputError, match="not what the model was trained on: its pool 'all'"):
        released(project, anyway=True)
    assert not (project / "out").exists()


def test_a_secret_that_stands_in_the_texts_speaks_against_it(project, capsys):
    certify(project, measured={"gamma": 0.0, "gamma_upper": 0.01})
    points_file(project, marked="order is")
    with pytest.raises(Failure) as failure:
        released(project)
    assert f"{STANDING}code" in str(failure.value)
    assert "marked secrets that stand in the texts: 1 (" in capsys.readouterr().out
    released(project, anyway=True)
    said = (project / "out/certificate.md").read_text()
    assert f"{STANDING}code" in said and "order is" not in said + capsys.readouterr().out
    shutil.rmtree(project / "out")
    points_file(project, marked="canary")  # in a planted sentence alone, which is left out
    with pytest.raises(Failure) as failure:
        released(project)
    assert STANDING not in str(failure.value)


@pytest.mark.parametrize("method", ["crt", "nonprivate", "dpsgd"])
def test_of_a_model_that_read_more_no_text_is_released(project, method):
    path = certify(project, method)
    with pytest.raises(InputError, match=r"method = .*reads more than redacted text"):
        released(project, anyway=True)
    assert not (project / "out").exists()
    # nor does a certificate hold that somebody writes for it
    found = read_json(path)
    texts = project / "made.jsonl"
    texts.write_text("null\n")
    named = {"path": texts.name, "sha256": sha256(texts), "count": 0}
    stated = certificate_of_texts(found, asked=None, drawn={}, texts=named, certificate=CERTIFICATE)
    write_json(project / f"made.jsonl.{CERTIFICATE}", stated)
    with pytest.raises(InputError, match="reads more than redacted text"):
        verify(texts)


def test_a_model_that_read_nothing_says_nothing_of_the_text(project):
    found = read_json(certify(project))
    check_reads_redacted(found, Path("certificate.json"))
    found["headline"]["record_epsilon"] = 0.0
    with pytest.raises(InputError, match="has not read the text"):
        check_reads_redacted(found, Path("certificate.json"))


def test_a_model_that_read_the_original_is_not_of_the_redacted_text(project):
    found = read_json(certify(project))
    found["asked"]["train"]["redact"] = False
    with pytest.raises(InputError, match="redact = .*reads the original text"):
        check_reads_redacted(found, Path("certificate.json"))


def test_a_policy_that_was_made_to_miss_speaks_against_it(project):
    """A certificate says so where `against_texts` reads it."""
    found = read_json(certify(project))
    assert found["asked"]["miss_rate"] == 0.1
    assert MADE_TO_MISS in against_texts(found, {}, Counter())
    found["asked"]["miss_rate"] = 0.0
    assert MADE_TO_MISS not in against_texts(found, {}, Counter())


def test_without_the_text_nothing_is_released(project):
    certify(project)
    (project / "data/work/mine/g0-dedup/redacted.safetensors").unlink()
    with pytest.raises(InputError, match=r"files\.redacted.*is not here"):
        released(project, anyway=True)
    assert not (project / "out").exists()


def test_points_of_another_partition_are_refused(project):
    folder = project / "data/work/mine"
    write_jsonl(folder / "points.jsonl", [{"key": "a:0", "split": "train"}] * len(POINTS))
    with pytest.raises(InputError, match="has other points than redacted.safetensors"):
        RedactedTexts(folder / "g0-dedup/redacted.safetensors", load(project / "words.json"), POOLS)


def test_altered_texts_do_not_verify(project):
    certify(project)
    file = released(project, anyway=True)
    stated = file.with_name(f"{TEXTS}.{CERTIFICATE}")
    whole = read_json(stated)
    write_json(stated, sealed(whole | {"kind": WRITTEN.name}))
    with pytest.raises(InputError, match=r"kind: says 'texts of a certified model'"):
        verify(file)
    write_json(stated, whole)
    verify(file)
    for changed in ({"texts": whole["texts"] | {"anonymous": True}}, {"drawn": {"approved": 1}}):
        write_json(stated, sealed(whole | changed))
        with pytest.raises(InputError, match=r"(texts.anonymous|drawn.approved): says"):
            verify(file)
    content = file.read_bytes()
    twice = content.replace(b'{"synthetic":', b'{"synthetic":{"public":true},"synthetic":', 1)
    file.write_bytes(twice)
    named = whole["texts"] | {"sha256": sha256(file)}
    write_json(stated, sealed(whole | {"texts": named}))
    with pytest.raises(InputError, match="stands twice"):
        verify(file)
    file.write_bytes(content)
    write_json(stated, whole)
    with pytest.raises(InputError, match="texts cost what their model costs"):
        spend([stated])
    file.write_text(file.read_text().replace("late", "lost"))
    with pytest.raises(InputError, match="other bytes"):
        verify(file)


def test_other_texts_beside_a_certificate_are_not_what_it_is_of(project):
    certify(project)
    file = released(project, anyway=True)
    other = file.with_name("other.jsonl")
    other.write_text('{"text": "4111 1111 1111 1111"}\n')
    shutil.copyfile(f"{file}.{CERTIFICATE}", f"{other}.{CERTIFICATE}")
    with pytest.raises(InputError, match="is of other texts than its name says"):
        verify(other)
    verify(file)


def test_the_command_line_has_it(project, capsys):
    certify(project)
    asked = ["release", str(project / CERTIFICATE), "--study", "results/studies/own"]
    assert main([*asked, "--output", "out", "--texts", "--anyway"]) == 0
    assert MISSED in capsys.readouterr().out
    assert (project / "out" / TEXTS).is_file()
