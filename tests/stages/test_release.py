"""Release: others see what verifies, as far as the umask lets them, and no digest of the text; what speaks against is named."""

import csv
import os
import shutil

import pytest
from certified import METHODS, append, certificate, source_of

from confide.certificate import sealed
from confide.cli import main
from confide.dp.ledger import Ledger
from confide.errors import Failure, InputError
from confide.io import read_json, sha256, write_json
from confide.release import RELEASED, release
from confide.stages.verify import verify

GATE = ("run", "audit", "outcome", "weights", "says")
COPIED = {"model.safetensors", "config.json", "tokenizer.json", "ledger.jsonl", "recall.json", "neighbours.json"}
PAGES = {"certificate.json", "certificate.md", "certificate.html"}


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A project with a certified run, an audit that it stands, and a clean scan; returns the study's folder."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "results/studies/own"
    folder.mkdir(parents=True)
    certified(tmp_path, "crt", noise_seed=None)
    return folder


def certified(project, method, **given):
    """Certify a run from made-up files, and write the study's checks of it."""
    certificate(project, METHODS[method], **given)
    path, study = project / "certificate.json", project / "results/studies/own"
    path.write_text(path.read_text().replace(f"{project}/", ""))
    write_json(path, sealed(read_json(path)))
    found = read_json(path)
    named = [file["path"] for name in RELEASED for file in found["files"][name]]
    searched = [f"results/runs/{found['run']}/certificate.json", *named]
    write_json(study / "scan.json", {"files": [{"path": path, "hits": 0} for path in searched]})
    audited(study, "stands", found["files"]["model"][0]["sha256"])


def audited(study, outcome, weights="", run="r/g0.1-s0"):
    with open(study / "gate.csv", "w", newline="") as out:
        csv.writer(out).writerows([GATE, (run, "game", outcome, weights, "in words"), ("x", "game", "refuted", "", "y")])


def found_by_scan(study, name, hits):
    scan = read_json(study / "scan.json")
    rows = [row for row in scan["files"] if row["path"] != name]
    write_json(study / "scan.json", {"files": rows + ([{"path": name, "hits": hits}] if hits else [])})


def test_what_is_released_verifies_on_its_own(study, tmp_path, tmp_path_factory, monkeypatch, capsys):
    kept = [sha256(tmp_path / name) for name in ("original", "redacted")]
    assert all(digest in (tmp_path / "certificate.json").read_text() for digest in kept)
    release(tmp_path / "certificate.json", study=study, output=tmp_path / "out/model")
    outside = tmp_path_factory.mktemp("elsewhere") / "model"
    shutil.move(tmp_path / "out/model", outside)
    assert {path.name for path in outside.iterdir()} == COPIED | PAGES and not list((tmp_path / "out").iterdir())
    monkeypatch.chdir(outside)
    verify(outside / "certificate.json")
    assert "not here" not in capsys.readouterr().out
    for path in outside.iterdir():
        assert not any(digest[:16] in path.read_text() for digest in kept), path
    first, second = read_json(tmp_path / "certificate.json"), read_json(outside / "certificate.json")
    assert {key for key in first if first[key] != second[key]} == {"files", "seal"}
    (outside / "model.safetensors").write_text("another")
    with pytest.raises(InputError, match="other bytes"):
        verify(outside / "certificate.json")


@pytest.mark.parametrize(("umask", "file", "folder"), [(0o022, 0o644, 0o755), (0o027, 0o640, 0o750)])
def test_others_see_it_as_far_as_the_users_umask_lets_them(study, tmp_path, umask, file, folder):
    for path in tmp_path.iterdir():
        path.chmod(0o700 if path.is_dir() else 0o600)
    before = os.umask(umask)
    try:
        assert main(["release", "certificate.json", "--study", str(study), "--output", "out"]) == 0
        assert os.umask(umask) == umask
    finally:
        os.umask(before)
    assert (tmp_path / "out").stat().st_mode & 0o777 == folder
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "out").iterdir()} == {file}


AGAINST = {
    "recorded noise": (lambda study, project: certified(project, "crt"), "not for release"),
    "no guarantee": (lambda study, project: certified(project, "nonprivate", noise_seed=None), "nothing finite is certified"),
    "refuted": (lambda study, project: audited(study, "refuted"), "game refuted: in words"),
    "no power": (lambda study, project: audited(study, "inconclusive"), "game inconclusive"),
    "nobody asked": (lambda study, project: audited(study, "not audited"), "game not audited: in words"),
    "other weights": (lambda study, project: audited(study, "stands", "0" * 64), "is of other weights than this certificate"),
    "not in the gate": (lambda study, project: audited(study, "stands", run="y"), "says nothing of this run: not audited"),
    "no gate": (lambda study, project: (study / "gate.csv").unlink(), "gate.csv: is missing"),
    "no scan": (lambda study, project: (study / "scan.json").unlink(), "scan.json: is missing"),
    "a leak": (lambda study, project: found_by_scan(study, "tokenizer", 2), "tokenizer: holds a secret"),
    "not searched": (lambda study, project: found_by_scan(study, "model", 0), "model: was not searched"),
}


@pytest.mark.parametrize("name", AGAINST)
def test_what_speaks_against_it_is_named_and_only_anyway_overrules_it(study, tmp_path, capsys, name):
    change, message = AGAINST[name]
    change(study, tmp_path)
    with pytest.raises(Failure, match=message) as failure:
        release(tmp_path / "certificate.json", study=study, output=tmp_path / "out")
    assert str(failure.value).count("\n") == 0 and not (tmp_path / "out").exists()
    assert not list(tmp_path.glob(".out*"))
    release(tmp_path / "certificate.json", study=study, output=tmp_path / "out", anyway=True)
    assert message in capsys.readouterr().out and (tmp_path / "out/model.safetensors").is_file()


@pytest.mark.parametrize("name", ["model", "ledger", "recall", "certificate.json"])
def test_nothing_is_released_that_the_certificate_does_not_hold_for(study, tmp_path, name):
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes().replace(b"3", b"4") + b" ")
    with pytest.raises(InputError):
        release(tmp_path / "certificate.json", study=study, output=tmp_path / "out", anyway=True)
    assert not (tmp_path / "out").exists()


def test_what_is_missing_or_there_already_is_an_error(study, tmp_path):
    (tmp_path / "tokenizer").unlink()
    with pytest.raises(InputError, match=r"files\.tokenizer.*: is not here"):
        release(tmp_path / "certificate.json", study=study, output=tmp_path / "out", anyway=True)
    (tmp_path / "out").mkdir()
    with pytest.raises(InputError, match="out: exists already"):
        release(tmp_path / "certificate.json", study=study, output=tmp_path / "out")


def test_ledgers_of_warm_starts_come_along(study, tmp_path):
    source = source_of(METHODS["dpsgd"])
    (tmp_path / "source.jsonl").write_text(source.dump())
    ledger = Ledger()
    ledger.init("source/g0-s0", public=False, ledger=source.dump())
    append(ledger, METHODS["crt"][-1], 10**6)
    certified(tmp_path, "crt", ledger=ledger, start_ledgers=[tmp_path / "source.jsonl"], noise_seed=None)
    release(tmp_path / "certificate.json", study=study, output=tmp_path / "out")
    assert (tmp_path / "out/start_ledger_0.jsonl").read_text() == source.dump()
    verify(tmp_path / "out/certificate.json", root=tmp_path / "out")
    named = read_json(tmp_path / "out/certificate.json")["files"]["start_ledgers"]
    assert [file["path"] for file in named] == ["start_ledger_0.jsonl"]
