from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafila.compute.formats import Quantisation, format_of, growth
from kafila.compute.measure import control_groups_room, measure, room_bytes
from kafila.compute.mlx_thread import MlxThread
from kafila.domain.model import ModelSpec


def spec_of(
    *, bits_per_weight: float = 32, weights: int = 1 << 16, element_bytes: int = 4, hidden: int = 64
) -> ModelSpec:
    return ModelSpec(
        name="model",
        family="llama",
        fingerprint="0" * 64,
        hidden_size=hidden,
        block_bytes=(round(weights * bits_per_weight / 8),) * 3,
        block_flops=(2 * weights,) * 3,
        kv_bytes_per_token=(64 * element_bytes,) * 3,
        head_bytes=1,
        head_flops=1,
        head_resident_bytes=1,
        max_context=4096,
        element_bytes=element_bytes,
    )


@pytest.mark.parametrize(
    ("bits_per_weight", "element_bytes", "bits", "group"),
    [
        (4.5, 2, 4, 64),
        (4.25, 2, 4, 128),
        (5.0, 2, 4, 32),
        (8.5, 2, 8, 64),
        (6.5, 2, 6, 64),
        (5.0, 4, 4, 64),
        # Norms and the like come on top.
        (6.02, 4, 4, 32),
        (3.5, 2, 3, 64),
        (2.5, 2, 2, 64),
        # A mixture of experts: more bytes than one token computes with.
        (72.0, 2, 4, 64),
    ],
)
def test_the_format_shows_in_the_sizes(bits_per_weight: float, element_bytes: int, bits: int, group: int) -> None:
    spec = spec_of(bits_per_weight=bits_per_weight, element_bytes=element_bytes)
    assert format_of(spec, 1).quantisation == Quantisation(bits=bits, group=group)


@pytest.mark.parametrize("element_bytes", [2, 4])
def test_so_does_that_there_is_none(element_bytes: int) -> None:
    spec = spec_of(bits_per_weight=8.05 * element_bytes, element_bytes=element_bytes)
    assert format_of(spec, 1).quantisation is None


def test_16_bit_models_grow_on_a_cpu() -> None:
    def grown(bits_per_weight: float, element_bytes: int, tokens: int = 0) -> float:
        spec = spec_of(bits_per_weight=bits_per_weight, element_bytes=element_bytes)
        return growth(spec, element_bytes=4, tokens=tokens)

    assert grown(32, 4) == 1
    assert grown(16, 2) == 2
    # Of 4 bits and two 16-bit numbers for each 64 of them, the latter double.
    assert grown(4.5, 2) == pytest.approx(5 / 4.5)
    assert 5 / 4.5 < grown(4.5, 2, tokens=100) < grown(4.5, 2, tokens=10_000) < 2


@given(st.floats(2.2, 40), st.sampled_from([2, 4]), st.integers(0, 100_000))
def test_growth_is_between_one_and_two(bits_per_weight: float, element_bytes: int, tokens: int) -> None:
    spec = spec_of(bits_per_weight=bits_per_weight, element_bytes=element_bytes)
    assert 1 <= growth(spec, element_bytes=4, tokens=tokens) <= 2


@pytest.mark.mlx
@pytest.mark.parametrize("bits_per_weight", [32, 16, 6.0, 4.5])
async def test_a_block_is_timed(thread: MlxThread, bits_per_weight: float) -> None:
    element_bytes = 4 if bits_per_weight in {32, 6.0} else 2
    spec = spec_of(bits_per_weight=bits_per_weight, element_bytes=element_bytes, hidden=100)
    bandwidth, flops = await measure(thread, spec)
    assert bandwidth > 0
    # The slower of the two bounds is what decoding one token took.
    assert spec.block_flops[0] / flops <= spec.block_bytes[0] / bandwidth


@pytest.mark.mlx
async def test_a_tiny_block_is_timed(thread: MlxThread) -> None:
    bandwidth, flops = await measure(thread, spec_of(weights=1, hidden=1))
    assert bandwidth > 0
    assert flops > 0


def test_room_leaves_some_for_the_computer() -> None:
    room = room_bytes()
    assert 0 <= room < psutil.virtual_memory().total - (1 << 30)
    grown = room_bytes(spec_of(bits_per_weight=16, element_bytes=2))
    assert grown < room or room == 0


def control_group(folder: Path, *, most: str, used: int, cached: int = 0) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{most}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 5\ninactive_file {cached}\nfile 7\n")


def test_a_container_s_bounds_count(tmp_path: Path) -> None:
    membership = tmp_path / "cgroup"
    membership.write_text("0::/user/session\n")
    control_group(tmp_path / "root", most="max", used=900)
    control_group(tmp_path / "root" / "user", most="1000", used=400, cached=50)
    control_group(tmp_path / "root" / "user" / "session", most="800", used=100)
    found = control_groups_room(membership, tmp_path / "root")
    assert sorted(found) == [650, 700]


def test_no_control_groups(tmp_path: Path) -> None:
    assert not list(control_groups_room(tmp_path / "none", tmp_path))
    (tmp_path / "odd").write_text("")
    assert not list(control_groups_room(tmp_path / "odd", tmp_path))
