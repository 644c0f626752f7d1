"""Signing without a key of one's own: Sigstore binds a statement to who is logged in.

It enters the statement into a public log. It needs a network, the package `sigstore` and a login in
a browser (or a build server's identity). Everybody can read the log: who signed, when, and the
statement. What comes back is Sigstore's own kind of file, which `sigstore verify identity` checks.
"""

from confide.errors import InputError


def bundle(payload: bytes) -> str:
    """The statement signed by Sigstore's public instance, as the JSON of its bundle.

    InputError where that did not work.
    """
    try:
        from sigstore.dsse import Statement
        from sigstore.models import ClientTrustConfig
        from sigstore.oidc import IdentityToken, Issuer, detect_credential
        from sigstore.sign import SigningContext
    except ImportError:
        raise InputError(
            "--sigstore needs the package sigstore: pip install 'confide[sigstore]'"
        ) from None
    try:
        trusted = ClientTrustConfig.production()
        ambient = detect_credential()
        issuer = None if ambient else Issuer(trusted.signing_config.get_oidc_url())
        token = IdentityToken(ambient) if issuer is None else issuer.identity_token()
        with SigningContext.from_trust_config(trusted).signer(token) as signer:
            return signer.sign_dsse(Statement(payload)).to_json()
    # whatever its many layers raise: no network, no login, an expired token, a refusal
    except Exception as error:
        needs = "it needs a network and a login; --key needs neither"
        raise InputError(f"Sigstore did not sign ({type(error).__name__}): {needs}") from error
