"""Sigstore: the same statement by the calls of its version 4, of which only the shape can be tried
without a network.
"""

import json
import sys
import types

import pytest
from attested import built, project, sign

from confide.commands.attest import attest
from confide.commands.verify import verify
from confide.errors import InputError

__all__ = ["built", "project"]  # fixtures


@pytest.fixture
def sigstore(monkeypatch):
    """A stand-in for the package, with the names and calls that its version 4 has; returns what was
    asked of it.
    """
    calls = {}

    class Signer:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return False

        def sign_dsse(self, statement):
            calls["statement"] = statement
            return types.SimpleNamespace(
                to_json=lambda: '{"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json"}'
            )

    trusted = types.SimpleNamespace(
        signing_config=types.SimpleNamespace(get_oidc_url=lambda: "https://oauth2.example")
    )
    issuer = types.SimpleNamespace(identity_token=lambda: "token")
    context = types.SimpleNamespace(signer=lambda token: calls.update(token=token) or Signer())
    modules = {
        "dsse": {"Statement": lambda payload: payload},
        "models": {"ClientTrustConfig": types.SimpleNamespace(production=lambda: trusted)},
        "oidc": {
            "Issuer": lambda url: issuer,
            "IdentityToken": lambda raw: raw,
            "detect_credential": lambda: None,
        },
        "sign": {"SigningContext": types.SimpleNamespace(from_trust_config=lambda config: context)},
    }
    monkeypatch.setitem(sys.modules, "sigstore", types.ModuleType("sigstore"))
    for name, members in modules.items():
        module = types.ModuleType(f"sigstore.{name}")
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, f"sigstore.{name}", module)
    return calls


def test_sigstore_is_given_the_same_statement(project, sigstore, capsys):
    statement = json.dumps(sign(project), sort_keys=True)
    attest(
        project / "certificate.json",
        study=project / "results/studies/own",
        output=project / "bundle.json",
        sigstore=True,
    )
    assert (
        sigstore["token"] == "token"
        and json.dumps(json.loads(sigstore["statement"]), sort_keys=True) == statement
    )
    with pytest.raises(
        InputError, match="is a bundle of Sigstore, which `sigstore verify identity` checks"
    ):
        verify(
            project / "certificate.json",
            key=project / "key.pub",
            attestation=project / "bundle.json",
        )


def test_sigstore_that_is_not_installed_or_does_not_answer(project, sigstore, monkeypatch):
    def fails():
        raise ConnectionError("https://tuf.example\n")

    given = {
        "study": project / "results/studies/own",
        "output": project / "bundle.json",
        "sigstore": True,
    }
    monkeypatch.setattr(sys.modules["sigstore.models"].ClientTrustConfig, "production", fails)
    with pytest.raises(InputError, match=r"Sigstore did not sign \(ConnectionError\)"):
        attest(project / "certificate.json", **given)
    monkeypatch.setitem(sys.modules, "sigstore.dsse", None)
    with pytest.raises(InputError, match=r"pip install 'confide\[sigstore\]'"):
        attest(project / "certificate.json", **given)
    assert not (project / "bundle.json").exists()
