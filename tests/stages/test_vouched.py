"""Whose signature is it, and over what: `verify --key` takes a statement about this certificate and
its files, and no other.
"""

import base64
import json
import shutil
import subprocess

import pytest
from attested import KEY, RUN, built, certified, project, sign, statement_in
from cryptography.hazmat.primitives import serialization

from confide.commands.verify import verify
from confide.errors import InputError
from confide.files.io import read_json, write_json
from confide.signing.envelope import signed

__all__ = ["built", "project"]  # fixtures


def resigned(project, change):
    """The attestation with an altered statement, signed by the right key: what the signer might get
    wrong.
    """
    statement = statement_in(project / "attestation.json")
    change(statement)
    write_json(project / "attestation.json", signed(json.dumps(statement).encode(), KEY))


def subject(statement, name):
    return next(one for one in statement["subject"] if one["name"] == name)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda s: subject(s, "certificate.json")["digest"].update(sha256="0" * 64),
            "about another certificate",
        ),
        (
            lambda s: subject(s, "model")["digest"].update(sha256="0" * 64),
            "subject.model: has other files or digests",
        ),
        (
            lambda s: subject(s, "ledger").update(name="other"),
            "give each file that was signed one role",
        ),
        (
            lambda s: s["subject"].remove(subject(s, "model")),
            "give each file that was signed one role",
        ),
        (lambda s: s["subject"].append(subject(s, "model")), "names a file twice"),
        (lambda s: s["predicate"]["roles"].pop("model"), "give each file that was signed one role"),
        (
            lambda s: s["predicate"]["roles"]["config"].append("model"),
            "give each file that was signed one role",
        ),
        (
            lambda s: (
                s["subject"].remove(subject(s, "model")),
                s["predicate"]["roles"].pop("model"),
            ),
            "names 0 files",
        ),
        (
            lambda s: s["predicate"].update(run="x"),
            "predicate.run: is not what the certificate says",
        ),
        (
            lambda s: s["predicate"]["headline"].update(record_epsilon=0.1),
            "predicate.headline: is not what",
        ),
        (lambda s: s["predicate"].update(overruled="none"), "predicate.overruled"),
        (lambda s: s["predicate"].pop("overruled"), "predicate.overruled: is missing"),
        (lambda s: s.update(_type="https://in-toto.io/Statement/v0.1"), "payload._type"),
        (
            lambda s: s.update(predicateType="https://slsa.dev/provenance/v1"),
            "is not urn:confide:certificate:v1",
        ),
        (lambda s: s.update(subject=[]), "payload.subject"),
        (lambda s: subject(s, "model").update(digest={"sha512": "0"}), "sha256: is missing"),
        (lambda s: subject(s, "model").update(digest={"sha256": "xyz"}), "sha256"),
        (
            lambda s: subject(s, f"results/runs/{RUN}/game.json")["digest"].update(sha256="0" * 64),
            "is not the file that was",
        ),
    ],
)
def test_a_statement_about_anything_else_is_refused(project, change, message):
    sign(project)
    resigned(project, change)
    with pytest.raises(InputError, match=message):
        verify(project / "certificate.json", key=project / "key.pub")


def test_a_statement_that_says_a_thing_twice_or_too_deep_is_refused(project):
    sign(project)
    text = json.dumps(statement_in(project / "attestation.json"))
    twice = text.replace('"overruled": []', '"overruled": ["refuted"], "overruled": []')
    deep = text.replace('"overruled": []', f'"overruled": {"[" * 99}{"]" * 99}')
    for altered, message in (
        (twice, "overruled: stands twice"),
        (deep, "nested deeper than"),
        ("[]", "payload"),
        ("", "JSON"),
    ):
        assert altered != text
        write_json(project / "attestation.json", signed(altered.encode(), KEY))
        with pytest.raises(InputError, match=message):
            verify(project / "certificate.json", key=project / "key.pub")


def test_a_certificate_that_was_made_again_is_not_the_one_that_was_signed(project):
    """As who trains can: with other measurements, sealed and consistent, so that it verifies by
    itself.
    """
    sign(project)
    certified(project, measured={"gamma": 0.0, "gamma_upper": 0.0149})
    verify(project / "certificate.json")
    with pytest.raises(InputError, match="is about another certificate than this one"):
        verify(project / "certificate.json", key=project / "key.pub")


def test_a_scan_that_changed_after_signing_is_noticed(project):
    sign(project)
    with (project / "results/studies/own/scan.json").open("a") as scanned:
        scanned.write(" ")
    with pytest.raises(InputError, match="scan.json: is not the file that was signed"):
        verify(project / "certificate.json", key=project / "key.pub")


def test_an_independent_program_checks_the_signature(project):
    """OpenSSL, on the bytes that the specification says are signed."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    sign(project)
    envelope = read_json(project / "attestation.json")
    payload = base64.b64decode(envelope["payload"])
    (project / "message").write_bytes(
        b"DSSEv1 28 application/vnd.in-toto+json %d %b" % (len(payload), payload)
    )
    (project / "signature").write_bytes(base64.b64decode(envelope["signatures"][0]["sig"]))
    pem = (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    (project / "public.pem").write_bytes(KEY.public_key().public_bytes(*pem))
    command = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", "public.pem"]
    command += ["-rawin", "-in", "message", "-sigfile", "signature"]
    assert subprocess.run(command, cwd=project, capture_output=True).returncode == 0
