"""Fleet files: what is read, and the sentence for each mistake."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafila.domain.capability import Filtering, Mapping
from kafila.domain.errors import UserError
from kafila.planner.fleet_file import parse_fleet, parse_models

GOOD = """\
context = 4096
concurrency = 2
[model]
name = "Toy"
blocks = 3
block_bytes = 386_000_000
block_flops = 3.86e8
kv_bytes_per_token = [1, 2, 3]
head_bytes = 7
head_flops = 8
head_resident_bytes = 9
[[member]]
id = "desk"
name = "The desk"
bandwidth = 400e9
flops = 13e12
room = 22e9
rendezvous_rtt_ms = 10
mapping = "endpoint-independent"
filtering = "address-dependent"
lan = "home"
[[member]]
id = "laptop"
room = 1_000
ipv6 = true
port_mapping = true
[[pair]]
members = ["laptop", "desk"]
rtt_ms = 1.5
"""


def test_everything_is_read() -> None:
    fleet = parse_fleet(GOOD)
    assert (fleet.context, fleet.concurrency) == (4096, 2)
    assert fleet.spec.block_bytes == (386_000_000,) * 3
    assert fleet.spec.block_flops == (386_000_000,) * 3
    assert fleet.spec.kv_bytes_per_token == (1, 2, 3)
    assert (fleet.spec.head_bytes, fleet.spec.head_flops, fleet.spec.head_resident_bytes) == (7, 8, 9)
    desk, laptop = fleet.members
    assert (desk.member, desk.name, laptop.name) == ("desk", "The desk", "laptop")
    assert desk.capability.room_bytes == 22_000_000_000
    assert desk.capability.bandwidth_bytes_s == 400e9
    assert desk.capability.flops_s == 13e12
    reach = desk.capability.reachability
    assert (reach.mapping, reach.filtering) == (Mapping.ENDPOINT_INDEPENDENT, Filtering.ADDRESS_DEPENDENT)
    assert (reach.lan, reach.rendezvous_rtt_ms, reach.ipv6, reach.port_mapping) == ("home", 10.0, False, False)
    assert laptop.capability.bandwidth_bytes_s is None
    assert laptop.capability.reachability.mapping is Mapping.UNKNOWN
    assert (laptop.capability.reachability.ipv6, laptop.capability.reachability.port_mapping) == (True, True)
    assert fleet.pair_rtts == {frozenset((desk.member, laptop.member)): 1.5}


def test_what_may_be_left_out() -> None:
    text = GOOD.replace("context = 4096\nconcurrency = 2\n", "").replace("blocks = 3\n", "")
    fleet = parse_fleet(text[: text.index("[[pair]]")])
    assert (fleet.context, fleet.concurrency, fleet.spec.blocks, fleet.pair_rtts) == (4096, 1, 3, {})


MISTAKES: list[tuple[str, str, str]] = [
    ("flops = 13e12", 'flops = "13e12', "Line 16 is not TOML: Illegal character"),
    ('[[member]]\nid = "laptop"', '[[member]\nid = "laptop"', "Line 22 is not TOML"),
    ('name = "Toy"\n', "", "Model: “name” is missing"),
    ("[model]", "[modell]", "“model” is missing"),
    ("[model]", "[[model]]", "“model” has to be a table"),
    ("blocks = 3", "blocks = 4", "Model: “kv_bytes_per_token” has 3 values for 4 blocks"),
    ("blocks = 3", "blocks = 0", "Model: “blocks” has to be a whole number from 1 on"),
    ("blocks = 3", "blocks = 2.5", "Model: “blocks” has to be a whole number from 1 on"),
    ("blocks = 3", "blocks = 1_000_000_000", "Model: “kv_bytes_per_token” has 3 values"),
    ("[1, 2, 3]", '[1, "2", 3]', "Model: “kv_bytes_per_token” has to be a number"),
    ("[1, 2, 3]", "-1", "Model: “kv_bytes_per_token” has to be a whole number from 0 on"),
    ("block_bytes = 386_000_000", "block_bytes = 0", "Model: “block_bytes” has to be a whole number from 1 on"),
    ("head_flops = 8\n", "", "Model: “head_flops” is missing"),
    ("head_flops = 8", "head_flop = 8", "Model: “head_flops” is missing"),
    ("head_bytes = 7", "head_bytes = 7\nlayers = 3", "Model: “layers” is not a key that belongs here"),
    ('id = "laptop"\n', "", "Member 2: “id” is missing"),
    ('id = "laptop"', 'id = ""', "Member 2: “id” has to be a text in quotes"),
    ('id = "laptop"', "id = 5", "Member 2: “id” has to be a text in quotes"),
    ('id = "laptop"', 'id = "desk"', "Member “desk”: “id” is taken by a member above"),
    ("room = 22e9\n", "", "Member “desk”: “room” is missing"),
    ("room = 22e9", "room = -1", "Member “desk”: “room” has to be a whole number from 0 on"),
    ("room = 22e9", "room = inf", "Member “desk”: “room” has to be a number, and not a monstrous one"),
    ("room = 22e9", f"room = 1{'0' * 400}", "Member “desk”: “room” has to be a number, and not a monstrous one"),
    ("bandwidth = 400e9", "bandwidth = 0", "Member “desk”: “bandwidth” has to be above zero"),
    ("bandwidth = 400e9", "bandwidth = nan", "Member “desk”: “bandwidth” has to be a number"),
    ("bandwidth = 400e9", "bandwidth = true", "Member “desk”: “bandwidth” has to be a number"),
    ("rendezvous_rtt_ms = 10", "rendezvous_rtt_ms = -1", "Member “desk”: “rendezvous_rtt_ms” cannot be below zero"),
    ("address-dependent", "strict", "Member “desk”: “filtering” has to be one of endpoint-independent, "),
    ('mapping = "endpoint-independent"', "mapping = []", "Member “desk”: “mapping” has to be one of"),
    ("ipv6 = true", "ipv6 = 1", "Member “laptop”: “ipv6” has to be true or false"),
    ('lan = "home"', "lan = 1", "Member “desk”: “lan” has to be a text in quotes"),
    ('lan = "home"', "wifi = true", "Member “desk”: “wifi” is not a key that belongs here"),
    ("context = 4096", "context = 1e12", "“context” cannot be above 1,073,741,824"),
    ("context = 4096", "context = 0", "“context” has to be a whole number from 1 on"),
    ("concurrency = 2", "people = 2", "“people” is not a key that belongs here"),
    ('["laptop", "desk"]', '["laptop"]', "Pair 1: “members” has to be a list of two ids"),
    ('["laptop", "desk"]', '["desk", "desk"]', "“members” has to name two different members"),
    ('["laptop", "desk"]', '["laptop", "attic"]', "“members” names “attic”, and no member has this id"),
    ("rtt_ms = 1.5\n", "", "Pair “laptop” and “desk”: “rtt_ms” is missing"),
    ("rtt_ms = 1.5\n", 'rtt_ms = 1\n[[pair]]\nmembers = ["desk", "laptop"]\nrtt_ms = 2\n', "stands above already"),
    ("[[pair]]", "[pair]", "“pair” has to be written as [[pair]]"),
]


@pytest.mark.parametrize(("right", "wrong", "sentence"), MISTAKES)
def test_each_mistake_is_named(right: str, wrong: str, sentence: str) -> None:
    place = GOOD.rindex(right) if right == "rtt_ms = 1.5\n" else GOOD.index(right)
    text = GOOD[:place] + wrong + GOOD[place + len(right) :]
    with pytest.raises(UserError) as raised:
        parse_fleet(text)
    assert sentence in raised.value.problem.sentence()


def test_a_file_without_members_is_none() -> None:
    with pytest.raises(UserError) as raised:
        parse_fleet(GOOD[: GOOD.index("[[member]]")])
    assert raised.value.problem.title == "There are 0 members, and there have to be 1 to 256"


def test_a_file_of_models() -> None:
    table = GOOD[GOOD.index("[model]") : GOOD.index("[[member]]")].replace("[model]", "[[model]]")
    assert [spec.name for spec in parse_models(table + table)] == ["Toy", "Toy"]


scalars = st.one_of(
    st.integers(), st.floats(), st.booleans(), st.text(max_size=5), st.lists(st.integers(), max_size=3), st.none()
)


@given(text=st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    with pytest.raises(UserError):
        parse_fleet(text)


@given(data=st.data())
def test_any_value_in_any_place_is_read_or_refused(data: st.DataObject) -> None:
    """A line of the file gets another value; nothing but a sentence comes of it."""
    lines: list[str] = [*GOOD.splitlines()]
    place = data.draw(st.sampled_from([index for index, line in enumerate(lines) if "=" in line]))
    value: Any = data.draw(scalars)
    shown = {True: "true", False: "false", None: "{}"}.get(value) if isinstance(value, bool | None) else None
    lines[place] = f"{lines[place].split('=')[0]}= {shown or repr(value)}"
    with suppress(UserError):
        assert len(parse_fleet("\n".join(lines)).members) == 2
