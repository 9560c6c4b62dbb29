"""A small Internet on one computer: sites behind routers of their own, and a place in the middle.

Every computer and every router is a network namespace with a real network stack; between their
public addresses stands `internet.py`. Tests run real programs, or coroutines on event loops inside.

    async with open_lab(SiteSpec("alice", Nat.SYMMETRIC), SiteSpec("bob", Nat.OPEN)) as lab:
        await lab["alice"].do(something())
"""

import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from natlab.internet import AT_ONCE, Line
from natlab.namespaces import Computer, Namespace
from natlab.rules import FIREWALL, MOVED_PORTS, WITHOUT_ROUTER, Nat, router_rules

MIDDLE = ("203.0.113.1", "203.0.113.2")
"""The addresses of the computer in the middle, where a rendezvous may run."""
MIDDLE_IPV6 = "2001:db8:ffff::1"

_INTERNET = Path(__file__).with_name("internet.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteSpec:
    """A home, and what leads out of it."""

    name: str
    nat: Nat
    behind: tuple[Nat, ...] = ()
    """More routers on the way out, the outermost last."""
    carrier: str | None = None
    """The carrier's router that the home is behind, rather than on the Internet itself."""
    computers: int = 1
    lan: str = "192.168.1"
    ipv4: bool = True
    ipv6: bool = False
    hairpin: bool = False
    line: Line = AT_ONCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Carrier:
    """A provider's router that several homes share."""

    name: str
    nat: Nat
    hairpin: bool = False
    line: Line = AT_ONCE


@dataclass(slots=True, kw_only=True)
class Router:
    """A router, how it translates, and what it calls itself outside."""

    namespace: Computer
    nat: Nat
    outside: str
    hairpin: bool
    inside_net: str
    doors: int = 0
    """How many homes are behind a carrier's router."""

    def set_rules(self, nat: Nat) -> None:
        """Translate like this from now on."""
        self.nat = nat
        self.namespace.nft("flush ruleset\n" + router_rules(nat, self.outside, hairpin=self.hairpin))

    def forget(self) -> None:
        """Lose all mappings, as by being switched off and on."""
        self.set_rules(self.nat)
        self.namespace.run(["conntrack", "-F"])


@dataclass(slots=True, kw_only=True)
class _Gate:
    """A place on the Internet: a device, and the networks that lead to it."""

    name: str
    namespace: Namespace
    device: int
    addresses: list[str]
    networks: list[str]
    line: Line


class Lab:
    """Computers by name; the one in the middle is `middle`."""

    def __init__(self, specs: Sequence[SiteSpec | Carrier], middle_line: Line) -> None:
        """Use `open_lab`."""
        self._closing = ExitStack()
        self._gates: list[_Gate] = []
        self._namespaces: list[Computer] = []
        self._computers: dict[str, Computer] = {}
        self._routers: dict[str, list[Router]] = {}
        self._outside: dict[str, str] = {}
        try:
            self.middle = self._computer("middle")
            self._add_gate("middle", self.middle, [*MIDDLE, MIDDLE_IPV6], middle_line)
            for number, spec in enumerate(specs):
                if isinstance(spec, Carrier):
                    self._add_carrier(spec, number)
                else:
                    self._add_site(spec, number)
            self._internet = self._connect()
            self._set_lines()
            for namespace in self._namespaces:
                namespace.wait_until_up()
        except BaseException:
            self._closing.close()
            raise

    def __getitem__(self, name: str) -> Computer:
        """A computer; further ones at one site are called `alice2`, `alice3`."""
        return self._computers[name]

    def outside(self, site: str) -> str:
        """The public IPv4 address that a site appears from."""
        return self._outside[site]

    def routers(self, site: str) -> list[Router]:
        """A site's own routers, the innermost first."""
        return self._routers[site]

    def change(self, name: str, **line: float) -> None:
        """Change how a site, a carrier or the middle is connected: `delay_ms=`, `loss=`, `is_cut=`, …"""
        for gate in self._gates:
            if gate.name == name:
                gate.line = replace(gate.line, **line)
        self._set_lines()

    def close(self) -> None:
        """End every program, and let go of everything."""
        for computer in self._namespaces:
            computer.stop()
        self._closing.close()

    # Building ------------------------------------------------------------------------------------

    def _computer(self, name: str) -> Computer:
        made = Computer(name)
        self._namespaces.append(made)
        self._closing.callback(made.close)
        return made

    def _add_gate(self, name: str, namespace: Namespace, addresses: list[str], line: Line) -> None:
        networks = [f"{address}/32" for address in addresses if ":" not in address]
        networks += [f"{address.partition('::')[0]}::/48" for address in addresses if ":" in address]
        device = namespace.open_tun("wan0")
        self._gates.append(
            _Gate(
                name=name,
                namespace=namespace,
                device=device,
                addresses=addresses,
                networks=networks,
                line=line,
            )
        )

    def _add_carrier(self, spec: Carrier, number: int) -> None:
        outside = f"198.51.100.{10 + number}"
        router = self._router(spec.name, spec.nat, outside, hairpin=spec.hairpin, inside_net=f"100.64.{number}")
        self._routers[spec.name] = [router]
        self._outside[spec.name] = outside
        self._add_gate(spec.name, router.namespace, [outside], spec.line)
        router.set_rules(spec.nat)

    def _add_site(self, spec: SiteSpec, number: int) -> None:
        outside = f"198.51.100.{10 + number}"
        prefix = f"2001:db8:{number + 1:x}"
        public = [outside] * spec.ipv4 + [f"{prefix}::1"] * spec.ipv6
        if spec.nat in WITHOUT_ROUTER:
            computer = self._computers[spec.name] = self._computer(spec.name)
            if spec.nat is Nat.FIREWALLED:
                computer.nft(FIREWALL)
            self._add_gate(spec.name, computer, public, spec.line)
            self._outside[spec.name] = outside
            self._routers[spec.name] = []
            return
        layers = [spec.nat, *spec.behind]
        nets = [spec.lan, *(f"100.64.{number}.{layer}".rpartition(".")[0] for layer in range(len(spec.behind)))]
        routers = self._routers[spec.name] = []
        carrier = None if spec.carrier is None else self._routers[spec.carrier][0]
        for layer, (nat, net) in enumerate(zip(layers, nets, strict=True)):
            if layer + 1 < len(layers):
                own = f"{nets[layer + 1]}.2"
            elif carrier is not None:
                carrier.doors += 1
                own = f"{carrier.inside_net}.{1 + carrier.doors}"
            else:
                own = outside
            name = f"{spec.name}'s router {layer + 1}"
            routers.append(self._router(name, nat, own, hairpin=spec.hairpin, inside_net=net))
        self._add_home(spec, routers[0], prefix)
        outers = routers[1:] if carrier is None else [*routers[1:], carrier]
        for inner, outer in zip(routers, outers, strict=False):
            self._plug(inner.namespace, "wan0", outer, f"{inner.outside}/24")
        if carrier is None:
            self._add_gate(spec.name, routers[-1].namespace, public, spec.line)
        self._outside[spec.name] = outside if spec.carrier is None else self._outside[spec.carrier]
        for router in routers:
            router.set_rules(router.nat)

    def _router(self, name: str, nat: Nat, outside: str, *, hairpin: bool, inside_net: str) -> Router:
        namespace = self._computer(name)
        namespace.ip(
            "link add lan0 type bridge forward_delay 0",
            f"addr add {inside_net}.1/24 dev lan0",
            "link set lan0 up",
        )
        namespace.set_kernel("ipv4/ip_forward", 1)
        namespace.set_kernel("ipv6/conf/all/forwarding", 1)
        # Where a bridge has the packet filter called for itself, a packet that turns round is not translated.
        if Path("/proc/sys/net/bridge").exists():
            namespace.set_kernel("bridge/bridge-nf-call-iptables", 0)
        return Router(namespace=namespace, nat=nat, outside=outside, hairpin=hairpin, inside_net=inside_net)

    def _add_home(self, spec: SiteSpec, router: Router, prefix: str) -> None:
        if spec.ipv6:
            router.namespace.ip(f"addr add {prefix}:1::1/64 dev lan0 nodad")
        for place in range(spec.computers):
            name = spec.name if place == 0 else f"{spec.name}{place + 1}"
            computer = self._computers[name] = self._computer(name)
            self._plug(computer, "eth0", router, f"{spec.lan}.{10 + place}/24" if spec.ipv4 else None)
            if spec.ipv6:
                computer.ip(
                    f"addr add {prefix}:1::{10 + place}/64 dev eth0 nodad",
                    f"route add ::/0 via {prefix}:1::1",
                )
            if Nat.PORT_MOVED in (spec.nat, *spec.behind):
                computer.set_kernel("ipv4/ip_local_port_range", "{} {}".format(*MOVED_PORTS))

    def _plug(self, namespace: Namespace, device: str, router: Router, address: str | None) -> None:
        """Connect to a router's inside, with the way out through it."""
        socket = f"p{len(router.namespace.run(['ip', '-br', 'link']).splitlines())}"
        namespace.ip(
            f"link add {device} type veth peer name {socket} netns {router.namespace.path}",
            f"link set {device} up",
        )
        router.namespace.ip(f"link set {socket} master lan0", f"link set {socket} up")
        if address is not None:
            namespace.ip(f"addr add {address} dev {device}", f"route add default via {router.inside_net}.1")

    def _connect(self) -> "subprocess.Popen[str]":
        sites = [{"device": gate.device, "networks": gate.networks} for gate in self._gates]
        devices = [gate.device for gate in self._gates]
        internet = subprocess.Popen(
            [sys.executable, "-I", _INTERNET, json.dumps({"seed": 1, "sites": sites})],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=devices,
        )
        self._closing.callback(_end, internet)
        for device in devices:
            os.close(device)
        for gate in self._gates:
            lines = ["link set wan0 up mtu 1500 txqueuelen 2000"]
            for address in gate.addresses:
                is_ipv6 = ":" in address
                lines.append(f"addr add {address}/{128 if is_ipv6 else 32} dev wan0{' nodad' * is_ipv6}")
            first = next((address for address in gate.addresses if ":" not in address), None)
            if first is not None:
                lines.append(f"route add default dev wan0 src {first}")
            if any(":" in address for address in gate.addresses):
                lines.append("route add ::/0 dev wan0")
            gate.namespace.ip(*lines)
        return internet

    def _set_lines(self) -> None:
        """Tell the Internet how its sites are connected, and wait until it is so."""
        if self._internet.stdin is None or self._internet.stdout is None:
            return
        self._internet.stdin.write(json.dumps([asdict(gate.line) for gate in self._gates]) + "\n")
        self._internet.stdin.flush()
        if not self._internet.stdout.readline():
            message = "the Internet has ended"
            raise RuntimeError(message)


def _end(program: "subprocess.Popen[str]") -> None:
    program.kill()
    program.communicate()


@asynccontextmanager
async def open_lab(*specs: SiteSpec | Carrier, middle_line: Line | None = None) -> AsyncGenerator[Lab]:
    """A lab that is gone afterwards."""
    lab = Lab(specs, middle_line or Line(delay_ms=5))
    try:
        yield lab
    finally:
        lab.close()
