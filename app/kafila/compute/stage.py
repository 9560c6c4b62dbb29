"""Blocks [first, end) of a model, run by the model's own class out of mlx-lm.

The family's code decides how a block is called (masks, positions, caches, scales), so it is
called whole, with three changes:

- blocks outside the stage become *shells*: same class, no parameters, the hidden state passes
  through;
- the hidden state from the stage before is put in front of the first own block, and the output
  of the last own block is taken out;
- the embedding becomes a node of a graph whose value nobody asks for, so it costs nothing and
  its weights are never read; and behind the last own block the call is over.

The head uses the same model for two more passes: what goes into block 0 is the embedding of the
token ids, and what comes out behind the last block are the logits.

Import this on the MLX thread only.
"""

import copy
from collections.abc import Sequence
from typing import Any, TypeGuard, cast

import mlx.core as mx
from mlx import nn

from kafila.compute.backend import computing, named_arrays, new_caches, run_block, run_blocks
from kafila.compute.caches import Cache


class UnfitModelError(Exception):
    """The model's code is not built the way that a stage needs; its family is not supported."""


class Stage:
    """The own blocks of one member, and on the head what surrounds all blocks.

    `model` is taken over and changed: the other blocks are dropped from it.
    """

    def __init__(self, model: nn.Module, *, first: int, end: int) -> None:
        self.first, self.end = first, end
        self._model = model
        self._template: list[Cache] = new_caches(model)
        self.prefix, self._blocks = _find_blocks(model)
        if len(self._template) != len(self._blocks):
            message = f"{len(self._template)} caches for {len(self._blocks)} blocks"
            raise UnfitModelError(message)
        self._pass: _Pass | None = None
        self._own = [(type(block), block) for block in self._blocks[first:end]]
        for index, block in enumerate(self._blocks):
            own = first <= index < end
            self._blocks[index] = self._hooked(block if own else _shell(block), index, own=own)

    def block_arrays(self, index: int) -> dict[str, mx.array]:
        """The parameters of an own block, under their names in the whole model."""
        arrays = named_arrays(self._blocks[index])
        return {f"{self.prefix}.{index}.{name}": array for name, array in arrays.items()}

    def head_arrays(self) -> dict[str, mx.array]:
        """Embedding, final norm and unembedding: all parameters outside the blocks."""
        inside = self.prefix + "."
        arrays = named_arrays(self._model)
        return {name: array for name, array in arrays.items() if not name.startswith(inside)}

    def new_caches(self) -> list[Cache]:
        """Empty caches of the own blocks for one sequence."""
        return copy.deepcopy(self._template[self.first : self.end])

    def run(self, hidden: mx.array, caches: list[Cache], position: int) -> mx.array:
        """Hidden states behind the last own block; like all results here not evaluated yet."""
        going = _Pass(enter=self.first, leave=self.end, hidden=hidden, caches=caches)
        self._call(going, _no_ids(hidden), self._every_cache(caches, position))
        return going.result()

    def embed(self, ids: mx.array, position: int) -> mx.array:
        """What goes into block 0 for token ids (1, rows)."""
        going = _Pass(enter=0, leave=0, hidden=None)
        with computing():
            self._call(going, ids, self._every_cache([], position))
        return going.result()

    def unembed(self, hidden: mx.array, position: int) -> mx.array:
        """Logits for hidden states that went through all blocks."""
        blocks = len(self._blocks)
        going = _Pass(enter=blocks, leave=blocks + 1, hidden=hidden)
        with computing():
            logits = self._call(going, _no_ids(hidden), self._every_cache([], position))
        if logits is None:
            message = "the model calls more blocks than it has"
            raise UnfitModelError(message)
        return logits

    def _call(self, going: "_Pass", ids: mx.array, caches: list[Cache]) -> mx.array | None:
        """The logits; None where the pass ended before."""
        self._pass = going
        try:
            return self._model(ids, cache=caches)
        except _Taken:
            # What follows would be computed for nothing, or at least recorded.
            return None
        finally:
            self._pass = None

    def _hooked(self, block: nn.Module, index: int, *, own: bool) -> nn.Module:
        """The block itself, with its call going through the present pass."""
        family: Any = type(block)

        def call(module: nn.Module, x: mx.array, *args: Any, **kwargs: Any) -> mx.array:
            going = self._pass
            if going is None:
                message = "a block was called outside a pass"
                raise RuntimeError(message)
            x = going.before(index, x)
            if own and going.runs(index):
                if index == self.first:
                    going.take(run_blocks(self._own, x, args, kwargs, going.caches))
                x = run_block(family, module, x, *args, **kwargs)
            return going.after(index, x)

        block.__class__ = type(family.__name__, (family,), {"__call__": call})
        return block

    def _every_cache(self, own: list[Cache], position: int) -> list[Cache]:
        """One cache for each block of the model: families read masks off some block's cache.

        An absent block gets an own cache of the same kind where there is one, since that
        knows what it still holds; else an empty one that says the right position.
        """
        by_kind = {_kind(cache): cache for cache in reversed(own)}
        caches: list[Cache] = []
        for index, template in enumerate(self._template):
            if own and self.first <= index < self.end:
                caches.append(own[index - self.first])
            else:
                kind = _kind(template)
                caches.append(by_kind.get(kind) or by_kind.setdefault(kind, _shadow(template, position)))
        return caches


