-- What PostgreSQL says otherwise than listing.sql: lists come as arrays.

-- name: listable
-- Whether `root`, with its parent beside it, stands for a conversation: a root, a branch or a reset.
(
    (root.parent_session_id IS NULL AND COALESCE(root.edge, '') <> 'delegate')
    OR root.edge IN ('branch', 'reset')
    OR (root.edge IS NULL AND parent.end_reason = 'branched' AND root.started_at >= parent.ended_at)
    OR (
        root.edge IS NULL AND root.session_key = parent.session_key AND root.session_key <> ''
        AND parent.end_reason = ANY (CAST(:reset_reasons AS TEXT[]))
    )
)

-- name: listing_filter
-- What a caller may ask of `root`; each part is switched off by its flag.
(:any_source = 1 OR root.source = ANY (CAST(:sources AS TEXT[])))
AND (:no_exclusions = 1 OR root.source <> ALL (CAST(:exclude_sources AS TEXT[])))
AND (:any_hidden = 1 OR root.hidden = 0)
AND (:any_archived = 1 OR root.archived = :archived)
AND (:any_pinned = 1 OR root.pinned = 1)
AND (:any_id = 1 OR root.id = ANY (CAST(:ids AS TEXT[])))
AND (:any_key = 1 OR root.session_key = :session_key)
AND (
    :any_cwd = 1 OR root.cwd = CAST(:cwd AS TEXT)
    OR left(root.cwd, length(CAST(:cwd AS TEXT)) + 1) IN (CAST(:cwd AS TEXT) || '/', CAST(:cwd AS TEXT) || '\')
)
AND (:any_workspace = 1 OR COALESCE(root.git_repo_root, root.cwd) = :workspace)
AND (:min_message_count <= 0 OR root.message_count >= :min_message_count)

-- name: list_roots_by_activity
-- Rows that stand for a conversation, the one with the newest activity anywhere in its chain first.
SELECT /*listed_columns*/,
    /*listed_tip*/ AS tip_id
FROM sessions AS s
JOIN sessions AS root ON root.id = CASE WHEN s.parent_session_id IS NULL THEN s.id ELSE (
    WITH RECURSIVE up (id, hop) AS (
        SELECT s.id, 0
        UNION ALL
        SELECT above.id, hop + 1
        FROM up
        JOIN sessions AS child ON child.id = up.id AND child.edge IS NULL AND child.source <> 'tool'
        JOIN sessions AS above ON above.id = child.parent_session_id AND above.end_reason = 'compression'
        WHERE hop < 100
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
        WHERE hop < 100
    )
    SELECT 1 FROM tree JOIN sessions AS member ON member.id = tree.id
    WHERE member.active_at > s.active_at OR (member.active_at = s.active_at AND member.id > s.id)
  ))
ORDER BY s.active_at DESC, root.started_at DESC, root.id DESC
LIMIT :limit OFFSET :offset;

-- name: roots_of
-- Of each given row the first segment of its chain.
WITH RECURSIVE up (id, top) AS (
    SELECT given.id COLLATE "C", given.id COLLATE "C" FROM unnest(CAST(:ids AS TEXT[])) AS given (id)
    UNION
    SELECT up.id, above.id
    FROM up
    JOIN sessions AS child ON child.id = up.top AND child.edge IS NULL AND child.source <> 'tool'
    JOIN sessions AS above ON above.id = child.parent_session_id AND above.end_reason = 'compression'
)
SELECT id, top FROM up;

-- name: fetch_listed
-- Several rows by their ids, as a listing shows them.
SELECT /*listed_columns*/ FROM sessions AS root WHERE root.id = ANY (CAST(:ids AS TEXT[]));

-- name: fetch_prompts
-- The texts of system prompts.
SELECT hash, text FROM system_prompts WHERE hash = ANY (CAST(:hashes AS TEXT[]));
