"""Presets: what each finds, that its conservative sibling covers it whatever the secret, that
masking what was found leaves no trace, and that no text takes long.
"""

import random
from itertools import chain
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.policies import covered, policy, redacted_text
from confide.policies.checks import CHECKS
from confide.policies.presets import compiled, table
from confide.specs import PresetName, PresetPolicySpec
from confide.types import MASK
from tests.policies.test_checks import EXAMPLES

NAMES = get_args(PresetName)
NATIONAL = table()["national"].find
# Secrets by preset, and the preset's label of each.
FOUND = {
    "iban": {number: "iban" for number in EXAMPLES["iban"]},
    "card": {number: "card" for number in EXAMPLES["card"]},
    "national": {number: label for label in NATIONAL for number in EXAMPLES[label]},
    "key": {
        "AKIAIOSFODNN7EXAMPLE": "aws_key",
        "ghp_" + "a1B2" * 9: "github_token",
        "github_pat_" + "a1B2_" * 6 + "x": "github_token",
        "glpat-" + "a1B2-" * 4 + "x": "gitlab_token",
        "xoxb-" + "1234567890-abcDEF": "slack_token",
        "sk_live_" + "a1B2c3D4e5F6": "stripe_key",
        "AIza" + "a1B2c" * 7: "google_key",
        "sk-proj-" + "a1B2c3D4" * 3: "other_token",
        "hf_" + "aBcDeFgH" * 4: "other_token",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl": "jwt",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE+/=\n-----END RSA PRIVATE KEY-----": "private_key",
    },
    "password": {},
    "entropy": {number: "entropy" for number in EXAMPLES["entropy"]},
    "email": {address: "email" for address in ("ann@x.org", "o'brien.a+b@mail.example.co.uk")},
    "phone": {
        number: "phone"
        for number in (
            "+49 30 1234567",
            "+44 (0)20 7946 0958",
            "0049 30 1234567",
            "(555) 123-4567",
            "555-123-4567",
            "5551234567",
            "1-800-555-1234",
            "07700 900123",
            "06 12 34 56 78",
            "98765 43210",
            "555-1234",
        )
    },
    "link": {
        link: "link"
        for link in ("https://x.org/a?b=c", "http://x.org", "www.x.de/~a", "example.com/a")
    },
    "network": {
        "192.168.0.1": "ip",
        "2001:db8::8a2e:370:7334": "ipv6",
        "aa:bb:cc:dd:ee:0f": "mac",
        "aabb.ccdd.ee0f": "mac",
    },
    "date": {
        day: "date"
        for day in (
            "2024-02-29",
            "29.02.2024",
            "2/29/24",
            "12 March 2024",
            "march 12th, 2024",
            "3. märz 2024",
            "12 de mayo de 2024",
            "1 janvier 1999",
        )
    },
    "postal": {
        code: "postal"
        for code in ("SW1A 1AA", "m5v 3l9", "1012 AB", "10001-0001", "10117", "00-950", "100-0001")
    },
    "address": {
        place: "address"
        for place in (
            "123 main street",
            "7 St. John's Wood Rd",
            "Hauptstraße 12b",
            "12 rue de la Paix",
            "calle mayor 5",
            "P.O. Box 123",
        )
    },
    "number": {number: "number" for number in ("7", "12 34", "1-2/3")},
    "code": {code: "code" for code in ("a1", "AB12-9", "12b")},
    "capitals": {name: "capitals" for name in ("Ann Lee", "Ann O'Neil 5")},
    "name": {"USPS": "upper"},
}
CASES = [(name, secret, label) for name in FOUND for secret, label in FOUND[name].items()]
KINDS = {name: [*secrets] for name, secrets in FOUND.items()} | {
    "password": ["hunter2", "x"],
    "name": ["USPS", "NATO"],
}


def spec(*names: str, conservative: bool = False) -> PresetPolicySpec:
    return PresetPolicySpec(kind="preset", names=list(names), conservative=conservative)


def found(text: str, *names: str, conservative: bool = False) -> list[tuple[str, str]]:
    spans = policy(spec(*names, conservative=conservative))(text)
    return [(text[span.start : span.end], span.label) for span in spans]


def test_names_are_those_of_the_file():
    assert tuple(table()) == NAMES and set(FOUND) == set(NAMES)


@pytest.mark.parametrize(("name", "secret", "label"), CASES)
@pytest.mark.parametrize("around", ["{}", "it is {}, ok?", "({}) and \n{}"])
def test_secrets_are_found_whole(name, secret, label, around):
    times = around.count("{}")
    assert found(around.format(*[secret] * times), name) == [(secret, label)] * times


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Mein Passwort: kvuhuqnan.", "kvuhuqnan."),
        ("das Kennwort ist abc123", "abc123"),
        ("mot de passe : soleil", "soleil"),
        ("La contraseña es sol-4", "sol-4"),
        ("passwd=x9", "x9"),
        ("the pw sazEJmDgJJ does not work", "sazEJmDgJJ"),
        ("use passcode k7xq2z", "k7xq2z"),
        ("pw: soleil, upwards: no", "soleil"),
    ],
)
def test_words_for_a_password_are_those_of_four_languages(text, secret):
    assert found(text, "password") == [(secret, "password")]


