"""Who asks to join now and did not a moment ago."""

from kafila.domain.snapshot import Newcomer, SessionView, Snapshot, WaitingRoom


def new_since(before: Snapshot | None, session: SessionView) -> tuple[Newcomer, ...]:
    """Those whom this computer's owner, as the host, has not been told of."""
    if not isinstance(session, WaitingRoom) or not session.is_host:
        return ()
    known: frozenset[str] = frozenset()
    if before is not None and isinstance(before.session, WaitingRoom):
        known = frozenset(guest.member for guest in before.session.newcomers)
    return tuple(guest for guest in session.newcomers if guest.member not in known)
