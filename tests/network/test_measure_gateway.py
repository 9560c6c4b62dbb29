"""The kernel's tables of routes and neighbours, as Linux writes them."""

from kafila.network.measure_gateway import Gateway, network_name, read_linux_tables

ROUTES = """\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
wlan0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0
eth0\t00000000\t0102A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0
eth0\t0002A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0
"""
NEIGHBOURS = """\
IP address       HW type     Flags       HW address            Mask     Device
192.168.2.7      0x1         0x2         02:00:00:00:00:07     *        eth0
192.168.2.1      0x1         0x2         02:00:00:00:00:01     *        eth0
"""


def test_the_default_route_with_the_lowest_metric_is_the_way_out() -> None:
    assert read_linux_tables(ROUTES, NEIGHBOURS) == Gateway(host="192.168.2.1", hardware="02:00:00:00:00:01")


def test_a_router_that_nothing_was_sent_to_has_no_hardware_address_yet() -> None:
    header = NEIGHBOURS.splitlines()[0] + "\n"
    empty = header + "192.168.2.1      0x1         0x0         00:00:00:00:00:00     *        eth0\n"
    for neighbours in (header, empty):
        assert read_linux_tables(ROUTES, neighbours) == Gateway(host="192.168.2.1", hardware="")


def test_without_a_router_there_is_none() -> None:
    assert read_linux_tables(ROUTES.splitlines()[0] + "\n", NEIGHBOURS) is None
    assert read_linux_tables("", "") is None


def test_networks_have_the_same_name_only_with_the_same_router_at_the_same_address() -> None:
    home = Gateway(host="192.168.1.1", hardware="02:00:00:00:00:01")
    neighbours = Gateway(host="192.168.1.1", hardware="02:00:00:00:00:02")
    names = [network_name("198.51.100.7", gateway) for gateway in (home, neighbours, None)]
    assert network_name("198.51.100.7", home) == names[0]
    assert len({*names, network_name("198.51.100.8", home)}) == 4
    assert not any("192" in name and "168" in name and "02:00" in name for name in names)