def test_what_follows_a_word_for_a_password_is_found():
    text = 'My password is hunter2, token=abc123 and {"api_key": "x-9"}; passwords: none; a secret'
    assert found(text, "password") == [
        ("hunter2", "password"),
        ("abc123", "password"),
        ("x-9", "password"),
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("card", "4111 1111 1111 1112 or 4111  1111  1111  1111 or x4111111111111111"),
        ("iban", "GB28 NWBK 6016 1331 9268 19 and GB29NWBK60161331926819X"),
        ("date", "32/01/2024, 2024-13-01, 12 Marches, may I"),
        ("network", "256.1.1.1 at 12:30:45, aa:bb:cc"),
        ("email", "@ann, a@b, x @ y.z"),
        ("phone", "12 or 2024 or 123456"),
        ("address", "the 2nd way to go, a street"),
        ("key", "a ghp_short, sk-1, AKIA, -----BEGIN CERTIFICATE-----"),
        ("password", "PASSWORD POLICY: a password reset; secret meetings, token rotation"),
        ("entropy", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1 " + "0123456789" * 3),
    ],
)
def test_near_misses(name, text):
    assert found(text, name) == []


def test_a_number_that_fails_its_check_hides_none_that_overlaps_it():
    assert found("4 4111 1111 1111 1111", "card") == [("4111 1111 1111 1111", "card")]
    assert found("GB11 GB29NWBK60161331926819", "iban") == [("GB29NWBK60161331926819", "iban")]


@pytest.mark.parametrize("name", NAMES)
def test_the_conservative_sibling_says_the_same_of_every_secret_of_a_kind(name):
    """Checked or not: one digit changed, it fires as well, where the preset may not."""
    draw = random.Random(0)
    fires = policy(spec(name, conservative=True))
    before = "password is " if name == "password" else "told "
    for secret in KINDS[name]:
        for _ in range(20):
            digits = [sign for sign in secret if sign.isdigit()]
            other = "".join(
                draw.choice("0123456789") if sign in digits and draw.random() < 0.3 else sign
                for sign in secret
            )
            assert fires(f"{before}{other} to me"), other


PIECES = st.lists(
    st.sampled_from(
        [secret for secrets in KINDS.values() for secret in secrets]
        + [MASK, "1", "12", "-", " ", ",", "password: ", "Ann", "x", "\n", "@", "://", "march", "_"]
    ),
    max_size=8,
)


@given(PIECES, st.sampled_from(["", " ", ", "]))
def test_the_conservative_sibling_covers_the_preset(pieces, between):
    text = between.join(pieces)
    for name in NAMES:
        wide = policy(spec(name, conservative=True))(text)
        assert all(covered(span.start, span.end, wide) for span in policy(spec(name))(text)), name


@given(PIECES, st.sampled_from(["", " ", ", "]))
def test_a_gate_stands_in_all_that_is_looked_for(pieces, between):
    text = between.join(pieces)
    for preset in table().values():
        gate = compiled(preset.gate)
        for label, patterns in preset.find.items():
            for match in chain(*(compiled(pattern).finditer(text) for pattern in patterns)):
                held = label not in CHECKS or CHECKS[label](match[0])
                assert gate.search(match[0]) or not held, (label, match[0])


@given(
    st.lists(
        st.sampled_from([(name, secret) for name, some in KINDS.items() for secret in some]),
        min_size=1,
        max_size=4,
    ),
    st.lists(st.sampled_from(["call", "and", "so", "then"]), min_size=5, max_size=5),
)
def test_masking_what_was_found_leaves_no_trace(secrets, words):
    """All presets but those of runs of words (capitals, name), and the word before a password."""
    names = [name for name in NAMES if name not in ("capitals", "name", "password")]
    find = policy(spec(*names))
    text = words[0]
    places = []
    for (_, secret), word in zip(secrets, words[1:], strict=False):
        places.append((len(text) + 1, len(text) + 1 + len(secret)))
        text += f" {secret} {word}"
    spans = [(span.start, span.end) for span in find(text)]
    redacted = redacted_text(text, find(text))
    for start, end in places:
        if (start, end) in spans:
            masked = text[:start] + MASK + text[end:]
            assert redacted_text(masked, find(masked)) == redacted, (text, text[start:end])


HOSTILE = [
    "a", "A ", "1", "1 ", "4 ", "1-", "1.", "1a", "(1", "00 ", "+1", "@.", "x@", "a-", "AB12 ",
    "www.", "www.!!", "a.", ":", "1:", "may ", "1 may ", "-----BEGIN PRIVATE KEY-----", "é",
    "eyJaaaaaaaaaaaa.", "password ", "password:   ", "calle aa ", "1 rue ", "xoxb-", MASK,
]  # fmt: skip


@pytest.mark.nightly
@pytest.mark.parametrize("conservative", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_no_text_takes_more_than_a_glance_at_each_character(name, conservative):
    """An expression that looked back and forth would take hours here: TimeoutError."""
    find = policy(spec(name, conservative=conservative))
    for piece in HOSTILE:
        find(piece * (100_000 // len(piece)))
