"""What can be learned of this computer's network in two seconds, with the rendezvous's help.

The tests are those of RFC 5780, all at once where one does not disturb the other: filtering is
tested on a socket that has written to nobody but one address of the server, mapping on another.
What was not learned is None or "unknown" in the report; nothing is guessed.
"""

import asyncio
import secrets
import socket
from collections.abc import Sequence
from statistics import median

import msgspec

from kafila.domain.capability import Filtering, Mapping, Reachability
from kafila.network.measure_gateway import find_gateway, network_name
from kafila.network.measure_stun import CHANGE_BOTH, CHANGE_PORT, Question, Reply, StunSocket
from kafila.protocol.links import Address

FIRST_ANSWER_WITHIN_S = 1.0
"""Without any answer for so long, UDP counts as blocked where TCP is not."""
WHOLE_WITHIN_S = 2.0

_FIRST_AT_S = (0.0, 0.1, 0.25, 0.45, 0.7)
_AGAIN_AT_S = (0.0, 0.08, 0.2, 0.35)
_SILENCE_S = 0.5
"""A question that was asked four times and has no answer by now, beyond the round trip, has none."""
_SAMPLES, _SAMPLE_GAP_S = 7, 0.05
_HAIRPIN_TRIES, _HAIRPIN_WITHIN_S = 3, 0.4
_HAIRPIN_BYTE = b"\x0f"
"""Neither STUN nor a probe nor QUIC: nobody takes it for anything."""
_SOMEWHERE_IPV6 = Address("2000::1", 9)
"""Any address out there: it is only asked which of our own leads to it."""
_PAYLOADS = (1472, 1452, 1392, 1252)
"""What fits into a path's largest packets over IPv4: of 1500, 1480, 1420 and 1280 bytes."""
_IP_AND_UDP_BYTES = 28


class NetworkReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was learned. None: not learned, or there is no such thing."""

    rendezvous: Address | None = None
    udp: bool | None = None
    """Whether datagrams get out and answers back in."""
    mapping: Mapping = Mapping.UNKNOWN
    filtering: Filtering = Filtering.UNKNOWN
    public_address: Address | None = None
    """Where one of this computer's sockets seems to be, seen from the rendezvous."""
    translated: bool | None = None
    """Whether that is another address than its own."""
    port_kept: bool | None = None
    hairpin: bool | None = None
    """Whether the router lets two computers inside meet at their public addresses."""
    ipv6: bool | None = None
    """Whether the rendezvous answers over IPv6."""
    ipv6_address: str | None = None
    """An address from which IPv6 would go out."""
    port_mapping: bool | None = None
    """Whether the router opened a port, where that was asked of it."""
    port_mapping_by: str | None = None
    """How it was asked when it did: pcp, nat-pmp or upnp; "none" where it did not."""
    port_mapping_reached: bool | None = None
    """Whether the rendezvous got through to that port."""
    mtu_bytes: int | None = None
    """The largest packet found to travel to the rendezvous in one piece."""
    rtt_ms: float | None = None
    rtt_spread_ms: float | None = None
    """How much longer a round trip may well take than the shortest."""
    network: str | None = None
    """Stands for the local network: the same for everyone behind the same router, and no name."""

    def reachability(self) -> Reachability:
        """What the planner goes by."""
        return Reachability(
            mapping=Mapping.UDP_BLOCKED if self.udp is False else self.mapping,
            filtering=self.filtering,
            lan=self.network,
            public_host=None if self.public_address is None else self.public_address.host,
            hairpin=self.hairpin,
            ipv6=self.ipv6,
            port_mapping=self.port_mapping,
            rendezvous_rtt_ms=self.rtt_ms,
        )


async def measure_network(rendezvous: Sequence[Address]) -> NetworkReport:
    """Learn what there is to learn. Several rendezvous make up for one that has a single address.

    Names are looked up first. Never raises for what the network does.
    """
    servers = await _resolve(rendezvous)
    ipv6_address = _source_towards(_SOMEWHERE_IPV6)
    first = next((server for server in servers if ":" not in server.host), None)
    own = None if first is None else _source_towards(first)
    if first is None or own is None:
        return await _measure_ipv6_alone(servers, ipv6_address)
    with StunSocket(own) as mapped, StunSocket(own) as filtered, StunSocket(own) as sized:
        tests = _Tests(servers=servers, first=first, mapped=mapped, filtered=filtered, sized=sized)
        try:
            async with asyncio.timeout(WHOLE_WITHIN_S):
                await tests.run()
        except TimeoutError:
            pass
        return msgspec.structs.replace(tests.report, rendezvous=first, ipv6_address=ipv6_address)


