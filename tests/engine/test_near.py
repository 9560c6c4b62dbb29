"""Who counts as near, of those that came in through the host's own rendezvous."""

import pytest

from kafila.domain.capability import Reachability
from kafila.engine.host_plan import is_near


@pytest.mark.parametrize(
    ("public_host", "near"),
    [
        (None, True),
        ("127.0.0.1", True),
        ("192.168.1.7", True),
        ("10.1.2.3", True),
        ("fd00::7", True),
        ("93.184.215.14", False),
        ("2606:2800:21f::1", False),
        ("what another computer made up", False),
    ],
)
def test_whoever_appears_under_a_public_address_is_not_near(public_host: str | None, near: bool) -> None:  # noqa: FBT001
    assert is_near(Reachability(public_host=public_host)) is near