class _Taken(Exception):  # noqa: N818  # not an error: the way out of the family's code
    """What the pass was for is there."""


class _Pass:
    """One way through the model: in front of block `enter` the hidden state is put in, blocks
    from `enter` to `leave` run, and in front of block `leave` it is taken out.
    """

    def __init__(self, *, enter: int, leave: int, hidden: mx.array | None, caches: Sequence[Cache] = ()) -> None:
        self.caches = caches
        self._enter, self._leave = enter, leave
        self._hidden = hidden
        self._taken: mx.array | None = None

    def runs(self, index: int) -> bool:
        """Whether the block computes in this pass."""
        return self._enter <= index < self._leave

    def before(self, index: int, x: mx.array) -> mx.array:
        """What the block gets instead of `x`."""
        if index == self._enter and self._hidden is not None:
            x = self._hidden
        if index == self._leave:
            self._taken = x
            raise _Taken
        return x

    def take(self, result: mx.array | None) -> None:
        """What comes out behind the last block, if all of them ran at once."""
        if result is not None:
            self._taken = result
            raise _Taken

    def after(self, index: int, x: Any) -> mx.array:
        """What follows the block instead of its output `x`."""
        if not isinstance(x, mx.array):
            message = f"a block returns {type(x).__name__}"
            raise UnfitModelError(message)
        if index + 1 == self._enter and self._hidden is not None:
            x = self._hidden
        if index + 1 == self._leave:
            self._taken = x
            raise _Taken
        return x

    def result(self) -> mx.array:
        """What was taken out in front of block `leave`."""
        if self._taken is None:
            message = "the model does not call its blocks in order"
            raise UnfitModelError(message)
        return self._taken


def _find_blocks(model: nn.Module) -> tuple[str, list[nn.Module]]:
    """The list of blocks that the model walks through, and its dotted name."""
    blocks: list[nn.Module] = list(model.layers)
    for name, module in model.named_modules():
        for key, value in module.items():
            if _is_modules(value) and _same(value, blocks):
                return (f"{name}.{key}" if name else key), value
    message = "the list of blocks was not found"
    raise UnfitModelError(message)


def _same(found: list[nn.Module], blocks: list[nn.Module]) -> bool:
    pairs = zip(found, blocks, strict=False)
    return len(found) == len(blocks) and all(one is other for one, other in pairs)


def _shell(module: nn.Module) -> nn.Module:
    """The same class, attributes and sub-modules, without any array.

    Families look at attributes of blocks from outside, such as whether one attends locally.
    """
    shell = type(module).__new__(type(module))
    shell.__dict__.update(vars(module))
    for key, value in module.items():
        if isinstance(value, nn.Module):
            shell[key] = _shell(value)
        elif _is_modules(value):
            shell[key] = [_shell(item) for item in value]
        elif not isinstance(value, mx.array):
            shell[key] = value
    return shell


def _is_modules(value: Any) -> TypeGuard[list[nn.Module]]:
    if not isinstance(value, list):
        return False
    items = cast("list[object]", value)
    return bool(items) and all(isinstance(item, nn.Module) for item in items)


def _kind(cache: Cache) -> tuple[type, int | None]:
    return type(cache), getattr(cache, "max_size", None)


def _shadow(template: Cache, position: int) -> Cache:
    shadow: Any = copy.copy(template)
    if isinstance(getattr(shadow, "offset", None), int):
        shadow.offset = position
    return shadow


def _no_ids(hidden: mx.array) -> mx.array:
    """Token ids of the right shape, where the embedding is not asked for."""
    return mx.zeros(hidden.shape[:2], mx.int32)
