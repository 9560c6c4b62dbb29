"""The certificate that a rendezvous shows, ready for TLS. It is made, or bought, elsewhere."""

import hashlib
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from kafila.domain.errors import UserError

_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A server's end of TLS."""

    context: ssl.SSLContext = field(repr=False)
    fingerprint: bytes
    """The SHA-256 of the certificate."""

    @classmethod
    def load(cls, certificate: Path, key: Path) -> Self:
        """Read PEM files: the certificate, perhaps with those that vouch for it behind, and its key.

        They may be one file. Raises UserError where they do not belong together.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.num_tickets = 0  # Every connection shows the certificate: none is taken up again without it.
        try:
            text = certificate.read_text(encoding="ascii", errors="replace")
            # Without a password here, OpenSSL would ask for one on the terminal.
            context.load_cert_chain(certificate, key, password="")
        except ssl.SSLError as error:
            files = f"{certificate} is" if key == certificate else f"{certificate} and {key} are"
            raise UserError(
                title=f"{files} no certificate with its key",
                advice="Give two PEM files that belong together, the key without a password.",
            ) from error
        except OSError as error:
            raise UserError(
                title=f"{error.filename or certificate} cannot be read: {error.strerror}",
                advice="Give the certificate and its key as PEM files that this account may read.",
            ) from error
        first = text[text.index(_BEGIN) : text.index(_END) + len(_END)]
        return cls(context=context, fingerprint=hashlib.sha256(ssl.PEM_cert_to_DER_cert(first)).digest())
