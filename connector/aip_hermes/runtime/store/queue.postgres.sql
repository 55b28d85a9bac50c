-- name: take_due
-- A tenant's oldest waiting actions whose time has come, and has not passed, but for those that another worker takes.
UPDATE actions SET
    state = 'running', tries = tries + 1, claimed_at = :now, reserved_until = reserved_until - claimed_at + :now,
    lease_owner = :owner, lease_number = lease_number + 1, lease_expires_at = :until, updated_at = :now
WHERE (tenant, action_id) IN (
    SELECT tenant, action_id FROM actions WHERE state = 'queued' AND tenant = :tenant AND due_at <= :now AND late_at > :now
    ORDER BY due_at, queued_at, action_id LIMIT :limit FOR UPDATE SKIP LOCKED)
RETURNING *;

-- name: take_late
-- Waiting actions that have waited too long are taken to be ended, but for those that another worker takes.
UPDATE actions SET
    state = 'running', lease_owner = :owner, lease_number = lease_number + 1, lease_expires_at = :until,
    updated_at = :now
WHERE (tenant, action_id) IN (
    SELECT tenant, action_id FROM actions WHERE state = 'queued' AND late_at <= :now ORDER BY late_at
    LIMIT :limit FOR UPDATE SKIP LOCKED)
RETURNING *;

-- name: take_over
-- What nobody works on any more is in our hands now, under new leases, but for what another worker takes.
UPDATE actions SET lease_owner = :owner, lease_number = lease_number + 1, lease_expires_at = :until
WHERE (tenant, action_id) IN (
    SELECT tenant, action_id FROM actions
    WHERE state = 'running' AND (lease_expires_at IS NULL OR lease_expires_at <= :now)
        AND (lease_owner IS NULL OR lease_owner <> :owner)
    FOR UPDATE SKIP LOCKED)
RETURNING *;
