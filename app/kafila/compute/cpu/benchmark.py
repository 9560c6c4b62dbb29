"""What this computer's processor does with a model: plain MLX beside the library, in one run.

The weights go round through blocks that together are several times as large as the last-level
cache, so that what is measured is memory, as in a large model. Import this on the MLX thread
only.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
from mlx import nn
from mlx_lm.models.cache import KVCache, make_prompt_cache
from mlx_lm.models.llama import ModelArgs, TransformerBlock
from mlx_lm.models.qwen3_moe import ModelArgs as MixtureArgs
from mlx_lm.models.qwen3_moe import Qwen3MoeDecoderLayer
from mlx_lm.utils import load_model

from kafila.compute.backend import compute_in_native_type, run_block, seam
from kafila.compute.cpu.chain import OwnCache
from kafila.compute.cpu.figures import Bench, BlockTimes, Rates
from kafila.compute.cpu.library import Library
from kafila.compute.stage import Stage

PREFILL, BATCH = 128, 4
CACHES = 4
"""How many times the last-level cache the blocks are to be, within the memory there is."""
MEMORY_SHARE = 0.4
LONGEST_S = 6.0
"""After this long, one measurement has been repeated often enough."""
USUAL_CACHE = 32 << 20
TICK_S, TICKING_S = 0.001, 3.0
FIRST_ID = 100

LARGE = {
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
}
"""A block of an 8-billion Llama."""

MIXTURE = {
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 768,
}
"""A block with 128 experts, of which a token meets eight."""


def measure_cpu(demo: Path, gguf: Path | None, say: Callable[[str], None]) -> Bench | None:
    """Measure everything; None where there is no library to compare with.

    `say` gets a line as each part begins. The process is to have nothing else to do.
    """
    in_use = seam()
    if in_use is None:
        return None
    library = in_use.library
    say("memory")
    read = _memory_gb_s(library)
    ways = {"mlx": _plain_way(demo), "library": _stage_way(demo)}
    return Bench(
        kernels=library.kernels,
        threads=library.threads,
        memory_read_gb_s=read,
        demo=_demo(ways, library, gguf, say),
        block_8b_q4=_blocks(_large_block, 4, say),
        block_8b_q8=_blocks(_large_block, 8, say),
        block_moe_q4=_blocks(_mixture_block, 4, say),
        longest_pause_ms={name: _longest_pause_ms(way) for name, way in ways.items()},
    )


def last_level_cache(folder: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> int:
    """Bytes of the largest cache; a usual size where the system does not say."""
    sizes = [USUAL_CACHE // 4]
    for file in folder.glob("index*/size"):
        text = file.read_text(encoding="ascii").strip()
        number, unit = text.rstrip("KMG"), text[-1:]
        sizes.append(int(number) << {"K": 10, "M": 20, "G": 30}.get(unit, 0))
    return max(sizes)


def _room() -> int:
    return int(import_module("psutil").virtual_memory().available * MEMORY_SHARE)


def _memory_gb_s(library: Library) -> float:
    size = min(CACHES * last_level_cache(), _room()) >> 12 << 12
    buffer = np.ones(size, np.uint8)
    library.read(buffer.ctypes.data, size)
    return size / _fastest(lambda: library.read(buffer.ctypes.data, size), runs=5) / 1e9


def _fastest(action: Callable[[], Any], *, runs: int) -> float:
    """Seconds of the fastest of some runs."""
    spans: list[float] = []
    while len(spans) < runs and sum(spans) < LONGEST_S:
        started = time.perf_counter()
        action()
        spans.append(time.perf_counter() - started)
    return min(spans)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """One way to compute with the demo model."""

    new_caches: Callable[[], list[Any]]
    logits: Callable[[mx.array, list[Any]], mx.array]

    def step(self, tokens: mx.array, caches: list[Any]) -> None:
        """Some tokens more, and what follows them."""
        mx.eval(self.logits(tokens, caches), [cache.state for cache in caches])

    def decoding(self, batch: int) -> Callable[[], None]:
        """One token more of so many conversations, behind 32 each; again at every call."""
        caches = self.new_caches()
        self.step(mx.concatenate([_prompt()[:, :32]] * batch), caches)
        token = mx.full((batch, 1), 5, mx.int32)
        return lambda: self.step(token, caches)


def _prompt() -> mx.array:
    return mx.arange(PREFILL)[None] + FIRST_ID


def _plain_way(folder: Path) -> _Way:
    """Outside a stage everything is MLX's, as without the library."""
    model, _ = load_model(folder, lazy=True)
    model.set_dtype(mx.float32)
    return _Way(new_caches=lambda: make_prompt_cache(model), logits=lambda ids, caches: model(ids, cache=caches)[:, -1])


