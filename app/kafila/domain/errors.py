"""Failures that a person will read: what happened, and what to do next."""

import msgspec


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A failure as it is shown: a short title and one sentence of advice.

    Both are our own words, never text that came from another computer.
    """

    title: str
    advice: str

    def sentence(self) -> str:
        """Title and advice as one line for a terminal."""
        return f"{self.title}. {self.advice}"


class UserError(Exception):
    """An expected failure that ends what was asked for; carries the `Problem` to show."""

    def __init__(self, *, title: str, advice: str) -> None:
        super().__init__(title)
        self.problem = Problem(title=title, advice=advice)


class PeerError(Exception):
    """Another computer broke the protocol. `fault` is our own description of how."""

    def __init__(self, fault: str) -> None:
        super().__init__(fault)
        self.fault = fault
