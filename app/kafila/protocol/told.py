"""What one computer tells another of a failure: a reason from a fixed list, and whom it is about.

The words are chosen where they are read: what went wrong is never shown in another computer's text.
"""

import msgspec

from kafila.domain.errors import Problem, Reason
from kafila.domain.ids import MemberId

_NOT_ITS_PART = "{name} cannot do its part"
_WORDS: dict[Reason, tuple[str, str]] = {
    Reason.HOST_ENDED: ("The host ended the session", "Your conversations stay on your computer."),
    Reason.HOST_FAILED: ("Kafila failed on the host’s computer", "Ask the host for a new code."),
    Reason.REMOVED: ("The host took this computer out of the session", "Ask the host to let you in again."),
    Reason.LEFT: (
        "{name} left the session",
        "It held a part of the model, so the session is over. Host again with those who stay.",
    ),
    Reason.AWAY: (
        "{name} stopped answering",
        "Its lid may be closed or its network gone. We wait a minute; nothing you wrote is lost.",
    ),
    Reason.SILENT: (
        "{name} stopped answering",
        "It held a part of the model, so the session is over. Host again when it is back.",
    ),
    Reason.STUCK: (
        "The ring did not form",
        "Nothing moved for five minutes. Check that every computer is awake, then start again.",
    ),
    Reason.DISK: (_NOT_ITS_PART, "There is no room for the model on its disk. Make some, then start again."),
    Reason.MODEL: (_NOT_ITS_PART, "The model’s files there are not whole, or cannot be divided. Fetch them again."),
    Reason.MACHINE: (_NOT_ITS_PART, "It cannot run models. Run “packaging/dev setup” there, which picks what fits."),
    Reason.NUMBERS: (
        _NOT_ITS_PART,
        "What reached it did not make sense. Update Kafila on every computer.",
    ),
    Reason.FAILED: (_NOT_ITS_PART, "Close other programs on that computer to free memory, then start again."),
    Reason.TOO_LONG: (
        "This conversation has become too long for the session",
        "Start a new conversation, or host again with room for longer ones.",
    ),
    Reason.TOO_MANY: ("Too many questions are waiting", "Try again when some have been answered."),
    Reason.LOST_PLACE: ("The ring lost its place in this conversation", "Ask again."),
    Reason.DIVIDED_ANEW: ("The parts were divided anew while this was being written", "Ask again."),
    Reason.NOT_A_CHAT: (
        "This model was not made to chat",
        "Host again with one whose name says “instruct” or “chat”.",
    ),
    Reason.ODD_CONVERSATION: (
        "This model does not take such a conversation",
        "Begin with a question of yours, without instructions before it.",
    ),
    Reason.NOT_ANSWERED: ("The ring could not answer this", "Ask again, or start a new conversation."),
}


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """A failure as it is told to another computer."""

    reason: Reason
    about: MemberId | None = None
    """Whose failure it is, where it is one member's."""


def own_failure(problem: Problem) -> Problem:
    """What the person at the computer that cannot do its part reads: there is no need to be brief."""
    return Problem(title="This computer cannot do its part", advice=problem.sentence())


def in_words(reason: Reason, name: str = "A computer") -> Problem:
    """What a person reads. `name`: how the member that it is about is called here."""
    title, advice = _WORDS[reason]
    return Problem(title=title.format(name=name), advice=advice)
