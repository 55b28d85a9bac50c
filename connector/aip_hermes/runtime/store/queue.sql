-- name: enqueue_action
-- A claimed action waits for the worker; its input is frozen until it settles.
UPDATE actions SET state = 'queued', queued_at = :now, parked = :parked, updated_at = :now
WHERE tenant = :tenant AND action_id = :action_id AND attempt = :attempt AND state = 'running' AND intent_at IS NULL
RETURNING attempt;

-- name: take_queued
-- The oldest waiting action runs from now on.
UPDATE actions SET state = 'running', claimed_at = :now, updated_at = :now
WHERE (tenant, action_id) = (
    SELECT tenant, action_id FROM actions WHERE state = 'queued' ORDER BY queued_at, action_id LIMIT 1)
RETURNING *;

-- name: put_back
-- An action that a worker took and that was not sent waits again, at its old place.
UPDATE actions SET state = 'queued', updated_at = :now
WHERE tenant = :tenant AND action_id = :action_id AND state = 'running' AND intent_at IS NULL AND queued_at IS NOT NULL
RETURNING attempt;
