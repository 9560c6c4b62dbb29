"""Which colour stands for which computer, for as long as the session lives. No Qt."""

from collections.abc import Iterable

from kafila.domain.ids import MemberId


class SeriesBook:
    """Places in the list of series colours, given out in ring order and never taken back.

    A computer that goes and comes again, or whose place in the ring changes, keeps its colour in
    the band, the plan and every graph.
    """

    def __init__(self) -> None:
        self._places: dict[MemberId, int] = {}

    def meet(self, members: Iterable[MemberId]) -> None:
        """Give a place to each computer that has none."""
        for member in members:
            self._places.setdefault(member, len(self._places))

    def place(self, member: MemberId) -> int:
        """The computer's place."""
        self.meet((member,))
        return self._places[member]

    def clear(self) -> None:
        """Another session begins."""
        self._places.clear()
