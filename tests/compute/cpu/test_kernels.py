"""Every operation of the library against MLX's, whatever the shapes, formats and kinds of processor."""

import platform
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafila.compute.cpu.library import Features, Kernels, Library

pytestmark = pytest.mark.mlx

ERROR = 1e-4
"""Of ‖x‖‖w‖, as an output may be off; what was measured is thirty times less."""
CLOSE = 2e-5
EXAMPLES = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])

Run = Callable[..., Any]


def checks() -> Any:
    """On the MLX thread."""
    from helpers import cpu_checks  # noqa: PLC0415

    return cpu_checks


formats = st.one_of(
    st.fixed_dictionaries(
        {
            "mode": st.just("affine"),
            "bits": st.sampled_from([2, 3, 4, 5, 6, 8]),
            "group": st.sampled_from([32, 64, 128]),
            "dtype": st.sampled_from(["float32", "float16", "bfloat16"]),
        }
    ),
    st.just({"mode": "mxfp4", "bits": 4, "group": 32}),
    st.just({"mode": "mxfp8", "bits": 8, "group": 32}),
    st.fixed_dictionaries({"mode": st.just("dense"), "dtype": st.sampled_from(["float32", "float16", "bfloat16"])}),
)


@EXAMPLES
@given(
    how=formats,
    shape=st.tuples(st.integers(1, 70), st.integers(1, 12), st.integers(0, 31), st.integers(1, 11)),
    seed=st.integers(0, 1000),
)
def test_products(
    each_kernels: Library, on_thread: Run, how: dict[str, Any], shape: tuple[int, int, int, int], seed: int
) -> None:
    rows, groups, extra, inputs = shape
    columns = groups * 64 + extra if how["mode"] == "dense" else groups * how["group"]
    found = on_thread(
        lambda: checks().check_product(each_kernels, checks().Weights(rows=rows, columns=columns, **how), inputs, seed)
    )
    assert found.error < ERROR / 10
    assert found.alone_is_the_same


@pytest.mark.parametrize("bits", [4, 8])
def test_products_of_more_rows_than_a_panel(each_kernels: Library, on_thread: Run, bits: int) -> None:
    found = on_thread(
        lambda: checks().check_product(each_kernels, checks().Weights(rows=21, columns=1152, bits=bits), 261, 3)
    )
    assert found.error < ERROR / 10
    assert found.alone_is_the_same


@EXAMPLES
@given(
    how=formats,
    shape=st.tuples(st.integers(1, 40), st.integers(1, 9)),
    pairs=st.tuples(st.integers(1, 12), st.integers(1, 4)),
    seed=st.integers(0, 1000),
)
def test_products_with_chosen_experts(
    each_kernels: Library,
    on_thread: Run,
    how: dict[str, Any],
    shape: tuple[int, int],
    pairs: tuple[int, int],
    seed: int,
) -> None:
    weights = {"rows": shape[0], "columns": 128, "experts": shape[1], **how}
    found = on_thread(lambda: checks().check_gather(each_kernels, checks().Weights(**weights), pairs, seed))
    assert found.error < ERROR / 10
    assert found.alone_is_the_same


