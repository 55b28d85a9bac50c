-- Pages and counts of sessions, in the dialect of SQLite: lists come as JSON, and the order of tables is the order of
-- work, so that a page ends the walk along an index. `root` is the row that is shown.

-- name: listable
-- Whether `root`, with its parent beside it, stands for a conversation: a root, a branch or a reset.
(
    (root.parent_session_id IS NULL AND COALESCE(root.edge, '') <> 'delegate')
    OR root.edge IN ('branch', 'reset')
    OR (root.edge IS NULL AND parent.end_reason = 'branched' AND root.started_at >= parent.ended_at)
    OR (
        root.edge IS NULL AND root.session_key = parent.session_key AND root.session_key <> ''
        AND parent.end_reason IN (SELECT value FROM json_each(:reset_reasons))
    )
)

-- name: listing_filter
-- What a caller may ask of `root`; each part is switched off by its flag.
(:any_source = 1 OR root.source IN (SELECT value FROM json_each(:sources)))
AND (:no_exclusions = 1 OR root.source NOT IN (SELECT value FROM json_each(:exclude_sources)))
AND (:any_hidden = 1 OR root.hidden = 0)
AND (:any_archived = 1 OR root.archived = :archived)
AND (:any_pinned = 1 OR root.pinned = 1)
AND (:any_id = 1 OR root.id IN (SELECT value FROM json_each(:ids)))
AND (:any_key = 1 OR root.session_key = :session_key)
AND (:any_cwd = 1 OR root.cwd = :cwd OR substr(root.cwd, 1, length(:cwd) + 1) IN (:cwd || '/', :cwd || '\'))
AND (:any_workspace = 1 OR COALESCE(root.git_repo_root, root.cwd) = :workspace)
AND (:min_message_count <= 0 OR root.message_count >= :min_message_count)

-- name: listed_columns
-- The members of an entry in their order; the text of the prompt, which many share, is looked up once for all.
root.id, root.source, root.user_id, root.session_key, root.chat_id, root.chat_type, root.thread_id,
root.display_name, root.origin_json, root.expiry_finalized, root.model, root.model_config, NULL AS system_prompt,
root.system_prompt_hash, root.parent_session_id, root.started_at, root.ended_at, root.end_reason,
root.message_count, root.tool_call_count, root.input_tokens, root.output_tokens, root.cache_read_tokens,
root.cache_write_tokens, root.reasoning_tokens, root.cwd, root.git_branch, root.git_repo_root,
root.billing_provider, root.billing_base_url, root.billing_mode, root.estimated_cost_usd, root.actual_cost_usd,
root.cost_status, root.cost_source, root.pricing_version, root.title, root.title_source, root.last_activity_at,
root.last_activity_description, root.last_activity_provenance, root.api_call_count, root.handoff_state,
root.handoff_platform, root.handoff_error, root.compression_failure_cooldown_until, root.compression_failure_error,
root.compression_fallback_streak, root.compression_ineffective_count, root.profile_name, root.rewind_count,
root.archived, root.pinned, root.hidden, root.last_read_at, COALESCE(root.preview, '') AS preview, root.active_at AS
last_active

-- name: listed_tip
-- Where `root` goes on, where that is asked for.
CASE WHEN :project = 1 AND root.end_reason = 'compression' THEN (
    WITH RECURSIVE chain (id, hop) AS (
        SELECT root.id, 0
        UNION ALL
        SELECT (/*next_segment*/), hop + 1
        FROM chain WHERE chain.id IS NOT NULL AND hop < 10000
    )
    SELECT id FROM chain WHERE id IS NOT NULL ORDER BY hop DESC LIMIT 1
) END

-- name: join_in_order
-- A join that keeps the order of its tables as the order of work.
CROSS JOIN;

-- name: list_roots_by_activity
-- Rows that stand for a conversation, the one with the newest activity anywhere in its chain first.
SELECT /*listed_columns*/,
    /*listed_tip*/ AS tip_id
FROM sessions AS s
/*join_in_order*/ sessions AS root ON root.id = CASE WHEN s.parent_session_id IS NULL THEN s.id ELSE (
    WITH RECURSIVE up (id, hop) AS (
        SELECT s.id, 0
        UNION ALL
        SELECT above.id, hop + 1
        FROM up
        JOIN sessions AS child ON child.id = up.id AND child.edge IS NULL AND child.source <> 'tool'
        JOIN sessions AS above ON above.id = child.parent_session_id AND above.end_reason = 'compression'
        WHERE hop < 10000
    )
    SELECT id FROM up ORDER BY hop DESC LIMIT 1
) END
LEFT JOIN sessions AS parent ON parent.id = root.parent_session_id
WHERE (s.end_reason IS NULL OR s.end_reason <> 'compression' OR NOT EXISTS (
    -- A segment that went on later than it was active itself stands for nothing: seen before its chain is followed.
    SELECT 1 FROM sessions AS later
    WHERE later.parent_session_id = s.id AND later.edge IS NULL AND later.source <> 'tool'
      AND (later.active_at > s.active_at OR (later.active_at = s.active_at AND later.id > s.id))
  ))
  AND /*listable*/ AND /*listing_filter*/
  AND (root.end_reason IS NULL OR root.end_reason <> 'compression' OR NOT EXISTS (
    WITH RECURSIVE tree (id, hop) AS (
        SELECT root.id, 0
        UNION ALL
        SELECT child.id, hop + 1
        FROM tree
        JOIN sessions AS above ON above.id = tree.id AND above.end_reason = 'compression'
        JOIN sessions AS child ON child.parent_session_id = above.id AND child.edge IS NULL AND child.source <> 'tool'
        WHERE hop < 10000
    )
    SELECT 1 FROM tree JOIN sessions AS member ON member.id = tree.id
    WHERE member.active_at > s.active_at OR (member.active_at = s.active_at AND member.id > s.id)
  ))
ORDER BY s.active_at DESC, root.started_at DESC, root.id DESC
LIMIT :limit OFFSET :offset;

-- name: list_roots_by_start
-- Rows that stand for a conversation, the one that began last first.
SELECT /*listed_columns*/,
    /*listed_tip*/ AS tip_id
FROM sessions AS root
LEFT JOIN sessions AS parent ON parent.id = root.parent_session_id
WHERE /*listable*/ AND /*listing_filter*/
ORDER BY root.started_at DESC, root.id DESC
LIMIT :limit OFFSET :offset;

-- name: list_rows_by_activity
-- Every row as it is, the one with the newest activity first.
SELECT /*listed_columns*/, NULL AS tip_id FROM sessions AS root
WHERE /*listing_filter*/
ORDER BY root.active_at DESC, root.started_at DESC, root.id DESC
LIMIT :limit OFFSET :offset;

-- name: list_rows_by_start
-- Every row as it is, the one that began last first.
SELECT /*listed_columns*/, NULL AS tip_id FROM sessions AS root
WHERE /*listing_filter*/
ORDER BY root.started_at DESC, root.id DESC
LIMIT :limit OFFSET :offset;

-- name: count_rows
-- How many rows there are, by source.
SELECT root.source, COUNT(*) AS sessions FROM sessions AS root
WHERE /*listing_filter*/
GROUP BY root.source ORDER BY root.source;

-- name: count_listable_rows
-- How many rows stand for a conversation, by source.
SELECT root.source, COUNT(*) AS sessions
FROM sessions AS root
LEFT JOIN sessions AS parent ON parent.id = root.parent_session_id
WHERE /*listable*/ AND /*listing_filter*/
GROUP BY root.source ORDER BY root.source;

-- name: roots_of
-- Of each given row the first segment of its chain.
WITH RECURSIVE up (id, top) AS (
    SELECT value, value FROM json_each(:ids)
    UNION
    SELECT up.id, above.id
    FROM up
    JOIN sessions AS child ON child.id = up.top AND child.edge IS NULL AND child.source <> 'tool'
    JOIN sessions AS above ON above.id = child.parent_session_id AND above.end_reason = 'compression'
)
SELECT id, top FROM up;

-- name: fetch_listed
-- Several rows by their ids, as a listing shows them.
SELECT /*listed_columns*/ FROM sessions AS root WHERE root.id IN (SELECT value FROM json_each(:ids));

-- name: fetch_prompts
-- The texts of system prompts; the list of hashes comes as JSON.
SELECT hash, text FROM system_prompts WHERE hash IN (SELECT value FROM json_each(:hashes));
