"""Opening and closing a session store, and which files it leaves alone."""

from __future__ import annotations

import inspect
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from aip_hermes.database import StoreClosed, StoreRefused, StoreUnavailable
from aip_hermes.database.migrations import apply, load
from aip_hermes.embedded.session_db import (
    CompressionSessionBusyError,
    CompressionSessionClosedError,
    SessionCompressionInProgressError,
    SessionDB,
    SessionTurnLeaseLostError,
    UnknownSession,
    classify_session_failure,
)
from aip_hermes.embedded.session_db.store_file import APPLICATION_ID
from tests.support.session_stores import OpenStore


@pytest.mark.requirement("session_db:open:lazy")
async def test_a_store_that_nobody_asks_makes_no_file(tmp_path: Path) -> None:
    async with SessionDB(tmp_path / "deep" / "down" / "state.db"):
        pass
    assert not (tmp_path / "deep").exists()


@pytest.mark.requirement("session_db:open:lazy")
async def test_without_a_place_it_is_the_state_file_of_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "home"))
    async with SessionDB() as db:
        assert not (tmp_path / "home").exists()
        await db.create_session("s", "cli")
    async with SessionDB(str(tmp_path / "home" / "state.db")) as db:
        assert await db.get_session("s") is not None


@pytest.mark.requirement("session_db:open:lazy")
async def test_a_closed_store_says_so_and_can_be_closed_again(session_store: OpenStore) -> None:
    db = session_store()
    await db.create_session("s", "cli")
    await db.close()
    await db.close()

    with pytest.raises(RuntimeError, match="SessionDB is closed"):
        await db.append_message("s", "user", "late")
    with pytest.raises(RuntimeError, match="SessionDB is closed"):
        await db.get_session("s")


@pytest.mark.requirement("session_db:open:refused")
async def test_a_file_of_a_newer_program_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with SessionDB(path) as db:
        await db.create_session("s", "cli")
    with sqlite3.connect(path) as newer:
        newer.execute("INSERT INTO schema_migrations VALUES (9999, 'of_tomorrow', 'x', 0)")
    newer.close()
    before = path.read_bytes()

    for read_only in (False, True):
        async with SessionDB(path, read_only) as db:
            with pytest.raises(StoreRefused, match="9999"):
                await db.get_session("s")
    assert path.read_bytes() == before


@pytest.mark.requirement("session_db:open:refused")
async def test_a_read_only_store_reads_and_refuses_to_write(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with SessionDB(path) as db:
        await db.create_session("s", "cli")
    async with SessionDB(path, read_only=True) as db:
        assert await db.session_count() == 1
        with pytest.raises(StoreUnavailable):
            await db.append_message("s", "user", "no")


@pytest.mark.requirement("session_db:failures")
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (CompressionSessionClosedError("a", tip="b"), "compression_closed"),
        (CompressionSessionBusyError("a"), "compression"),
        (SessionCompressionInProgressError("a"), "compression"),
        (SessionTurnLeaseLostError("a"), "turn_lease"),
        (StoreUnavailable("x", kind="locked"), "locked"),
        (StoreUnavailable("x", kind="corrupt"), "corrupt"),
        (StoreUnavailable("x", kind="disk_full"), "disk"),
        (StoreUnavailable("x", kind="io"), "disk"),
        (StoreClosed(), "unknown"),
        (UnknownSession("a"), "unknown"),
        (ValueError("x"), "unknown"),
    ],
)
def test_a_failure_is_told_by_kind(error: Exception, kind: str) -> None:
    wrapped = RuntimeError("turn failed")
    wrapped.__cause__ = error
    assert classify_session_failure(error) == classify_session_failure(wrapped) == kind


