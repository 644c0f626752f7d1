"""A made-up project whose certified run can be signed: its audit, the gate and the scan of a study,
and a pair of keys.
"""

import base64
import csv
import json
import shutil

import pytest
from certified import ASKED, METHODS, certificate
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from confide.certify.certificate import sealed
from confide.commands.attest import attest
from confide.commands.release import RELEASED
from confide.files.io import read_json, sha256, write_json
from confide.report.pages.certificate import both_pages

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
RUN = "r/g0.1-s0"
GATE = ("run", "audit", "outcome", "weights", "says")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return project_in(tmp_path_factory.mktemp("built"))


@pytest.fixture
def project(built, tmp_path, monkeypatch):
    """A copy that a test may change, and in which it stands."""
    shutil.copytree(built, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def project_in(folder):
    """All of it in a folder, which is returned."""
    (folder / "results/studies/own").mkdir(parents=True)
    (folder / f"results/runs/{RUN}").mkdir(parents=True)
    certified(folder)
    write_keys(folder, "key", KEY)
    return folder


def write_keys(folder, name, key):
    private = (
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )
    (folder / name).write_bytes(key.private_bytes(*private))
    (folder / name).chmod(0o600)
    public = (serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    (folder / f"{name}.pub").write_bytes(key.public_key().public_bytes(*public))


def certified(project, method="crt", **given):
    """Certify a run from made-up files, and write what a study measured of it."""
    certificate(project, METHODS[method], **(ASKED[method] | {"noise_seed": None} | given))
    path = project / "certificate.json"
    path.write_text(path.read_text().replace(f"{project}/", ""))
    found = sealed(read_json(path))
    write_json(path, found)
    for ending, content in both_pages(found).items():
        path.with_suffix(ending).write_text(content)
    weights = sha256(project / "model")
    write_json(
        project / f"results/runs/{RUN}/game.json",
        {
            "attack": "game",
            "run": RUN,
            "game_epsilon_lower": 1.0,
            "game_reason": "not planted in this corpus",
            "inclusion_reason": "not planted in this corpus",
            "weights": weights,
        },
    )
    write_json(project / f"results/runs/{RUN}/exposure.json", {"attack": "exposure", "run": RUN})
    write_json(project / f"results/runs/{RUN}/evaluate.json", {"ppl": 2.0})
    scanned(project)
    gated(
        project,
        [
            (RUN, "game", "stands", weights, "in words"),
            (RUN, "inclusion", "skipped", weights, "not planted"),
        ],
    )


def scanned(project, **changes):
    """A clean scan with digests; a change replaces a row, or with None drops it."""
    found = read_json(project / "certificate.json")
    rows = {file["path"]: file["sha256"] for name in RELEASED for file in found["files"][name]}
    rows |= {f"results/runs/{RUN}/certificate.json": sha256(project / "certificate.json")}
    listed = {path: {"path": path, "hits": 0, "sha256": digest} for path, digest in rows.items()}
    listed |= {path: row and listed[path] | row for path, row in changes.items()}
    write_json(
        project / "results/studies/own/scan.json",
        {"files": [row for row in listed.values() if row]},
    )


def gated(project, rows):
    with open(project / "results/studies/own/gate.csv", "w", newline="") as out:
        csv.writer(out).writerows([GATE, *rows, ("x", "game", "refuted", "", "y")])
    (project / "results/studies/own/gate.xml").write_text("<testsuite/>")


def sign(project, **given):
    given = {
        "key": project / "key",
        "study": project / "results/studies/own",
        "output": project / "attestation.json",
    } | given
    attest(project / "certificate.json", **given)
    return statement_in(given["output"])


def statement_in(path):
    return json.loads(base64.b64decode(read_json(path)["payload"]))
