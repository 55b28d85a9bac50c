-- name: take_lock
-- Take a session's lock, or go on holding it. No row: another one holds it, or it is closed to exclusive use.
INSERT INTO serial_locks (serial_key, holder_tenant, holder_action, use_as, held_since, hold_ms)
VALUES (:serial_key, :tenant, :action_id, :use_as, :now, :hold_ms)
ON CONFLICT (serial_key) DO UPDATE SET
    holder_tenant = excluded.holder_tenant, holder_action = excluded.holder_action, use_as = excluded.use_as,
    held_since = excluded.held_since, hold_ms = excluded.hold_ms
WHERE (serial_locks.holder_action IS NULL
        OR (serial_locks.holder_tenant = :tenant AND serial_locks.holder_action = :action_id))
    AND (excluded.use_as = 'turn' OR serial_locks.closed_until IS NULL OR serial_locks.closed_until <= :now)
RETURNING uncertain_action, closed_until, closed_by, before_action, before_until, before_by;

-- name: fetch_lock
-- A lock's state.
SELECT * FROM serial_locks WHERE serial_key = :serial_key;

-- name: give_lock_back
-- Whoever held it is done. An earlier closing stays in force.
UPDATE serial_locks SET holder_tenant = NULL, holder_action = NULL, use_as = NULL, held_since = NULL
WHERE holder_tenant = :tenant AND holder_action = :action_id;

-- name: close_session
-- A turn or a run may go on: no exclusive use until its time has passed. Work that is known keeps what had closed the
-- session before, for the time when its end is seen.
UPDATE serial_locks SET
    before_action = CASE WHEN CAST(:work AS TEXT) IS NOT NULL AND closed_until > :now THEN uncertain_action END,
    before_until = CASE WHEN CAST(:work AS TEXT) IS NOT NULL AND closed_until > :now THEN closed_until END,
    before_by = CASE WHEN CAST(:work AS TEXT) IS NOT NULL AND closed_until > :now THEN closed_by END,
    uncertain_action = :action_id, closed_until = :now + hold_ms, closed_by = :closed_by, work = :work
WHERE holder_tenant = :tenant AND holder_action = :action_id AND use_as = 'turn'
    AND (closed_until IS NULL OR closed_until < :now + hold_ms);

-- name: end_work
-- The work that keeps a session closed is over: what had closed it before still does.
UPDATE serial_locks SET
    uncertain_action = before_action, closed_until = before_until, closed_by = before_by, work = NULL,
    before_action = NULL, before_until = NULL, before_by = NULL
WHERE work = :work;

-- name: drop_idle_locks
-- Rows that remember nothing.
DELETE FROM serial_locks WHERE holder_action IS NULL AND (closed_until IS NULL OR closed_until <= :now);
