"""Failures that come in groups, because tasks do."""

from typing import cast


def first_cause(error: BaseException) -> BaseException:
    """The first single failure in a group of groups; what is no group is its own cause."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error
