"""Envelopes: the published encoding, signatures by the given key alone, and strict parsing of what
strangers send.
"""

import base64
import json
import re

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from confide.errors import InputError
from confide.signing.envelope import IN_TOTO, LARGEST, opened, pae, signed, signer
from confide.signing.keys import fingerprint

KEY, OTHER = (Ed25519PrivateKey.from_private_bytes(bytes([number] * 32)) for number in (1, 2))
PAYLOAD = b'{"_type":"https://in-toto.io/Statement/v1"}'


def in_base64(content):
    return base64.b64encode(content).decode()


@pytest.fixture
def file(tmp_path):
    """Writes an envelope, or any text, and returns its file."""

    def write(value):
        path = tmp_path / "attestation.json"
        path.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
        return path

    return write


def by(path, *keys):
    return signer(opened(path), [key.public_key() for key in keys], path)


def test_the_encoding_is_the_one_of_the_specification():
    """The example of https://github.com/secure-systems-lab/dsse/blob/master/protocol.md."""
    assert (
        pae("http://example.com/HelloWorld", b"hello world")
        == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )
    assert pae("é", b"") == "DSSEv1 2 é 0 ".encode()


def test_what_is_signed_is_opened_and_names_its_key(file):
    path = file(signed(PAYLOAD, KEY))
    assert opened(path).payload == PAYLOAD and by(path, KEY) == fingerprint(KEY.public_key())
    assert by(path, OTHER, KEY) == fingerprint(KEY.public_key())
    KEY.public_key().verify(
        base64.b64decode(json.loads(path.read_text())["signatures"][0]["sig"]),
        b"DSSEv1 28 application/vnd.in-toto+json %d %b" % (len(PAYLOAD), PAYLOAD),
    )


def test_a_signature_of_the_payload_alone_or_of_another_type_does_not_hold(file):
    for message in (PAYLOAD, pae("text/plain", PAYLOAD)):
        envelope = signed(PAYLOAD, KEY)
        envelope["signatures"][0]["sig"] = in_base64(KEY.sign(message))
        with pytest.raises(InputError, match=r"signatures\[0\].*does not hold"):
            by(file(envelope), KEY)


def test_another_payload_or_another_key_is_refused(file):
    envelope = signed(PAYLOAD, KEY)
    with pytest.raises(InputError, match="does not hold"):
        by(file(envelope | {"payload": in_base64(PAYLOAD + b" ")}), KEY)
    with pytest.raises(InputError, match="is not signed by SHA256:"):
        by(file(envelope), OTHER)


def test_a_key_id_is_no_signature(file):
    """An envelope signed by another key under the name of the trusted one; and by the trusted one
    without a name.
    """
    envelope = signed(PAYLOAD, OTHER)
    envelope["signatures"][0]["keyid"] = fingerprint(KEY.public_key())
    with pytest.raises(InputError, match="does not hold"):
        by(file(envelope), KEY)
    envelope = signed(PAYLOAD, KEY)
    del envelope["signatures"][0]["keyid"]
    assert by(file(envelope), KEY) == fingerprint(KEY.public_key())
    with pytest.raises(InputError, match="a key without a name"):
        by(file(envelope), OTHER)


def test_of_several_signatures_one_must_be_by_the_key(file):
    first = signed(PAYLOAD, KEY)
    second = signed(PAYLOAD, OTHER)
    both = first | {"signatures": first["signatures"] + second["signatures"]}
    assert by(file(both), KEY) == fingerprint(KEY.public_key()) and by(
        file(both), OTHER
    ) == fingerprint(OTHER.public_key())
    third = Ed25519PrivateKey.generate()
    with pytest.raises(InputError, match="is not signed by"):
        by(file(both), third)
    spoiled = json.loads(json.dumps(both))
    spoiled["signatures"][1]["sig"] = spoiled["signatures"][0]["sig"]
    assert by(file(spoiled), KEY) == fingerprint(
        KEY.public_key()
    )  # what others have signed is not looked at
    with pytest.raises(InputError, match=r"signatures\[1\].*does not hold"):
        by(file(spoiled), OTHER)
    with pytest.raises(InputError, match=r"signatures\[1\].*does not hold"):
        by(file(spoiled), KEY, OTHER)


