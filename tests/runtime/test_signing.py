"""Ed25519 behind the protocol's interfaces."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedelect.errors import ConfigurationError
from fedelect.protocol import KeyedHashVerifier, Signer, Verifier
from fedelect.protocol.signing import KeyedHashSigner
from fedelect.runtime import Ed25519Signer, Ed25519Verifier

SIGNERS: list[tuple[Signer, Signer, Verifier]] = [
    (Ed25519Signer(bytes(32)), Ed25519Signer(b"\1" * 32), Ed25519Verifier()),
    (KeyedHashSigner(bytes(16)), KeyedHashSigner(b"\1" * 16), KeyedHashVerifier()),
]


@pytest.mark.parametrize(("one", "other", "verifier"), SIGNERS)
def test_a_signature_is_of_one_message_by_one_key(one: Signer, other: Signer, verifier: Verifier) -> None:
    signature = one.sign(b"message")
    assert verifier.verify(one.key, b"message", signature)
    assert not verifier.verify(one.key, b"massage", signature)
    assert not verifier.verify(other.key, b"message", signature)
    assert not verifier.verify(one.key, b"message", other.sign(b"message"))


@given(st.binary(max_size=70), st.binary(max_size=70), st.binary(max_size=40))
def test_no_bytes_make_checking_fail_in_any_other_way_than_false(key: bytes, signature: bytes, message: bytes) -> None:
    assert not Ed25519Verifier().verify(key, message, signature)


def test_the_first_test_vector_of_the_standard() -> None:
    secret = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    signer = Ed25519Signer(secret)
    assert signer.key.hex() == "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    assert signer.sign(b"").hex().startswith("e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155")
    assert signer.secret == secret


def test_fresh_secrets_differ_and_others_are_refused() -> None:
    assert Ed25519Signer.generate().key != Ed25519Signer.generate().key
    with pytest.raises(ConfigurationError, match="32 bytes, got 5"):
        Ed25519Signer(b"short")


def test_without_the_extra_the_error_says_what_to_install() -> None:
    code = "import sys; sys.modules['cryptography'] = None; import fedelect.runtime"
    failed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert "pip install 'fedelect[peer]'" in failed.stderr
