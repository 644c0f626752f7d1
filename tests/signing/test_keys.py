"""Keys: those that ssh-keygen and openssl make are read, others are refused in one line that shows
nothing of the key.
"""

import subprocess
from types import SimpleNamespace

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from confide.errors import InputError
from confide.signing.keys import LONGEST, PASSPHRASE, fingerprint, private_key, public_keys

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
FORMS = {
    "pem": (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8),
    "ssh": (serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH),
}


def written(folder, form="pem", passphrase=None, key=KEY, mode=0o600):
    """A private key's file."""
    closed = (
        serialization.BestAvailableEncryption(passphrase)
        if passphrase
        else serialization.NoEncryption()
    )
    path = folder / "key"
    path.write_bytes(key.private_bytes(*FORMS[form], closed))
    path.chmod(mode)
    return path


def public(folder, form="ssh", key=KEY):
    """The public half's file."""
    forms = {
        "ssh": (serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH),
        "pem": (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo),
    }
    path = folder / "key.pub"
    path.write_bytes(key.public_key().public_bytes(*forms[form]))
    return path


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("passphrase", [None, b"open sesame"])
def test_both_kinds_of_files_are_read_with_and_without_a_passphrase(
    tmp_path, monkeypatch, form, passphrase
):
    path = written(tmp_path, form, passphrase)
    if passphrase:
        monkeypatch.setenv(PASSPHRASE, passphrase.decode())
    else:
        monkeypatch.delenv(PASSPHRASE, raising=False)
    assert private_key(path).private_bytes_raw() == KEY.private_bytes_raw()


@pytest.mark.parametrize("form", ["ssh", "pem"])
def test_public_keys_of_both_kinds(tmp_path, form):
    assert [fingerprint(key) for key in public_keys(public(tmp_path, form))] == [
        fingerprint(KEY.public_key())
    ]


def test_several_lines_with_comments_are_several_keys(tmp_path):
    other = Ed25519PrivateKey.generate()
    lines = [public(tmp_path, key=one).read_text().strip() for one in (KEY, other)]
    (tmp_path / "keys").write_text(
        f"# those who may sign\n\n{lines[0]} ada@example\n  {lines[1]}\n"
    )
    found = [fingerprint(key) for key in public_keys(tmp_path / "keys")]
    assert found == [fingerprint(KEY.public_key()), fingerprint(other.public_key())]


@pytest.fixture
def encrypted(tmp_path):
    """A private key that ssh-keygen made, with its public one beside it."""
    path = tmp_path / "made"
    try:
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "sesame", "-f", path], check=True
        )
    except FileNotFoundError:
        pytest.skip("ssh-keygen is not installed")
    return path


def test_a_fingerprint_is_the_one_that_ssh_keygen_prints(encrypted):
    printed = subprocess.run(
        ["ssh-keygen", "-lf", f"{encrypted}.pub"], capture_output=True, text=True, check=True
    ).stdout
    assert fingerprint(public_keys(encrypted.with_suffix(".pub"))[0]) == printed.split()[1]


def test_what_ssh_keygen_encrypts_is_opened(encrypted, monkeypatch):
    monkeypatch.setenv(PASSPHRASE, "sesame")
    (public_key,) = public_keys(encrypted.with_suffix(".pub"))
    assert fingerprint(private_key(encrypted).public_key()) == fingerprint(public_key)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601, 0o666])
def test_a_private_key_that_others_may_touch_is_refused(tmp_path, mode):
    with pytest.raises(InputError, match="can be read by others"):
        private_key(written(tmp_path, mode=mode))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("wrong", "does not open with this passphrase"),
        (None, f"needs a passphrase: set {PASSPHRASE}"),
    ],
)
def test_a_passphrase_that_is_wrong_or_missing(tmp_path, monkeypatch, form, given, message):
    path = written(tmp_path, form, b"open sesame")
    monkeypatch.delenv(PASSPHRASE, raising=False)
    if given:
        monkeypatch.setenv(PASSPHRASE, given)
    with pytest.raises(InputError, match=message) as refused:
        private_key(path)
    assert "sesame" not in str(refused.value)


def test_a_passphrase_is_typed_where_it_can_be_and_never_for_a_key_without_one(
    tmp_path, monkeypatch, capsys
):
    asked = []

    def typed(prompt):
        asked.append(prompt)
        return "open sesame"

    monkeypatch.delenv(PASSPHRASE, raising=False)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("getpass.getpass", typed)
    assert (
        private_key(written(tmp_path, "ssh")).private_bytes_raw() == KEY.private_bytes_raw()
        and not asked
    )
    path = written(tmp_path, "ssh", b"open sesame")
    assert private_key(path).private_bytes_raw() == KEY.private_bytes_raw()
    assert asked == [f"Passphrase of {path}: "] and "sesame" not in "".join(capsys.readouterr())


def refusals(path, read):
    with pytest.raises(InputError) as refused:
        read(path)
    return str(refused.value)


def test_other_kinds_of_keys_are_refused_by_name(tmp_path):
    for form in FORMS:
        assert "is no Ed25519 key" in refusals(written(tmp_path, form, key=RSA), private_key)
    assert "is no Ed25519 key" in refusals(public(tmp_path, "pem", key=RSA), public_keys)
    assert "nor a line 'ssh-ed25519 KEY comment'" in refusals(
        public(tmp_path, "ssh", key=RSA), public_keys
    )


def test_a_private_key_in_the_place_of_a_public_one_and_the_reverse(tmp_path):
    path = written(tmp_path)
    assert "is a private key; whoever checks" in (said := refusals(path, public_keys))
    assert path.read_text().splitlines()[1] not in said
    path = public(tmp_path)
    path.chmod(0o600)
    assert "is a public key; signing needs the private one" in refusals(path, private_key)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no public key"),
        (b"# nobody\n", "holds no public key"),
        (b"ssh-ed25519 AAAA\n", ":1: is a damaged public key"),
        (b"\nssh-ed25519\n", ":2: is no public key"),
        (b'from="10.0.0.1" ssh-ed25519 AAAA', ":1: is no public key"),
        (
            b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
            "is a damaged public key",
        ),
        (b"x" * (LONGEST + 1), "is longer than"),
        (b"\x00\xff" * 9, "is no public key"),
    ],
)
def test_what_is_no_public_key(tmp_path, content, message):
    (tmp_path / "key.pub").write_bytes(content)
    assert message in refusals(tmp_path / "key.pub", public_keys)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is no private key"),
        (b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "is a damaged key"),
        (
            b"-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n",
            "is a damaged key",
        ),
        (
            b"-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n",
            "is no private key",
        ),
    ],
)
def test_what_is_no_private_key(tmp_path, content, message):
    (tmp_path / "key").write_bytes(content)
    (tmp_path / "key").chmod(0o600)
    assert message in refusals(tmp_path / "key", private_key)


def test_a_key_that_is_nowhere_or_a_folder(tmp_path):
    assert "cannot be read: No such file" in refusals(tmp_path / "none", private_key)
    assert "none: cannot be read" in refusals(tmp_path / "none", public_keys)
    assert "is not a file" in refusals(tmp_path, private_key) or "directory" in refusals(
        tmp_path, private_key
    )