def test_both_alphabets_of_base64_in_their_canonical_form(file):
    payload = b'{"a": "\xc3\xbf\xc3\xbe?>"}'
    envelope = signed(payload, KEY)
    safe = envelope | {"payload": base64.urlsafe_b64encode(payload).decode()}
    assert opened(file(safe)).payload == payload and safe["payload"] != envelope["payload"]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "YWJj\n",
            " YWJj",
            "YW Jj",
            "YWJj=",
            "YWI",
            "YWI==",
            "YWJ=",
            "YWL=",
            "YW==YWJj",
            "é",
            "+-==",
            "YWJj\u2028",
        ),
    ],
)
def test_base64_that_is_not_canonical(file, text):
    """A second text for the same bytes: trailing bits (YWJ= is not YWI=), padding, line breaks,
    both alphabets at once.
    """
    for change in ({"payload": text}, {"signatures": [{"sig": text}]}):
        with pytest.raises(InputError, match="Base64"):
            opened(file(signed(PAYLOAD, KEY) | change))


GOOD = signed(PAYLOAD, KEY)
NESTED = b"[" * 300 + b"]" * 300


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "malformed JSON"),
        (b"{", "malformed JSON"),
        (b"\xff\xfe{}", "malformed JSON"),
        (b"[]", "is not a signed envelope"),
        (b"3", "is not a signed envelope"),
        (b'{"payload": NaN}', "malformed JSON"),
        (b'{"payload": "\\ud800"}', "malformed JSON"),
        (b'{"payload": "", "payload": ""}', "stands twice"),
        (json.dumps(GOOD).replace('"keyid"', '"sig": "AA==", "keyid"').encode(), "stands twice"),
        (b'{"x": ' + NESTED + b"}", "nested deeper than"),
        (b'{"x": ' + b"[" * 5000 + b"]" * 5000 + b"}", "malformed JSON"),
        (b'{"x": ' + b"9" * 5000 + b"}", "payload: is missing|malformed JSON"),
        (b" " * (LARGEST + 1), "is larger than"),
        (
            json.dumps({"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json"}).encode(),
            "is a bundle of Sigstore",
        ),
    ],
)
def test_malformed_envelopes_are_one_line(file, content, message):
    with pytest.raises(InputError, match=message) as refused:
        opened(file(content))
    assert (
        "\n" not in str(refused.value)
        and "attestation.json" in str(refused.value)
        and len(str(refused.value)) < 500
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"payload": None}, "payload: is not a text"),
        ({"payloadType": "text/plain"}, f"payloadType = 'text/plain': is not {re.escape(IN_TOTO)}"),
        ({"payloadType": 3}, "payloadType: is not a text"),
        ({"signatures": []}, "has 0 entries"),
        ({"signatures": {}}, "signatures: is not a list"),
        ({"signatures": [1]}, r"signatures\[0\].sig: has no signature"),
        ({"signatures": [{"keyid": "x"}]}, r"signatures\[0\].sig: has no signature"),
        ({"signatures": [{"keyid": 3, "sig": ""}]}, "keyid: is not a text"),
        ({"signatures": GOOD["signatures"] * 65}, "has 65 entries"),
    ],
)
def test_fields_of_other_kinds(file, change, message):
    with pytest.raises(InputError, match=message):
        opened(file(GOOD | change))


@pytest.mark.parametrize("name", ["payload", "payloadType", "signatures"])
def test_missing_fields(file, name):
    with pytest.raises(InputError, match=f"{name}: is missing"):
        opened(file({key: value for key, value in GOOD.items() if key != name}))


def test_names_of_other_keys_are_shown_without_what_a_terminal_obeys(file):
    envelope = signed(PAYLOAD, OTHER)
    envelope["signatures"][0]["keyid"] = "\x1b[2J\rholds"
    with pytest.raises(InputError, match="is not signed by") as refused:
        by(file(envelope), KEY)
    assert str(refused.value).isprintable()
