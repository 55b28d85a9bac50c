-- Leases: one holder per kind and subject, for a while.

-- name: fetch_lease
-- Who holds a subject, and until when.
SELECT holder, expires_at FROM leases WHERE kind = :kind AND subject = :subject;

-- name: take_lease
-- A free, an expired or one's own lease, or one whose holder was seen to be gone; no row comes back for any other.
INSERT INTO leases (kind, subject, holder, acquired_at, expires_at)
VALUES (:kind, :subject, :holder, :now, :expires_at)
ON CONFLICT (kind, subject) DO UPDATE SET
    holder = excluded.holder,
    acquired_at = CASE WHEN leases.holder = excluded.holder THEN leases.acquired_at ELSE excluded.acquired_at END,
    expires_at = excluded.expires_at
WHERE leases.holder = excluded.holder OR leases.expires_at <= :now OR leases.holder = :gone
RETURNING holder;

-- name: renew_lease
-- A longer time for the holder; nobody else has any.
UPDATE leases SET expires_at = :expires_at
WHERE kind = :kind AND subject = :subject AND holder = :holder
RETURNING holder;

-- name: free_lease
-- The holder lets go.
DELETE FROM leases WHERE kind = :kind AND subject = :subject AND holder = :holder RETURNING holder;

-- name: drop_old_leases
-- Those that nobody renewed or took over for long.
DELETE FROM leases WHERE expires_at < :before;

-- name: turn_leases
-- The conversations that somebody has.
SELECT subject FROM leases WHERE kind = 'turn';

-- name: move_turn_lease
-- A conversation that begins with another row from now on.
UPDATE leases SET subject = :to WHERE kind = 'turn' AND subject = :subject AND NOT EXISTS (
    SELECT 1 FROM leases AS other WHERE other.kind = 'turn' AND other.subject = :to
);
