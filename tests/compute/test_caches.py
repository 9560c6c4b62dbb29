"""The one rule by which a sequence goes on, with caches that only count."""

from dataclasses import dataclass
from typing import Any

import pytest

from kafila.compute.caches import CacheShelf, Refusal, Sequence, room_for
from kafila.domain.ids import RequestId
from kafila.protocol.digests import TokenDigests
from kafila.protocol.frames import Refused


@dataclass(slots=True)
class Counter:
    """A cache that holds nothing but its length."""

    tokens: int = 0
    trimmable: bool = True

    @property
    def state(self) -> Any:
        return self.tokens

    def is_trimmable(self) -> bool:
        return self.trimmable

    def trim(self, n: int) -> int:
        self.tokens -= n
        return n


class Text:
    """What a head knows of a sequence."""

    def __init__(self, shelf: CacheShelf, request: int = 1) -> None:
        self.shelf, self.request = shelf, RequestId(request)
        self.digests = TokenDigests(b"key")

    def rewrite(self, position: int, ids: list[int]) -> bytes:
        self.digests.rewind(position)
        self.digests.extend(ids)
        return self.digests.slice(position, len(ids))

    def take(self, position: int, ids: list[int]) -> Sequence | Refusal:
        digests = self.rewrite(position, ids)
        return self.shelf.take(self.request, position, len(ids), digests)

    def feed(self, position: int, ids: list[int]) -> Sequence | Refusal:
        """As a stage does when its blocks have run."""
        digests = self.rewrite(position, ids)
        taken = self.shelf.take(self.request, position, len(ids), digests)
        if isinstance(taken, Sequence):
            for cache in taken.caches:
                assert isinstance(cache, Counter)
                assert cache.tokens == position
                cache.tokens += len(ids)
            taken.extend(digests)
            self.shelf.put(self.request, taken)
        return taken


def shelf_of(*, max_tokens: int = 4096, trimmable: bool = True) -> CacheShelf:
    return CacheShelf(lambda: [Counter(trimmable=trimmable) for _ in range(2)], max_tokens=max_tokens)


def held(taken: Sequence | Refusal) -> int:
    assert isinstance(taken, Sequence), taken
    return taken.held


def test_a_sequence_grows_frame_by_frame() -> None:
    text = Text(shelf_of())
    assert held(text.feed(0, [1, 2, 3])) == 3
    assert held(text.feed(3, [4])) == 4
    assert held(text.feed(4, [5, 6])) == 6


@pytest.mark.parametrize("position", [1, 3, 5])
def test_it_rewinds_to_any_position_and_goes_on_with_other_text(position: int) -> None:
    text = Text(shelf_of())
    text.feed(0, [1, 2, 3, 4, 5, 6])
    assert held(text.feed(position, [9, 9])) == position + 2
    assert held(text.feed(position + 1, [9, 8])) == position + 3


def test_a_retried_frame_is_taken_again() -> None:
    text = Text(shelf_of())
    text.feed(0, [1, 2, 3])
    text.feed(3, [4])
    assert held(text.feed(3, [4])) == 4


def test_a_gap_is_refused_with_what_is_held() -> None:
    text = Text(shelf_of())
    text.feed(0, [1, 2, 3])
    text.rewrite(0, [1, 2, 3, 4, 5])
    assert text.take(5, [6]) == Refusal(reason=Refused.GAP, held=3)


def test_a_sequence_that_was_never_begun_is_a_gap() -> None:
    text = Text(shelf_of())
    text.rewrite(0, [1])
    assert text.take(1, [2]) == Refusal(reason=Refused.GAP, held=0)


def test_other_text_of_the_same_length_is_refused_and_nothing_is_lost() -> None:
    text = Text(shelf_of())
    text.feed(0, [1, 2, 3])
    other = Text(text.shelf)
    other.rewrite(0, [1, 9, 3])
    assert other.take(3, [4]) == Refusal(reason=Refused.OTHER_TEXT, held=3)
    assert held(text.feed(3, [4])) == 4


def test_other_text_is_noticed_at_the_position_not_at_the_end() -> None:
    text = Text(shelf_of())
    text.feed(0, [1, 2, 3, 4])
    other = Text(text.shelf)
    other.rewrite(0, [1, 2, 9, 9])
    assert isinstance(other.take(3, [9]), Refusal)
    assert held(other.feed(2, [9, 9])) == 4


def test_caches_that_cannot_rewind_refuse_to_but_go_on() -> None:
    text = Text(shelf_of(trimmable=False))
    text.feed(0, [1, 2, 3])
    assert text.take(2, [9]) == Refusal(reason=Refused.CANNOT_REWIND, held=3)
    text.rewrite(0, [1, 2, 3])
    assert held(text.feed(3, [4])) == 4


def test_position_0_always_starts_anew() -> None:
    text = Text(shelf_of(trimmable=False))
    text.feed(0, [1, 2, 3])
    assert held(text.feed(0, [7])) == 1


def test_what_failed_on_the_way_is_not_trusted_again() -> None:
    text = Text(shelf_of())
    text.feed(0, [1, 2, 3])
    text.take(3, [4])
    text.rewrite(0, [1, 2, 3])
    assert text.take(3, [4]) == Refusal(reason=Refused.GAP, held=0)


def test_a_released_sequence_is_gone() -> None:
    text = Text(shelf_of())
    text.feed(0, [1, 2, 3])
    text.shelf.release(text.request)
    text.shelf.release(text.request)
    assert text.take(3, [4]) == Refusal(reason=Refused.GAP, held=0)


def test_the_one_used_longest_ago_makes_room() -> None:
    shelf = shelf_of(max_tokens=room_for(context=256, concurrency=2))
    first, second, third = (Text(shelf, request) for request in (1, 2, 3))
    first.feed(0, [1])
    second.feed(0, [1])
    first.feed(1, [2])
    third.feed(0, [1])
    assert second.take(1, [2]) == Refusal(reason=Refused.GAP, held=0)
    assert held(first.feed(2, [3])) == 3
    assert held(third.feed(1, [2])) == 2


def test_a_sequence_that_grows_pushes_others_out_but_never_itself() -> None:
    shelf = shelf_of(max_tokens=room_for(context=512, concurrency=1))
    short, long = Text(shelf, 1), Text(shelf, 2)
    short.feed(0, [1])
    long.feed(0, [1])
    assert held(long.feed(1, [2] * 300)) == 301
    assert isinstance(short.take(1, [2]), Refusal)
    assert held(long.feed(301, [3] * 200)) == 501


def test_room_is_for_as_many_full_conversations_as_were_declared() -> None:
    assert room_for(context=512, concurrency=3) == 1536
    assert room_for(context=500, concurrency=3) == 1536
