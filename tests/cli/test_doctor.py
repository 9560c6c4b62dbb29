"""`kafila doctor`, as it is typed and as it is read."""

import json

import msgspec
import pytest

from kafila.cli.doctor import describe, report_as_json
from kafila.cli.main import main
from kafila.domain.capability import Filtering, Mapping
from kafila.network.measure import NetworkReport
from kafila.protocol.links import Address

HOME = NetworkReport(
    rendezvous=Address("203.0.113.1", 47470),
    udp=True,
    mapping=Mapping.ENDPOINT_INDEPENDENT,
    filtering=Filtering.ADDRESS_AND_PORT_DEPENDENT,
    public_address=Address("198.51.100.7", 40123),
    translated=True,
    port_kept=True,
    hairpin=False,
    mtu_bytes=1492,
    rtt_ms=31.4,
    rtt_spread_ms=4.2,
)


def test_the_report_says_in_words_what_it_means() -> None:
    words = "\n".join(describe(HOME, was_asked=True))
    assert words.startswith("Others reach this computer directly from most networks")
    for part in ("198.51.100.7:40123", "the same for everybody", "exactly the ports that it wrote to", "1492", "31 ms"):
        assert part in words


@pytest.mark.parametrize(
    ("report", "begin"),
    [
        (NetworkReport(udp=None), "The rendezvous does not answer."),
        (NetworkReport(udp=False), "This network blocks UDP"),
        (NetworkReport(udp=True), "The rendezvous answers, but with one address"),
        (NetworkReport(udp=True, mapping=Mapping.ENDPOINT_DEPENDENT), "This network is strict"),
        (
            NetworkReport(udp=True, mapping=Mapping.ENDPOINT_INDEPENDENT, filtering=Filtering.ENDPOINT_INDEPENDENT),
            "Others reach this computer directly, whatever",
        ),
    ],
)
def test_every_outcome_has_a_sentence(report: NetworkReport, begin: str) -> None:
    assert describe(report, was_asked=True)[0].startswith(begin)


@pytest.mark.parametrize(
    ("way", "reached", "words"),
    [
        (None, None, "not asked for"),
        ("none", None, "no"),
        ("upnp", None, "yes, when asked by UPnP"),
        ("pcp", True, "yes, when asked by PCP; the rendezvous gets through to it"),
        ("nat-pmp", False, "yes, when asked by NAT-PMP; the rendezvous does not get through to it"),
    ],
)
def test_how_the_port_was_opened_and_whether_it_leads_here(way: str | None, reached: bool | None, words: str) -> None:  # noqa: FBT001
    report = msgspec.structs.replace(HOME, port_mapping_by=way, port_mapping_reached=reached)
    (row,) = [line for line in describe(report, was_asked=True) if line.startswith("Port opened by the router")]
    assert row.removeprefix("Port opened by the router").strip() == words


def test_what_was_not_learned_is_said_and_not_made_up() -> None:
    fields = report_as_json(NetworkReport(udp=True))
    assert fields["mapping"] == "unknown"
    assert fields["ipv6"] is None
    assert {"mapping", "filtering", "ipv6", "port_mapping", "rendezvous_rtt_ms"} <= set(_names(fields["not_learned"]))
    known = report_as_json(HOME)
    assert "mapping" not in _names(known["not_learned"])
    assert json.loads(json.dumps(known))["public_address_seen"] == "198.51.100.7:40123"


def _names(value: object) -> list[object]:
    assert isinstance(value, list)
    return list(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def test_without_a_rendezvous_it_says_whom_to_ask(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nonexistent")
    assert main(["doctor"]) == 0
    assert "--rendezvous HOST:PORT" in capsys.readouterr().out


def test_an_address_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["doctor", "--rendezvous", "nowhere"])
    assert "is not an address" in capsys.readouterr().err