def _stage_way(folder: Path) -> _Way:
    model, _ = load_model(folder, lazy=True)
    compute_in_native_type(model)
    stage = Stage(model, first=0, end=len(model.layers))

    def logits(ids: mx.array, caches: list[Any]) -> mx.array:
        position = caches[0].offset
        hidden = stage.run(stage.embed(ids, position), caches, position)
        return stage.unembed(hidden[:, -1:], position + ids.shape[1] - 1)

    return _Way(new_caches=stage.new_caches, logits=logits)


def _demo(
    ways: Mapping[str, _Way], library: Library, gguf: Path | None, say: Callable[[str], None]
) -> dict[str, Rates]:
    found: dict[str, Rates] = {}
    for name, way in ways.items():
        say(f"demo model, {name}")
        found[name] = _rates(way)
    if gguf is not None and find_spec("llama_cpp") is not None:
        say("demo model, llama.cpp")
        found["llama_cpp"] = _llama_cpp(gguf, library.threads)
    return found


def _rates(way: _Way) -> Rates:
    def decode(batch: int) -> float:
        return batch / _fastest(way.decoding(batch), runs=100)

    prefill = PREFILL / _fastest(lambda: way.step(_prompt(), way.new_caches()), runs=8)
    return Rates(decode1=decode(1), decode4=decode(BATCH), prefill128=prefill)


def _longest_pause_ms(way: _Way) -> float:
    """How late a thread is at worst that wakes every millisecond, while this one decodes."""
    decode, over = way.decoding(1), threading.Event()
    longest = 0.0

    def tick() -> None:
        nonlocal longest
        last = time.perf_counter()
        while not over.wait(TICK_S):
            now = time.perf_counter()
            longest = max(longest, now - last - TICK_S)
            last = now

    ticking = threading.Thread(target=tick)
    ticking.start()
    try:
        ends_at = time.perf_counter() + TICKING_S
        while time.perf_counter() < ends_at:
            decode()
    finally:
        over.set()
        ticking.join()
    return longest * 1e3


def _llama_cpp(gguf: Path, threads: int) -> Rates:
    """The same with llama.cpp, through its Python binding."""
    binding: Any = import_module("llama_cpp")
    model = binding.Llama(
        str(gguf),
        n_ctx=1024,
        n_batch=PREFILL,
        n_ubatch=PREFILL,
        n_threads=threads,
        n_threads_batch=threads,
        verbose=False,
    )

    def prefill() -> None:
        model.reset()
        model.eval(list(range(FIRST_ID, FIRST_ID + PREFILL)))

    prefill()
    prefill_s = _fastest(prefill, runs=5)
    decode_s = _fastest(lambda: model.eval([5]), runs=48)
    return Rates(decode1=1 / decode_s, decode4=float("nan"), prefill128=PREFILL / prefill_s)


