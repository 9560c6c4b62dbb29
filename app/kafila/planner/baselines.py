"""The divisions that others make, in the same cost model: what a plan is compared with."""

from collections.abc import Sequence


def divide_evenly(blocks: int, members: int) -> tuple[int, ...]:
    """As GPipe does: equal counts, the remainder on the first members."""
    share, rest = divmod(blocks, members)
    return tuple(share + (place < rest) for place in range(members))


def divide_by_memory(blocks: int, rooms: Sequence[int]) -> tuple[int, ...]:
    """As exo does: in proportion to memory, by largest remainder, at least one block each.

    Of equal remainders the earlier member's is taken first.
    """
    sizes = [max(0, room) for room in rooms]
    if not any(sizes):
        return divide_evenly(blocks, len(rooms))
    total = sum(sizes)
    counts = [max(1, blocks * size // total) for size in sizes]

    def owed(place: int) -> int:
        return blocks * sizes[place] - counts[place] * total

    while sum(counts) < blocks:
        counts[max(range(len(sizes)), key=owed)] += 1
    while sum(counts) > blocks:
        counts[min((place for place in range(len(sizes)) if counts[place] > 1), key=owed)] -= 1
    return tuple(counts)
