"""Attestations: what is signed verifies by the key's public half; what is missing, altered or of
other weights is refused.
"""

import base64
import json
import os
import shutil

import pytest
from attested import (
    KEY,
    RUN,
    built,
    certified,
    gated,
    project,
    scanned,
    sign,
    statement_in,
    write_keys,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from confide.certify.certificate import sealed
from confide.cli import main
from confide.commands.attest import attest
from confide.commands.release import release
from confide.commands.verify import verify
from confide.errors import Failure, InputError
from confide.files.io import read_json, sha256, write_json
from confide.report.pages.certificate import both_pages
from confide.signing.envelope import IN_TOTO
from confide.signing.evidence import checks_of
from confide.signing.keys import fingerprint
from confide.signing.statement import PREDICATE, STATEMENT

SIGNED = {"certificate.json", "model", "config", "tokenizer", "ledger", "recall", "neighbours"}
MEASURED = {
    f"results/runs/{RUN}/game.json",
    "results/studies/own/scan.json",
}

__all__ = ["built", "project"]  # fixtures


def test_a_statement_is_over_the_model_s_files_and_verifies(project, capsys):
    statement = sign(project)
    assert (statement["_type"], statement["predicateType"]) == (STATEMENT, PREDICATE)
    assert read_json(project / "attestation.json")["payloadType"] == IN_TOTO
    digests = {one["name"]: one["digest"]["sha256"] for one in statement["subject"]}
    assert set(digests) == SIGNED | MEASURED | {"certificate.md", "certificate.html"}
    assert all(digest == sha256(project / name) for name, digest in digests.items())
    predicate = statement["predicate"]
    assert predicate["overruled"] == predicate["unbound"] == [] and predicate["run"] == RUN
    assert [(row["run"], row["outcome"]) for row in predicate["gate"]] == [
        (RUN, "stands"),
        (RUN, "skipped"),
    ]
    said = capsys.readouterr().out
    assert (
        fingerprint(KEY.public_key()) in said
        and "note: the certificate holds digests of confidential text" in said
    )
    verify(project / "certificate.json", key=project / "key.pub")
    said = capsys.readouterr().out
    assert f"signed by {fingerprint(KEY.public_key())}" in said and "who vouches" not in said
    assert "scan.json" in said and "not here" not in said and "all the same" not in said


@pytest.mark.parametrize("name", ["certificate.md", "certificate.html"])
def test_a_page_that_says_something_else_is_not_signed(project, name):
    (project / name).write_text((project / name).read_text().replace("ε", "0 ="))
    with pytest.raises(Failure, match=f"{name}: is not the page of this certificate"):
        sign(project)


def test_a_page_that_nobody_signed_is_said_to_be_unchecked(project, capsys):
    page = project / "certificate.html"
    content = page.read_text()
    page.unlink()
    sign(project)
    page.write_text(content.replace("ε", "0 ="))
    capsys.readouterr()
    verify(project / "certificate.json", key=project / "key.pub")
    assert "not signed, so not checked: certificate.html" in capsys.readouterr().out


def test_no_digest_of_confidential_text_is_signed(project):
    text = json.dumps(sign(project))
    # nor of other models of the text, which may be functions of it: the gate's table has them
    study = project / "results/studies/own"
    assert not any(sha256(study / name) in text for name in ("gate.csv", "gate.xml"))
    assert not any(sha256(project / name) in text for name in ("original", "redacted"))
    assert sha256(project / f"results/runs/{RUN}/exposure.json") not in text


def test_the_same_files_give_the_same_attestation(project):
    sign(project)
    before = (project / "attestation.json").read_bytes()
    sign(project, output=project / "again.json")
    assert (project / "again.json").read_bytes() == before


def test_a_released_copy_is_signed_and_verifies_elsewhere(project, tmp_path_factory, capsys):
    release(
        project / "certificate.json", study=project / "results/studies/own", output=project / "out"
    )
    study = project / "results/studies/own"
    attest(
        project / "out", key=project / "key", study=study, output=project / "out/attestation.json"
    )
    assert "digests of confidential text" not in capsys.readouterr().out
    outside = tmp_path_factory.mktemp("elsewhere") / "model"
    shutil.move(project / "out", outside)
    verify(outside / "certificate.json", key=project / "key.pub")
    said = capsys.readouterr().out
    assert (
        "signed by SHA256" in said and f"signed, but not here: results/runs/{RUN}/game.json" in said
    )
    verify(project / "certificate.json")
    with pytest.raises(InputError, match="is about another certificate than this one"):
        verify(
            project / "certificate.json",
            key=project / "key.pub",
            attestation=outside / "attestation.json",
        )


def test_a_refutation_beside_the_certificate_is_found_wherever_the_study_lies(project, tmp_path):
    """A study that was copied, or is a link to another disk, has no runs beside it."""
    runs = project / f"results/runs/{RUN}"
    refuted_beside(project)
    gated(project, [(RUN, "game", "stands", sha256(project / "model"), "in words")])
    study = tmp_path / "copy/studies/own"
    shutil.copytree(project / "results/studies/own", study)
    path = runs / "certificate.json"
    shutil.copy(project / "certificate.json", path)
    checks = checks_of(RUN, read_json(path)["files"], path, study)
    assert any("game.json: game refuted: measured at least" in one for one in checks.against)
    assert [row["outcome"] for row in checks.gate] == ["refuted"]


def test_what_a_release_says_was_tried_is_what_the_gate_found(project):
    study = project / "results/studies/own"
    release(project / "certificate.json", study=study, output=project / "out")
    path = project / "out/certificate.json"
    found = read_json(path)
    found["handed_out"]["tried"] = "ten attacks of others"
    found = sealed(found)
    write_json(path, found)
    for ending, content in both_pages(found).items():
        path.with_suffix(ending).write_text(content)
    with pytest.raises(Failure, match="says that other audits were tried than the study's gate"):
        attest(path, key=project / "key", study=study, output=project / "a.json")


def test_without_a_key_verify_says_in_one_sentence_what_is_not_checked(project, capsys):
    verify(project / "certificate.json")
    lines = [
        line for line in capsys.readouterr().out.splitlines() if "not checked: who vouches" in line
    ]
    assert len(lines) == 1 and "--key PUBLIC_KEY" in lines[0]
    with pytest.raises(InputError, match="needs --key"):
        verify(project / "certificate.json", attestation=project / "attestation.json")


def test_on_the_command_line(project, capsys):
    command = [
        "attest",
        "certificate.json",
        "--key",
        "key",
        "--study",
        "results/studies/own",
        "--output",
        "a.json",
    ]
    before = os.umask(0o022)
    try:
        assert main(command) == 0 and (project / "a.json").stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(before)
    assert main(["verify", "--key", "key.pub", "--attestation", "a.json", "certificate.json"]) == 0
    write_keys(project, "other", Ed25519PrivateKey.generate())
    assert (
        main(["verify", "--key", "other.pub", "--attestation", "a.json", "certificate.json"]) == 2
    )
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "is not signed by SHA256:" in said
    assert main(["verify", "--key", "key.pub", "certificate.json"]) == 2
    assert "attestation.json: cannot be read" in capsys.readouterr().err


AGAINST = {
    "no study": ({"study": None}, lambda project: None, "no study is given"),
    "recorded noise": ({}, lambda project: certified(project, noise_seed=0), "not for release"),
    "no guarantee": (
        {},
        lambda project: certified(project, "nonprivate"),
        "nothing finite is certified",
    ),
    "refuted": (
        {},
        lambda project: gated(project, [(RUN, "game", "refuted", "", "in words")]),
        "game refuted: in words",
    ),
    "no power": (
        {},
        lambda project: gated(project, [(RUN, "game", "inconclusive", "", "")]),
        "game inconclusive",
    ),
    "unknown": ({}, lambda project: gated(project, [(RUN, "game", "odd", "", "")]), "game odd"),
    "no row": ({}, lambda project: gated(project, []), "no row of this run"),
    "refuted, and in no study": (
        {},
        lambda project: refuted_beside(project),
        f"results/runs/{RUN}/game.json: game refuted: measured at least",
    ),
    "a text audit that no study lists": (
        {},
        lambda project: refuted_by_texts(project),
        f"results/runs/{RUN}/text_audit.json: texts_game refuted: measured at least",
    ),
    "skipped": (
        {},
        lambda project: gated(project, [(RUN, "game", "skipped", "", "")]),
        "no audit that was compared",
    ),
    "no gate": ({}, lambda project: remove(project, "gate.csv"), "gate.csv: is missing"),
    "no JUnit": ({}, lambda project: remove(project, "gate.xml"), "gate.xml: is missing"),
    "no scan": ({}, lambda project: remove(project, "scan.json"), "scan.json: is missing"),
    "a scan for nothing": ({}, lambda project: vacuous(project), "no secret was looked for"),
    "no audit": (
        {},
        lambda project: (project / f"results/runs/{RUN}/game.json").unlink(),
        "holds no audit of the model",
    ),
    "a leak": (
        {},
        lambda project: scanned(project, tokenizer={"hits": 2}),
        "tokenizer: holds a secret",
    ),
    "not searched": ({}, lambda project: scanned(project, model=None), "model: was not searched"),
    "certificate not searched": (
        {},
        lambda project: scanned(project, **{f"results/runs/{RUN}/certificate.json": None}),
        "certificate.json: was not searched",
    ),
}


def refuted_by_texts(project):
    """An audit of the model's texts finds every coin, and the study has no row of it."""
    found = {"attack": "text_audit", "run": RUN, "weights": sha256(project / "model")}
    found |= {"texts_game_reason": None, "texts_game_relation": "replace_one"}
    found |= {"texts_game_coins": 160, "texts_game_attempts": [[g, g] for g in range(161)]}
    for name in ("texts_inclusion", "probed_game", "probed_inclusion"):
        found[f"{name}_reason"] = "not asked for"
    write_json(project / f"results/runs/{RUN}/text_audit.json", found)


def refuted_beside(project):
    """An audit beside the run finds every coin, and the row of the study is gone."""
    found = {"game_reason": None, "game_coins": 160, "game_relation": "replace_one"}
    found |= {"game_attempts": [[guesses, guesses] for guesses in range(161)]}
    changed(project / f"results/runs/{RUN}/game.json", **found)
    gated(project, [])


def vacuous(project):
    path = project / "results/studies/own/scan.json"
    warning = "no secret was looked for: of 57 secrets 57 are too short"
    write_json(path, read_json(path) | {"warning": warning})


def remove(project, name):
    (project / "results/studies/own" / name).unlink()


@pytest.mark.parametrize("name", AGAINST)
def test_what_speaks_against_it_is_overruled_by_name_and_stays_in_the_statement(
    project, capsys, name
):
    given, change, message = AGAINST[name]
    change(project)
    with pytest.raises(Failure, match=message):
        sign(project, **given)
    assert not (project / "attestation.json").exists()
    overruled = sign(project, anyway=True, **given)["predicate"]["overruled"]
    assert any(message in reason for reason in overruled) and overruled
    capsys.readouterr()
    verify(project / "certificate.json", key=project / "key.pub")
    said = capsys.readouterr().out
    assert said.count("signed all the same: ") == len(overruled) and message in said


def changed(path, **change):
    write_json(path, read_json(path) | change)


OTHERS = {
    "audit of other weights": (
        lambda project: changed(project / f"results/runs/{RUN}/game.json", weights="0" * 64),
        "game.json: weights: is about other bytes",
    ),
    "audit of no weights": (
        lambda project: changed(project / f"results/runs/{RUN}/game.json", weights=[]),
        "game.json: weights: Input should be a valid string",
    ),
    "audit of another run": (
        lambda project: changed(project / f"results/runs/{RUN}/game.json", run="x"),
        "run = 'x': belongs to another model",
    ),
    "scan of other weights": (
        lambda project: scanned(project, model={"sha256": "0" * 64}),
        "files.model.sha256",
    ),
    "scan of another certificate": (
        lambda project: scanned(
            project, **{f"results/runs/{RUN}/certificate.json": {"sha256": "0" * 64}}
        ),
        "certificate.json.sha256: is about other bytes",
    ),
    "gate of other weights": (
        lambda project: (project / "results/studies/own/gate.csv").write_text(
            f"run,audit,outcome,says,weights\n{RUN},game,stands,,{'0' * 64}\n"
        ),
        "gate.csv: weights: is about other bytes",
    ),
    "a broken row": (
        lambda project: (project / "results/studies/own/gate.csv").write_text(
            f"run,audit,outcome\n{RUN},game,stands,9,9\n"
        ),
        "has a row without audit and outcome, or a longer one",
    ),
    "certificate altered": (
        lambda project: changed(project / "certificate.json", says="holds"),
        "was altered",
    ),
    "weights altered": (lambda project: (project / "model").write_text("others"), "other bytes"),
    "weights missing": (lambda project: (project / "model").unlink(), "is not here"),
    "ledger missing": (lambda project: (project / "ledger").unlink(), "is not here"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_files_of_another_model_are_refused_whatever_is_overruled(project, name):
    change, message = OTHERS[name]
    change(project)
    with pytest.raises(InputError, match=message):
        sign(project, anyway=True)
    assert not (project / "attestation.json").exists()


def test_an_audit_that_does_not_name_its_weights_is_said_to(project, capsys):
    write_json(
        project / f"results/runs/{RUN}/game.json",
        {"attack": "game", "run": RUN, "game_epsilon_lower": 1.0},
    )
    assert sign(project)["predicate"]["unbound"] == [f"results/runs/{RUN}/game.json"]
    verify(project / "certificate.json", key=project / "key.pub")
    assert "does not say of which weights it is: results/runs" in capsys.readouterr().out


def test_bad_keys_studies_and_outputs_are_refused(project):
    (project / "key").chmod(0o640)
    with pytest.raises(InputError, match="can be read by others"):
        sign(project)
    (project / "key").chmod(0o600)
    with pytest.raises(InputError, match="is not the folder of a study"):
        sign(project, study=project)
    for output in ("key", "certificate.json", "results"):
        with pytest.raises(
            InputError, match=f"{output}: is not a file that an attestation may take the place of"
        ):
            sign(project, output=project / output)
    for given in ({"key": None}, {"sigstore": True}):
        with pytest.raises(InputError, match="give either a key or sigstore"):
            sign(project, **given)


def test_bounds_that_release_rounds_need_no_row_of_the_scan(project):
    """What was measured is rounded on its way out, so that its bytes are others than those that
    were scanned.
    """
    release(
        project / "certificate.json", study=project / "results/studies/own", output=project / "out"
    )
    scanned(project, recall=None, neighbours=None)
    attest(
        project / "out",
        key=project / "key",
        study=project / "results/studies/own",
        output=project / "a.json",
    )
    assert statement_in(project / "a.json")["predicate"]["overruled"] == []
    with pytest.raises(Failure, match="recall: was not searched"):
        sign(project)
    scanned(project, recall=None, neighbours=None, model=None)
    with pytest.raises(Failure, match="model.safetensors: was not searched"):
        attest(
            project / "out",
            key=project / "key",
            study=project / "results/studies/own",
            output=project / "b.json",
        )


def test_every_audit_is_signed_whatever_it_calls_its_bounds(project):
    write_json(project / f"results/runs/{RUN}/gradients.json", {"attack": "gradients", "run": RUN})
    # a function of the corpus's own text, of which a digest would tell which text fits
    measured = {"attack": "text_audit", "run": RUN, "usual_epsilon_lower": 0.0}
    write_json(project / f"results/runs/{RUN}/text_audit.json", measured)
    names = [one["name"] for one in sign(project)["subject"]]
    assert f"results/runs/{RUN}/gradients.json" in names
    assert not [name for name in names if "exposure" in name or "text_audit" in name]


def test_how_many_secrets_a_scan_left_out_is_not_released(project):
    vacuous(project)
    study = project / "results/studies/own"
    release(project / "certificate.json", study=study, output=project / "out", anyway=True)
    attest(project / "out", key=project / "key", study=study, output=project / "a", anyway=True)
    shown = (project / "out/certificate.md").read_text() + json.dumps(statement_in(project / "a"))
    assert "no secret was looked for" in shown and "of 57 secrets" not in shown


def test_the_pages_that_people_open_are_signed(project, capsys):
    study = project / "results/studies/own"
    release(project / "certificate.json", study=study, output=project / "out")
    verify(project / "out")
    said = "checked: certificate.md, certificate.html say what the certificate says"
    assert said in capsys.readouterr().out
    output = project / "out/attestation.json"
    attest(project / "out", key=project / "key", study=study, output=output)
    verify(project / "out", key=project / "key.pub")
    assert "certificate.md, certificate.html" in capsys.readouterr().out
    page = project / "out/certificate.html"
    page.write_text(page.read_text() + "epsilon = 0.01")
    with pytest.raises(InputError, match=r"certificate\.html: is not the file that was signed"):
        verify(project / "out", key=project / "key.pub")


@pytest.mark.parametrize("ending", [".md", ".html"])
def test_a_page_that_says_something_else_is_refused_without_a_signature(project, ending, capsys):
    """Whoever reads a page reads no JSON."""
    study = project / "results/studies/own"
    vacuous(project)
    release(project / "certificate.json", study=study, output=project / "out", anyway=True)
    certified = read_json(project / "out/certificate.json")
    assert any("no secret was looked for" in why for why in certified["handed_out"]["against"])
    page = project / f"out/certificate{ending}"
    verify(project / "out")
    whole = page.read_text()
    assert "no secret was looked for" in whole
    page.write_text(whole.replace("no secret was looked for", "nothing"))
    with pytest.raises(InputError, match=f"certificate{ending}: is not the page of this cert"):
        verify(project / "out")
    page.write_text(whole)
    capsys.readouterr()
    certified["code"]["version"] = "9.9.9"
    write_json(project / "out/certificate.json", sealed(certified))
    verify(project / "out")
    assert "which another release wrote" in capsys.readouterr().out


def test_the_certificate_that_is_named_is_the_one_that_is_read(project):
    """Whatever lies beside it under a longer name."""
    sign(project)
    path = project / "certificate.json"
    beside = project / "certificate.json.certificate.json"
    shutil.copyfile(path, beside)
    path.write_text(path.read_text().replace("epsilon", "epsilon "))
    with pytest.raises(InputError, match=r"/certificate\.json: "):
        verify(path, key=project / "key.pub")
    shutil.copyfile(beside, path)
    shutil.copyfile(path, project / "other.jsonl.certificate.json")
    (project / "other.jsonl").write_text("{}\n")
    with pytest.raises(InputError, match=r"is no certificate of the texts other\.jsonl"):
        verify(project / "other.jsonl")


def test_nothing_is_printed_of_the_private_key(project, capsys):
    sign(project)
    shown = capsys.readouterr().out + (project / "attestation.json").read_text()
    assert not any(line in shown for line in (project / "key").read_text().splitlines())
    assert KEY.private_bytes_raw().hex() not in shown
    assert base64.b64encode(KEY.private_bytes_raw()).decode()[:-2] not in shown
