"""What a person is told when a rendezvous cannot be had, or says no."""

from kafila.domain.errors import UserError
from kafila.protocol.links import Address
from kafila.protocol.rendezvous import Refusal


def unreachable(address: Address) -> UserError:
    """Nothing accepts connections there."""
    return UserError(
        title=f"Nobody can be reached at {address}",
        advice="Check the address and this computer's network, and that the session or rendezvous there still runs.",
    )


def silent(address: Address) -> UserError:
    """Something accepts connections there and does not answer as a rendezvous."""
    return UserError(
        title=f"{address} does not answer",
        advice="Check that a Kafila session or rendezvous runs there, then try again.",
    )


def refused(reason: Refusal, *, called: int | None) -> UserError:
    """The rendezvous turned us or our request away; `called` is the nameplate, if it was a call."""
    match reason:
        case Refusal.NO_SUCH_CODE:
            return UserError(
                title=f"No session answers to {called}",
                advice="Check the number with the person hosting.",
            )
        case Refusal.OTHER_VERSION:
            return UserError(
                title="The rendezvous belongs to another version of Kafila",
                advice="Update Kafila on both computers, then try again.",
            )
        case Refusal.TOO_MANY:
            return UserError(
                title="There were too many tries from this network",
                advice="Wait a minute, then try again.",
            )
        case Refusal.FULL:
            return UserError(
                title="There is no room left" if called is None else f"Session {called} takes no more callers now",
                advice="Wait a minute and try again, or ask the host to remove computers that are no longer there.",
            )
