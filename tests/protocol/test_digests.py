"""Digests of token ids: the same text has the same, other text of the same length does not."""

from hypothesis import given
from hypothesis import strategies as st

from kafila.protocol.digests import DIGEST_BYTES, TokenDigests

KEY = bytes(range(32))
TOKENS = st.lists(st.integers(0, 200_000), max_size=20)


def digests_of(tokens: list[int], key: bytes = KEY) -> TokenDigests:
    digests = TokenDigests(key)
    digests.extend(tokens)
    return digests


@given(TOKENS, TOKENS)
def test_the_last_digest_tells_texts_apart(one: list[int], other: list[int]) -> None:
    last_of_one = digests_of(one).slice(len(one), 0)
    last_of_other = digests_of(other).slice(len(other), 0)
    assert (last_of_one == last_of_other) == (one == other)


@given(TOKENS, TOKENS, st.data())
def test_rewinding_forgets_what_came_after(kept: list[int], dropped: list[int], data: st.DataObject) -> None:
    more = data.draw(TOKENS)
    digests = digests_of(kept + dropped)
    digests.rewind(len(kept))
    digests.extend(more)
    assert len(digests) == len(kept + more)
    assert digests.slice(0, len(kept + more)) == digests_of(kept + more).slice(0, len(kept + more))


def test_a_slice_has_one_digest_more_than_rows() -> None:
    digests = digests_of([5, 6, 7])
    assert len(digests.slice(1, 2)) == 3 * DIGEST_BYTES
    assert digests.slice(1, 2)[:DIGEST_BYTES] == digests.slice(0, 1)[DIGEST_BYTES:]


def test_another_session_has_other_digests() -> None:
    assert digests_of([5]).slice(1, 0) != digests_of([5], key=b"another key").slice(1, 0)
