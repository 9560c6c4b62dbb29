"""What the terminal says to whoever hosts."""

from io import StringIO

from helpers import snapshots
from kafila.cli.report import Reporter
from kafila.domain.snapshot import NoPort, Reach


def test_the_host_reads_from_where_people_can_join_and_when_that_changes() -> None:
    out = StringIO()
    reporter = Reporter(out, as_json=False)
    probably = snapshots.waiting_room(reach=Reach.PROBABLY_ANYWHERE)
    for snapshot in (probably, probably, snapshots.waiting_room(reach=Reach.ANYWHERE)):
        reporter.show(snapshot)
    lines = [line for line in out.getvalue().splitlines() if line.startswith("People ")]
    assert [line.partition(".")[0] for line in lines] == [
        "People elsewhere can probably join, too",
        "People can join from anywhere",
    ]


def test_a_router_that_opened_nothing_is_told_of() -> None:
    out = StringIO()
    reach = {"reach": Reach.NEEDS_RENDEZVOUS, "no_port": NoPort.REFUSED}
    Reporter(out, as_json=False).show(snapshots.waiting_room(**reach))
    assert "Only people on this network can join. The router opens no way in" in out.getvalue()
    guest = StringIO()
    Reporter(guest, as_json=False).show(snapshots.waiting_room(is_host=False, link=None, code=None, **reach))
    assert "router" not in guest.getvalue()
