"""What a stage takes, what it refuses, and what it never reads."""

import asyncio
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from helpers.on_mlx import answer_alone, write_tiny
from helpers.rings import EPOCH, TILING, Chat, Refused, Ring, open_ring
from kafila.compute.mlx_thread import MlxThread
from kafila.compute.runtime import StageRuntime
from kafila.domain.commands import ChatMessage
from kafila.domain.errors import PeerError, UserError
from kafila.domain.ids import RequestId
from kafila.protocol.digests import TokenDigests
from kafila.protocol.frames import ActivationFrame, RefusalFrame
from kafila.protocol.frames import Refused as Why
from kafila.weights.index import read_header
from kafila.weights.model_folder import read_model
from kafila.weights.source import ModelSource
from kafila.weights.store import ModelStore

pytestmark = pytest.mark.mlx

PROMPT = [ord(letter) for letter in "Tell me of the sea"]
REQUEST = RequestId(1)


def digests_of(ids: list[int], position: int = 0, rows: int | None = None) -> bytes:
    chain = TokenDigests(b"key")
    chain.extend(ids)
    return chain.slice(position, len(ids) - position if rows is None else rows)


async def first_hop(ring: Ring, ids: list[int], *, position: int = 0, last_only: bool = False) -> ActivationFrame:
    frame = await ring.head.begin(
        REQUEST, position, ids[position:], digests=digests_of(ids, position), last_only=last_only
    )
    assert isinstance(frame, ActivationFrame)
    return frame


async def refusal(stage: StageRuntime, frame: ActivationFrame) -> RefusalFrame:
    answer = await stage.forward(frame)
    assert isinstance(answer, RefusalFrame)
    return answer


def changed(frame: ActivationFrame, **what: Any) -> ActivationFrame:
    return msgspec.structs.replace(frame, **what)


async def test_a_frame_keeps_its_head_and_gains_a_span_at_every_hop(thread: MlxThread, tiny: Path) -> None:
    async with open_ring(thread, tiny, (1, 3)) as ring:
        frame = await first_hop(ring, PROMPT)
        assert len(frame.spans_us) == 1
        second = await ring.stages[1].forward(frame)
        assert isinstance(second, ActivationFrame)
        assert second == changed(frame, spans_us=second.spans_us, payload=second.payload)
        assert second.spans_us[0] == frame.spans_us[0]
        assert len(second.spans_us) == 2
        assert second.payload != frame.payload


async def test_only_the_last_stage_cuts_to_the_last_row(thread: MlxThread, tiny: Path) -> None:
    async with open_ring(thread, tiny, (1, 3)) as ring:
        cut: list[int] = []
        last: list[bytes] = []
        for last_only in (True, False):
            frame = await first_hop(ring, PROMPT, last_only=last_only)
            for stage in ring.stages[1:]:
                cut.append(len(frame.payload))
                answer = await stage.forward(frame)
                assert isinstance(answer, ActivationFrame)
                frame = answer
            cut.append(len(frame.payload))
            assert frame.rows == len(PROMPT)
            last.append(frame.payload[-256:])
        full = len(PROMPT) * 256
        assert cut == [full, full, 256, full, full, full]
        assert last[0] == last[1]


async def test_a_ring_of_one_cuts_too(thread: MlxThread, tiny: Path) -> None:
    async with open_ring(thread, tiny, ()) as ring:
        frame = await first_hop(ring, PROMPT, last_only=True)
        assert len(frame.payload) == 256
        sampled = await ring.head.sample(frame, temperature=0, top_p=1)
    assert [sampled.token_id] == await thread.run(answer_alone, tiny, PROMPT, 1)


async def test_frames_of_another_plan_are_refused(thread: MlxThread, tiny: Path) -> None:
    async with open_ring(thread, tiny, (2,)) as ring:
        frame = await first_hop(ring, PROMPT)
        for other in (changed(frame, epoch=EPOCH - 1), changed(frame, tiling=b"another!")):
            answer = await refusal(ring.stages[1], other)
            assert (answer.reason, answer.epoch, answer.tiling) == (Why.OTHER_PLAN, EPOCH, TILING)


