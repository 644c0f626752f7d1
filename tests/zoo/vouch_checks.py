"""What a signature must be over, and what several models of one corpus must cost."""

import base64
import json
import math
import tempfile
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from price_checks import DELTA, noisy, source_of

from confide.certify.together import Model, Stated, total
from confide.dp.accounting.price import epsilon
from confide.dp.ledger import Ledger
from confide.errors import InputError
from confide.files.io import sha256
from confide.signing.checked import REPEATED, check_certificate
from confide.signing.envelope import IN_TOTO, opened, pae, signed, signer

KEY, OTHER = (Ed25519PrivateKey.from_private_bytes(bytes([number] * 32)) for number in (1, 2))
RECORD = "record_replace_one_pld"
ONE = noisy(0.05, 2.0, 60)


def signatures_are_over_payload_and_type() -> None:
    """DSSE's published encoding; a signature over anything else, or by another key under the name
    of this one, is refused.
    """
    assert (
        pae("http://example.com/HelloWorld", b"hello world")
        == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )
    payload = b"{}"
    envelope = signed(payload, KEY)
    assert not refuses(envelope), "a good signature is refused"
    encoded = b"DSSEv1 28 %b 2 {}" % IN_TOTO.encode()
    for value in (
        KEY.sign(payload),
        KEY.sign(encoded.replace(b"in-toto", b"another")),
        OTHER.sign(encoded),
    ):
        wrong = [envelope["signatures"][0] | {"sig": base64.b64encode(value).decode()}]
        assert refuses(envelope | {"signatures": wrong}), (
            "a signature that is not over type and payload by the key holds"
        )


def refuses(envelope: dict) -> bool:
    """Whether an envelope is not taken for one that KEY signed."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "attestation.json"
        path.write_text(json.dumps(envelope))
        try:
            signer(opened(path), [KEY.public_key()], path)
        except InputError:
            return True
    return False


def an_attestation_is_of_this_certificate() -> None:
    """The certificate's own digest and those of the files that it names must be the ones that were
    signed.
    """
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "certificate.json"
        path.write_text("this one")
        found = dict.fromkeys(REPEATED, "said") | {
            "files": {"model": [{"path": "model", "sha256": "1" * 64}]}
        }
        roles = {"certificate": ["certificate.json"], "model": ["model"]}
        predicate = dict.fromkeys(REPEATED, "said") | {"roles": roles}
        subjects = {"certificate.json": sha256(path), "model": "1" * 64}
        check_certificate(path, found, subjects, predicate, path)
        wrong = (
            (subjects | {"certificate.json": "2" * 64}, predicate),
            (subjects | {"model": "2" * 64}, predicate),
            (subjects, predicate | {"headline": "another"}),
        )
        for others, said in wrong:
            try:
                check_certificate(path, found, others, said, path)
            except InputError:
                continue
            raise AssertionError(
                "a statement about another certificate is taken for one about this"
            )


def model_of(name: str, *history: Ledger, at_hand: bool = True) -> Model:
    """A model that claims what its ledgers cost."""
    claims = {RECORD: Stated(epsilon(ONE * len(history), DELTA), DELTA)}
    return Model(
        file=Path(name),
        run=name,
        head=history[-1].head,
        unit="one turn",
        secret="one secret within one turn",
        claims=claims,
        history=history if at_hand else None,
    )


def trained(state: int, start: Ledger | None = None) -> Ledger:
    """A ledger of ONE that leaves this random state behind, on the weights of another run if there
    is one.
    """
    ledger = Ledger()
    if start is not None:
        ledger.init("source", public=False, ledger=start.dump())
    ledger.append(ONE[0], f"{state:064x}")
    return ledger


def models_of_one_corpus_cost_what_took_place() -> None:
    """Updates of all trainings are composed, those of a common start once; claims without ledgers
    are added, deltas too.
    """
    start = source_of(ONE)
    first, second = (trained(state, start) for state in (1, 2))
    models = [model_of("a", start, first), model_of("b", start, second)]
    for listed in (models, [model_of("start", start), *models]):
        found = total(listed, RECORD, DELTA).epsilon
        assert math.isclose(found, epsilon(ONE * 3, DELTA), rel_tol=1e-6), (
            f"three trainings cost {found}"
        )
    bare = model_of("c", trained(3), at_hand=False)
    found = total([model_of("start", start), bare], RECORD, 3 * DELTA).epsilon
    assert math.isclose(found, epsilon(ONE, 2 * DELTA) + epsilon(ONE, DELTA), rel_tol=1e-6), (
        "claims without ledgers do not add up"
    )
    same = trained(2, trained(4))
    assert total([model_of("b", start, second), model_of("d", same)], RECORD).epsilon == math.inf, (
        "two models share their noise"
    )
