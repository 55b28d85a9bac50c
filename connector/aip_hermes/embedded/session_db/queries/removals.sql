-- The record of removals.

-- name: note_removal
-- One session that was removed.
INSERT INTO removals (session_id, removed_at, cause, actor) VALUES (:session_id, :at, :cause, :actor);

-- name: forget_old_removals
-- Entries that have been kept for long enough.
DELETE FROM removals WHERE removed_at < :before;

-- name: list_removals
-- The latest entries, or those of one session.
SELECT session_id, removed_at, cause, actor FROM removals
WHERE :any_session = 1 OR session_id = :session_id
ORDER BY removed_at DESC, session_id DESC LIMIT :limit;