async def test_gaps_and_other_text_are_refused(thread: MlxThread, tiny: Path) -> None:
    async with open_ring(thread, tiny, (2,)) as ring:
        stage = ring.stages[1]
        frame = await first_hop(ring, PROMPT)
        answer = await refusal(stage, changed(frame, position=3))
        assert (answer.reason, answer.position, answer.held) == (Why.GAP, 3, 0)
        await stage.forward(frame)
        longer = [*PROMPT, 1, 2]
        step = await first_hop(ring, longer, position=len(PROMPT))
        answer = await refusal(stage, changed(step, position=len(PROMPT) + 1))
        assert (answer.reason, answer.held) == (Why.GAP, len(PROMPT))
        answer = await refusal(stage, changed(step, digests=bytes(len(step.digests))))
        assert (answer.reason, answer.held) == (Why.OTHER_TEXT, len(PROMPT))
        assert isinstance(await stage.forward(step), ActivationFrame)


async def test_the_head_refuses_its_own_sequences_by_the_same_rule(thread: MlxThread, tiny: Path) -> None:
    async with open_ring(thread, tiny, (2,)) as ring:
        answer = await ring.head.begin(REQUEST, 2, [1], digests=digests_of([1, 2, 3], 2), last_only=True)
        assert isinstance(answer, RefusalFrame)
        assert answer.reason == Why.GAP


@pytest.mark.parametrize("family", ["qwen3_next", "gemma3_text"])
async def test_caches_that_forget_cannot_rewind(thread: MlxThread, tmp_path: Path, family: str) -> None:
    folder = await thread.run(write_tiny, tmp_path / "tiny", family=family)
    async with open_ring(thread, folder, (2,)) as ring:
        chat = Chat(ring)
        await chat.ask(PROMPT, 4)
        with pytest.raises(Refused) as refused:
            await chat.ask([*PROMPT[:-4], *b"another end"], 4)
        assert refused.value.frame.reason == Why.CANNOT_REWIND
        # The head starts the sequence anew.
        other = [*PROMPT[:-4], *b"another end"]
        assert await Chat(ring).ask(other, 4) == await thread.run(answer_alone, folder, other, 4)


async def test_frames_that_no_honest_head_sends(thread: MlxThread, tiny: Path) -> None:
    async with open_ring(thread, tiny, (2,), context=64) as ring:
        frame = await first_hop(ring, PROMPT)
        for broken in (
            changed(frame, hidden=32),
            changed(frame, payload=frame.payload[-256:], last_only=True),
            changed(frame, position=60),
        ):
            with pytest.raises(PeerError):
                await ring.stages[1].forward(broken)


async def test_a_conversation_longer_than_the_session_s(thread: MlxThread, tiny: Path) -> None:
    async with open_ring(thread, tiny, (2,), context=16) as ring:
        with pytest.raises(UserError) as refused:
            await first_hop(ring, PROMPT)
        assert "too long" in refused.value.problem.title


async def test_sequences_beyond_the_declared_room_start_anew(thread: MlxThread, tiny: Path) -> None:
    async with open_ring(thread, tiny, (2,), context=256, concurrency=1) as ring:
        one, two = Chat(ring, 1), Chat(ring, 2)
        await one.ask(PROMPT, 2)
        await two.ask(PROMPT, 2)
        with pytest.raises(Refused) as refused:
            await one.ask([*PROMPT, 1], 2)
        assert refused.value.frame.reason == Why.GAP


async def test_a_released_sequence_is_freed_everywhere(thread: MlxThread, tiny: Path) -> None:
    async with open_ring(thread, tiny, (2,)) as ring:
        chat = Chat(ring)
        await chat.ask(PROMPT, 2)
        for stage in ring.stages:
            await stage.release(REQUEST)
        with pytest.raises(Refused):
            await chat.ask([*PROMPT, 1], 2)


async def test_hidden_states_of_another_type_are_taken(thread: MlxThread, tiny: Path) -> None:
    """A computer with a GPU sends 16-bit states to one without."""
    import struct  # noqa: PLC0415

    from kafila.protocol.frames import Dtype  # noqa: PLC0415

    async with open_ring(thread, tiny, (2,)) as ring:
        frame = await first_hop(ring, PROMPT)
        values = struct.unpack(f"<{len(frame.payload) // 4}f", frame.payload)
        half = struct.pack(f"<{len(values)}e", *values)
        answer = await ring.stages[1].forward(changed(frame, dtype=Dtype.FLOAT16, payload=half))
        assert isinstance(answer, ActivationFrame)
        assert answer.dtype == Dtype.FLOAT32


