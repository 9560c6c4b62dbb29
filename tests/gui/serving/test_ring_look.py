import msgspec
import pytest

from gui.serving.scenes import ended, member_id, paused, serving
from kafila.domain.snapshot import Pace
from kafila.gui.serving.ring_look import EdgeState, NodeState, look
from kafila.gui.serving.series import SeriesBook


def test_a_node_is_read_aloud_in_full() -> None:
    shown = look(serving(), SeriesBook())
    assert shown.nodes[3].said == "Attic mini, 10 parts, busy 47 percent, relayed"
    assert shown.nodes[0].said == "Studio laptop, leads, 16 parts, busy 38 percent, direct"


def test_a_relayed_edge_says_so_and_a_direct_one_only_its_time() -> None:
    shown = look(serving(), SeriesBook())
    assert shown.edges[2].state is EdgeState.RELAYED
    assert shown.edges[2].label == "Relayed · 84 ms"
    assert shown.edges[0].label == "3 ms"
    assert shown.edges[0].hint == "Studio laptop to Living-room PC: Direct, 3 ms, 164 kB/s"


def test_an_edge_without_a_path_is_connecting() -> None:
    here = serving(3, relayed=None)
    edges = (msgspec.structs.replace(here.edges[0], path=None, rtt_ms=None), *here.edges[1:])
    shown = look(msgspec.structs.replace(here, edges=edges), SeriesBook())
    assert shown.edges[0].state is EdgeState.CONNECTING
    assert shown.edges[0].label == "Connecting"
    missing = look(msgspec.structs.replace(here, edges=()), SeriesBook())
    assert [edge.state for edge in missing.edges] == [EdgeState.CONNECTING] * 3


def test_who_is_away_is_said_with_words_and_one_pill() -> None:
    shown = look(paused(), SeriesBook())
    assert shown.paused
    assert [node.state for node in shown.nodes].count(NodeState.AWAY) == 1
    assert shown.nodes[3].said == "Attic mini, 10 parts, away for 24 seconds"
    assert shown.nodes[3].lines == ("away for", "24 seconds")
    assert shown.nodes[0].lines == ("16 parts", "waits")
    assert [edge.label for edge in shown.edges if edge.state is EdgeState.LOST] == ["No answer", ""]
    assert (shown.centre.main, shown.centre.below) == ("Paused", "for 24 seconds")


def test_the_centre_says_words_or_tokens_or_that_it_is_ready() -> None:
    here = serving()
    centre = look(here, SeriesBook()).centre
    assert (centre.above, centre.main, centre.below) == (
        "3 people are chatting",
        "11.9",
        "words a second",
    )
    tokens = msgspec.structs.replace(here, pace=Pace(tokens_per_second=16.4))
    assert look(tokens, SeriesBook()).centre.below == "tokens a second"
    idle = msgspec.structs.replace(here, pace=Pace(), chatting=0)
    assert look(idle, SeriesBook()).centre.main == "Ready"
    one = msgspec.structs.replace(here, chatting=1)
    assert look(one, SeriesBook()).centre.above == "1 person is chatting"


def test_an_ended_ring_is_dim() -> None:
    shown = look(serving(), SeriesBook(), over=True)
    assert shown.dim
    assert shown.centre.main == "Ended"
    assert ended().reason.title


def test_a_computer_keeps_its_colour_when_the_ring_changes() -> None:
    book = SeriesBook()
    before = {node.member: node.series for node in look(serving(), book).nodes}
    here = serving()
    fewer = msgspec.structs.replace(here, ring=(here.ring[4], here.ring[1], here.ring[3]))
    after = {node.member: node.series for node in look(fewer, book).nodes}
    assert after == {member_id(at): before[member_id(at)] for at in (4, 1, 3)}


@pytest.mark.parametrize("count", range(1, 6))
def test_every_computer_has_an_edge_but_one_alone(count: int) -> None:
    shown = look(serving(count), SeriesBook())
    assert len(shown.edges) == (count if count > 1 else 0)
