from pathlib import Path

import pytest

from gui.serving.test_conversations import asked
from kafila.domain.ids import ConversationId
from kafila.gui.serving.conversations import Conversation, Stopped, settle
from kafila.gui.serving.store import ConversationStore, TroubleKind

FIRST = ConversationId("a" * 32)
SECOND = ConversationId("b" * 32)


def test_conversations_come_back_newest_first(tmp_path: Path) -> None:
    store = ConversationStore(tmp_path / "conversations")
    older = Conversation(id=FIRST, title="Older", changed_at="2026-01-01")
    newer = Conversation(id=SECOND, title="Newer", changed_at="2026-02-01")
    assert store.load().conversations == ()
    assert store.save(newer) is None
    assert store.save(older) is None
    loaded = store.load()
    assert loaded.conversations == (newer, older)
    assert loaded.troubles == ()


def test_an_answer_that_was_being_written_is_stopped_when_read_again(tmp_path: Path) -> None:
    store = ConversationStore(tmp_path)
    here = asked("One?")
    store.save(here)
    again = store.load().conversations[0]
    assert again == settle(here)
    assert again.turns[0].answer.state == Stopped()


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b'{"version":1}', b"\xff\xfe", b'{"version":1,"conversation":{"id":"../x"}}'],
)
def test_a_broken_file_is_set_aside_and_nothing_is_lost(tmp_path: Path, content: bytes) -> None:
    store = ConversationStore(tmp_path)
    good = Conversation(id=SECOND, title="Good")
    store.save(good)
    (tmp_path / f"{FIRST}.json").write_bytes(content)
    loaded = store.load()
    assert loaded.conversations == (good,)
    assert [trouble.kind for trouble in loaded.troubles] == [TroubleKind.SET_ASIDE]
    assert (tmp_path / loaded.troubles[0].file).read_bytes() == content
    assert store.load().troubles == ()
    (tmp_path / f"{FIRST}.json").write_bytes(content)
    assert store.load().troubles[0].file != loaded.troubles[0].file


def test_a_file_of_a_later_version_stays(tmp_path: Path) -> None:
    path = tmp_path / f"{FIRST}.json"
    path.write_text('{"version": 2, "conversation": {"id": "' + FIRST + '"}}')
    loaded = ConversationStore(tmp_path).load()
    assert loaded.troubles[0].kind is TroubleKind.NEWER
    assert path.exists()


def test_a_save_that_fails_keeps_the_old_file(tmp_path: Path) -> None:
    store = ConversationStore(tmp_path)
    old = Conversation(id=FIRST, title="Old")
    store.save(old)
    # A folder where the new file is written first makes writing fail, for root too.
    (tmp_path / f"{FIRST}.part").mkdir()
    trouble = store.save(Conversation(id=FIRST, title="New"))
    assert trouble is not None
    assert trouble.kind is TroubleKind.NOT_KEPT
    assert store.load().conversations == (old,)


def test_forgetting_removes_the_file(tmp_path: Path) -> None:
    store = ConversationStore(tmp_path)
    store.save(Conversation(id=FIRST))
    assert store.forget(FIRST) is None
    assert store.forget(FIRST) is None
    assert list(tmp_path.iterdir()) == []


def test_without_a_folder_nothing_is_written() -> None:
    store = ConversationStore(None)
    assert store.save(Conversation(id=FIRST)) is None
    assert store.load().conversations == ()


def test_an_id_never_becomes_a_path(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="evil"):
        ConversationStore(tmp_path).save(Conversation(id=ConversationId("../evil")))
