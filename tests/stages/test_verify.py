"""Verification: what holds is said to hold; any altered field, file or ledger is refused by name,
in one line.
"""

import hashlib
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import reduce
from operator import getitem

import pytest
from certified import (
    ASKED,
    DELTA,
    HASHED,
    METHODS,
    append,
    certificate,
    closed,
    ledger_of,
    rewritten,
    source_of,
)

from confide.certify.certificate import certificate as certificate_of
from confide.certify.certificate import sealed
from confide.cli import main
from confide.commands import verify as verification
from confide.commands.verify import verify
from confide.dp.accounting.calibration import calibrate
from confide.dp.ledger import Ledger
from confide.errors import InputError
from confide.files.io import read_json, sha256
from confide.specs import CertifySpec, parse
from confide.train.planning import Sizes, check_length

DATA = [name for name in HASHED if name != "model"]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with a certificate and all that it names."""
    folder = tmp_path_factory.mktemp("written")
    source = source_of(METHODS["crt"])
    (folder / "source.jsonl").write_text(source.dump())
    ledger = Ledger()
    ledger.read("tokenizer", "bpe", public=True, digest=hashlib.sha256(b"tokenizer").hexdigest())
    ledger.init("source/g0-s0", public=False, ledger=source.dump())
    trained(ledger, METHODS["crt"])
    certificate(folder, [], ledger=ledger, start_ledgers=[folder / "source.jsonl"])
    return folder


def trained(ledger, releases, epochs=3):
    """The same with so many epochs of updates, each of which leaves another state of the noise
    behind.
    """
    for number in range(1, epochs + 1):
        for place, release in enumerate(releases):
            append(ledger, release, 1000 * number + place)
        ledger.epoch(number)
    return ledger


@pytest.fixture
def folder(written, tmp_path):
    """A copy whose certificate names the files by their names alone."""
    shutil.copytree(written, tmp_path / "deep/copy")
    path = tmp_path / "deep/copy/certificate.json"
    path.write_text(path.read_text().replace(f"{written}/", "copy/"))
    rewritten(path, json.loads(path.read_text()))
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
    assert "holds for r/g0.1-s0" in out and "not for release" in out
    assert "What was protected: one turn" in out and "How much could still be found out: " in out
    assert "source.jsonl" not in out and "ledger, model, recall, neighbours, start_ledgers" in out


def altered(value, place):
    """A copy with the value at a place flipped."""
    copy = json.loads(json.dumps(value))
    *above, last = place
    inner = reduce(getitem, above, copy)
    inner[last] = flipped(inner[last])
    return copy


@pytest.fixture
def remembered(monkeypatch):
    """Recomputation is a function of specification and files: the same question need not be
    answered again.
    """
    answers = {}

    def certificate(spec, files, named):
        key = spec.model_dump_json(), str(files)
        if key not in answers:
            answers[key] = certificate_of(spec, files, named)
        return sealed(answers[key] | {"files": named, "code": dict(answers[key]["code"])})

    monkeypatch.setattr(verification, "certificate", certificate)


def test_every_field_that_is_flipped_is_refused(folder, capsys, remembered):
    """With the seal made anew, as a forger would: what the certificate says must follow from the
    files.
    """
    whole = json.loads((folder / "certificate.json").read_text())
    forged = folder / "forged.json"
    places = [place for place in leaves(whole) if place not in (("seal",), ("code", "version"))]
    assert len(places) > 250
    for place in places:
        reseal(forged, altered(whole, place))
        if place[0] == "files" and place[1] in DATA and place[-1] == "path":
            verify(forged)  # data that is nowhere: said to be unchecked
            assert "not here, so not checked" in capsys.readouterr().out
            continue
        with pytest.raises(InputError, match="."):
            verify(forged)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda value: value["code"].update(version="1.0, audited by all"), "is no version"),
        (lambda value: value["code"].update(version={"said": "so"}), "is no version"),
        (lambda value: value["files"]["model"][0].update(checked="twice"), "checked"),
    ],
)
def test_there_is_no_room_for_words_of_one_s_own(folder, change, message):
    value = json.loads((folder / "certificate.json").read_text())
    change(value)
    (folder / "certificate.json").write_text(json.dumps(sealed(value)))
    with pytest.raises(InputError, match=message):
        verify(folder / "certificate.json")


def test_without_a_new_seal_not_even_a_note_can_change(folder):
    whole = json.loads((folder / "certificate.json").read_text())
    for place in leaves(whole):
        (folder / "forged.json").write_text(json.dumps(altered(whole, place)))
        with pytest.raises(InputError):
            verify(folder / "forged.json")


@pytest.mark.parametrize(
    "name", ["ledger", "recall", "neighbours", "source.jsonl", "model", "original", "tokenizer"]
)
def test_other_bytes_than_were_certified_are_refused(folder, name):
    (folder / name).write_bytes((folder / name).read_bytes() + b"\n")
    with pytest.raises(InputError, match=f"{name}: files.*other bytes"):
        verify(folder / "certificate.json")


@pytest.mark.parametrize("name", ["ledger", "model", "recall", "neighbours", "source.jsonl"])
def test_what_is_needed_must_be_here(folder, name):
    (folder / name).unlink()
    with pytest.raises(InputError, match="is not here"):
        verify(folder / "certificate.json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda files: files.pop("start_ledgers"), "files.start_ledgers: is missing"),
        (
            lambda files: files["neighbours"].clear(),
            "files.neighbours: names 0 files instead of one",
        ),
        (
            lambda files: files["recall"].append(files["recall"][0]),
            "files.recall: names 2 files instead of one",
        ),
        (
            lambda files: files["ledger"][0].update(path="x" * 5000),
            "is not here",
        ),  # longer than any file system takes
    ],
)
def test_files_of_a_stranger_s_certificate_are_counted_and_found(folder, change, message):
    value = json.loads((folder / "certificate.json").read_text())
    change(value["files"])
    reseal(folder / "certificate.json", value)
    with pytest.raises(InputError, match=message):
        verify(folder / "certificate.json")


def test_data_may_be_elsewhere(folder, capsys):
    for name in ("original", "redacted"):
        (folder / name).unlink()
    verify(folder / "certificate.json")
    assert "not here, so not checked: copy/original, copy/redacted" in capsys.readouterr().out


def forged(
    folder,
    releases,
    *,
    epochs=3,
    lines=lambda ledger: None,
    weights=b"model",
    alter=lambda value: None,
    **given,
):
    """Certify another training than was asked for, with every hash and seal as it should be, and
    verify that.
    """
    ledger = Ledger()
    lines(ledger)
    for name in ("ledger", "certificate.json"):
        (folder / name).unlink(missing_ok=True)
    certificate(folder, [], ledger=trained(ledger, releases, epochs), **given)
    path = folder / "certificate.json"
    value = json.loads(path.read_text())
    alter(value)
    (folder / "model").write_bytes(weights)
    reseal(path, value)
    verify(path, root=folder)


CRT = METHODS["crt"]
WEAK = [replace(one, noise_multiplier=300.0) if one.step.noisy else one for one in CRT]
RARE = [replace(one, sample_rate=0.001) if one.step.noisy else one for one in CRT]


@pytest.mark.parametrize(
    ("releases", "epochs", "message"),
    [
        (CRT, 2, "has other epochs than the 3"),
        (CRT, 4, "has other epochs than the 3"),
        ([CRT[0], CRT[-1]], 3, "epoch 1 does not hold the updates"),
        (CRT[::-1], 3, "epoch 1 does not hold the updates"),
        (RARE, 3, "epoch 1 does not hold the updates"),
        (WEAK, 3, "is not the noise that noise_multiplier = 2.0 asks for"),
        (METHODS["redacted"], 3, "holds noised updates of other kinds"),
        (METHODS["dpsgd"], 3, "epoch 1 does not hold the updates"),
    ],
)
def test_a_ledger_of_other_updates_than_were_asked_for_is_refused(
    tmp_path, releases, epochs, message
):
    with pytest.raises(InputError, match=message):
        forged(tmp_path, releases, epochs=epochs)


@pytest.mark.parametrize(
    ("target", "noise", "holds"),
    [(3.0, 1.0, True), (3.0, 100.0, False), (3.0, 0.99, False), (2.97, 1.0, False)],
)
def test_the_noise_is_what_the_target_epsilon_asks_for(tmp_path, target, noise, holds):
    """Less noise would not reach the target, and more is none that calibration would have
    chosen.
    """
    needed = noise * calibrate(3.0, DELTA, 0.05, 60)
    releases = [replace(one, noise_multiplier=needed) if one.step.noisy else one for one in CRT]
    asked = {"privacy": {"epsilon": target, "delta": DELTA}}
    if holds:
        forged(tmp_path, releases, **asked)
    else:
        with pytest.raises(InputError, match=f"is not the noise that epsilon = {target} asks for"):
            forged(tmp_path, releases, **asked)


@pytest.mark.parametrize("method", [name for name in ASKED if name not in ("crt", "untouched")])
def test_every_method_s_updates_are_those_that_it_asks_for(tmp_path, method, capsys):
    forged(tmp_path, METHODS[method], **ASKED[method])
    assert "its updates against the settings" in capsys.readouterr().out
    with pytest.raises(InputError):
        forged(tmp_path, METHODS[method][1:], **ASKED[method])


def test_a_model_without_training_has_no_update(tmp_path, capsys):
    forged(tmp_path, [], **ASKED["untouched"])
    assert "its updates against the settings" in capsys.readouterr().out
    with pytest.raises(InputError):
        forged(tmp_path, METHODS["redacted"], **ASKED["untouched"])


def test_training_as_published_is_no_leave_to_do_anything_else(tmp_path):
    asked = {"method": "selective", "recipe": {"epochs": 3, "private_state": "published"}}
    forged(tmp_path, METHODS["selective_published"], **asked)
    with pytest.raises(InputError, match="training as published does not make"):
        forged(tmp_path, WEAK, **asked)


def test_the_pretrained_model_is_among_what_was_read(tmp_path):
    model = {"kind": "gpt2", "pretrained": "elsewhere"}
    with pytest.raises(InputError, match="does not name the pretrained model"):
        forged(tmp_path, CRT, model=model)


def test_what_was_read_before_training_is_what_the_settings_say(tmp_path):
    reads = [
        {"stage": "tokenizer", "source": "bpe", "public": False},
        {"stage": "policy", "source": "codes", "public": True},
    ]
    with pytest.raises(InputError, match="what the settings say was read before training"):
        forged(tmp_path, CRT, reads=reads)
    for digest, right in ((hashlib.sha256(b"tokenizer").hexdigest(), True), ("1" * 64, False)):
        read = {
            "lines": lambda ledger, digest=digest: ledger.read(
                "tokenizer", "bpe", public=False, digest=digest
            )
        }
        if right:
            forged(tmp_path, CRT, reads=reads, **read)
        else:
            with pytest.raises(InputError, match="names another tokenizer"):
                forged(tmp_path, CRT, reads=reads, **read)


def test_other_weights_are_refused_though_every_hash_fits(tmp_path):
    def other(value):
        value["files"]["model"][0]["sha256"] = hashlib.sha256(b"other").hexdigest()

    with pytest.raises(InputError, match="not the ones that this training ended with"):
        forged(tmp_path, CRT, weights=b"other", alter=other)
    with pytest.raises(InputError, match="files.model: names 0 files"):
        forged(tmp_path, CRT, alter=lambda value: value["files"]["model"].clear())
    with pytest.raises(InputError, match="files.model: is missing"):
        forged(tmp_path, CRT, alter=lambda value: value["files"].pop("model"))


def test_a_ledger_of_another_model_is_refused(folder):
    """Even with its hash in the certificate: it opens with the name and the settings of its run."""
    value = json.loads((folder / "certificate.json").read_text())
    other = ledger_of(METHODS["crt"])
    other.start("other/g0-s0", settings="0" * 64, code="abc", noise="system", arithmetic="float32")
    closed(other)
    (folder / "ledger").write_text(other.dump())
    value["files"]["ledger"][0]["sha256"] = hashlib.sha256(
        (folder / "ledger").read_bytes()
    ).hexdigest()
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
        (
            '{"version": 99, "seal": "x"}',
            "version = 99: is not 3: the release that wrote it",
        ),
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


def test_a_seal_within_a_seal_is_compared():
    """Only that of the whole file is another one where the file is another one."""
    one, other = ({"seal": name, "model": {"seal": name}} for name in ("a", "b"))
    assert list(verification.differences(one, other)) == [("model.seal", "a", "b")]


@pytest.fixture
def exported(tmp_path):
    """A release whose model others can open, as far as its certificate goes."""
    certificate(tmp_path, METHODS["dpsgd"], **(ASKED["dpsgd"] | {"noise_seed": None}))
    folder = tmp_path / "transformers"
    folder.mkdir()
    for name in ("config.json", "model.safetensors"):
        (folder / name).write_text("{}")
    path = tmp_path / "certificate.json"
    path.write_text(path.read_text().replace(f"{tmp_path}/", ""))
    found = read_json(path)
    found["files"]["transformers"] = [
        {"path": str(file.relative_to(tmp_path)), "sha256": sha256(file)}
        for file in sorted(folder.iterdir())
    ]
    rewritten(path, found)
    verify(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "name", ["adapter_config.json", "modeling.py", "additional_chat_templates/one.jinja"]
)
def test_nothing_may_be_added_to_what_a_library_opens(exported, name):
    stray = exported / "transformers" / name
    stray.parent.mkdir(exist_ok=True)
    stray.write_text("{}")
    with pytest.raises(InputError, match=f"{name}: is not named in the certificate.*remove it"):
        verify(exported)


@pytest.mark.parametrize("target", ["config.json", "/tmp"])
def test_nor_a_link_whatever_it_leads_to(exported, target):
    (exported / "transformers/chat_template.jinja").symlink_to(target)
    with pytest.raises(InputError, match="chat_template.jinja: is not named"):
        verify(exported)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_nor_in_place_of_what_was_certified(exported, elsewhere):
    """Be it gone, or one folder up, where it is found."""
    folder = exported / "transformers"
    stray = exported / "release/transformers/adapter_config.json"
    stray.parent.mkdir(parents=True)
    stray.write_text("{}")
    if elsewhere:
        shutil.copy(exported / "certificate.json", stray.parents[1])
        with pytest.raises(InputError, match="adapter_config.json: is not named"):
            verify(stray.parents[1])
        return
    shutil.rmtree(folder)
    stray.parent.rename(folder)
    with pytest.raises(InputError, match="adapter_config.json: is not named"):
        verify(exported)


def test_nor_where_the_certificate_names_no_such_folder(folder):
    (folder / "adapter").mkdir()
    (folder / "adapter/adapter_config.json").write_text("{}")
    with pytest.raises(InputError, match="adapter_config.json: is not named"):
        verify(folder / "certificate.json")


def test_other_weights_beside_a_certificate_do_not_pass_for_those_elsewhere(exported, capsys):
    """It speaks of what lies above, and whoever opens the folder opens what lies in it."""
    given = exported / "given"
    shutil.copytree(exported, exported / "kept")
    given.mkdir()
    found = read_json(exported / "certificate.json")
    for file in (file for files in found["files"].values() for file in files):
        file["path"] = f"kept/{file['path']}"
    rewritten(given / "certificate.json", found)
    capsys.readouterr()
    verify(given)
    said = capsys.readouterr().out
    assert f"its model is {exported}/kept/model, not in the certificate's folder" in said
    shutil.copy(exported / "kept/ledger", given)  # another certified file may have that name
    verify(given)
    (given / "model").write_text("another one")
    with pytest.raises(InputError, match="given/model: is another file than the certified one"):
        verify(given)


def test_a_folder_that_nobody_may_search_is_not_passed_over(exported, monkeypatch):
    def closed(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("confide.commands.verify.os.scandir", closed)
    with pytest.raises(InputError, match="transformers: cannot be searched"):
        verify(exported)


def test_a_certificate_that_is_a_link_speaks_of_other_files(exported):
    """Whoever is given the folder would open what lies beside the link."""
    given = exported / "given"
    given.mkdir()
    (given / "certificate.json").symlink_to("../certificate.json")
    (given / "model.safetensors").write_text("another model")
    for verifies in (verify, verification.verified):
        with pytest.raises(InputError, match="certificate.json: is a link"):
            verifies(given / "certificate.json")


def test_a_model_in_a_folder_below_hides_no_other(tmp_path):
    """Which `confide.load` would take for the certified one."""
    for name in ("certificate.json", "x/model.safetensors", "model.safetensors"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    files = {"model": [tmp_path / "x/model.safetensors"]}
    unnamed = verification.unnamed
    assert unnamed(tmp_path / "certificate.json", files, []) == ["model.safetensors"]
    assert unnamed(tmp_path / "x/certificate.json", {"model": [tmp_path / "a"]}, []) == []


def test_what_follows_from_no_file_of_a_release_is_said():
    handed_out = {"tried": "game: stands", "against": ["nobody looked"]}
    files = {"transformers": [{"path": "transformers/config.json"}]}
    lines = verification.handed_out({"files": files, "handed_out": handed_out})
    assert [line.strip() for line in lines] == [
        "not checked: that transformers/ is this model (confide attest compares them)",
        "not checked: what was tried against it: game: stands",
        "released all the same: nobody looked",
    ]
    assert verification.handed_out({"files": {}}) == []


def test_a_training_that_nobody_could_list_is_refused_before_it_is_listed(folder):
    """Whoever wrote the settings and the ledger may want to take all memory."""
    asked = parse(CertifySpec, read_json(folder / "certificate.json")["asked"], file="c").train
    sizes = Sizes(pools={"all": 5, "public": 2, "private": 3})
    recipe = asked.recipe
    check_length(asked, sizes, recorded=recipe.epochs, file=folder)
    for change, message in (
        ({"epochs": 10**12}, "has other epochs than the 1000000000000"),
        ({"noisy_epochs": 10**12}, "asks for more than 20,000,000 updates"),
    ):
        endless = asked.model_copy(update={"recipe": recipe.model_copy(update=change)})
        with pytest.raises(InputError, match=message):
            check_length(endless, sizes, recorded=recipe.epochs, file=folder)
    for vast in (
        Sizes(pools=dict.fromkeys(sizes.pools, 10**15)),
        Sizes(pools={}, authors=dict.fromkeys(sizes.pools, 10**15)),
    ):
        with pytest.raises(InputError, match="more than 20,000,000 updates"):
            check_length(asked, vast, recorded=recipe.epochs, file=folder)


def test_what_lies_beside_and_nobody_certified_is_named(exported, capsys):
    capsys.readouterr()
    verify(exported)
    assert "does not name" not in capsys.readouterr().out
    for number in range(10):
        (exported / f"texts{number}.jsonl").write_text("{}\n")
    verify(exported)
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "does not name" in line]
    assert "texts0.jsonl, texts1.jsonl" in line and line.endswith("texts7.jsonl, 2 more")
