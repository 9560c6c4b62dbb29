"""The hash of a division."""

import msgspec
import pytest

from kafila.domain.ids import MemberId
from kafila.domain.plan import Plan
from kafila.planner.plan import make_plan
from kafila.planner.tiling import TILING_BYTES, tiling_hash
from planner.samples import make_member, make_spec

SPEC = make_spec([1] * 6)


def make(names: str = "AB", **changes: object) -> Plan:
    plan = make_plan(SPEC, [make_member(name) for name in names], context=1, concurrency=1)
    assert isinstance(plan, Plan)
    return msgspec.structs.replace(plan, **changes)


def test_the_same_division_has_the_same_hash_whatever_it_was_planned_for() -> None:
    digest = tiling_hash(make(), SPEC, 3)
    assert len(digest) == TILING_BYTES
    assert digest == tiling_hash(make(advice=("anything",), tokens_per_second_alone=1.0), SPEC, 3)
    # Frozen, as members of different versions have to agree on it.
    assert digest.hex() == "b68b74a696d24dd7"


def change(plan: Plan, place: int, **changes: object) -> Plan:
    shares = list(plan.shares)
    shares[place] = msgspec.structs.replace(shares[place], **changes)
    return msgspec.structs.replace(plan, shares=tuple(shares))


@pytest.mark.parametrize(
    "other",
    [
        tiling_hash(make(), SPEC, 4),
        tiling_hash(make(), msgspec.structs.replace(SPEC, fingerprint="e" * 64), 3),
        tiling_hash(change(make(), 0, end=2), SPEC, 3),
        tiling_hash(change(make(), 1, first=4), SPEC, 3),
        tiling_hash(change(make(), 1, head=True), SPEC, 3),
        tiling_hash(change(make(), 1, member=MemberId("c")), SPEC, 3),
        tiling_hash(make(shares=tuple(reversed(make().shares))), SPEC, 3),
        tiling_hash(make("A"), SPEC, 3),
    ],
)
def test_another_division_model_or_epoch_has_another(other: bytes) -> None:
    assert other != tiling_hash(make(), SPEC, 3)
