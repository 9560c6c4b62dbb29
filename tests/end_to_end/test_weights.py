"""No member reads blocks that are not its own, even where they lie on its own disk."""

import shutil
import sys
from pathlib import Path

import pytest

from end_to_end.alone import Alone
from end_to_end.contract import Answered, check_ring, read_events
from end_to_end.sessions import name_of, start_host, start_joiner
from helpers.processes import Homes, Process
from kafila.weights.model_folder import read_model

pytestmark = [pytest.mark.loopback, pytest.mark.mlx, pytest.mark.slow, pytest.mark.timeout(300)]

PROMPT, TOKENS = "Hello there", 8
SMALL_THINGS = 2_000_000
"""Bytes of headers, tokenizers and the like; far less than a block has."""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not say what a process has read")
def test_what_each_member_reads_is_its_share(homes: Homes, alone: Alone, tmp_path: Path) -> None:
    """Of two joiners one has the whole model already, and the other gets its share from the host."""
    model = alone.make_tiny(tmp_path / "wide", seed=2, hidden_size=512, intermediate_size=1536)
    spec = read_model(model)
    assert min(spec.block_bytes) > 4 * SMALL_THINGS

    host = start_host(homes.new(), model, "--prompt", PROMPT, "--max-tokens", TOKENS, members=3)
    owner_home, other_home = homes.new(), homes.new()
    shutil.copytree(model, owner_home.models / "wide")
    owner = start_joiner(owner_home, host, "--name", name_of(0))
    owner_id = host.event("member", name=name_of(0), state="measured")["id"]
    host.event("member", state="measured", name=_own_name(host))
    before = {process: bytes_read(process) for process in (host, owner)}
    start_joiner(other_home, host, "--name", name_of(1))
    for process in (host, owner):
        process.event("ready")
    after = {process: bytes_read(process) for process in (host, owner)}

    plan = host.event("plan")
    other_id = host.event("member", name=name_of(1))["id"]
    (host_id,) = plan["blocks"].keys() - {owner_id, other_id}

    def share(member: str) -> int:
        first, end = plan["blocks"][member]
        head = spec.head_resident_bytes if plan["head"] == member else 0
        return sum(spec.block_bytes[first:end]) + head

    read = {process: after[process] - before[process] for process in (host, owner)}
    assert share(owner_id) <= read[owner] < share(owner_id) + SMALL_THINGS
    given = share(other_id)
    assert share(host_id) + given <= read[host] < share(host_id) + given + SMALL_THINGS
    assert {folder.name for folder in owner_home.models.iterdir()} == {"wide"}

    ended = host.finish()
    (answer,) = [event for event in read_events(ended.events()) if isinstance(event, Answered)]
    assert answer.token_ids == alone.answer(model, PROMPT, max_tokens=TOKENS).token_ids
    check_ring(answer, blocks=spec.blocks, members=3)
    assert sum(member.resident_weight_bytes for member in answer.members) == alone.weight_bytes(model)


def bytes_read(process: Process) -> int:
    """What a process has read from files, cached or not."""
    figures = Path(f"/proc/{process.pid}/io").read_text(encoding="ascii")
    return int(dict(line.split(": ") for line in figures.splitlines())["rchar"])


def _own_name(host: Process) -> str:
    """What the host is called: it is the first member of its own session."""
    return host.event("member")["name"]
