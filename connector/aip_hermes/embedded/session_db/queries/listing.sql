-- Pages of sessions.

-- name: list_roots
-- Rows that stand for a conversation: roots, forks and resets; a compressed one is as recent as its whole chain.
WITH RECURSIVE listed AS (
    SELECT s.*
    FROM sessions AS s
    LEFT JOIN sessions AS parent ON parent.id = s.parent_session_id
    WHERE s.hidden = 0 AND (s.archived = 0 OR :include_archived) AND (:source IS NULL OR s.source = :source)
      AND (
        (s.parent_session_id IS NULL AND COALESCE(s.edge, '') <> 'delegate')
        OR s.edge IN ('branch', 'reset')
        OR (s.edge IS NULL AND parent.end_reason = 'branched' AND s.started_at >= parent.ended_at)
      )
),
chain (root, id, hop) AS (
    SELECT id, id, 0 FROM listed WHERE end_reason = 'compression'
    UNION ALL
    SELECT chain.root, child.id, hop + 1
    FROM chain
    JOIN sessions AS parent ON parent.id = chain.id AND parent.end_reason = 'compression'
    JOIN sessions AS child ON child.parent_session_id = parent.id
    WHERE hop < 100 AND COALESCE(child.edge, 'reset') = 'reset' AND child.source <> 'tool'
),
activity (root, at) AS (
    SELECT chain.root, MAX(COALESCE(
        MAX(s.last_activity_at, s.newest_message_at), s.last_activity_at, s.newest_message_at, s.started_at))
    FROM chain JOIN sessions AS s ON s.id = chain.id GROUP BY chain.root
)
SELECT listed.*, COALESCE(
    activity.at, MAX(listed.last_activity_at, listed.newest_message_at), listed.last_activity_at,
    listed.newest_message_at, listed.started_at) AS last_active
FROM listed LEFT JOIN activity ON activity.root = listed.id
ORDER BY CASE WHEN :by_activity THEN last_active ELSE listed.started_at END DESC, listed.started_at DESC, listed.id DESC
LIMIT :limit OFFSET :offset;

-- name: list_all
-- Every row as it is.
SELECT s.*, COALESCE(
    MAX(s.last_activity_at, s.newest_message_at), s.last_activity_at, s.newest_message_at, s.started_at) AS last_active
FROM sessions AS s
WHERE s.hidden = 0 AND (s.archived = 0 OR :include_archived) AND (:source IS NULL OR s.source = :source)
ORDER BY CASE WHEN :by_activity THEN last_active ELSE s.started_at END DESC, s.started_at DESC, s.id DESC
LIMIT :limit OFFSET :offset;

-- name: fetch_prompts
-- The texts of system prompts; the list of hashes comes as JSON.
SELECT hash, text FROM system_prompts WHERE hash IN (SELECT value FROM json_each(:hashes));
