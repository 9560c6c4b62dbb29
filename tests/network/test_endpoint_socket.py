"""Opening the socket: what people are told when it cannot be, and which addresses it has."""

import ipaddress

import pytest

from helpers.tls import TRUST
from kafila.domain.errors import UserError
from kafila.network.endpoint import Endpoint
from kafila.network.endpoint_addresses import own_addresses
from kafila.network.endpoint_socket import UdpSocket, address_of
from kafila.network.identity import DeviceIdentity
from kafila.protocol.links import Address, Candidates, RelaySeat

pytestmark = pytest.mark.loopback


async def open_at(listen: Address) -> Endpoint:
    return await Endpoint.open(DeviceIdentity.generate(), listen, lambda _: None)


async def test_a_port_that_is_in_use_is_told_with_what_to_do() -> None:
    first = await open_at(Address("127.0.0.1", 0))
    try:
        with pytest.raises(UserError) as refused:
            await open_at(first.local)
        assert str(first.local.port) in refused.value.problem.title
        assert "another port" in refused.value.problem.advice
    finally:
        await first.close()


@pytest.mark.parametrize("host", ["203.0.113.77", "2001:db8::77"])
async def test_an_address_of_another_computer_is_told(host: str) -> None:
    with pytest.raises(UserError) as refused:
        await open_at(Address(host, 0))
    assert host in refused.value.problem.title


async def test_a_relay_whose_name_leads_nowhere_is_told() -> None:
    endpoint = await open_at(Address("127.0.0.1", 0))
    try:
        with pytest.raises(UserError):
            await endpoint.take_seat(
                RelaySeat(relay=Address("no.such.host.invalid", 1), slot=1, key=bytes(32), trust=TRUST)
            )
    finally:
        await endpoint.close()


async def test_everywhere_means_all_own_addresses_with_loopback_last() -> None:
    udp = UdpSocket.bind(None)
    try:
        found = own_addresses(udp)
        assert {address.port for address in found} == {udp.local.port}
        assert Address("127.0.0.1", udp.local.port) in found
        loopback = [ipaddress.ip_address(address.host).is_loopback for address in found]
        assert loopback == sorted(loopback)
    finally:
        udp.close()


async def test_a_bound_address_is_the_only_one() -> None:
    endpoint = await open_at(Address("127.0.0.1", 0))
    try:
        assert endpoint.candidates() == Candidates(relay_slot=None, addresses=(endpoint.local,))
    finally:
        await endpoint.close()


def test_ipv4_stays_ipv4_on_a_socket_that_takes_both() -> None:
    assert address_of("::ffff:192.0.2.1", 7) == Address("192.0.2.1", 7)
    assert address_of("2001:db8::1", 7) == Address("2001:db8::1", 7)
    assert address_of("192.0.2.1", 7) == Address("192.0.2.1", 7)
