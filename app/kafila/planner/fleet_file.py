"""Fleets as people write them down: a model, members and measured pairs in TOML.

The format is described in docs/planner.md. Whatever is wrong with a file is said in one sentence
that names the line, or the member and the key.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NoReturn, TypeVar, cast

from kafila.domain.capability import Capability, Filtering, Reachability
from kafila.domain.capability import Mapping as NatMapping
from kafila.domain.errors import UserError
from kafila.domain.ids import MemberId
from kafila.domain.model import ModelSpec
from kafila.planner.question import LONGEST_RTT_MS, SLOWEST_RATE, Candidate

MOST_BLOCKS = 1024
MOST_MEMBERS = 256
MOST_CONTEXT = 1 << 30
MOST_CONCURRENCY = 1 << 16
_LARGEST = 1 << 63

Choice = TypeVar("Choice", bound=StrEnum)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """What a fleet file says."""

    spec: ModelSpec
    members: tuple[Candidate, ...]
    context: int
    concurrency: int
    pair_rtts: Mapping[frozenset[MemberId], float]


def parse_fleet(text: str) -> Fleet:
    """Read a whole fleet file. Raises UserError."""
    top = _Table("", _load(text))
    context = top.whole("context", least=1, most=MOST_CONTEXT, default=4096)
    concurrency = top.whole("concurrency", least=1, most=MOST_CONCURRENCY, default=1)
    spec = _read_model(top.table("model"))
    members = _read_members(top.tables("member"))
    pair_rtts = _read_pairs(top.tables("pair"), {one.member for one in members})
    top.refuse_others()
    return Fleet(
        spec=spec,
        members=members,
        context=context,
        concurrency=concurrency,
        pair_rtts=pair_rtts,
    )


def parse_models(text: str) -> tuple[ModelSpec, ...]:
    """Read a file of [[model]] tables. Raises UserError."""
    top = _Table("", _load(text))
    models = tuple(_read_model(table) for table in top.tables("model"))
    top.refuse_others()
    return models


def _load(text: str) -> Mapping[str, object]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        what, _, where = str(error).partition(" (at ")
        place = re.search(r"line (\d+)", where)
        line = int(place[1]) if place else text.count("\n") + 1
        _refuse(f"Line {line} is not TOML: {what}")


def _refuse(title: str) -> NoReturn:
    raise UserError(title=title, advice="The format is in docs/planner.md.")


def _read_model(table: "_Table") -> ModelSpec:
    keys = ("block_bytes", "block_flops", "kv_bytes_per_token")
    columns = [table.wholes(key, least=int(key == "block_bytes")) for key in keys]
    lengths = {key: len(column) for key, column in zip(keys, columns, strict=True) if isinstance(column, tuple)}
    blocks = table.whole("blocks", least=1, default=next(iter(lengths.values()), 0))
    for key, length in lengths.items():
        if length != blocks:
            table.refuse(key, f"has {length} values for {blocks} blocks")
    if not 1 <= blocks <= MOST_BLOCKS:
        table.refuse("blocks", f"has to be a number from 1 to {MOST_BLOCKS}, or follow from lists")
    sizes, flops, kv = (column if isinstance(column, tuple) else (column,) * blocks for column in columns)
    spec = ModelSpec(
        name=table.text("name"),
        family="",
        fingerprint="",
        hidden_size=0,
        block_bytes=sizes,
        block_flops=flops,
        kv_bytes_per_token=kv,
        head_bytes=table.whole("head_bytes", least=0),
        head_flops=table.whole("head_flops", least=0),
        head_resident_bytes=table.whole("head_resident_bytes", least=0),
        max_context=table.whole("max_context", least=1, default=0),
    )
    table.refuse_others()
    return spec


def _read_members(tables: "list[_Table]") -> tuple[Candidate, ...]:
    if not 1 <= len(tables) <= MOST_MEMBERS:
        _refuse(f"There are {len(tables)} members, and there have to be 1 to {MOST_MEMBERS}")
    members: list[Candidate] = []
    for table in tables:
        member = MemberId(table.text("id"))
        table.where = f"Member “{member}”: "
        if any(one.member == member for one in members):
            table.refuse("id", "is taken by a member above")
        members.append(
            Candidate(member=member, name=table.text("name", default=member), capability=_read_capability(table))
        )
        table.refuse_others()
    return tuple(members)


def _read_capability(table: "_Table") -> Capability:
    return Capability(
        room_bytes=table.whole("room", least=0),
        bandwidth_bytes_s=table.rate("bandwidth"),
        flops_s=table.rate("flops"),
        reachability=Reachability(
            mapping=table.choice("mapping", NatMapping.UNKNOWN),
            filtering=table.choice("filtering", Filtering.UNKNOWN),
            lan=table.text("lan", default="") or None,
            ipv6=table.flag("ipv6"),
            port_mapping=table.flag("port_mapping"),
            rendezvous_rtt_ms=table.milliseconds("rendezvous_rtt_ms"),
        ),
    )


def _read_pairs(tables: "list[_Table]", known: set[MemberId]) -> dict[frozenset[MemberId], float]:
    pairs: dict[frozenset[MemberId], float] = {}
    for table in tables:
        members = table.take("members")
        if not isinstance(members, list) or len(cast("list[object]", members)) != 2:
            table.refuse("members", "has to be a list of two ids")
        ids = [str(member) for member in cast("list[object]", members)]
        table.where = f"Pair “{ids[0]}” and “{ids[1]}”: "
        pair = frozenset(MemberId(one) for one in ids)
        if len(pair) != 2:
            table.refuse("members", "has to name two different members")
        for one in sorted(pair - known):
            table.refuse("members", f"names “{one}”, and no member has this id")
        if pair in pairs:
            table.refuse("members", "is a pair that stands above already")
        rtt_ms = table.milliseconds("rtt_ms")
        if rtt_ms is None:
            table.refuse("rtt_ms", "is missing")
        pairs[pair] = rtt_ms
        table.refuse_others()
    return pairs


class _Table:
    """One table of the file, whose keys are taken out one by one."""

    def __init__(self, where: str, values: Mapping[str, object]) -> None:
        self.where = where
        self._left = dict(values)

    def refuse(self, key: str, fault: str) -> NoReturn:
        _refuse(f"{self.where}“{key}” {fault}")

    def refuse_others(self) -> None:
        for key in self._left:
            self.refuse(key, "is not a key that belongs here")

    def take(self, key: str) -> object:
        return self._left.pop(key, None)

    def table(self, key: str) -> "_Table":
        value = self.take(key)
        if not isinstance(value, dict):
            self.refuse(key, "is missing" if value is None else "has to be a table")
        return _Table(f"{key.capitalize()}: ", cast("dict[str, object]", value))

    def tables(self, key: str) -> "list[_Table]":
        value = self.take(key)
        rows = cast("list[object]", value) if isinstance(value, list) else [] if value is None else [value]
        if not isinstance(value, list | None) or not all(isinstance(row, dict) for row in rows):
            self.refuse(key, f"has to be written as [[{key}]]")
        return [
            _Table(f"{key.capitalize()} {number}: ", cast("dict[str, object]", row))
            for number, row in enumerate(rows, start=1)
        ]

    def text(self, key: str, default: str | None = None) -> str:
        value = self.take(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, str) or not (value or default is not None):
            self.refuse(key, "is missing" if value is None else "has to be a text in quotes")
        return value

    def flag(self, key: str) -> bool:
        value = self.take(key)
        if not isinstance(value, bool | None):
            self.refuse(key, "has to be true or false")
        return value or False

    def choice(self, key: str, default: Choice) -> Choice:
        value = self.take(key)
        kind = type(default)
        if value is None:
            return default
        if value not in list(kind):
            self.refuse(key, f"has to be one of {', '.join(kind)}")
        return kind(value)

    def whole(self, key: str, *, least: int, most: int = _LARGEST, default: int | None = None) -> int:
        value = self._left.get(key)
        if value is None and default is not None:
            self.take(key)
            return default
        number = self._whole(key, self.take(key), least)
        if number > most:
            self.refuse(key, f"cannot be above {most:,}")
        return number

    def wholes(self, key: str, *, least: int) -> int | tuple[int, ...]:
        value = self.take(key)
        if isinstance(value, list):
            return tuple(self._whole(key, one, least) for one in cast("list[object]", value))
        return self._whole(key, value, least)

    def rate(self, key: str) -> float | None:
        value = self._number(key, self.take(key))
        if value is not None and value < SLOWEST_RATE:
            self.refuse(key, "has to be above zero")
        return value

    def milliseconds(self, key: str) -> float | None:
        value = self._number(key, self.take(key))
        if value is not None and not 0 <= value <= LONGEST_RTT_MS:
            self.refuse(key, "cannot be below zero, or longer than a day")
        return value

    def _whole(self, key: str, value: object, least: int) -> int:
        number = self._number(key, value)
        if number is None:
            self.refuse(key, "is missing")
        if number != int(number) or number < least:
            self.refuse(key, f"has to be a whole number from {least} on")
        return int(number)

    def _number(self, key: str, value: object) -> int | float | None:
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST:
            self.refuse(key, "has to be a number, and not a monstrous one")
        return value
