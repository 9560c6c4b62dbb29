"""Which addresses an invitation tells, in which order."""

import ipaddress

import pytest

from kafila.network.lan_addresses import Interface, lan_addresses, rank_hosts


@pytest.mark.parametrize(
    ("interfaces", "expected"),
    [
        ([("lo", "127.0.0.1"), ("eth0", "192.168.1.5")], ("192.168.1.5",)),
        (
            [("eth0", "203.0.113.9"), ("wlan0", "10.0.0.4"), ("eth1", "192.168.0.2"), ("eth2", "172.20.1.1")],
            ("192.168.0.2", "10.0.0.4", "172.20.1.1", "203.0.113.9"),
        ),
        ([("docker0", "172.17.0.1"), ("wlan0", "172.16.3.3")], ("172.16.3.3", "172.17.0.1")),
        ([("virbr0", "192.168.122.1"), ("eth0", "203.0.113.9")], ("203.0.113.9", "192.168.122.1")),
        ([("utun3", "100.64.7.7"), ("en0", "192.168.1.5")], ("192.168.1.5", "100.64.7.7")),
        ([("eth0", "169.254.3.3"), ("lo", "127.0.0.2")], ("127.0.0.1",)),
        ([("eth0", "10.1.1.1"), ("eth0", "10.1.1.1")], ("10.1.1.1",)),
        ([], ("127.0.0.1",)),
    ],
)
def test_private_networks_first_then_others_then_loopback(
    interfaces: list[tuple[str, str]], expected: tuple[str, ...]
) -> None:
    assert rank_hosts(Interface(name=name, host=host) for name, host in interfaces) == expected


def test_this_computer_has_at_least_one() -> None:
    addresses = lan_addresses(47470)
    assert addresses
    for address in addresses:
        assert address.port == 47470
        ipaddress.IPv4Address(address.host)
