"""A device's key pair, and the names that follow from it: fingerprint, member id, certificate."""

import datetime
import hashlib
from functools import cached_property
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import NameOID

from kafila.domain.ids import MemberId

_VALID_FROM = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
_VALID_UNTIL = datetime.datetime(9999, 12, 31, tzinfo=datetime.UTC)


def member_id(spki_sha256: bytes) -> MemberId:
    """The name under which a group knows the device with this public key."""
    return MemberId(spki_sha256[:8].hex())


class DeviceIdentity:
    """The Ed25519 key of this device. The secret half leaves it only through `to_bytes`."""

    def __init__(self, private_key: Ed25519PrivateKey) -> None:
        self.private_key = private_key

    @classmethod
    def generate(cls) -> Self:
        """A new device."""
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def from_bytes(cls, secret: bytes) -> Self:
        """The device whose key `to_bytes` gave. Raises ValueError for a wrong length."""
        return cls(Ed25519PrivateKey.from_private_bytes(secret))

    def to_bytes(self) -> bytes:
        """The secret key, 32 bytes, to be kept where the operating system keeps secrets."""
        return self.private_key.private_bytes_raw()

    @cached_property
    def spki_sha256(self) -> bytes:
        """The SHA-256 of the public key (SubjectPublicKeyInfo): what others pin this device by."""
        public_key = self.private_key.public_key()
        encoded = public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return hashlib.sha256(encoded).digest()

    @cached_property
    def member(self) -> MemberId:
        """This device's name in every group."""
        return member_id(self.spki_sha256)

    @cached_property
    def certificate(self) -> x509.Certificate:
        """The key in the wrapping that TLS asks for.

        Others compare the key alone, so everything else in it is constant, and it is valid at any
        time: a computer whose clock is wrong can still join.
        """
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kafila")])
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(self.private_key.public_key())
            .serial_number(1)
            .not_valid_before(_VALID_FROM)
            .not_valid_after(_VALID_UNTIL)
            .sign(self.private_key, None)
        )

    def __repr__(self) -> str:
        return f"DeviceIdentity({self.member})"
