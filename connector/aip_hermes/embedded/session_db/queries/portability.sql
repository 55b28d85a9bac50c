-- Sessions that leave for another store, and those that come from one.

-- name: sessions_to_export
-- Every row, or those of one source, parents before their children as far as they began before them.
SELECT id FROM sessions WHERE CAST(:source AS TEXT) IS NULL OR source = :source ORDER BY started_at, id;

-- name: insert_imported
-- A row as its store had it; title and parent come afterwards, counters with the messages.
INSERT INTO sessions (
    id, source, user_id, session_key, chat_id, chat_type, thread_id, display_name, origin_json, expiry_finalized, model,
    model_config, system_prompt_hash, started_at, ended_at, end_reason, input_tokens, output_tokens, cache_read_tokens,
    cache_write_tokens, reasoning_tokens, cwd, git_branch, git_repo_root, billing_provider, billing_base_url,
    billing_mode, estimated_cost_usd, actual_cost_usd, cost_status, cost_source, pricing_version, last_activity_at,
    last_activity_description, last_activity_provenance, api_call_count, handoff_state, handoff_platform, handoff_error,
    compression_failure_cooldown_until, compression_failure_error, compression_fallback_streak,
    compression_ineffective_count, profile_name, rewind_count, archived, pinned, hidden, last_read_at, edge
) VALUES (
    :id, :source, :user_id, :session_key, :chat_id, :chat_type, :thread_id, :display_name, :origin_json,
    :expiry_finalized, :model, :model_config, :system_prompt_hash, :started_at, :ended_at, :end_reason, :input_tokens,
    :output_tokens, :cache_read_tokens, :cache_write_tokens, :reasoning_tokens, :cwd, :git_branch, :git_repo_root,
    :billing_provider, :billing_base_url, :billing_mode, :estimated_cost_usd, :actual_cost_usd, :cost_status,
    :cost_source, :pricing_version, :last_activity_at, :last_activity_description, :last_activity_provenance,
    :api_call_count, :handoff_state, :handoff_platform, :handoff_error, :compression_failure_cooldown_until,
    :compression_failure_error, :compression_fallback_streak, :compression_ineffective_count, :profile_name,
    :rewind_count, :archived, :pinned, :hidden, :last_read_at, :edge
);

-- name: raise_counters
-- Counters tell of rewound rows, too, which an export leaves out; they never tell of fewer than there are.
UPDATE sessions SET
    message_count = CASE WHEN message_count < :message_count THEN :message_count ELSE message_count END,
    tool_call_count = CASE WHEN tool_call_count < :tool_call_count THEN :tool_call_count ELSE tool_call_count END
WHERE id = :id;

-- name: link_parent
-- The parent of a row that came without one.
UPDATE sessions SET parent_session_id = :parent WHERE id = :id;
