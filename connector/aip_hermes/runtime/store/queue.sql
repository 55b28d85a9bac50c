-- name: enqueue_action
-- A claimed action waits for the worker; its input is frozen until it settles.
UPDATE actions SET
    state = 'queued', queued_at = :now, due_at = :now, late_at = :late_at, tries = 0, max_tries = :max_tries,
    parked = :parked, lease_owner = NULL, lease_expires_at = NULL, updated_at = :now
WHERE tenant = :tenant AND action_id = :action_id AND attempt = :attempt AND state = 'running' AND intent_at IS NULL
RETURNING attempt;

-- name: waiting_tenants
-- The tenants whose actions wait: one look into the index of what waits for each, however many actions there are.
WITH RECURSIVE waiting (tenant) AS (
    SELECT (SELECT tenant FROM actions WHERE state = 'queued' ORDER BY tenant, due_at, queued_at, action_id LIMIT 1)
    UNION ALL
    SELECT (
        SELECT behind.tenant FROM actions AS behind WHERE behind.state = 'queued' AND behind.tenant > waiting.tenant
        ORDER BY behind.tenant, behind.due_at, behind.queued_at, behind.action_id LIMIT 1)
    FROM waiting WHERE waiting.tenant IS NOT NULL)
SELECT tenant FROM waiting WHERE tenant IS NOT NULL;

-- name: take_due
-- A tenant's oldest waiting actions whose time has come, and has not passed, run from now on, each under a lease of
-- its own.
UPDATE actions SET
    state = 'running', tries = tries + 1, claimed_at = :now, reserved_until = reserved_until - claimed_at + :now,
    lease_owner = :owner, lease_number = lease_number + 1, lease_expires_at = :until, updated_at = :now
WHERE (tenant, action_id) IN (
    SELECT tenant, action_id FROM actions WHERE state = 'queued' AND tenant = :tenant AND due_at <= :now AND late_at > :now
    ORDER BY due_at, queued_at, action_id LIMIT :limit)
RETURNING *;

-- name: take_late
-- Waiting actions that have waited too long are taken to be ended; that is no try.
UPDATE actions SET
    state = 'running', lease_owner = :owner, lease_number = lease_number + 1, lease_expires_at = :until,
    updated_at = :now
WHERE (tenant, action_id) IN (
    SELECT tenant, action_id FROM actions WHERE state = 'queued' AND late_at <= :now ORDER BY late_at LIMIT :limit)
RETURNING *;

-- name: next_due
-- When a tenant's next waiting action becomes due; NULL where none waits.
SELECT MIN(due_at) AS moment FROM actions WHERE state = 'queued' AND tenant = :tenant;

-- name: next_late
-- When the next waiting action has waited too long; NULL where none waits.
SELECT MIN(late_at) AS moment FROM actions WHERE state = 'queued';

-- name: wait_from_now
-- What was queued later than now was queued under a clock that has been set back since: it waits from now on.
UPDATE actions SET
    due_at = due_at - queued_at + :now, late_at = late_at - queued_at + :now, queued_at = :now
WHERE state = 'queued' AND queued_at > :now;

-- name: wait_again
-- A try ended certain and another one follows; no row comes back when the lease is no longer ours.
UPDATE actions SET
    state = 'queued', attempt = attempt + 1, queued_at = COALESCE(queued_at, :now), due_at = :due_at, late_at = :late_at,
    last_error = :last_error, intent_at = NULL, lease_owner = NULL, lease_expires_at = NULL, updated_at = :now
WHERE tenant = :tenant AND action_id = :action_id AND attempt = :attempt AND state = 'running'
    AND (CAST(:lease AS BIGINT) IS NULL OR lease_number = :lease)
RETURNING attempt;

-- name: put_back
-- An action that a worker took and that was not sent waits again, at its old place; that was no try.
UPDATE actions SET
    state = 'queued', tries = CASE WHEN tries > 0 THEN tries - 1 ELSE 0 END, lease_owner = NULL, lease_expires_at = NULL, updated_at = :now
WHERE tenant = :tenant AND action_id = :action_id AND state = 'running' AND intent_at IS NULL AND queued_at IS NOT NULL
RETURNING attempt;

-- name: renew_leases
-- All that an owner works on stays its own for another while; what does not come back was lost.
UPDATE actions SET lease_expires_at = :until WHERE lease_owner = :owner AND state = 'running'
RETURNING tenant, action_id, lease_number;

-- name: take_lease
-- An action that begins to run again is in our hands, under a new lease.
UPDATE actions SET lease_owner = :owner, lease_number = lease_number + 1, lease_expires_at = :until
WHERE tenant = :tenant AND action_id = :action_id AND state = 'running';

-- name: take_over
-- What nobody works on any more is in our hands now, under new leases: whoever had it can settle nothing. What we work on
-- ourselves is not left, however late its renewal.
UPDATE actions SET lease_owner = :owner, lease_number = lease_number + 1, lease_expires_at = :until
WHERE state = 'running' AND (lease_expires_at IS NULL OR lease_expires_at <= :now)
    AND (lease_owner IS NULL OR lease_owner <> :owner)
RETURNING *;

-- name: void_leases
-- Where a store has one owner at a time, a start knows that nobody works on anything.
UPDATE actions SET lease_expires_at = NULL WHERE state = 'running';

-- name: count_queued
-- How many actions of a tenant, or of all, wait for the worker; counted no further than asked.
SELECT COUNT(*) AS waiting FROM (
    SELECT 1 FROM actions WHERE state = 'queued' AND (CAST(:tenant AS TEXT) IS NULL OR tenant = :tenant) LIMIT :most
) AS waiting_actions;

-- name: count_pending
-- How many actions of a tenant, or of all, wait for a decision; counted no further than asked.
SELECT COUNT(*) AS waiting FROM (
    SELECT 1 FROM actions WHERE state = 'pending_approval' AND (CAST(:tenant AS TEXT) IS NULL OR tenant = :tenant) LIMIT :most
) AS waiting_actions;