def _blocks(make: Callable[[int], nn.Module], bits: int, say: Callable[[str], None]) -> dict[str, BlockTimes]:
    one = make(bits)
    size = sum(array.nbytes for array in _arrays(one))
    count = max(2, min(-(-CACHES * last_level_cache() // size), _room() // size))
    blocks = [one, *(make(bits) for _ in range(count - 1))]
    family = type(one)

    def through(block: nn.Module) -> Callable[..., Any]:
        def call(x: mx.array, mask: str | None, cache: KVCache) -> Any:
            return run_block(family, block, x, mask, cache)

        return call

    # Plain MLX computes, so it is not memory that it waits for: two blocks tell as much.
    ways: dict[str, Sequence[Callable[..., Any]]] = {"mlx": blocks[:2], "library": [through(block) for block in blocks]}
    found: dict[str, BlockTimes] = {}
    for name, calls in ways.items():
        say(f"{family.__name__} of {size / 1e6:.0f} MB with {bits} bits, {name}")
        found[name] = _block_times(calls, one, OwnCache if name == "library" else KVCache)
    return found


def _block_times(blocks: Sequence[Callable[..., Any]], like: Any, new_cache: Callable[[], KVCache]) -> BlockTimes:
    projection = like.self_attn.q_proj
    hidden = projection.scales.shape[-1] * projection.group_size

    def decode(batch: int, rounds: int) -> float:
        """Milliseconds of a block for one more token of each sequence, behind 32."""
        caches = [new_cache() for _ in blocks]
        before, states = (mx.random.normal((batch, rows, hidden)) for rows in (32, 1))
        for block, cache in zip(blocks, caches, strict=True):
            mx.eval(block(before, "causal", cache))

        # One by one, round and round: each comes from memory, and what disturbs one is not in another.
        turns = cycle(zip(blocks, caches, strict=True))

        def once() -> None:
            block, cache = next(turns)
            mx.eval(block(states, None, cache))

        return 1e3 * _fastest(once, runs=rounds * len(blocks))

    def prefill() -> float:
        states = mx.random.normal((1, PREFILL, hidden))
        mx.eval(states)
        return 1e3 * _fastest(lambda: mx.eval(blocks[0](states, "causal", new_cache())), runs=6)

    decode1 = decode(1, 12)
    return BlockTimes(
        decode1_ms=decode1,
        decode4_ms=decode(BATCH, 8),
        prefill128_ms=prefill(),
        decode1_gb_s=sum(map(_bytes_for_a_token, _arrays(like))) / decode1 / 1e6,
    )


def _bytes_for_a_token(array: mx.array) -> float:
    """Of a mixture, those of the experts that one token meets."""
    return array.nbytes * (MIXTURE["num_experts_per_tok"] / MIXTURE["num_experts"] if array.ndim == 3 else 1)


def _large_block(bits: int) -> nn.Module:
    arguments = ModelArgs(model_type="llama", num_hidden_layers=1, rms_norm_eps=1e-5, vocab_size=1, **LARGE)
    return _filled(TransformerBlock(arguments), bits)


def _mixture_block(bits: int) -> nn.Module:
    arguments = MixtureArgs(
        model_type="qwen3_moe",
        num_hidden_layers=1,
        decoder_sparse_step=1,
        mlp_only_layers=[],
        rms_norm_eps=1e-6,
        vocab_size=1,
        rope_theta=1e6,
        tie_word_embeddings=False,
        max_position_embeddings=4096,
        norm_topk_prob=True,
        **MIXTURE,
    )
    return _filled(Qwen3MoeDecoderLayer(arguments, 0), bits)


def _filled(block: nn.Module, bits: int) -> nn.Module:
    """Quantised, with ordinary numbers; never in full precision, for which there may be no room."""
    nn.quantize(block, group_size=64, bits=bits)
    block.set_dtype(mx.float32)
    block.update(import_module("mlx.utils").tree_map(_filler, block.parameters()))
    mx.eval(block.parameters())
    return block


def _filler(array: mx.array) -> mx.array:
    value = 0x35AC53CA if array.dtype == mx.uint32 else 0.01
    return mx.full(array.shape, value, array.dtype)


def _arrays(block: nn.Module) -> list[mx.array]:
    return [array for _, array in import_module("mlx.utils").tree_flatten(block.parameters())]
