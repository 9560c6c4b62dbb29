"""`kafila bench planner`: what the method is worth on the example fleets."""

import argparse
import json

import pytest

from kafila.cli.bench import Comparison, compare_fleets, run_planner, time_sizes
from kafila.domain.plan import Figures

OWN_MODELS = {"lan": "8B", "country": "14B", "continents": "32B"}


@pytest.fixture(scope="module")
def cases() -> list[Comparison]:
    return compare_fleets()


def of(cases: list[Comparison], fleet: str, model: str, people: int) -> Comparison:
    return next(
        case for case in cases if (case.fleet, case.model, case.people) == (fleet, f"Qwen3-{model} bf16", people)
    )


def ratio(one: Figures | None, other: Figures | None) -> float:
    """How much longer the first's slowest stage is."""
    assert one is not None
    assert other is not None
    return (one.bottleneck_ms or 0.0) / (other.bottleneck_ms or 1.0)


def rate(figures: Figures | None) -> float:
    assert figures is not None
    assert figures.tokens_per_second is not None
    return figures.tokens_per_second


def test_balanced_has_a_far_shorter_slowest_stage_and_hardware_in_use(cases: list[Comparison]) -> None:
    planned = [case for case in cases if case.refused is None]
    assert {(case.fleet, case.model) for case in planned} >= {
        (fleet, f"Qwen3-{model} bf16") for fleet, model in OWN_MODELS.items()
    }
    for case in planned:
        assert 2.0 <= ratio(case.uniform, case.balanced) <= 5.2
        assert 1.5 <= ratio(case.memory_proportional, case.balanced) <= 3.0
        assert case.balanced is not None
        assert (case.balanced.utilisation or 0.0) >= 0.855


def test_fastest_serves_one_person_on_a_lan_a_quarter_faster_than_balanced(cases: list[Comparison]) -> None:
    for model in ("4B", "8B", "14B"):
        case = of(cases, "lan", model, 1)
        assert rate(case.fastest) >= 1.25 * rate(case.balanced)


def test_fastest_is_never_slower_than_any_other_that_fits(cases: list[Comparison]) -> None:
    for case in cases:
        if case.refused is None:
            assert rate(case.fastest) >= 0.95 * rate(case.balanced)
            for other in (case.uniform, case.memory_proportional):
                assert other is not None
                assert not other.fits or rate(case.fastest) >= rate(other)


def test_a_member_of_12_gb_bounds_the_lan(cases: list[Comparison]) -> None:
    case = of(cases, "lan", "14B", 1)
    assert case.uniform is not None
    assert not case.uniform.fits
    assert case.balanced is not None
    assert of(cases, "lan", "32B", 1).refused is not None


def test_a_model_is_served_that_no_even_split_can_place(cases: list[Comparison]) -> None:
    case = of(cases, "continents", "32B", 4)
    assert case.uniform is not None
    assert not case.uniform.fits
    assert case.fastest is not None
    assert case.fastest.fits


def test_it_prints_a_table_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_planner(argparse.Namespace(scale=False, json=False)) == 0
    table = capsys.readouterr().out.splitlines()
    assert sum(line.startswith(("lan", "country", "continents")) for line in table) == 24
    assert any("GB short" in line for line in table)
    assert run_planner(argparse.Namespace(scale=False, json=True)) == 0
    assert len(json.loads(capsys.readouterr().out)["rows"]) == 24


def test_every_size_is_timed() -> None:
    timings = time_sizes([(1, 2), (3, 6), (10, 12)])
    assert [(one.members, one.blocks) for one in timings] == [(1, 2), (3, 6), (10, 12)]
    assert all(one.equal_blocks_ms > 0 and one.unequal_blocks_ms > 0 for one in timings)
