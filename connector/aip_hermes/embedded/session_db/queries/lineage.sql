-- Chains of rows. A continuation is an unmarked child, of no tool, of a row that a compression ended.

-- name: given_id
-- An id to begin with, compared as the ids of rows are.
CAST(:id AS TEXT);

-- name: compressed
-- Whether a compression ended a row.
SELECT 1 FROM sessions WHERE id = :id AND end_reason = 'compression';

-- name: next_segment
-- Of the row `chain.id`: where the conversation goes on after a compression.
SELECT child.id
FROM sessions AS parent
JOIN sessions AS child ON child.parent_session_id = parent.id
WHERE parent.id = chain.id AND parent.end_reason = 'compression' AND child.edge IS NULL AND child.source <> 'tool'
ORDER BY
    CASE WHEN child.end_reason = 'compression' THEN 0 WHEN child.ended_at IS NULL THEN 1 ELSE 2 END,
    child.active_at DESC, child.started_at DESC, child.id DESC
LIMIT 1;

-- name: compression_tip
-- The end of the chain that begins at a row: the row itself where it wasn't compressed. At most 10000 steps, so
-- that a loop ends; a conversation of years with a small model has some hundreds.
WITH RECURSIVE chain (id, hop) AS (
    SELECT /*given_id*/, 0
    UNION ALL
    SELECT (/*next_segment*/), hop + 1
    FROM chain WHERE chain.id IS NOT NULL AND hop < 10000
)
SELECT id FROM chain WHERE id IS NOT NULL ORDER BY hop DESC LIMIT 1;

-- name: compression_ancestors
-- The rows that a compression ended on the way up from a row, nearest first.
WITH RECURSIVE up (id, hop) AS (
    SELECT /*given_id*/, 0
    UNION ALL
    SELECT parent.id, hop + 1
    FROM up
    JOIN sessions AS child ON child.id = up.id AND child.edge IS NULL AND child.source <> 'tool'
    JOIN sessions AS parent ON parent.id = child.parent_session_id AND parent.end_reason = 'compression'
    WHERE hop < 10000
)
SELECT id FROM up WHERE hop > 0 ORDER BY hop;

-- name: compression_lineage
-- The chain through a row from its first segment to its tip, in order; nothing for an unknown row.
WITH RECURSIVE up (id, hop) AS (
    SELECT id, 0 FROM sessions WHERE id = :id
    UNION ALL
    SELECT parent.id, hop - 1
    FROM up
    JOIN sessions AS child ON child.id = up.id AND child.edge IS NULL AND child.source <> 'tool'
    JOIN sessions AS parent ON parent.id = child.parent_session_id AND parent.end_reason = 'compression'
    WHERE hop > -10000
),
chain (id, hop) AS (
    SELECT id, 0 FROM sessions WHERE id = :id
    UNION ALL
    SELECT (/*next_segment*/), hop + 1
    FROM chain WHERE chain.id IS NOT NULL AND hop < 10000
)
SELECT id, hop FROM up
UNION
SELECT id, hop FROM chain WHERE id IS NOT NULL
ORDER BY hop;

-- name: live_continuations
-- Continuations of a row that are open; two are enough to know that there is not one.
SELECT child.id
FROM sessions AS parent
JOIN sessions AS child ON child.parent_session_id = parent.id
WHERE parent.id = :id AND parent.end_reason = 'compression'
  AND child.edge IS NULL AND child.source <> 'tool' AND child.ended_at IS NULL
ORDER BY child.id
LIMIT 2;

-- name: conversation_root
-- The oldest ancestor over edges of any kind. At most 10000 steps.
WITH RECURSIVE up (id, hop) AS (
    SELECT /*given_id*/, 0
    UNION ALL
    SELECT child.parent_session_id, hop + 1
    FROM up JOIN sessions AS child ON child.id = up.id
    WHERE child.parent_session_id IS NOT NULL AND hop < 10000
)
SELECT id FROM up ORDER BY hop DESC LIMIT 1;

-- name: told_lineage
-- A row and the ancestors whose transcripts come before its own, the row first. A branch holds a copy and needs none.
WITH RECURSIVE up (id, parent_id, message_count, hop) AS (
    SELECT s.id, s.parent_session_id, s.message_count, 0 FROM sessions AS s WHERE s.id = :id
    UNION ALL
    SELECT parent.id, parent.parent_session_id, parent.message_count, hop + 1
    FROM up
    JOIN sessions AS child ON child.id = up.id
    JOIN sessions AS parent ON parent.id = up.parent_id
    WHERE hop < 10000 AND (child.edge IS NULL OR child.edge <> 'branch')
      AND NOT (
        child.edge IS NULL AND COALESCE(parent.end_reason, '') = 'branched' AND child.started_at >= parent.ended_at
      )
)
SELECT id, message_count FROM up ORDER BY hop;

-- name: deepest_unmarked_child
-- Along the newest unmarked child of any row, the last one that has messages. At most 32 steps.
WITH RECURSIVE walk (id, hop) AS (
    SELECT /*given_id*/, 0
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
