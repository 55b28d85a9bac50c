-- Rows of sessions and the prompts they share.

-- name: fetch_session
-- One row with the text of its system prompt.
SELECT s.*, prompt.text AS system_prompt
FROM sessions AS s
LEFT JOIN system_prompts AS prompt ON prompt.hash = s.system_prompt_hash
WHERE s.id = :id;

-- name: how_ended
-- Whether and why a row has ended.
SELECT ended_at, end_reason FROM sessions WHERE id = :id;

-- name: enriched_places
-- Of a row that may be there: what decides how another create of it fills its places.
SELECT model_config, parent_session_id, system_prompt_hash FROM sessions WHERE id = :id;

-- name: session_exists
-- Whether a row has this id.
SELECT 1 AS present FROM sessions WHERE id = :id;

-- name: insert_bare_session
-- A new row that begins with nothing but its source and its model, unless the id is taken.
INSERT INTO sessions (id, source, model, started_at) VALUES (:id, :source, :model, :started_at)
ON CONFLICT (id) DO NOTHING;

-- name: insert_session
-- A new row; an existing one keeps every value it has and only gets its empty places filled.
INSERT INTO sessions (
    id, source, user_id, session_key, chat_id, chat_type, thread_id, display_name, origin_json, model, model_config,
    system_prompt_hash, parent_session_id, started_at, cwd, git_branch, git_repo_root, profile_name, edge
) VALUES (
    :id, :source, :user_id, :session_key, :chat_id, :chat_type, :thread_id, :display_name, :origin_json, :model,
    :model_config, :system_prompt_hash, :parent_session_id, :started_at, :cwd, :git_branch, :git_repo_root,
    :profile_name, :edge
)
ON CONFLICT (id) DO UPDATE SET
    session_key = COALESCE(sessions.session_key, excluded.session_key),
    chat_id = COALESCE(sessions.chat_id, excluded.chat_id),
    chat_type = COALESCE(sessions.chat_type, excluded.chat_type),
    thread_id = COALESCE(sessions.thread_id, excluded.thread_id),
    display_name = COALESCE(sessions.display_name, excluded.display_name),
    origin_json = COALESCE(sessions.origin_json, excluded.origin_json),
    model = COALESCE(sessions.model, excluded.model),
    model_config = excluded.model_config,
    system_prompt_hash = COALESCE(sessions.system_prompt_hash, excluded.system_prompt_hash),
    parent_session_id = COALESCE(sessions.parent_session_id, excluded.parent_session_id),
    cwd = COALESCE(sessions.cwd, excluded.cwd),
    git_branch = COALESCE(sessions.git_branch, excluded.git_branch),
    git_repo_root = COALESCE(sessions.git_repo_root, excluded.git_repo_root),
    profile_name = COALESCE(sessions.profile_name, excluded.profile_name),
    edge = excluded.edge;

-- name: keep_prompt
-- A system prompt, once for all rows that use it.
INSERT INTO system_prompts (hash, text) VALUES (:hash, :text) ON CONFLICT (hash) DO NOTHING;

-- name: end_session
-- The first reason wins: a row that has ended stays as it is.
UPDATE sessions SET ended_at = :ended_at, end_reason = :end_reason WHERE id = :id AND ended_at IS NULL;

-- name: reopen_session
-- A row goes on.
UPDATE sessions SET ended_at = NULL, end_reason = NULL WHERE id = :id;

-- name: unmarked_resets
-- Children that are known as a new beginning by the reason alone that ended the row; the reason comes with them.
SELECT child.id, child.model_config, parent.end_reason
FROM sessions AS parent
JOIN sessions AS child ON child.parent_session_id = parent.id
WHERE parent.id = :id AND parent.ended_at IS NOT NULL AND child.edge IS NULL
  AND child.session_key = parent.session_key AND child.session_key <> '';

-- name: unmarked_branches
-- Children that are known as branches by the reason alone that ended the row.
SELECT child.id, child.model_config, parent.end_reason
FROM sessions AS parent
JOIN sessions AS child ON child.parent_session_id = parent.id
WHERE parent.id = :id AND parent.end_reason = 'branched' AND child.edge IS NULL
  AND child.started_at >= parent.ended_at;

-- name: title_holder
-- The other row that has this title, letter by letter.
SELECT id FROM sessions WHERE title = :title AND id <> :id;

-- name: write_title
-- A title, or none, with where it came from.
UPDATE sessions SET title = :title, title_source = :title_source WHERE id = :id;

-- name: fetch_title
-- A title and where it came from.
SELECT title, title_source FROM sessions WHERE id = :id;

-- name: write_title_source
-- Another origin for the same title.
UPDATE sessions SET title_source = :title_source WHERE id = :id AND title IS NOT NULL;

-- name: lineage_rows
-- Rows whose titles begin like the lineage: the bare one and candidates for a number.
SELECT id, title, started_at FROM sessions
WHERE title = :base OR (title >= :base || ' #' AND title < :base || ' $');

-- name: session_by_title
-- The row with this title.
SELECT id FROM sessions WHERE title = :title;

-- name: add_to_transcript
-- Counters, last message time and preview of a row that messages are added to, unless a compression ended it.
UPDATE sessions SET
    message_count = message_count + :messages,
    tool_call_count = tool_call_count + :tool_calls,
    newest_message_at = CASE WHEN newest_message_at > :newest THEN newest_message_at ELSE :newest END,
    preview = COALESCE(preview, :preview)
WHERE id = :id AND (:into_compressed = 1 OR end_reason IS NULL OR end_reason <> 'compression');

-- name: sum_up_session
-- What a transcript contributes to its row, written anew. Counters may tell of hidden rows, too, never of fewer than are
-- live: rows that come back after a compaction were counted out by it.
UPDATE sessions SET
    newest_message_at = :newest,
    preview = :preview,
    message_count = CASE WHEN :counters = 1 OR message_count < :messages THEN :messages ELSE message_count END,
    tool_call_count = CASE WHEN :counters = 1 OR tool_call_count < :tool_calls THEN :tool_calls ELSE tool_call_count END
WHERE id = :id;

-- name: restart_counters
-- Before the live rows are counted again.
UPDATE sessions SET message_count = 0, tool_call_count = 0 WHERE id = :id;
