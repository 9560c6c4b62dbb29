"""The plan's card: what would change the speed, a division by hand, and a refusal with its remedies."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget

from gui.conftest import Show
from helpers import snapshots
from helpers.snapshots import ATTIC, GB, GROUP, LIVING, OFFICE, STUDIO
from kafila.domain.commands import Command, DivideByHand, Remove
from kafila.domain.ids import MemberId
from kafila.domain.plan import Figures, Plan, Refusal, Remedies, Without
from kafila.domain.snapshot import WaitingRoom
from kafila.gui.pages.by_hand import Blocks, Hand, blocks_of, move
from kafila.gui.pages.plan_card import emphasise
from kafila.gui.pages.plan_details import list_sections
from kafila.gui.pages.plan_speeds import compare
from kafila.gui.pages.waiting_room import WaitingRoomPage
from kafila.gui.theme import Theme
from kafila.gui.widgets.notice import Asking

LEFT = Qt.MouseButton.LeftButton
OWN: Blocks = ((STUDIO.member, 19), (LIVING.member, 21), (OFFICE.member, 13), (ATTIC.member, 11))


def _figures(rate: float | None, *, fits: bool = True) -> Figures:
    return Figures(bottleneck_ms=40, circuit_ms=200, tokens_per_second=rate, utilisation=0.5, fits=fits)


def _compared() -> Plan:
    """A plan beside what others could do: without Attic mini it is faster, without the PC impossible."""
    without = (
        Without(member=LIVING.member, missing_bytes=6_040_000_000, figures=None),
        Without(member=ATTIC.member, missing_bytes=0, figures=_figures(24.0)),
    )
    return msgspec.structs.replace(snapshots.plan(), without=without)


def _by_hand(blocks: Blocks) -> Plan:
    parts = tuple(count for _, count in blocks)
    made = snapshots.plan(parts=parts)
    cost = "By hand each word comes 12 ms later than by Kafila's own plan."
    return msgspec.structs.replace(made, search="by-hand", advice=(cost,))


def _refused(blocks: Blocks, remedies: Remedies | None = None, *, by_hand: bool = False) -> Refusal:
    """Attic mini holds too much."""
    shares = tuple(
        msgspec.structs.replace(share, need_bytes=round(11.5 * GB)) if share.member == ATTIC.member else share
        for share in snapshots.plan(parts=tuple(count for _, count in blocks)).shares
    )
    return Refusal(
        member=ATTIC.member, sentence="Attic mini is 5.1 GB short.", needs_bytes=round(11.5 * GB),
        has_bytes=round(6.4 * GB), remedies=remedies or Remedies(), shares=shares,
        help=("Give Attic mini 10 parts at most.",) if by_hand else ("Let in one more computer.",),
    )  # fmt: skip


EVERY_REMEDY = Remedies(
    context=4100, concurrency=2, more_room_bytes=3 * GB, new_member_bytes=6 * GB, size_percent=70, leave_out=True
)


@pytest.fixture
def room(theme: Theme, sent: list[Command], show: Show) -> WaitingRoomPage:
    page = WaitingRoomPage(theme, sent.append)
    show(page)
    page.show_snapshot(snapshots.waiting_room())
    return page


@pytest.fixture
def hand(room: WaitingRoomPage) -> WaitingRoomPage:
    """Moving parts."""
    QTest.mouseClick(room.plan.plan.move_parts, LEFT)
    return room


def _room(**changes: object) -> WaitingRoom:
    session = snapshots.waiting_room(**changes).session
    assert isinstance(session, WaitingRoom)
    return session


def _buttons(widget: QWidget) -> dict[str, QAbstractButton]:
    QApplication.processEvents()  # Qt shows what is new only then
    return {b.accessibleName(): b for b in widget.findChildren(QAbstractButton) if b.isVisibleTo(widget)}


# What would change the speed ---------------------------------------------------------------------


@pytest.mark.usefixtures("theme")
def test_the_present_speed_stands_beside_what_fewer_could_do() -> None:
    shown = [(one.name, one.rate, one.instead) for one in compare(_compared(), _room())]
    assert shown == [
        ("Now, 4 computers", 15.5 / 4, ""),
        ("Without Attic mini", 6.0, "does not fit"),
        ("Without Living-room PC", None, "6.1 GB short"),
        ("This computer alone", None, "does not fit"),
    ]
    guests = compare(_compared(), _room(is_host=False))
    assert guests[-1].name == "Studio laptop alone"


@pytest.mark.usefixtures("theme")
def test_nothing_is_compared_where_no_speed_is_known() -> None:
    unknown = msgspec.structs.replace(_compared(), figures=_figures(None))
    assert compare(unknown, _room()) == ()


def test_each_bar_is_read_aloud(room: WaitingRoomPage) -> None:
    room.show_snapshot(snapshots.waiting_room(plan=_compared()))
    said = [line.accessibleName() for line in room.plan.plan.speeds.lines]
    assert said == [
        "Now, 4 computers: 2.9 words a second",
        "Without Attic mini: 4.5 words a second",
        "Without Living-room PC: 6.1 GB short",
        "This computer alone: does not fit",
    ]


def test_names_are_bold_in_advice_and_never_markup() -> None:
    names = {ATTIC.member: ATTIC.machine, LIVING.member: msgspec.structs.replace(LIVING.machine, name="<i>x</i>")}
    assert emphasise("Without Attic mini: 1 < 2", names) == "Without <b>Attic mini</b>: 1 &lt; 2"
    assert emphasise("With <i>x</i>.", names) == "With <b>&lt;i&gt;x&lt;/i&gt;</b>."


@pytest.mark.usefixtures("theme")
def test_details_tell_order_connections_divisions_and_how_it_was_found() -> None:
    plan = msgspec.structs.replace(snapshots.plan(), uniform=_figures(9.0, fits=False))
    sections = dict(list_sections(plan, {one.member: one.machine for one in GROUP}))
    assert sections["Order"] == (
        ("", "Studio laptop → Living-room PC → Office desktop → Attic mini"),
        ("", "No other order and division is better by what was measured."),
    )
    assert ("Office desktop → Attic mini", "relayed, 12 ms") in sections["Connections"]
    assert ("Living-room PC", "20–40, 24 ms") in sections["Parts"]
    assert ("Evenly", "does not fit") in sections["Divisions"]
    assert sections["Divisions"][0][1].startswith("11.6 words a second in all, slowest step 28 ms")
    assert sections["Measured"] == (("", "All computers were measured."),)
    searched = msgspec.structs.replace(plan, search="heuristic", search_note="At most 3 % from the best.")
    assert list_sections(searched, {})[0][1][1] == ("", "At most 3 % from the best.")


# By hand -----------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.data())
def test_a_move_keeps_all_parts_and_leaves_everyone_one(counts: list[int], data: st.DataObject) -> None:
    blocks = tuple((MemberId(f"{place:016x}"), count) for place, count in enumerate(counts))
    place = data.draw(st.integers(0, len(counts) - 1))
    step = data.draw(st.sampled_from((-1, 1)))
    moved = move(blocks, place, step)
    if moved is None:
        return
    assert [member for member, _ in moved] == [member for member, _ in blocks]
    assert sum(count for _, count in moved) == sum(counts)
    assert min(count for _, count in moved) >= 1
    assert moved[place][1] == counts[place] + step
    changed = [at for at, count in enumerate(counts) if moved[at][1] != count]
    assert len(changed) == 2
    assert changed[1] - changed[0] == 1


def test_parts_are_moved_one_by_one_and_every_press_counts(hand: WaitingRoomPage, sent: list[Command]) -> None:
    lines = hand.plan.hand.shares.lines
    QTest.mouseClick(lines[0].more, LEFT)
    # The engine has not answered yet, and still the second press goes on from the first.
    QTest.mouseClick(lines[0].more, LEFT)
    assert lines[0].parts.text() == "21 parts"
    assert [command.blocks[:2] for command in sent if isinstance(command, DivideByHand)] == [
        ((STUDIO.member, 20), (LIVING.member, 20)),
        ((STUDIO.member, 21), (LIVING.member, 19)),
    ]
    QTest.mouseClick(lines[3].more, LEFT)
    last = sent[-1]
    assert isinstance(last, DivideByHand)
    assert last.blocks[2:] == ((OFFICE.member, 12), (ATTIC.member, 12))


def test_what_a_division_costs_is_said_and_the_way_back_is_there(hand: WaitingRoomPage, sent: list[Command]) -> None:
    view = hand.plan.hand
    assert view.cost.words() == "This is Kafila’s own plan."
    assert not view.back.isEnabled()
    QTest.mouseClick(view.shares.lines[0].more, LEFT)
    moved = sent[-1]
    assert isinstance(moved, DivideByHand)
    hand.show_snapshot(snapshots.waiting_room(plan=_by_hand(moved.blocks)))
    assert view.cost.words() == "By hand each word comes 12 ms later than by Kafila's own plan."
    assert hand.start.isEnabled()
    QTest.mouseClick(view.done, LEFT)
    assert not view.isVisible()
    assert hand.plan.plan.by_hand.words() == "By hand each word comes 12 ms later than by Kafila's own plan."
    QTest.mouseClick(hand.plan.plan.back, LEFT)
    assert sent[-1] == DivideByHand(blocks=())
    hand.show_snapshot(snapshots.waiting_room())
    assert not hand.plan.plan.by_hand.isVisible()


def test_a_refusal_by_hand_names_who_is_short_and_nothing_starts(hand: WaitingRoomPage, sent: list[Command]) -> None:
    view = hand.plan.hand
    QTest.mouseClick(view.shares.lines[3].more, LEFT)
    moved = sent[-1]
    assert isinstance(moved, DivideByHand)
    hand.show_snapshot(snapshots.waiting_room(plan=_refused(moved.blocks, by_hand=True)))
    assert view.isVisible()
    assert view.result.words() == "Attic mini is 5.1 GB short"
    assert view.cost.words() == "Give Attic mini 10 parts at most."
    assert view.shares.lines[3].property("notice") == "lost"
    assert "needs 11.5 GB, has 6.4 GB" in view.shares.lines[3].accessibleName()
    assert not hand.start.isEnabled()
    assert hand.summary.words() == "Divided like this, it does not fit"
    # What does not fit can be moved on.
    QTest.mouseClick(view.shares.lines[3].fewer, LEFT)
    assert sent[-1] == DivideByHand(blocks=OWN)
    QTest.mouseClick(view.done, LEFT)
    assert hand.plan.refusal.back.isVisible()


def test_parts_can_be_moved_with_the_keyboard(room: WaitingRoomPage, sent: list[Command]) -> None:
    room.activateWindow()
    room.plan.plan.move_parts.setFocus(Qt.FocusReason.TabFocusReason)
    QTest.keyClick(room.plan.plan.move_parts, Qt.Key.Key_Space)
    view = room.plan.hand
    assert QApplication.focusWidget() is view.shares.lines[0].fewer
    QTest.keyClick(view.shares.lines[0].fewer, Qt.Key.Key_Space)
    assert sent == [DivideByHand(blocks=((STUDIO.member, 18), (LIVING.member, 22), *OWN[2:]))]
    view.done.setFocus(Qt.FocusReason.TabFocusReason)
    QTest.keyClick(view.done, Qt.Key.Key_Space)
    assert QApplication.focusWidget() is room.plan.plan.move_parts


def test_every_button_says_whom_it_concerns(hand: WaitingRoomPage) -> None:
    names = _buttons(hand.plan.hand)
    assert "One part more for Studio laptop, from Living-room PC" in names
    assert "One part fewer for Attic mini, to Office desktop" in names
    assert all(names)


def test_nobody_is_left_without_a_part(hand: WaitingRoomPage) -> None:
    hand.show_snapshot(snapshots.waiting_room(plan=snapshots.plan(parts=(1, 41, 21, 1))))
    lines = hand.plan.hand.shares.lines
    assert [line.fewer.isEnabled() for line in lines] == [False, True, True, False]
    assert [line.more.isEnabled() for line in lines] == [True, True, False, True]


def test_only_the_host_of_a_group_divides(room: WaitingRoomPage) -> None:
    assert room.plan.plan.move_parts.isVisible()
    room.show_snapshot(snapshots.waiting_room(is_host=False))
    assert not room.plan.plan.move_parts.isVisible()
    alone = snapshots.plan((STUDIO,), (64,))
    members = (snapshots.member(STUDIO),)
    room.show_snapshot(snapshots.waiting_room(plan=alone, members=members, newcomers=()))
    assert not room.plan.plan.move_parts.isVisible()


def test_whoever_comes_or_goes_ends_the_division_by_hand(hand: WaitingRoomPage) -> None:
    three = snapshots.plan(GROUP[:3], (24, 24, 16))
    members = tuple(snapshots.member(one) for one in GROUP[:3])
    hand.show_snapshot(snapshots.waiting_room(plan=three, members=members))
    assert not hand.plan.hand.isVisible()
    assert hand.plan.plan.isVisible()


def test_a_refusal_is_a_persons_only_where_it_holds_what_was_asked() -> None:
    mine = Hand()
    refusal = _refused(OWN)
    assert not mine.made(refusal)
    mine.ask(OWN)
    mine.meet(refusal)
    assert mine.made(refusal)
    assert blocks_of(refusal) == OWN
    mine.ask(())
    mine.meet(refusal)
    assert not mine.made(refusal)


# The refusal -------------------------------------------------------------------------------------


def test_the_refusal_shows_the_nearest_division_and_all_that_helps(room: WaitingRoomPage) -> None:
    room.show_snapshot(snapshots.waiting_room(plan=_refused(OWN, EVERY_REMEDY)))
    view = room.plan.refusal
    assert view.title.words() == "Attic mini is 5.1 GB short"
    assert [line.property("notice") for line in view.shares.lines] == [None, None, None, "lost"]
    assert not room.start.isEnabled()
    assert room.summary.words() == "The model does not fit yet"
    assert set(_buttons(view)) == {"Copy code", "Ask Kit", "Remove…"}
    assert len(view.rows) == 6


def test_what_helps_can_be_done_from_here(room: WaitingRoomPage, sent: list[Command]) -> None:
    room.show_snapshot(snapshots.waiting_room(plan=_refused(OWN, EVERY_REMEDY)))
    buttons = _buttons(room.plan.refusal)
    QTest.mouseClick(buttons["Copy code"], LEFT)
    assert QGuiApplication.clipboard().text() == snapshots.CODE
    QTest.mouseClick(buttons["Ask Kit"], LEFT)
    assert QGuiApplication.clipboard().text() == (
        "Attic mini needs 3.0 GB more memory for Sunday group. Could you close some programs there?"
    )
    assert buttons["Ask Kit"].accessibleName() == "Copied"
    QTest.mouseClick(buttons["Remove…"], LEFT)
    assert sent == []
    dialogs = [one for one in QApplication.topLevelWidgets() if isinstance(one, Asking) and one.isVisible()]
    QTest.mouseClick(dialogs[0].go, LEFT)
    assert sent == [Remove(member=ATTIC.member)]


def test_members_read_what_would_help_without_buttons(room: WaitingRoomPage) -> None:
    room.show_snapshot(snapshots.waiting_room(plan=_refused(OWN, EVERY_REMEDY), is_host=False))
    assert len(room.plan.refusal.rows) == 6
    assert _buttons(room.plan.refusal) == {}


def test_the_card_fits_into_a_narrow_window(room: WaitingRoomPage) -> None:
    for plan in (_compared(), _refused(OWN, EVERY_REMEDY)):
        room.show_snapshot(snapshots.waiting_room(plan=plan))
        room.resize(704, 600)
        assert room.plan.width() <= 704
        assert all(line.width() <= 704 for line in room.plan.plan.speeds.lines)
