from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from kafila.protocol.attempts import (
    CONFIRM_WITHIN_S,
    MAX_BEGUN_PER_REMOTE,
    MAX_FAILURES,
    MAX_OPEN,
    MAX_OPEN_PER_REMOTE,
    REMEMBER_S,
    Attempts,
)
from kafila.protocol.pairing import TurnedAwayReason

BUSY, ENDED = TurnedAwayReason.BUSY, TurnedAwayReason.CODE_ENDED


def test_five_wrong_guesses_end_the_code() -> None:
    attempts = Attempts()
    for guess in range(MAX_FAILURES):
        assert not attempts.burned
        assert attempts.begin(guess, f"remote {guess}", 0.0) is None
        attempts.fail(guess)
    assert attempts.burned
    assert attempts.begin(99, "somebody else", 1.0) == ENDED


def test_an_exchange_left_unconfirmed_counts_as_a_failed_guess() -> None:
    attempts = Attempts()
    for guess in range(MAX_FAILURES):
        assert attempts.begin(guess, f"remote {guess}", 100.0) is None
    assert attempts.next_deadline_s == 100.0 + CONFIRM_WITHIN_S
    assert attempts.expire(100.0 + CONFIRM_WITHIN_S - 0.001) == ()
    assert not attempts.burned
    assert attempts.expire(100.0 + CONFIRM_WITHIN_S) == (0, 1, 2, 3, 4)
    assert attempts.burned
    assert attempts.next_deadline_s is None


def test_whoever_has_the_code_is_no_failure() -> None:
    attempts = Attempts()
    for friend in range(40):
        assert attempts.begin(friend, f"remote {friend}", 0.0) is None
        attempts.confirm(friend)
        attempts.fail(friend)
    assert not attempts.burned
    assert attempts.expire(1e6) == ()


def test_what_ended_before_the_code_was_tried_is_no_failure() -> None:
    attempts = Attempts()
    for caller in range(9):
        assert attempts.begin(caller, f"remote {caller}", 0.0) is None
        attempts.withdraw(caller)
    assert not attempts.burned


def test_one_remote_begins_only_a_few_at_once() -> None:
    attempts = Attempts()
    for exchange in range(MAX_OPEN_PER_REMOTE):
        assert attempts.begin(exchange, "one house", 0.0) is None
    assert attempts.begin(10, "one house", 0.0) == BUSY
    assert attempts.begin(11, "another", 0.0) is None
    attempts.confirm(0)
    assert attempts.begin(12, "one house", 0.0) is None


def test_one_remote_begins_only_so_many_in_ten_minutes_even_with_new_codes() -> None:
    attempts = Attempts()
    for exchange in range(MAX_BEGUN_PER_REMOTE):
        assert attempts.begin(exchange, "guesser", float(exchange)) is None
        attempts.fail(exchange)
        if attempts.burned:
            attempts.renew()
    attempts.renew()
    assert attempts.begin(50, "guesser", REMEMBER_S - 0.001) == BUSY
    assert attempts.begin(51, "friend", REMEMBER_S - 0.001) is None
    assert attempts.begin(52, "guesser", REMEMBER_S) is None
    assert attempts.begin(53, "guesser", REMEMBER_S) == BUSY


def test_everybody_together_begins_only_so_many_at_once() -> None:
    attempts = Attempts()
    for exchange in range(MAX_OPEN):
        assert attempts.begin(exchange, f"remote {exchange}", 0.0) is None
    assert attempts.begin(99, "one more", 0.0) == BUSY


def test_an_exchange_is_not_begun_twice() -> None:
    attempts = Attempts()
    assert attempts.begin(1, "remote", 0.0) is None
    assert attempts.begin(1, "remote", 1.0) == BUSY


def test_a_new_code_starts_from_nothing() -> None:
    attempts = Attempts()
    for guess in range(MAX_FAILURES):
        attempts.begin(guess, f"remote {guess}", 0.0)
    attempts.renew()
    assert attempts.expire(1e6) == ()
    assert not attempts.burned


class AnyUse(RuleBasedStateMachine):
    """Whatever happens, no more than five guesses fail under one code before it ends."""

    def __init__(self) -> None:
        super().__init__()
        self.attempts = Attempts()
        self.now_s = 0.0
        self.open: dict[int, tuple[str, float]] = {}
        self.failed = 0
        self.next_exchange = 0

    @rule(remote=st.sampled_from("abcd"))
    def begin(self, remote: str) -> None:
        self.next_exchange += 1
        self.expire_model()
        refused = self.attempts.begin(self.next_exchange, remote, self.now_s)
        if refused is None:
            self.open[self.next_exchange] = (remote, self.now_s)
        assert (refused == ENDED) == (self.failed >= MAX_FAILURES)
        self.check()

    @precondition(lambda self: bool(self.open))
    @rule(data=st.data(), right=st.booleans())
    def settle(self, data: st.DataObject, right: bool) -> None:  # noqa: FBT001
        exchange = data.draw(st.sampled_from(sorted(self.open)))
        del self.open[exchange]
        if right:
            self.attempts.confirm(exchange)
        else:
            self.attempts.fail(exchange)
            self.failed += 1
        self.check()

    @rule(passed_s=st.sampled_from([0.5, 12.0, 31.0, 700.0]))
    def wait(self, passed_s: float) -> None:
        self.now_s += passed_s
        self.attempts.expire(self.now_s)
        self.expire_model()
        self.check()

    @rule()
    def renew(self) -> None:
        self.attempts.renew()
        self.open.clear()
        self.failed = 0
        self.check()

    def expire_model(self) -> None:
        over = [e for e, (_, begun_s) in self.open.items() if begun_s + CONFIRM_WITHIN_S <= self.now_s]
        for exchange in over:
            del self.open[exchange]
        self.failed += len(over)

    def check(self) -> None:
        assert self.attempts.burned == (self.failed >= MAX_FAILURES)
        remotes = [remote for remote, _ in self.open.values()]
        assert all(remotes.count(remote) <= MAX_OPEN_PER_REMOTE for remote in remotes)


TestAnyUse = AnyUse.TestCase
TestAnyUse.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
