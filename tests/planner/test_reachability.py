"""The table of who reaches whom, and the counting pass against every ring."""

from collections.abc import Iterator
from itertools import product

import msgspec
import pytest
from hypothesis import given

from kafila.domain.capability import Filtering, Mapping, Reachability
from kafila.domain.plan import PathKind
from kafila.planner.reachability import NatClass, classify, count_fewest_relays, predict_path
from planner.brute_force import reaches
from planner.strategies import reachabilities

PERMISSIVE = Reachability(mapping=Mapping.ENDPOINT_INDEPENDENT, filtering=Filtering.ADDRESS_DEPENDENT)
ORDINARY = Reachability(mapping=Mapping.ENDPOINT_INDEPENDENT, filtering=Filtering.ADDRESS_AND_PORT_DEPENDENT)
RESTRICTIVE = Reachability(mapping=Mapping.ENDPOINT_DEPENDENT, filtering=Filtering.ENDPOINT_INDEPENDENT)
BLOCKED = Reachability(mapping=Mapping.UDP_BLOCKED)
UNKNOWN = Reachability()


def _behind_carrier(*, hairpin: bool | None) -> Reachability:
    return msgspec.structs.replace(ORDINARY, public_host="198.51.100.7", hairpin=hairpin)


@given(one=reachabilities, other=reachabilities)
def test_predictions_are_the_tables(one: Reachability, other: Reachability) -> None:
    expected = PathKind.DIRECT if reaches(one, other) else PathKind.RELAYED
    assert predict_path(one, other) is expected
    assert predict_path(other, one) is expected


@pytest.mark.parametrize(
    ("one", "other", "direct"),
    [
        (ORDINARY, ORDINARY, True),
        (RESTRICTIVE, PERMISSIVE, True),
        (RESTRICTIVE, ORDINARY, False),
        (RESTRICTIVE, RESTRICTIVE, False),
        (UNKNOWN, PERMISSIVE, True),
        (UNKNOWN, ORDINARY, False),
        (BLOCKED, PERMISSIVE, False),
        # An unknown filter is counted among those that let nobody in.
        (RESTRICTIVE, Reachability(mapping=Mapping.ENDPOINT_INDEPENDENT), False),
        (Reachability(mapping=Mapping.UDP_BLOCKED, lan="home"), Reachability(lan="home"), True),
        (Reachability(lan="home"), Reachability(lan="office"), False),
        (Reachability(ipv6=True), Reachability(ipv6=True), True),
        (Reachability(ipv6=True), Reachability(), False),
        (Reachability(ipv6=True, mapping=Mapping.UDP_BLOCKED), Reachability(ipv6=True), False),
        (Reachability(port_mapping=True), RESTRICTIVE, True),
        (Reachability(port_mapping=True, mapping=Mapping.UDP_BLOCKED), ORDINARY, False),
        # Behind one carrier, at one public address, everything has to turn round at the carrier's router.
        (_behind_carrier(hairpin=True), _behind_carrier(hairpin=True), True),
        (_behind_carrier(hairpin=True), _behind_carrier(hairpin=False), False),
        (_behind_carrier(hairpin=None), _behind_carrier(hairpin=None), False),
        (_behind_carrier(hairpin=False), ORDINARY, True),
    ],
)
def test_each_rule_of_the_table(one: Reachability, other: Reachability, *, direct: bool) -> None:
    assert (predict_path(one, other) is PathKind.DIRECT) is direct


def test_the_four_classes() -> None:
    classes = [classify(reach) for reach in (PERMISSIVE, ORDINARY, RESTRICTIVE, BLOCKED)]
    assert classes == [NatClass.PERMISSIVE, NatClass.ORDINARY, NatClass.RESTRICTIVE, NatClass.BLOCKED]


def arrange(left: dict[str, int]) -> Iterator[str]:
    """Every different row of the members that are left."""
    if not any(left.values()):
        yield ""
    for kind, count in left.items():
        if count:
            for rest in arrange(left | {kind: count - 1}):
                yield kind + rest


def count_relays(ring: str) -> int:
    samples = {"P": PERMISSIVE, "O": ORDINARY, "R": RESTRICTIVE}
    pairs = zip(ring, ring[1:] + ring[0], strict=True)
    return sum(not reaches(samples[one], samples[other]) for one, other in pairs)


MIXES = [mix for mix in product(range(9), repeat=3) if 2 <= sum(mix) <= 8]


@pytest.mark.parametrize("mix", MIXES, ids=lambda mix: "P{}O{}R{}".format(*mix))
def test_the_counting_pass_against_every_ring_of_up_to_eight(mix: tuple[int, int, int]) -> None:
    permissive, ordinary, restrictive = mix
    fewest = min(count_relays(ring) for ring in arrange({"P": permissive, "O": ordinary, "R": restrictive}))
    assert count_fewest_relays(permissive=permissive, ordinary=ordinary, restrictive=restrictive) == fewest
    # The rule in words: who can have a ring without a relay.
    if restrictive == 0:
        all_direct = True
    elif ordinary == 0:
        all_direct = permissive >= restrictive
    else:
        all_direct = permissive > restrictive
    assert (fewest == 0) is all_direct
