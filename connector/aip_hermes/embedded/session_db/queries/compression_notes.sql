-- What a row remembers of compressions that failed, helped little, or were broken off.

-- name: fetch_compression_notes
-- Everything at once.
SELECT
    compression_failure_cooldown_until, compression_failure_error, compression_fallback_streak,
    compression_ineffective_count
FROM sessions WHERE id = :id;

-- name: write_compression_cooldown
-- Until when nothing is tried, and why.
UPDATE sessions SET compression_failure_cooldown_until = :until, compression_failure_error = :error WHERE id = :id;

-- name: note_compression_failure
-- One more failure, and until when nothing is tried by itself.
UPDATE sessions SET
    compression_failure_cooldown_until = :until,
    compression_failure_error = :error,
    compression_fallback_streak = compression_fallback_streak + 1
WHERE id = :id;

-- name: forget_compression_failures
-- After a compression that was published.
UPDATE sessions SET
    compression_failure_cooldown_until = NULL,
    compression_failure_error = NULL,
    compression_fallback_streak = 0
WHERE id = :id;

-- name: write_compression_fallback_streak
-- How often in a row a summary had to be made without a model.
UPDATE sessions SET compression_fallback_streak = :count WHERE id = :id;

-- name: write_compression_ineffective_count
-- How often in a row a compression saved little.
UPDATE sessions SET compression_ineffective_count = :count WHERE id = :id;

-- name: end_orphaned_compressions
-- Continuations with messages that nobody ever worked in and nobody closed.
UPDATE sessions SET ended_at = :now, end_reason = 'orphaned_compression'
WHERE ended_at IS NULL AND api_call_count = 0 AND message_count > 0
  AND edge IS NULL AND source <> 'tool' AND parent_session_id IN (
    SELECT parent.id FROM sessions AS parent WHERE parent.end_reason = 'compression'
  );

-- name: reopen_compressed
-- A row that a compression ended without leaving anything where the conversation goes on.
UPDATE sessions SET ended_at = NULL, end_reason = NULL
WHERE id = :id AND end_reason = 'compression' AND NOT EXISTS (
    SELECT 1 FROM sessions AS child
    WHERE child.parent_session_id = :id AND (child.edge IS NULL OR child.edge = 'reset')
);