@pytest.mark.parametrize("broken", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("mode", [{"bits": 4}, {"bits": 8}])
def test_a_broken_row_stays_alone(each_kernels: Library, on_thread: Run, broken: float, mode: dict[str, Any]) -> None:
    spoilt, others_hold = on_thread(
        lambda: checks().check_broken_rows(each_kernels, checks().Weights(rows=33, columns=192, **mode), broken)
    )
    assert spoilt
    assert others_hold


@EXAMPLES
@given(rows=st.integers(1, 9), width=st.integers(1, 200), seed=st.integers(0, 1000))
def test_norms(each_kernels: Library, on_thread: Run, rows: int, width: int, seed: int) -> None:
    assert on_thread(lambda: checks().check_norms(each_kernels, rows, width, seed)) < CLOSE


def test_activations(each_kernels: Library, on_thread: Run) -> None:
    found = on_thread(lambda: checks().check_activations(each_kernels))
    assert max(found.values()) < 1e-6, found


def test_what_is_no_number_stays_none(each_kernels: Library, on_thread: Run) -> None:
    assert on_thread(lambda: checks().keeps_what_is_no_number(each_kernels))


@pytest.mark.parametrize(
    "turn",
    [
        {},
        {"traditional": True},
        {"dims": 12, "offsets": (500,)},
        {"base": None, "traditional": True},
        {"base": None},
        {"scale": 0.25, "base": 5e5, "offsets": (0,)},
        {"batch": 3, "offsets": (4, 0, 90), "length": 1},
        {"batch": 2, "offsets": (3,), "length": 4, "width": 20, "dims": 20},
    ],
)
def test_rotations(library: Library, on_thread: Run, turn: dict[str, Any]) -> None:
    assert on_thread(lambda: checks().check_rope(library, checks().Turn(**turn), 5)) < CLOSE


@EXAMPLES
@given(
    look=st.fixed_dictionaries(
        {
            "batch": st.integers(1, 3),
            "key_heads": st.sampled_from([1, 2]),
            "heads": st.sampled_from([2, 4, 6]),
            "length": st.integers(1, 13),
            "before": st.integers(0, 40),
            "width": st.sampled_from([8, 16, 20, 33, 64, 80]),
            "value_width": st.sampled_from([8, 16, 20, 33, 64, 80]),
            "mask": st.sampled_from(["none", "causal", "window", "padded", "added"]),
            "sinks": st.booleans(),
        }
    ),
    seed=st.integers(0, 1000),
)
def test_attention(each_kernels: Library, on_thread: Run, look: dict[str, Any], seed: int) -> None:
    found = on_thread(lambda: checks().check_attention(each_kernels, checks().Look(**look), seed))
    assert found.error < CLOSE
    assert found.alone_is_the_same


def test_a_row_that_may_look_at_nothing(each_kernels: Library, on_thread: Run) -> None:
    found = on_thread(lambda: checks().check_attention(each_kernels, checks().Look(mask="nothing", width=20), 1))
    assert found.error < CLOSE


def test_what_it_does_not_know_is_left_to_mlx(library: Library, on_thread: Run) -> None:
    assert all(on_thread(lambda: checks().refuses(library)))
    assert on_thread(lambda: checks().refuses_an_expert_that_is_not_there(library)) < 0


def test_there_are_kernels_for_every_processor(library: Library, on_thread: Run) -> None:
    names = on_thread(lambda: checks().check_levels(library))
    assert names[0] == "plain C"
    assert library.use_kernels(Kernels.AVX2_OR_NEON) in names
    assert library.use_kernels(Kernels.AVX512) == names[-1]
    assert set(names) <= {"plain C", "AVX2", "AVX-512 VNNI", "NEON"}


X86 = Features.AVX2 | Features.FMA | Features.F16C
EVERYTHING = X86 | Features.AVX512 | Features.VNNI


@pytest.mark.skipif(platform.machine() != "x86_64", reason="these are Intel's and AMD's names of what a processor has")
@pytest.mark.parametrize(
    ("features", "most", "name"),
    [
        (EVERYTHING, Kernels.AVX512, "AVX-512 VNNI"),
        (EVERYTHING, Kernels.AVX2_OR_NEON, "AVX2"),
        (EVERYTHING, Kernels.PLAIN, "plain C"),
        (EVERYTHING & ~Features.VNNI, Kernels.AVX512, "AVX2"),
        (EVERYTHING & ~Features.AVX512, Kernels.AVX512, "AVX2"),
        (X86 & ~Features.FMA, Kernels.AVX512, "plain C"),
        (X86 & ~Features.F16C, Kernels.AVX512, "plain C"),
        (Features(0), Kernels.AVX512, "plain C"),
    ],
)
def test_which_kernels_a_processor_gets(library: Library, features: Features, most: Kernels, name: str) -> None:
    assert library.name_kernels(most, features) == name
