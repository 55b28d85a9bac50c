-- Removing rows. A set of any size stands in a temporary table, so that no statement has to list it.

-- name: make_doomed
-- Where the ids of one removal are gathered, for this connection alone.
CREATE TEMP TABLE IF NOT EXISTS doomed (id TEXT PRIMARY KEY);

-- name: doom
-- A row to remove, where there is one.
INSERT INTO doomed (id) SELECT id FROM sessions WHERE id = :id ON CONFLICT (id) DO NOTHING;

-- name: doomed_ids
-- What is about to be removed.
SELECT id FROM doomed ORDER BY id;

-- name: forget_doomed
-- The place of the ids, empty again.
DELETE FROM doomed;

-- name: prompts_of_doomed
-- System prompts that may be without a user afterwards.
SELECT DISTINCT system_prompt_hash AS hash FROM sessions
WHERE id IN (SELECT id FROM doomed) AND system_prompt_hash IS NOT NULL;

-- name: orphan_children_of_doomed
-- Children that stay lose their parent; their marks go on telling what they were.
UPDATE sessions SET parent_session_id = NULL
WHERE parent_session_id IN (SELECT id FROM doomed) AND id NOT IN (SELECT id FROM doomed);

-- name: delete_messages_of_doomed
-- All messages, hidden ones included.
DELETE FROM messages WHERE session_id IN (SELECT id FROM doomed);

-- name: delete_doomed
-- The rows themselves, parents and children in one statement.
DELETE FROM sessions WHERE id IN (SELECT id FROM doomed);

-- name: drop_prompt_if_unused
-- A system prompt that no row uses any more.
DELETE FROM system_prompts
WHERE hash = :hash AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.system_prompt_hash = system_prompts.hash);

-- name: delegates_below
-- Rows of subagents below a row, at any depth.
WITH RECURSIVE below (id) AS (
    SELECT id FROM sessions WHERE parent_session_id = :id AND edge = 'delegate'
    UNION
    SELECT child.id FROM below JOIN sessions AS child ON child.parent_session_id = below.id AND child.edge = 'delegate'
)
SELECT id FROM below WHERE id <> :id ORDER BY id;

-- name: is_empty
-- Whether nothing is in the row `s`: no title, no message, no child.
s.title IS NULL
AND NOT EXISTS (SELECT 1 FROM messages WHERE messages.session_id = s.id)
AND NOT EXISTS (SELECT 1 FROM sessions AS child WHERE child.parent_session_id = s.id);

-- name: empty_session
-- The row, where nothing is in it.
SELECT s.id FROM sessions AS s WHERE s.id = :id AND /*is_empty*/;

-- name: ended_empty_sessions
-- Such rows among those that have ended and that nobody keeps on purpose.
SELECT s.id FROM sessions AS s
WHERE s.ended_at IS NOT NULL AND s.archived = 0 AND s.pinned = 0 AND /*is_empty*/
ORDER BY s.id;

-- name: ghost_sessions
-- Such rows that a terminal began before a moment and left.
SELECT s.id FROM sessions AS s
WHERE s.source = 'tui' AND s.ended_at IS NOT NULL AND s.started_at < :before AND /*is_empty*/
ORDER BY s.id;
