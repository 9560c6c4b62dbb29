"""`kafila doctor`: what this computer's network lets through, in words and as JSON."""

import argparse
import asyncio
import json
from collections.abc import Mapping as Map
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from kafila.cli import arguments as typed
from kafila.domain.capability import Filtering, Mapping
from kafila.planner.reachability import NatClass, classify
from kafila.protocol.rendezvous_address import RendezvousAt

if TYPE_CHECKING:
    from kafila.network.measure import NetworkReport

NO_ANSWER = 1
_NOT_LEARNED = "not learned"


def add_parser(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",  # pyright: ignore[reportPrivateUsage]
    *,
    parents: Sequence[argparse.ArgumentParser] = (),
) -> None:
    """Add the command to `kafila`'s."""
    parser = commands.add_parser(
        "doctor",
        parents=list(parents),
        help="look at this computer’s network: what gets in and out",
        description="Say how others will reach this computer. Most of it can only be learned with the "
        "help of a rendezvous; without one given, that of the settings is asked.",
    )
    parser.add_argument(
        "--rendezvous",
        action="append",
        default=[],
        type=typed.rendezvous,
        metavar=typed.RENDEZVOUS,
        help="whom to ask; repeat it, where one alone cannot tell everything",
    )
    parser.add_argument(
        "--ask-router", action="store_true", help="also have the router open a port, and close it again at once"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Exit code 0, or 1 where a rendezvous was asked and none answered."""
    from kafila.engine.known_rendezvous import recall
    from kafila.engine.settings import Folders, SettingsFile

    settings = SettingsFile(Folders.of(None).config).value
    named: list[str] = arguments.rendezvous or ([settings.rendezvous] if settings.rendezvous else [])
    asked = [at for text in named if (at := recall(text, settings.certificates)) is not None]
    report = asyncio.run(_examine(asked, ask_router=arguments.ask_router))
    if arguments.json:
        print(json.dumps(report_as_json(report), ensure_ascii=False))
    else:
        print("\n".join(describe(report, was_asked=bool(asked))))
    return NO_ANSWER if asked and report.udp is None else 0


async def _examine(asked: Sequence[RendezvousAt], *, ask_router: bool) -> "NetworkReport":
    from kafila.network.measure import measure_network
    from kafila.network.port_trial import try_port

    async with asyncio.TaskGroup() as tasks:
        measuring = tasks.create_task(measure_network([each.address for each in asked]))
        trying = tasks.create_task(try_port(next(iter(asked), None))) if ask_router else None
    report = measuring.result()
    if trying is None:
        return report
    trial = trying.result()
    return msgspec.structs.replace(
        report,
        port_mapping=trial.how is not None,
        port_mapping_by=trial.how or "none",
        port_mapping_reached=trial.reached,
    )


def report_as_json(report: "NetworkReport") -> Map[str, object]:
    """Every field, by name; null, “unknown” and the list at the end say what was not learned."""
    fields: dict[str, object] = {
        "udp": report.udp,
        "mapping": report.mapping.value,
        "filtering": report.filtering.value,
        "public_address_seen": None if report.public_address is None else str(report.public_address),
        "translated": report.translated,
        "port_kept": report.port_kept,
        "hairpin": report.hairpin,
        "ipv6": report.ipv6,
        "ipv6_address": report.ipv6_address,
        "port_mapping": report.port_mapping,
        "port_mapping_by": report.port_mapping_by,
        "port_mapping_reached": report.port_mapping_reached,
        "mtu_bytes": report.mtu_bytes,
        "rendezvous": None if report.rendezvous is None else str(report.rendezvous),
        "rendezvous_rtt_ms": report.rtt_ms,
        "rendezvous_rtt_spread_ms": report.rtt_spread_ms,
        "network": report.network,
    }
    unknown = [name for name, value in fields.items() if value is None or value == "unknown"]
    return {**fields, "not_learned": unknown}


def describe(report: "NetworkReport", *, was_asked: bool) -> list[str]:
    """The report for a person: first what it means, then what it is made of."""
    lines = [_meaning(report, was_asked=was_asked), ""]
    rows = (
        ("UDP", _say(report.udp, "gets through", "is blocked")),
        ("Seen from outside as", str(report.public_address or _NOT_LEARNED)),
        ("Address translation", _say(report.translated, "yes, by a router", "none")),
        ("Public port", _MAPPINGS[report.mapping]),
        ("Lets in", _FILTERINGS[report.filtering]),
        ("Meets neighbours at its own public address", _say(report.hairpin, "yes", "no")),
        ("IPv6", _say_ipv6(report)),
        ("Port opened by the router", _say_port(report)),
        ("Largest packet", _NOT_LEARNED if report.mtu_bytes is None else f"{report.mtu_bytes} bytes"),
        ("Round trip to the rendezvous", _say_rtt(report)),
    )
    width = max(len(name) for name, _ in rows)
    return lines + [f"{name.ljust(width)}  {value}" for name, value in rows]


def _meaning(report: "NetworkReport", *, was_asked: bool) -> str:
    if not was_asked:
        return (
            "Nobody was asked how this computer looks from outside. "
            "Give the group’s rendezvous with --rendezvous HOST:PORT."
        )
    if report.udp is None:
        return "The rendezvous does not answer. Check its address, and that this computer is online."
    if report.mapping is Mapping.UNKNOWN and report.udp:
        return (
            "The rendezvous answers, but with one address it cannot tell what kind of router this is. "
            "Links will be tried directly, and go by way of the rendezvous where that fails."
        )
    return _CLASSES[classify(report.reachability())]


_CLASSES = {
    NatClass.PERMISSIVE: "Others reach this computer directly, whatever their own network is like.",
    NatClass.ORDINARY: (
        "Others reach this computer directly from most networks; from the strictest ones, by way of the rendezvous."
    ),
    NatClass.RESTRICTIVE: (
        "This network is strict: only computers on open networks are reached directly, "
        "the others by way of the rendezvous."
    ),
    NatClass.BLOCKED: "This network blocks UDP: everything goes by way of the rendezvous, over TCP.",
}
_MAPPINGS = {
    Mapping.ENDPOINT_INDEPENDENT: "the same for everybody",
    Mapping.ENDPOINT_DEPENDENT: "another one for everybody",
    Mapping.UDP_BLOCKED: "none",
    Mapping.UNKNOWN: _NOT_LEARNED,
}
_FILTERINGS = {
    Filtering.ENDPOINT_INDEPENDENT: "everybody who knows the port",
    Filtering.ADDRESS_DEPENDENT: "computers that it wrote to",
    Filtering.ADDRESS_AND_PORT_DEPENDENT: "exactly the ports that it wrote to",
    Filtering.UNKNOWN: _NOT_LEARNED,
}
_WAYS = {
    "pcp": "yes, when asked by PCP",
    "nat-pmp": "yes, when asked by NAT-PMP",
    "upnp": "yes, when asked by UPnP",
    "none": "no",
}


def _say(value: object, yes: str, no: str) -> str:
    if value is None:
        return _NOT_LEARNED
    return yes if value else no


def _say_port(report: "NetworkReport") -> str:
    way = _WAYS.get(report.port_mapping_by or "", "not asked for")
    if report.port_mapping_reached is None:
        return way
    return f"{way}; the rendezvous {'gets' if report.port_mapping_reached else 'does not get'} through to it"


def _say_ipv6(report: "NetworkReport") -> str:
    if report.ipv6 is not None:
        return "works" if report.ipv6 else "does not reach the rendezvous"
    if report.ipv6_address is None:
        return "none here"
    return f"there is an address, {report.ipv6_address}, but it was not tried"


def _say_rtt(report: "NetworkReport") -> str:
    if report.rtt_ms is None:
        return _NOT_LEARNED
    spread = "" if report.rtt_spread_ms is None else f", often up to {report.rtt_spread_ms:.0f} ms more"
    return f"{report.rtt_ms:.0f} ms{spread}"