class _Tests:
    """The tests under way, and what they have found so far."""

    def __init__(
        self,
        *,
        servers: Sequence[Address],
        first: Address,
        mapped: StunSocket,
        filtered: StunSocket,
        sized: StunSocket,
    ) -> None:
        self.report = NetworkReport()
        self._servers = servers
        self._first = first
        self._mapped = mapped
        self._filtered = filtered
        self._sized = sized

    def _learn(self, **found: object) -> None:
        self.report = msgspec.structs.replace(self.report, **found)

    async def run(self) -> None:
        first = Question(server=self._first, at_s=_FIRST_AT_S, wait_s=FIRST_ANSWER_WITHIN_S)
        async with asyncio.TaskGroup() as tasks:
            mapped = tasks.create_task(self._mapped.ask(first))
            filtered = tasks.create_task(self._filtered.ask(first))
            over_tcp = tasks.create_task(_time_connecting(self._first))
            answered = tasks.create_task(_ask_over_ipv6(self._servers))
        seen, seen_too = mapped.result(), filtered.result()
        if any(":" in server.host for server in self._servers):
            self._learn(ipv6=answered.result() is not None)
        if seen is None:
            if (took_s := over_tcp.result()) is not None:
                self._learn(udp=False, rtt_ms=took_s * 1000, network=await _name_network("", translated=True))
            return
        translated = seen.seen != self._mapped.local
        self._learn(
            udp=True,
            public_address=seen.seen,
            translated=translated,
            port_kept=seen.seen.port == self._mapped.local.port,
            network=await _name_network(seen.seen.host, translated=translated),
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._test_mapping(seen))
            tasks.create_task(self._test_rtt(seen.rtt_s))
            tasks.create_task(self._test_mtu(seen.rtt_s))
            if seen_too is not None:
                tasks.create_task(self._test_filtering(seen_too))
            if translated:
                tasks.create_task(self._test_hairpin(seen))

    async def _test_mapping(self, seen: Reply) -> None:
        """From one socket to three addresses: whether it seems to be in one place."""
        if seen.seen == self._mapped.local:
            self._learn(mapping=Mapping.ENDPOINT_INDEPENDENT)
            return
        others = [server for server in self._servers if server.host != self._first.host and ":" not in server.host]
        if seen.other is not None and seen.other.host != self._first.host:
            others = [Address(seen.other.host, self._first.port), seen.other]
        wait_s = _SILENCE_S + 2 * seen.rtt_s
        async with asyncio.TaskGroup() as tasks:
            asked = [
                tasks.create_task(self._mapped.ask(Question(server=other, at_s=_AGAIN_AT_S, wait_s=wait_s)))
                for other in others[:2]
            ]
        places = {reply.seen for task in asked if (reply := task.result()) is not None}
        if places - {seen.seen}:
            self._learn(mapping=Mapping.ENDPOINT_DEPENDENT)
        elif places:
            self._learn(mapping=Mapping.ENDPOINT_INDEPENDENT)

    async def _test_filtering(self, seen: Reply) -> None:
        """Ask to be answered from where this socket has never written to."""
        if seen.other is None or seen.other.host == self._first.host:
            return
        wait_s = _SILENCE_S + 2 * seen.rtt_s
        async with asyncio.TaskGroup() as tasks:
            from_host, from_port = (
                tasks.create_task(
                    self._filtered.ask(
                        Question(server=self._first, at_s=_AGAIN_AT_S, wait_s=wait_s, change=change),
                    )
                )
                for change in (CHANGE_BOTH, CHANGE_PORT)
            )
        host, port = from_host.result(), from_port.result()
        # A server that ignores the wish answers from where it was asked.
        if host is not None and host.source.host != self._first.host:
            self._learn(filtering=Filtering.ENDPOINT_INDEPENDENT)
        elif port is not None and port.source.port != self._first.port:
            self._learn(filtering=Filtering.ADDRESS_DEPENDENT)
        elif host is None and port is None:
            self._learn(filtering=Filtering.ADDRESS_AND_PORT_DEPENDENT)

    async def _test_hairpin(self, seen: Reply) -> None:
        """As two computers inside would: each of two sockets writes to where the other seems to be."""
        wait_s = _SILENCE_S + 2 * seen.rtt_s
        reply = await self._sized.ask(Question(server=self._first, at_s=_AGAIN_AT_S, wait_s=wait_s))
        if reply is None:
            return
        word = _HAIRPIN_BYTE + secrets.token_bytes(15)
        async with asyncio.TaskGroup() as tasks:
            heard = tasks.create_task(self._sized.knocked(word, _HAIRPIN_WITHIN_S))
            for _ in range(_HAIRPIN_TRIES):
                self._sized.send(_HAIRPIN_BYTE, seen.seen)
                self._mapped.send(word, reply.seen)
                await asyncio.sleep(_SAMPLE_GAP_S)
        self._learn(hairpin=heard.result())

    async def _test_rtt(self, first_s: float) -> None:
        """The shortest of a few, and how far the slower half is from it."""
        wait_s = _SILENCE_S + 2 * first_s
        async with asyncio.TaskGroup() as tasks:
            asked = [
                tasks.create_task(
                    self._mapped.ask(Question(server=self._first, at_s=(place * _SAMPLE_GAP_S,), wait_s=wait_s))
                )
                for place in range(_SAMPLES)
            ]
        took = sorted([first_s, *(reply.rtt_s for task in asked if (reply := task.result()) is not None)])
        self._learn(rtt_ms=took[0] * 1000, rtt_spread_ms=(median(took[len(took) // 2 :]) - took[0]) * 1000)

    async def _test_mtu(self, first_s: float) -> None:
        """Large questions in one piece; answers are small."""
        self._sized.keep_whole()
        wait_s = _SILENCE_S + 2 * first_s
        async with asyncio.TaskGroup() as tasks:
            asked = {
                size: tasks.create_task(
                    self._sized.ask(Question(server=self._first, at_s=(0.0, 0.1), wait_s=wait_s, size=size))
                )
                for size in _PAYLOADS
            }
        arrived = [size for size, task in asked.items() if task.result() is not None]
        if arrived:
            self._learn(mtu_bytes=max(arrived) + _IP_AND_UDP_BYTES)


async def _measure_ipv6_alone(servers: Sequence[Address], ipv6_address: str | None) -> NetworkReport:
    """Where there is no IPv4, nothing is translated; whether UDP gets through is all there is to know."""
    server = next((server for server in servers if ":" in server.host), None)
    async with asyncio.TaskGroup() as tasks:
        asked = tasks.create_task(_ask_over_ipv6(servers))
        over_tcp = tasks.create_task(_time_connecting(server))
    reply, took_s = asked.result(), over_tcp.result()
    report = NetworkReport(rendezvous=server, ipv6_address=ipv6_address)
    if reply is not None:
        return msgspec.structs.replace(report, udp=True, ipv6=True, rtt_ms=reply.rtt_s * 1000)
    return report if took_s is None else msgspec.structs.replace(report, udp=False, ipv6=False, rtt_ms=took_s * 1000)


async def _ask_over_ipv6(servers: Sequence[Address]) -> Reply | None:
    """An answer over IPv6; None where none comes, or nobody can be asked."""
    server = next((server for server in servers if ":" in server.host), None)
    own = None if server is None else _source_towards(server)
    if server is None or own is None:
        return None
    with StunSocket(own) as asking:
        return await asking.ask(Question(server=server, at_s=_FIRST_AT_S, wait_s=FIRST_ANSWER_WITHIN_S))


async def _resolve(rendezvous: Sequence[Address]) -> tuple[Address, ...]:
    """Every address of every rendezvous; those without one are left out."""
    loop = asyncio.get_running_loop()
    found: dict[Address, None] = {}
    for each in rendezvous:
        try:
            async with asyncio.timeout(FIRST_ANSWER_WITHIN_S):
                infos = await loop.getaddrinfo(each.host, each.port, type=socket.SOCK_DGRAM)
        except (OSError, TimeoutError):
            continue
        found |= {Address(str(info[4][0]), each.port): None for info in infos}
    return tuple(found)


def _source_towards(target: Address) -> str | None:
    """This computer's address on the way there; sends nothing."""
    family = socket.AF_INET6 if ":" in target.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect((target.host, target.port))
        except OSError:
            return None
        host = str(asking.getsockname()[0])
    return None if host.startswith("fe80") else host


async def _name_network(public_host: str, *, translated: bool) -> str | None:
    if not translated:
        return network_name(public_host, None)
    gateway = await find_gateway()
    return network_name(public_host, gateway) if gateway is not None and gateway.hardware else None


async def _time_connecting(server: Address | None) -> float | None:
    """How long a TCP connection takes to come about, which is one round trip."""
    if server is None:
        return None
    loop = asyncio.get_running_loop()
    begin = loop.time()
    try:
        async with asyncio.timeout(FIRST_ANSWER_WITHIN_S):
            _, writer = await asyncio.open_connection(server.host, server.port)
    except (OSError, TimeoutError):
        return None
    writer.close()
    return loop.time() - begin
