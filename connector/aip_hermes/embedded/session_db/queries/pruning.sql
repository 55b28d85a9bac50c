-- Choosing rows by age and by what they are. A text that is null and a bound without end leave their column alone.

-- name: selected_sessions
-- Ended or open rows that a selection means, the longest inactive first; texts are compared as they are written.
SELECT id, active_at AS last_active FROM (
    SELECT
        s.*,
        CASE WHEN s.ended_at IS NULL THEN 0 ELSE 1 END AS has_ended,
        s.input_tokens + s.output_tokens AS tokens,
        COALESCE(s.actual_cost_usd, s.estimated_cost_usd, 0) AS cost
    FROM sessions AS s
) AS chosen
WHERE has_ended = :ended
  AND active_at < :last_active_before AND active_at >= :last_active_after
  AND started_at < :started_before AND started_at >= :started_after
  AND message_count BETWEEN :min_messages AND :max_messages
  AND tool_call_count BETWEEN :min_tool_calls AND :max_tool_calls
  AND tokens BETWEEN :min_tokens AND :max_tokens
  AND cost BETWEEN :min_cost AND :max_cost
  AND (:archived = -1 OR archived = :archived)
  AND (CAST(:source AS TEXT) IS NULL OR source = :source)
  AND (CAST(:end_reason AS TEXT) IS NULL OR end_reason = :end_reason)
  AND (CAST(:provider AS TEXT) IS NULL OR billing_provider = :provider)
  AND (CAST(:user_id AS TEXT) IS NULL OR user_id = :user_id)
  AND (CAST(:chat_id AS TEXT) IS NULL OR chat_id = :chat_id)
  AND (CAST(:chat_type AS TEXT) IS NULL OR chat_type = :chat_type)
  AND (CAST(:title_like AS TEXT) IS NULL OR LOWER(title) LIKE LOWER(CAST(:title_like AS TEXT)) ESCAPE '\')
  AND (CAST(:model_like AS TEXT) IS NULL OR LOWER(model) LIKE LOWER(CAST(:model_like AS TEXT)) ESCAPE '\')
  AND (CAST(:branch_like AS TEXT) IS NULL OR LOWER(git_branch) LIKE LOWER(CAST(:branch_like AS TEXT)) ESCAPE '\')
  AND (
    CAST(:cwd_prefix AS TEXT) IS NULL OR cwd = :cwd_prefix
    OR SUBSTR(cwd, 1, LENGTH(CAST(:cwd_prefix AS TEXT)) + 1) = CAST(:cwd_prefix AS TEXT) || '/'
  )
ORDER BY active_at, id
LIMIT :limit;

-- name: archive_session
-- One row, put away.
UPDATE sessions SET archived = 1 WHERE id = :id AND archived = 0;

-- name: archive_idle
-- Conversations idle since a moment, each with the rows that compressions ended before it.
WITH RECURSIVE idle (id) AS (
    SELECT s.id FROM sessions AS s
    WHERE s.archived = 0 AND (s.pinned = 0 OR :pinned_too = 1)
      AND s.active_at < :before
      AND NOT (COALESCE(s.end_reason, '') = 'compression' AND EXISTS (
        SELECT 1 FROM sessions AS child
        WHERE child.parent_session_id = s.id AND COALESCE(child.edge, 'reset') = 'reset' AND child.source <> 'tool'
      ))
    UNION
    SELECT parent.id FROM idle
    JOIN sessions AS child ON child.id = idle.id AND COALESCE(child.edge, 'reset') = 'reset' AND child.source <> 'tool'
    JOIN sessions AS parent ON parent.id = child.parent_session_id AND parent.end_reason = 'compression'
)
UPDATE sessions SET archived = 1 WHERE archived = 0 AND id IN (SELECT id FROM idle) RETURNING id;

-- name: logical_size
-- Bytes that the rows and indexes take, free pages left out.
SELECT (total.page_count - free.freelist_count) * size.page_size AS bytes
FROM pragma_page_count() AS total, pragma_freelist_count() AS free, pragma_page_size() AS size;

-- name: store_figures
-- How much there is.
SELECT
    (SELECT COUNT(*) FROM sessions) AS sessions,
    (SELECT COUNT(*) FROM sessions WHERE ended_at IS NULL) AS open,
    (SELECT COUNT(*) FROM messages) AS messages;

-- name: leases_in_force
-- Who has a conversation or a session to themselves now.
SELECT kind, holder FROM leases WHERE expires_at > :now ORDER BY kind, subject;
