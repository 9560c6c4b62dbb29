"""The hash that binds frames to a division: who holds which blocks of which model, in which order.

It holds nothing of the session, so the same division of the same model at the same epoch has the
same hash on every computer.
"""

import hashlib

from kafila.domain.model import ModelSpec
from kafila.domain.plan import Plan

TILING_BYTES = 8


def tiling_hash(plan: Plan, spec: ModelSpec, epoch: int) -> bytes:
    """8 bytes of BLAKE2b; every field has a fixed place or its length before it."""
    digest = hashlib.blake2b(digest_size=TILING_BYTES, person=b"kafila tiling 1")
    digest.update(epoch.to_bytes(8, "big"))
    fields = [spec.fingerprint]
    for share in plan.shares:
        fields += [share.member, str(share.first), str(share.end), str(int(share.head))]
    for field in fields:
        data = field.encode()
        digest.update(len(data).to_bytes(4, "big") + data)
    return digest.digest()
