-- What a compression leaves on the row of its session.

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
