"""Tests that make their own Internet. Where that cannot be, they say why."""

import pytest

from natlab.namespaces import why_not_here


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip with the reason, rather than fail, where networks cannot be made."""
    reason = why_not_here()
    for item in items:
        if item.path.parent.name == "nat":
            item.add_marker(pytest.mark.nat)
            if reason is not None:
                item.add_marker(pytest.mark.skip(reason=reason))
