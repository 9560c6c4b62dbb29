"""A device's names follow from its key, and its secret stays in it."""

import hashlib

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from kafila.network.identity import DeviceIdentity, member_id

SECRET = bytes(range(32))


def test_a_kept_key_is_the_same_device() -> None:
    first = DeviceIdentity.generate()
    again = DeviceIdentity.from_bytes(first.to_bytes())
    assert again.spki_sha256 == first.spki_sha256
    assert again.member == first.member
    assert again.certificate == first.certificate


def test_names_follow_from_the_public_key() -> None:
    identity = DeviceIdentity.from_bytes(SECRET)
    spki = identity.certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert identity.spki_sha256 == hashlib.sha256(spki).digest()
    assert identity.member == identity.spki_sha256.hex()[:16] == member_id(identity.spki_sha256)


def test_the_certificate_is_signed_by_its_own_key() -> None:
    certificate = DeviceIdentity.from_bytes(SECRET).certificate
    certificate.verify_directly_issued_by(certificate)
    again = x509.load_der_x509_certificate(certificate.public_bytes(Encoding.DER))
    assert again.not_valid_before_utc.year == 2000


def test_the_secret_is_in_no_repr() -> None:
    identity = DeviceIdentity.from_bytes(SECRET)
    assert repr(identity) == f"DeviceIdentity({identity.member})"


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_key_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match="32"):
        DeviceIdentity.from_bytes(bytes(length))
