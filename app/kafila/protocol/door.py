"""The host's door: everybody who calls with the code, from the first message to being paired.

Ties the exchanges (`kafila.protocol.pake`) to the limits on guesses (`kafila.protocol.attempts`)
in the one order that is safe: a proof is not even looked at once the exchange's time is over or
the code has ended. Whether somebody who is paired is let in is for the people to say.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from kafila.domain.errors import PeerError
from kafila.protocol.attempts import Attempts
from kafila.protocol.invitation import CODE_ENTROPY_BYTES, Code, make_code
from kafila.protocol.pairing import (
    GoOn,
    Introduction,
    Offer,
    OtherVersion,
    OwnKey,
    PairedJoiner,
    TurnedAwayReason,
    WrongCode,
)
from kafila.protocol.pake import EXCHANGE_ENTROPY_BYTES, HostExchange, turn_away
from kafila.protocol.words import WordList


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """Send the reply, if there is one, and hang up."""

    reply: bytes | None = field(default=None, repr=False)
    fault: str | None = field(default=None, compare=False)
    """How the caller broke the protocol, for the log."""


DoorAnswer = GoOn | PairedJoiner | Closed
"""What to do after a message: send its reply, and then wait, talk over the channel, or hang up."""


MAX_CALLERS = 256

_Caller = str | HostExchange | TurnedAwayReason
"""Who calls: the remote of one who has said nothing yet, an exchange, or why it is over."""


class Door:
    """The joining side of one session. Exchanges and remotes have the rendezvous's names.

    `entropy` gives so many random bytes; `now_s` is any clock that does not go back. After every
    call, and at `next_deadline_s`, `burned` says whether it is time for another code.
    """

    def __init__(self, *, me: Introduction, offer: Offer, words: WordList, entropy: Callable[[int], bytes]) -> None:
        self._me = me
        self._offer = offer
        self._words = words
        self._entropy = entropy
        self._code: Code | None = None
        self._attempts = Attempts()
        self._callers: dict[int, _Caller] = {}

    @property
    def burned(self) -> bool:
        """Too many have guessed: the code has ended."""
        return self._attempts.burned

    @property
    def next_deadline_s(self) -> float | None:
        """When `expire` is next worth calling."""
        return self._attempts.next_deadline_s

    def open(self, nameplate: int) -> Code:
        """Make a new code; the one before it, and whatever was begun with it, is over."""
        self.close()
        self._attempts.renew()
        self._code = make_code(nameplate, self._entropy(CODE_ENTROPY_BYTES), self._words)
        return self._code

    def close(self) -> None:
        """Take nobody in any more until the door is opened again."""
        self._code = None
        for exchange, caller in self._callers.items():
            if isinstance(caller, HostExchange):
                self._callers[exchange] = TurnedAwayReason.CODE_ENDED

    def knock(self, exchange: int, remote: str) -> None:
        """Somebody calls. Nothing is a guess before it is said."""
        if len(self._callers) < MAX_CALLERS:
            self._callers.setdefault(exchange, remote)

    def receive(self, exchange: int, data: bytes, now_s: float) -> DoorAnswer:
        """Take in what a caller says who is not paired yet."""
        self.expire(now_s)
        caller = self._begin(exchange, now_s)
        match caller:
            case None:
                return Closed()
            case TurnedAwayReason():
                self.hang_up(exchange)
                return Closed(reply=turn_away(caller))
            case HostExchange():
                return self._talk(exchange, caller, data)

    def hang_up(self, exchange: int) -> None:
        """The caller is gone. If it had begun and was not paired, that was a failed guess."""
        self._callers.pop(exchange, None)
        self._attempts.fail(exchange)

    def expire(self, now_s: float) -> tuple[int, ...]:
        """The exchanges whose time is over: failed guesses, to be hung up."""
        over = self._attempts.expire(now_s)
        for exchange in over:
            self._callers.pop(exchange, None)
        return over

    def _begin(self, exchange: int, now_s: float) -> HostExchange | TurnedAwayReason | None:
        """The caller's exchange, begun now if it has none yet, or why there is none."""
        caller = self._callers.get(exchange)
        if not isinstance(caller, str):
            return TurnedAwayReason.CODE_ENDED if caller and self.burned else caller
        if self._code is None:
            return TurnedAwayReason.CODE_ENDED
        if reason := self._attempts.begin(exchange, caller, now_s):
            return reason
        begun = HostExchange(
            code=self._code,
            me=self._me,
            offer=self._offer,
            words=self._words,
            entropy=self._entropy(EXCHANGE_ENTROPY_BYTES),
        )
        self._callers[exchange] = begun
        return begun

    def _talk(self, exchange: int, caller: HostExchange, data: bytes) -> DoorAnswer:
        try:
            outcome = caller.receive(data)
        except PeerError as error:
            self.hang_up(exchange)
            return Closed(fault=error.fault)
        match outcome:
            case GoOn():
                return outcome
            case PairedJoiner():
                self._attempts.confirm(exchange)
                del self._callers[exchange]
                return outcome
            case WrongCode():
                self.hang_up(exchange)
            case OtherVersion() | OwnKey():
                self._attempts.withdraw(exchange)
                del self._callers[exchange]
        return Closed(reply=outcome.reply)
