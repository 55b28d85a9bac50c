-- Chains of rows. A continuation is an unmarked child of a row that a compression ended.

-- name: compression_tip
-- The end of the chain that begins at a row: the row itself where it wasn't compressed. At most 100 steps.
WITH RECURSIVE chain (id, hop) AS (
    SELECT :id, 0
    UNION ALL
    SELECT (
        SELECT child.id
        FROM sessions AS parent
        JOIN sessions AS child ON child.parent_session_id = parent.id
        WHERE parent.id = chain.id AND parent.end_reason = 'compression'
          AND COALESCE(child.edge, 'reset') = 'reset' AND child.source <> 'tool'
        ORDER BY
            COALESCE(child.end_reason, '') = 'compression' DESC,
            child.ended_at IS NULL DESC,
            COALESCE(MAX(child.last_activity_at, child.newest_message_at), child.last_activity_at,
                     child.newest_message_at, child.started_at) DESC,
            child.started_at DESC,
            child.id DESC
        LIMIT 1
    ), hop + 1
    FROM chain WHERE chain.id IS NOT NULL AND hop < 100
)
SELECT id FROM chain WHERE id IS NOT NULL ORDER BY hop DESC LIMIT 1;

-- name: compression_ancestors
-- The rows that a compression ended on the way up from a row, nearest first.
WITH RECURSIVE up (id, hop) AS (
    SELECT :id, 0
    UNION ALL
    SELECT parent.id, hop + 1
    FROM up
    JOIN sessions AS child ON child.id = up.id AND COALESCE(child.edge, 'reset') = 'reset'
    JOIN sessions AS parent ON parent.id = child.parent_session_id AND parent.end_reason = 'compression'
    WHERE hop < 100
)
SELECT id FROM up WHERE hop > 0 ORDER BY hop;

-- name: deepest_unmarked_child
-- Along the newest unmarked child of any row, the last one that has messages. At most 32 steps.
WITH RECURSIVE walk (id, hop) AS (
    SELECT :id, 0
    UNION ALL
    SELECT (
        SELECT child.id FROM sessions AS child
        WHERE child.parent_session_id = walk.id AND child.edge IS NULL AND child.source <> 'tool'
        ORDER BY child.started_at DESC, child.id DESC LIMIT 1
    ), hop + 1
    FROM walk WHERE walk.id IS NOT NULL AND hop < 32
)
SELECT id FROM walk
WHERE id IS NOT NULL AND EXISTS (SELECT 1 FROM messages WHERE messages.session_id = walk.id)
ORDER BY hop DESC LIMIT 1;
