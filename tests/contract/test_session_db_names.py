"""Each method can be called as the one of hermes-agent: its parameters, in their order, with the same defaults."""

from __future__ import annotations

import ast
import inspect

import pytest

from aip_hermes.embedded import SessionDB
from tests.support.session_stores import OpenStore

_USED = (
    "id, input_tokens=0, output_tokens=0, model=None, cache_read_tokens=0, cache_write_tokens=0, reasoning_tokens=0, "
    "estimated_cost_usd=None, actual_cost_usd=None, cost_status=None, cost_source=None, pricing_version=None, "
    "billing_provider=None, billing_base_url=None, billing_mode=None, api_call_count=0, absolute=False"
)
CALLS = {
    "ensure_session": "id, source='unknown', model=None",
    "append_message": "id, role, content=None, tool_name=None, tool_calls=None, tool_call_id=None, token_count=None, "
    "finish_reason=None, reasoning=None, reasoning_content=None, reasoning_details=None, codex_reasoning_items=None, "
    "codex_message_items=None, platform_message_id=None, observed=False, effect_disposition=None, timestamp=None, "
    "api_content=None, display_kind=None, display_metadata=None, compression_lock_holder=None, "
    "turn_lease_holder=None, turn_lease_ttl_seconds=300.0",
    "append_messages_batch": "id, messages, compression_lock_holder=None, turn_lease_holder=None, chunk_rows=None, "
    "turn_lease_ttl_seconds=300.0",
    "replace_messages": "id, messages, active_only=False, archive_dropped=False",
    "get_session_rich_row": "id, compact_rows=False",
    "get_messages": "id, include_inactive=False, limit=None, offset=0, latest=False, after_id=None",
    "get_messages_as_conversation": "id, include_ancestors=False, include_inactive=False, repair_alternation=False, "
    "include_row_ids=False",
    "message_count": "session_id=None",
    "list_recent_user_messages": "id, limit=20, include_inactive=False",
    "get_messages_around": "id, message_id, window=5",
    "get_anchored_view": "id, message_id, window=5, bookend=3, keep_roles=('user', 'assistant')",
    "set_session_read": "id, read=True",
    "list_sessions_rich": "source=None, sources=None, exclude_sources=None, cwd_prefix=None, limit=20, offset=0, "
    "include_children=False, min_message_count=0, project_compression_tips=True, order_by_last_active=False, "
    "include_archived=False, archived_only=False, id_query=None, search_query=None, compact_rows=False, "
    "include_pinned=False, session_key=None, include_hidden=False",
    "search_sessions": "source=None, limit=20, offset=0, workspace_key=None",
    "search_messages": "query, source_filter=None, exclude_sources=None, role_filter=None, limit=20, offset=0, "
    "sort=None, include_inactive=False, fields=None",
    "delete_session": "id, sessions_dir=None, expected_delete_ids=None",
    "get_session_delete_targets": "id",
    "prune_sessions": "older_than_days=90, source=None, sessions_dir=None",
    "list_prune_candidates": "older_than_days=None, source=None",
    "archive_sessions": "older_than_days=None, source=None",
    "archive_stale_sessions": "idle_days, exclude_pinned=True",
    "update_token_counts": _USED,
    "queue_token_counts": _USED,
    "flush_token_counts": "timeout=5.0",
    "record_auxiliary_usage": "id, task",
    "export_session": "id",
    "export_all": "source=None",
    "import_sessions": "sessions",
    "assert_resume_safe": "id, max_messages=None",
    "archive_and_compact": "id, compacted, model_config_patch=None, watermark=None, lock_holder=None",
    "try_acquire_compression_lock": "id, holder, ttl_seconds=300.0",
    "try_acquire_session_turn_lease": "id, holder, ttl_seconds=300.0, patience_s=None",
    "acquire_session_turn_lease": "id, holder, ttl_seconds=300.0, wait_seconds=1800.0, poll_interval_seconds=1.0, "
    "on_wait=None, wait_notice_interval_seconds=15.0, should_abort=None, acquire_patience_s=0.5",
}


@pytest.mark.requirement("session_db:names")
@pytest.mark.parametrize("name", CALLS)
def test_a_method_takes_what_the_one_of_hermes_agent_takes(name: str) -> None:
    places, defaults = _parameters(CALLS[name])
    given = list(inspect.signature(getattr(SessionDB, name)).parameters.values())[1:]
    assert [parameter.default for parameter in given[:places]] == [inspect.Parameter.empty] * places
    assert {parameter.name: parameter.default for parameter in given[places : places + len(defaults)]} == defaults
    assert all(
        parameter.default is not inspect.Parameter.empty or parameter.kind == parameter.VAR_KEYWORD
        for parameter in given[places:]
    )


@pytest.mark.requirement("session_db:names", "session_db:usage:sums")
async def test_usage_is_taken_by_place_too(session_store: OpenStore) -> None:
    db = session_store()
    await db.create_session("s", "cli")
    await db.update_token_counts("s", 1, 2, "m", 3, 4, 5, 0.5, 0.25, "estimated", "list", "v1", "p", "u", "b", 6)
    await db.queue_token_counts("s", 10, 20, "m", 30)
    assert await db.flush_token_counts()
    row = await db.get_session("s")
    assert row is not None
    assert [row[name] for name in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")] == [
        11, 22, 33, 4
    ]  # fmt: skip
    told = ("reasoning_tokens", "estimated_cost_usd", "actual_cost_usd", "cost_status", "cost_source")
    assert [row[name] for name in told] == [5, 0.5, 0.25, "estimated", "list"]
    told = ("pricing_version", "billing_provider", "billing_base_url", "billing_mode", "api_call_count")
    assert [row[name] for name in told] == ["v1", "p", "u", "b", 6]


def _parameters(text: str) -> tuple[int, dict[str, object]]:
    """Return how many are given by their place, and those that have a default."""
    told = ast.parse(f"lambda {text}: 0", mode="eval").body
    assert isinstance(told, ast.Lambda)
    names = [argument.arg for argument in told.args.args]
    places = len(names) - len(told.args.defaults)
    return places, {
        name: ast.literal_eval(value) for name, value in zip(names[places:], told.args.defaults, strict=True)
    }