SIGNATURES = {
    "create_session": "session_id source",
    "ensure_session": "session_id source model",
    "append_message": "session_id role content tool_name tool_calls tool_call_id token_count finish_reason reasoning "
    "reasoning_content reasoning_details codex_reasoning_items codex_message_items platform_message_id observed "
    "effect_disposition timestamp api_content display_kind display_metadata compression_lock_holder "
    "turn_lease_holder turn_lease_ttl_seconds",
    "append_messages_batch": "session_id messages compression_lock_holder turn_lease_holder chunk_rows "
    "turn_lease_ttl_seconds",
    "replace_messages": "session_id messages active_only archive_dropped",
    "clear_messages": "session_id",
    "set_latest_user_api_content": "session_id content api_content",
    "get_session": "session_id",
    "get_session_rich_row": "session_id compact_rows",
    "get_session_by_title": "title",
    "resolve_session_id": "session_id_or_prefix",
    "resolve_session_by_title": "title",
    "get_messages": "session_id include_inactive limit offset latest after_id",
    "get_messages_as_conversation": "session_id include_ancestors include_inactive repair_alternation include_row_ids",
    "message_count": "session_id",
    "get_message_role": "session_id row_id",
    "latest_message_row_id": "session_id role offset require_text",
    "latest_user_message_row_id": "session_id",
    "has_platform_message_id": "session_id platform_message_id",
    "has_archived_messages": "session_id",
    "get_first_assistant_text": "session_id",
    "list_recent_user_messages": "session_id limit include_inactive",
    "get_messages_around": "session_id around_message_id window",
    "get_anchored_view": "session_id around_message_id window bookend keep_roles",
    "sanitize_title": "title",
    "set_session_title": "session_id title",
    "set_auto_title": "session_id title source",
    "set_auto_title_if_empty": "session_id title",
    "set_session_title_source": "session_id source",
    "get_session_title": "session_id",
    "get_session_title_source": "session_id",
    "get_next_title_in_lineage": "base_title",
    "end_session": "session_id end_reason",
    "reopen_session": "session_id",
    "set_session_archived": "session_id archived",
    "set_session_pinned": "session_id pinned",
    "set_session_hidden": "session_id hidden",
    "set_session_read": "session_id read",
    "session_unread": "session_row",
    "list_sessions_rich": "source sources exclude_sources cwd_prefix limit offset include_children min_message_count "
    "project_compression_tips order_by_last_active include_archived archived_only id_query search_query compact_rows "
    "include_pinned session_key include_hidden",
    "search_sessions": "source limit offset workspace_key",
    "search_sessions_by_id": "query limit include_archived source sources exclude_sources",
    "session_count": "source sources cwd_prefix min_message_count include_archived archived_only exclude_children "
    "exclude_sources",
    "session_count_by_source": "include_archived archived_only exclude_children",
    "session_count_ge": "n",
    "count_empty_sessions": "",
    "distinct_session_cwds": "include_archived",
    "list_skill_scaffolded_sessions": "limit",
    "rewind_to_message": "session_id target_message_id",
    "restore_rewound": "session_id since_message_id",
    "update_session_cwd": "session_id cwd git_branch git_repo_root replace_git_meta",
    "update_session_meta": "session_id model_config_json model",
    "update_session_model": "session_id model",
    "update_system_prompt": "session_id system_prompt",
    "update_session_runtime_lock": "session_id model provider model_options route_source confirmed",
    "update_session_billing_route": "session_id provider base_url billing_mode",
    "patch_session_model_config": "session_id patch",
    "get_session_model_config_value": "session_id key default",
    "backfill_repo_roots": "cwd_to_root",
    "get_meta": "key",
    "set_meta": "key value",
    "touch_session_activity": "session_id ts description provenance",
    "clear_session_activity_labels": "session_id",
    "get_session_activity": "session_id",
    "get_compression_tip": "session_id",
    "resolve_resume_session_id": "session_id",
    "get_resume_conversations": "session_id",
    "get_ancestor_display_prefix": "session_id",
    "get_resume_message_count": "session_id",
    "assert_resume_safe": "session_id max_messages",
    "assert_export_safe": "session_id max_messages",
    "get_compression_lineage": "session_id",
    "get_conversation_root": "session_id",
    "find_live_compression_child": "parent_session_id",
    "close": "",
}
SYNCHRONOUS = {"sanitize_title", "session_unread"}


@pytest.mark.requirement("session_db:names")
@pytest.mark.parametrize("name", SIGNATURES)
def test_a_method_can_be_called_as_the_one_of_hermes_agent(name: str) -> None:
    method = inspect.getattr_static(SessionDB, name)
    function = method.__func__ if isinstance(method, staticmethod) else method
    assert inspect.iscoroutinefunction(function) is (name not in SYNCHRONOUS)
    wanted = SIGNATURES[name].split()
    given = [p for p in inspect.signature(function).parameters if p != "self"]
    assert given[: len(wanted)] == wanted


@pytest.mark.requirement("session_db:open:migrated")
async def test_a_file_of_the_first_release_is_brought_up_with_all_that_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    first = load("aip_hermes.embedded.session_db.migrations")[:2]
    with closing(sqlite3.connect(path, isolation_level=None)) as old:
        old.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        apply(old, first, name=path.name, now_ms=0)
        old.execute(
            "INSERT INTO sessions (id, source, started_at, end_reason, ended_at) VALUES ('a','cli',1,'compression',3)"
        )
        old.execute(
            "INSERT INTO sessions (id, source, started_at, parent_session_id, message_count, newest_message_at,"
            " preview) VALUES ('b', 'cli', 2, 'a', 1, 9, 'hello')"
        )
        old.execute("INSERT INTO messages (session_id, role, content, timestamp) VALUES ('b', 'user', 'hello', 9)")

    async with SessionDB(path, read_only=True) as db:
        with pytest.raises(StoreRefused):
            await db.get_session("a")
    async with SessionDB(path) as db:
        (entry,) = await db.list_sessions_rich(order_by_last_active=True)
        assert (entry["id"], entry["_lineage_root_id"], entry["last_active"], entry["preview"]) == (
            "b",
            "a",
            9.0,
            "hello",
        )
        assert await db.resolve_resume_session_id("a") == "b"
        assert [hit["session_id"] for hit in await db.search_messages("hello")] == ["b"]
        await db.append_message("b", "assistant", "hi")
        assert await db.message_count("b") == 2
