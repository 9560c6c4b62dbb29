"""`kafila plan`, as it is typed."""

import json
from pathlib import Path

import pytest

from kafila.cli.main import main

FLEET = """\
context = 4096
concurrency = 1
[model]
name = "Toy"
blocks = 9
block_bytes = 1_000_000_000
block_flops = 1_000_000_000
kv_bytes_per_token = 1000
head_bytes = 500_000_000
head_flops = 500_000_000
head_resident_bytes = 500_000_000
[[member]]
id = "desk"
bandwidth = 100e9
flops = 13e12
room = 10e9
rendezvous_rtt_ms = 10
mapping = "endpoint-independent"
filtering = "address-and-port-dependent"
[[member]]
id = "attic"
name = "Attic mini"
bandwidth = 400e9
flops = 13e12
room = 4e9
rendezvous_rtt_ms = 30
mapping = "endpoint-dependent"
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    path = tmp_path / "fleet.toml"
    path.write_text(FLEET, encoding="utf-8")
    return path


def test_json_holds_the_whole_plan(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(fleet), "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    # Three parts fit on the fast one: 6 × 10 ms and the head's 5 ms, then 3 × 2.5 ms; two relayed hops.
    assert plan["objective"] == "fastest"
    assert plan["tier"] == "full"
    assert (plan["order"], plan["head"]) == (["desk", "attic"], "desk")
    assert plan["blocks"] == {"desk": 6, "attic": 3}
    assert plan["stage_ms"] == {"desk": pytest.approx(65.0), "attic": pytest.approx(7.5)}
    assert plan["need_bytes"] == {"desk": 6_524_576_000, "attic": 3_012_288_000}
    assert plan["edges"] == [
        {"from": "desk", "to": "attic", "predicted": "relayed", "price_ms": 40.0},
        {"from": "attic", "to": "desk", "predicted": "relayed", "price_ms": 40.0},
    ]
    assert plan["bottleneck_ms"] == pytest.approx(65.0)
    assert plan["circuit_ms"] == pytest.approx(112.5)
    assert plan["tokens_per_second"] == pytest.approx(1000 / 112.5)
    assert plan["utilisation"] == pytest.approx(72.5 / 130)
    assert plan["search"] == "exact"
    uniform, memory = plan["baselines"]["uniform"], plan["baselines"]["memory_proportional"]
    # Five parts and the head, then four, which do not fit.
    assert uniform["bottleneck_ms"] == pytest.approx(55.0)
    assert (uniform["fits"], memory["fits"]) == (False, True)
    assert set(uniform) == {"bottleneck_ms", "circuit_ms", "tokens_per_second", "utilisation", "fits"}
    assert plan["advice"][0].startswith("Without Attic mini each word comes ")


def test_the_objective_can_be_chosen(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(fleet), "--json", "--objective", "balanced"]) == 0
    assert json.loads(capsys.readouterr().out)["objective"] == "balanced"


def test_without_measurements_times_are_null(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fleet.write_text(FLEET.replace("bandwidth = 100e9\n", ""), encoding="utf-8")
    assert main(["plan", str(fleet), "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["tier"] == "throughput"
    assert "desk" in plan["tier_reason"]
    assert plan["stage_ms"] == {"desk": None, "attic": None}
    for key in ("bottleneck_ms", "circuit_ms", "tokens_per_second", "utilisation"):
        assert plan[key] is None
        assert plan["baselines"]["uniform"][key] is None


def test_a_refusal_is_exit_code_3(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fleet.write_text(FLEET.replace("room = 10e9", "room = 3e9"), encoding="utf-8")
    assert main(["plan", str(fleet), "--json"]) == 3
    refused = json.loads(capsys.readouterr().out)["refused"]
    assert refused["member"] == "desk"
    assert refused["needs_bytes"] > refused["has_bytes"] == 3_000_000_000
    assert refused["help"]
    assert main(["plan", str(fleet)]) == 3
    assert capsys.readouterr().out.startswith("desk is ")


def test_more_members_than_blocks_is_nobodys_fault(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fleet.write_text(FLEET.replace("blocks = 9", "blocks = 1"), encoding="utf-8")
    assert main(["plan", str(fleet), "--json"]) == 3
    refused = json.loads(capsys.readouterr().out)["refused"]
    assert refused["member"] is None
    assert "2 computers" in refused["sentence"]


def test_people_see_a_table_with_a_bar_each(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(fleet)]) == 0
    text = capsys.readouterr().out
    assert "Toy in 9 parts on 2 computers" in text
    lines = text.splitlines()
    desk = next(line for line in lines if line.startswith("desk  "))
    attic = next(line for line in lines if line.startswith("Attic mini  "))
    assert desk.count("█") == 2 * attic.count("█")
    assert desk.endswith("leads")
    assert "Attic mini → desk: relayed, round trip from 40.0 ms" in text
    assert any(line.startswith("uniform") and line.endswith("does not fit") for line in lines)
    assert any(line.startswith("memory proportional") for line in lines)


def test_a_malformed_file_is_one_sentence_and_exit_code_2(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fleet.write_text(FLEET.replace("room = 4e9", "room = true"), encoding="utf-8")
    assert main(["plan", str(fleet), "--json"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("Member “attic”: “room” has to be a number")
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_file_that_cannot_be_read(tmp_path: Path, content: bytes | None, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "fleet.toml"
    if content is not None:
        path.write_bytes(content)
    assert main(["plan", str(path)]) == 2
    assert "cannot be read" in capsys.readouterr().err