async def test_progress_counts_the_bytes_that_are_resident(thread: MlxThread, tiny: Path) -> None:
    spec = read_model(tiny)
    seen: list[tuple[int, int]] = []
    stage = StageRuntime(thread)
    resident = await stage.load(
        tiny,
        spec,
        first=1,
        end=3,
        head=False,
        epoch=EPOCH,
        tiling=TILING,
        last=False,
        context=64,
        concurrency=1,
        progress=lambda done, total: seen.append((done, total)),
    )
    await asyncio.sleep(0)
    await stage.close()
    assert resident == sum(spec.block_bytes[1:3])
    assert seen == [(spec.block_bytes[1], resident), (resident, resident)]


async def test_loading_that_was_given_up_leaves_nothing_behind(thread: MlxThread, demo: Path) -> None:
    spec = read_model(demo)
    stage = StageRuntime(thread)
    begun = asyncio.Event()

    async def load(end: int) -> int:
        return await stage.load(
            demo,
            spec,
            first=0,
            end=end,
            head=False,
            epoch=EPOCH,
            tiling=TILING,
            last=False,
            context=64,
            concurrency=1,
            progress=lambda _done, _total: begun.set(),
        )

    async with asyncio.TaskGroup() as tasks:
        loading = tasks.create_task(load(30))
        await begun.wait()
        loading.cancel()
    with pytest.raises(RuntimeError):
        await stage.release(REQUEST)
    assert await load(1) == spec.block_bytes[0]
    await stage.close()


def poison(folder: Path, kept: tuple[str, ...]) -> None:
    """Overwrite every tensor that a member has no business with by NaNs."""
    file = folder / "model.safetensors"
    data = bytearray(file.read_bytes())
    for tensor in read_header(file).values():
        if not tensor.name.startswith(kept):
            data[tensor.start : tensor.end] = b"\xff" * tensor.size
    file.write_bytes(data)


async def test_no_member_computes_with_what_others_hold(thread: MlxThread, tiny: Path, tmp_path: Path) -> None:
    kept = (("model.layers.0.", "model.embed", "model.norm", "lm_head"), ("model.layers.1.", "model.layers.2."))
    folders: list[Path] = []
    for number, own in enumerate((*kept, ("model.layers.3.",))):
        folders.append(await thread.run(write_tiny, tmp_path / str(number)))
        poison(folders[-1], own)
    async with open_ring(thread, tiny, (1, 3), folders=folders) as ring:
        answer = await Chat(ring).ask(PROMPT, 16)
    assert answer == await thread.run(answer_alone, tiny, PROMPT, 16)


@pytest.mark.skipif(sys.platform != "linux", reason="counts bytes read in /proc")
async def test_no_byte_of_other_blocks_is_read(thread: MlxThread, demo: Path) -> None:
    def bytes_read() -> int:
        return int(Path("/proc/self/io").read_text().split()[1])

    spec = read_model(demo)
    stage = StageRuntime(thread)
    await thread.run(lambda: None)
    before = bytes_read()
    resident = await stage.load(
        demo,
        spec,
        first=10,
        end=12,
        head=False,
        epoch=EPOCH,
        tiling=TILING,
        last=False,
        context=64,
        concurrency=1,
        progress=lambda _done, _total: None,
    )
    read = bytes_read() - before
    await stage.close()
    assert resident == sum(spec.block_bytes[10:12])
    assert read < resident + (1 << 20)


async def test_shares_that_were_fetched_run_like_the_whole(thread: MlxThread, tiny: Path, tmp_path: Path) -> None:
    spec = read_model(tiny)
    source = ModelSource(tiny)

    async def read(file: str, start: int, end: int) -> bytes:
        return source.read(file, start, end)

    cuts = (0, 1, 3, 4)
    folders = [
        await ModelStore(tmp_path / str(first)).folder_for(
            spec, first=first, end=end, head=first == 0, read=read, progress=lambda _done, _total: None
        )
        for first, end in pairwise(cuts)
    ]
    async with open_ring(thread, tiny, cuts[1:-1], folders=folders) as ring:
        assert sum(ring.resident) == spec.weight_bytes
        answer = await Chat(ring).ask(PROMPT, 16)
    assert answer == await thread.run(answer_alone, tiny, PROMPT, 16)


