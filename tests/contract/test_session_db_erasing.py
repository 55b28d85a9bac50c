"""What was removed is gone from the disk, not only from answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from aip_hermes.embedded.session_db import SessionDB
from tests.support.session_stores import OpenStore

# No two begin alike: an index stores of a word what differs from the one before it.
WORDS = ("quagga", "vaporetto", "xylophone", "kohlrabi", "jackdaw")

MORE = [{"role": "user", "content": f"goes on {number}"} for number in range(600)]


@pytest.fixture
def on_disk(tmp_path: Path) -> OpenStore:
    """Opens the file of this test; what a database server keeps is its own affair."""
    return lambda: SessionDB(tmp_path / "state.db")


def left_in(folder: Path) -> set[str]:
    content = b"".join(path.read_bytes() for path in folder.iterdir()).lower()
    return {word for word in WORDS if word[1:].encode() in content}


@pytest.mark.requirement("session_db:delete:erased")
@pytest.mark.parametrize(
    "remove",
    [lambda db: db.delete_session("s"), lambda db: db.delete_sessions(["s"]), lambda db: db.prune_sessions(None)],
    ids=["delete", "delete several", "prune"],
)
async def test_no_word_of_a_removed_session_is_left_after_closing(
    tmp_path: Path, on_disk: OpenStore, remove: Callable[[SessionDB], Awaitable[object]]
) -> None:
    async with on_disk() as db:
        await db.create_session("other", "cli")
        await db.append_messages_batch("other", MORE)
        await db.create_session("s", "cli", system_prompt="be a jackdaw")
        await db.append_message("s", "user", "the quagga took a vaporetto", tool_calls=[{"name": "xylophone"}])
        await db.set_session_title("s", "Kohlrabi")
        await db.end_session("s", "done")
        await db.optimize_fts()
        await db.append_messages_batch("other", MORE)
    assert left_in(tmp_path) == set(WORDS)

    async with on_disk() as db:
        await remove(db)
    assert left_in(tmp_path) == set()

    async with on_disk() as db:
        assert len(await db.search_messages("goes on", limit=2_000)) == 1_200
        assert await db.get_session("s") is None
        assert (await db.search_index_status(check=True))["damage"] is None


@pytest.mark.requirement("session_db:delete:erased")
@pytest.mark.parametrize(
    "rewrite", [lambda db: db.clear_messages("s"), lambda db: db.replace_messages("s", [])], ids=["clear", "replace"]
)
async def test_no_word_of_a_removed_message_is_left_after_closing(
    tmp_path: Path, on_disk: OpenStore, rewrite: Callable[[SessionDB], Awaitable[object]]
) -> None:
    async with on_disk() as db:
        await db.create_session("s", "cli")
        await db.append_message("s", "user", " ".join(WORDS))
        await db.create_session("other", "cli")
        await db.append_messages_batch("other", MORE)
    async with on_disk() as db:
        await rewrite(db)
    assert left_in(tmp_path) == set()


@pytest.mark.requirement("session_db:delete:erased")
async def test_a_store_that_removed_nothing_and_one_that_is_closed_twice_close_as_ever(
    on_disk: OpenStore,
) -> None:
    db = on_disk()
    await db.create_session("s", "cli")
    await db.delete_session("nobody")
    await db.close()
    await db.close()
    with pytest.raises(RuntimeError, match="closed"):
        await db.get_session("s")
