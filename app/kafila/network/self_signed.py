"""Certificates that a rendezvous makes for itself: known by their fingerprint, and by nothing else."""

import contextlib
import datetime
import os
import tempfile
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from kafila.network.rendezvous_server.certificate import Certificate
from kafila.protocol.trust import SERVER_NAME

_VALID_FROM = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
_VALID_UNTIL = datetime.datetime(9999, 12, 31, tzinfo=datetime.UTC)


def fresh_certificate() -> Certificate:
    """A new one for this process; its key lies in a file for a moment only."""
    with tempfile.TemporaryDirectory() as folder:  # TLS reads keys from files only.
        return kept_certificate(Path(folder) / "certificate.pem")


def kept_certificate(file: Path) -> Certificate:
    """The certificate in this file, with its key; a new one where there is none yet. Raises OSError, UserError."""
    if not file.exists():
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = file.with_suffix(f".{os.getpid()}.new")
        try:
            beside.touch(mode=0o600)
            beside.write_bytes(_make())
            # Where two start at once, the first one's counts.
            with contextlib.suppress(FileExistsError):
                file.hardlink_to(beside)
        finally:
            beside.unlink(missing_ok=True)
    return Certificate.load(file, file)


def _make() -> bytes:
    """A key and its certificate as PEM. All in it but the key is constant, and it is valid at any time."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kafila")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(_VALID_FROM)
        .not_valid_after(_VALID_UNTIL)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(SERVER_NAME)]), critical=False)
        .sign(key, SHA256())
    )
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return secret + certificate.public_bytes(Encoding.PEM)