@pytest.mark.parametrize("damage", ["truncated", "other blocks", "no tokenizer", "garbled config"])
async def test_a_folder_that_lacks_something_is_refused_when_loaded(
    thread: MlxThread, tiny: Path, tmp_path: Path, damage: str
) -> None:
    folder = await thread.run(write_tiny, tmp_path / "model")
    spec = read_model(tiny)
    weights = folder / "model.safetensors"
    match damage:
        case "truncated":
            weights.write_bytes(weights.read_bytes()[:-100])
        case "other blocks":
            data = weights.read_bytes().replace(b"model.layers.0.", b"model.layers.7.")
            weights.write_bytes(data)
        case "no tokenizer":
            (folder / "tokenizer.json").unlink()
        case _:
            (folder / "config.json").write_text("[]")
    stage = StageRuntime(thread)
    with pytest.raises(UserError) as refused:
        await stage.load(
            folder,
            spec,
            first=0,
            end=2,
            head=True,
            epoch=EPOCH,
            tiling=TILING,
            last=False,
            context=64,
            concurrency=1,
            progress=lambda _done, _total: None,
        )
    assert "“tiny”" in refused.value.problem.title
    with pytest.raises(RuntimeError):
        await stage.release(REQUEST)


async def test_text_comes_in_whole_characters(thread: MlxThread, tiny: Path) -> None:
    text = "naïve 🙂 „sea“ ∑"
    async with open_ring(thread, tiny, ()) as ring:
        worker = ring.head._loaded  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        await ring.head.begin_text(REQUEST)
        parts = [(await thread.run(worker.text.add, REQUEST, byte))[0] for byte in text.encode()]
        assert "".join(parts) == text
        assert all("\ufffd" not in part for part in parts)
        await ring.head.begin_text(REQUEST)
        for byte in "🙂".encode()[:3]:
            assert (await thread.run(worker.text.add, REQUEST, byte)) == ("", False)
        assert await ring.head.end_text(REQUEST) == ""
        assert (await thread.run(worker.text.add, REQUEST, 257)) == ("", True)


async def test_a_conversation_in_the_model_s_own_template(thread: MlxThread, tiny: Path) -> None:
    async with open_ring(thread, tiny, ()) as ring:
        ids = await ring.head.prompt_ids(
            [ChatMessage(role="user", text="Hi"), ChatMessage(role="assistant", text="Ho")]
        )
    assert ids == (256, *b"u:Hi", 257, 256, *b"a:Ho", 257, 256, *b"a:")


async def test_a_model_without_a_template_cannot_chat(thread: MlxThread, tmp_path: Path) -> None:
    folder = await thread.run(write_tiny, tmp_path / "base")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    async with open_ring(thread, folder, ()) as ring:
        with pytest.raises(UserError):
            await ring.head.prompt_ids([ChatMessage(role="user", text="Hi")])


async def test_a_template_that_objects(thread: MlxThread, tmp_path: Path) -> None:
    folder = await thread.run(write_tiny, tmp_path / "strict")
    settings = '{"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": "{{ raise_exception(1) }}"}'
    (folder / "tokenizer_config.json").write_text(settings)
    async with open_ring(thread, folder, ()) as ring:
        with pytest.raises(UserError):
            await ring.head.prompt_ids([ChatMessage(role="system", text="Be brief")])


async def test_sampling_follows_temperature_and_top_p(thread: MlxThread, tiny: Path) -> None:
    async with open_ring(thread, tiny, ()) as ring:
        frame = await first_hop(ring, PROMPT, last_only=True)

        async def tokens(temperature: float, top_p: float) -> set[int]:
            sampled = [await ring.head.sample(frame, temperature=temperature, top_p=top_p) for _ in range(40)]
            return {one.token_id for one in sampled}

        greedy = await tokens(0, 1)
        assert len(greedy) == 1
        assert len(await tokens(2.0, 1)) > 5
        assert await tokens(2.0, 1e-6) == greedy
