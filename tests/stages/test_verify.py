"""Verification: what holds is said to hold; any altered field, file or ledger is refused by name, in one line."""

import hashlib
import json
import shutil
import subprocess
import sys
from functools import reduce
from operator import getitem

import pytest
from certified import HASHED, METHODS, append, certificate, ledger_of, source_of

from confide.certificate import certificate as certificate_of
from confide.certificate import sealed
from confide.cli import main
from confide.dp.ledger import Ledger
from confide.errors import InputError
from confide.stages import verify as verification
from confide.stages.verify import verify


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with a certificate and all that it names."""
    folder = tmp_path_factory.mktemp("written")
    source = source_of(METHODS["crt"])
    (folder / "source.jsonl").write_text(source.dump())
    ledger = Ledger()
    ledger.read("tokenizer", "bpe", public=True, digest="1" * 64)
    ledger.init("source/g0-s0", public=False, ledger=source.dump())
    for number in (1, 2):
        append(ledger, METHODS["crt"][0])
        append(ledger, METHODS["crt"][-1], 1000 + number)
        ledger.epoch(number)
    certificate(folder, [], ledger=ledger, start_ledgers=[folder / "source.jsonl"])
    return folder


@pytest.fixture
def folder(written, tmp_path):
    """A copy whose certificate names the files by their names alone."""
    shutil.copytree(written, tmp_path / "deep/copy")
    path = tmp_path / "deep/copy/certificate.json"
    path.write_text(path.read_text().replace(f"{written}/", "copy/"))
    reseal(path, json.loads(path.read_text()))
    return tmp_path / "deep/copy"


def reseal(path, value):
    path.write_text(json.dumps(sealed(value)))


def leaves(value, path=()):
    """Paths of all values of a JSON document that hold no others."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from leaves(inner, (*path, index))
    else:
        yield path


def flipped(value):
    """A value of the same kind, but another."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return "x" if value is None else f"{value}x"


def test_what_was_certified_is_verified(folder, capsys):
    verify(folder / "certificate.json")
    out = capsys.readouterr().out
    assert "holds for r/g0.1-s0" in out and "Replacing one turn" in out and "not for release" in out
    assert "source.jsonl" not in out and "ledger, recall, neighbours, start_ledgers" in out


def altered(value, place):
    """A copy with the value at a place flipped."""
    copy = json.loads(json.dumps(value))
    *above, last = place
    inner = reduce(getitem, above, copy)
    inner[last] = flipped(inner[last])
    return copy


@pytest.fixture
def remembered(monkeypatch):
    """Recomputation is a function of specification and files: the same question need not be answered again."""
    answers = {}

    def certificate(spec, files, named):
        key = spec.model_dump_json(), str(files)
        if key not in answers:
            answers[key] = certificate_of(spec, files, named)
        return sealed(answers[key] | {"files": named, "code": dict(answers[key]["code"])})

    monkeypatch.setattr(verification, "certificate", certificate)


def test_every_field_that_is_flipped_is_refused(folder, capsys, remembered):
    """With the seal made anew, as a forger would: what the certificate says must follow from the files."""
    whole, forged = json.loads((folder / "certificate.json").read_text()), folder / "forged.json"
    places = [place for place in leaves(whole) if place not in (("seal",), ("code", "version"))]
    assert len(places) > 250
    for place in places:
        reseal(forged, altered(whole, place))
        if place[0] == "files" and place[1] in HASHED and place[-1] == "path":
            verify(forged)  # weights and data that are nowhere: said to be unchecked
            assert "not here, so not checked" in capsys.readouterr().out
            continue
        with pytest.raises(InputError, match="."):
            verify(forged)


def test_without_a_new_seal_not_even_a_note_can_change(folder):
    whole = json.loads((folder / "certificate.json").read_text())
    for place in leaves(whole):
        (folder / "forged.json").write_text(json.dumps(altered(whole, place)))
        with pytest.raises(InputError):
            verify(folder / "forged.json")


@pytest.mark.parametrize("name", ["ledger", "recall", "neighbours", "source.jsonl", "model", "original", "tokenizer"])
def test_other_bytes_than_were_certified_are_refused(folder, name):
    (folder / name).write_bytes((folder / name).read_bytes() + b"\n")
    with pytest.raises(InputError, match=f"{name}: files.*other bytes"):
        verify(folder / "certificate.json")


@pytest.mark.parametrize("name", ["ledger", "recall", "neighbours", "source.jsonl"])
def test_what_is_needed_must_be_here(folder, name):
    (folder / name).unlink()
    with pytest.raises(InputError, match="is not here"):
        verify(folder / "certificate.json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda files: files.pop("start_ledgers"), "files.start_ledgers: is missing"),
        (lambda files: files["neighbours"].clear(), "files.neighbours: names 0 files instead of one"),
        (lambda files: files["recall"].append(files["recall"][0]), "files.recall: names 2 files instead of one"),
        (lambda files: files["ledger"][0].update(path="x" * 5000), "is not here"),  # longer than any file system takes
    ],
)
def test_files_of_a_stranger_s_certificate_are_counted_and_found(folder, change, message):
    value = json.loads((folder / "certificate.json").read_text())
    change(value["files"])
    reseal(folder / "certificate.json", value)
    with pytest.raises(InputError, match=message):
        verify(folder / "certificate.json")


def test_data_and_weights_may_be_elsewhere(folder, capsys):
    for name in ("model", "original", "redacted"):
        (folder / name).unlink()
    verify(folder / "certificate.json")
    assert "not here, so not checked: copy/model, copy/original, copy/redacted" in capsys.readouterr().out


def test_a_ledger_of_another_model_is_refused(folder):
    """Even with its hash in the certificate: it opens with the name and the settings of its run."""
    value = json.loads((folder / "certificate.json").read_text())
    other = ledger_of(METHODS["crt"])
    other.start("other/g0-s0", settings="0" * 64, code="abc", noise="system")
    other.end()
    (folder / "ledger").write_text(other.dump())
    value["files"]["ledger"][0]["sha256"] = hashlib.sha256((folder / "ledger").read_bytes()).hexdigest()
    reseal(folder / "certificate.json", value)
    with pytest.raises(InputError, match="run = 'other/g0-s0': belongs to another run"):
        verify(folder / "certificate.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "malformed JSON"),
        ('{"version": 1', "malformed JSON"),
        ("[]", "is not a certificate"),
        ('{"version": 1}', "is not a certificate"),
        ('{"version": 99, "seal": "x"}', "version = 99: is of another version"),
    ],
)
def test_bad_certificates_are_one_line(tmp_path, capsys, text, message):
    path = tmp_path / "certificate.json"
    path.write_text(text)
    assert main(["verify", str(path)]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and message in err and "certificate.json" in err


def test_verification_loads_no_model(folder):
    script = "import sys; from confide.cli import main; main(sys.argv[1:]); print(*sys.modules)"
    command = [sys.executable, "-c", script, "verify", str(folder / "certificate.json")]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "transformers", "matplotlib", "sklearn", "pandas", "mlflow"} & set(loaded)
