"""How much memory each computer lent, remembered from the plan: a serving ring no longer says."""

from kafila.domain.ids import MemberId
from kafila.domain.plan import Plan
from kafila.domain.snapshot import Forming, Snapshot, WaitingRoom


def rooms(snapshot: Snapshot) -> dict[MemberId, int]:
    """The rooms that a snapshot tells of."""
    session = snapshot.session
    if isinstance(session, WaitingRoom):
        return {
            one.member: one.capability.room_bytes
            for one in session.members
            if one.capability is not None and one.capability.room_bytes is not None
        }
    if isinstance(session, Forming):
        return _of_plan(session.plan)
    return {}


def _of_plan(plan: Plan) -> dict[MemberId, int]:
    return {share.member: share.room_bytes for share in plan.shares if share.room_bytes is not None}
