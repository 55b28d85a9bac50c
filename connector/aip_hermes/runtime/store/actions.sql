-- name: fetch_action
-- One action of a tenant.
SELECT * FROM actions WHERE tenant = :tenant AND action_id = :action_id;

-- name: claim_action
-- A new action, running; no row comes back when the Action ID is taken.
INSERT INTO actions (
    tenant, action_id, capability_id, connector_id, principal_id, principal, content_hash, input_hash, read_only,
    key_scope, key_partition, key_text, session_id, correlation_id, attempt, state, created_at, claimed_at,
    reserved_until, intent_at, updated_at, facts, parked, lease_owner, lease_number, lease_expires_at)
VALUES (
    :tenant, :action_id, :capability_id, :connector_id, :principal_id, :principal, :content_hash, :input_hash, :read_only,
    :key_scope, :key_partition, :key_text, :session_id, :correlation_id, 1, 'running', :now, :now,
    :reserved_until, :intent_at, :now, :facts, :parked, :owner, 1, :until)
ON CONFLICT (tenant, action_id) DO NOTHING
RETURNING attempt, lease_number;

-- name: claim_ended
-- A new action that was claimed by nobody before it ended: a safe read. No row comes back when the Action ID is taken.
INSERT INTO actions (
    tenant, action_id, capability_id, connector_id, principal_id, principal, content_hash, input_hash, read_only,
    key_scope, key_partition, key_text, session_id, correlation_id, attempt, state, created_at, claimed_at,
    reserved_until, intent_at, settled_at, updated_at, facts, parked, result, frees_key, uncertain, lease_number)
VALUES (
    :tenant, :action_id, :capability_id, :connector_id, :principal_id, :principal, :content_hash, :input_hash, :read_only,
    :key_scope, :key_partition, :key_text, :session_id, :correlation_id, 1, :state, :now, :now,
    :reserved_until, :intent_at, :now, :now, :facts, NULL, :result, :frees_key, :uncertain, 1)
ON CONFLICT (tenant, action_id) DO NOTHING
RETURNING attempt, lease_number;

-- name: claim_next_attempt
-- The next attempt at an action whose stored failure does not bind; no row when it does or when the action runs.
UPDATE actions SET
    attempt = attempt + 1, state = 'running', connector_id = :connector_id, session_id = :session_id,
    correlation_id = :correlation_id, claimed_at = :now, reserved_until = :reserved_until, intent_at = :intent_at,
    settled_at = NULL, queued_at = NULL, due_at = NULL, late_at = NULL, tries = 0, last_error = NULL,
    dead_letter_reason = NULL, updated_at = :now,
    facts = :facts, parked = :parked, result = NULL,
    approval_id = NULL, frees_key = 0, uncertain = 0,
    lease_owner = :owner, lease_number = lease_number + 1, lease_expires_at = :until
WHERE tenant = :tenant AND action_id = :action_id AND state = 'failed' AND frees_key = 1
RETURNING attempt, lease_number;

-- name: record_intent
-- The point after which a crash means an unknown outcome.
UPDATE actions SET intent_at = :now, facts = :facts, updated_at = :now
WHERE tenant = :tenant AND action_id = :action_id AND state = 'running' AND attempt = :attempt
    AND (CAST(:lease AS BIGINT) IS NULL OR lease_number = :lease)
RETURNING attempt;

-- name: park_action
-- The action waits for a decision; its input is frozen.
UPDATE actions SET
    state = 'pending_approval', approval_id = :approval_id, parked = :parked, result = :result,
    lease_owner = NULL, lease_expires_at = NULL, updated_at = :now
WHERE tenant = :tenant AND action_id = :action_id AND state = 'running' AND attempt = :attempt AND intent_at IS NULL
RETURNING attempt;

-- name: release_parked
-- An approved action runs; its input stays until it settles.
UPDATE actions SET state = 'running', claimed_at = :now, reserved_until = :reserved_until, updated_at = :now
WHERE tenant = :tenant AND action_id = :action_id AND state = 'pending_approval' AND approval_id = :approval_id
RETURNING attempt;

-- name: settle_action
-- The one result of an attempt; a parked input is erased. What fails after it waited in the queue is a dead letter.
UPDATE actions SET
    state = :state, settled_at = :now, updated_at = :now, result = :result, frees_key = :frees_key,
    uncertain = :uncertain, parked = NULL, last_error = NULL, lease_owner = NULL, lease_expires_at = NULL,
    dead_letter_reason = CASE WHEN queued_at IS NOT NULL AND :state = 'failed' THEN :reason END
WHERE tenant = :tenant AND action_id = :action_id AND attempt = :attempt
    AND (state = 'running' OR (state IN ('queued', 'pending_approval') AND :state <> 'completed'))
    AND (CAST(:lease AS BIGINT) IS NULL OR lease_number = :lease)
RETURNING tenant, action_id, capability_id, principal_id, principal, session_id, correlation_id, attempt, queued_at,
    tries, dead_letter_reason, key_scope, key_partition, key_text;

-- name: fetch_key
-- Who holds a fence.
SELECT * FROM idempotency_keys
WHERE tenant = :tenant AND key_scope = :key_scope AND key_partition = :key_partition AND key_text = :key_text;

-- name: reserve_key
-- Take a free fence; no row comes back when it is held. A settled one whose time to live has passed is none.
INSERT INTO idempotency_keys (
    tenant, key_scope, key_partition, key_text, action_id, principal_id, principal_kind, input_hash, settled,
    first_seen_at, expires_at)
VALUES (
    :tenant, :key_scope, :key_partition, :key_text, :action_id, :principal_id, :principal_kind, :input_hash, 0,
    :now, :expires_at)
ON CONFLICT (tenant, key_scope, key_partition, key_text) DO UPDATE SET
    action_id = excluded.action_id, principal_id = excluded.principal_id, principal_kind = excluded.principal_kind,
    input_hash = excluded.input_hash, settled = 0, first_seen_at = excluded.first_seen_at,
    expires_at = excluded.expires_at
WHERE idempotency_keys.settled = 1 AND idempotency_keys.expires_at <= :now
RETURNING action_id;

-- name: settle_key
-- The fence answers with its action's result until it expires. Unsettled fences, parked ones included, never expire.
UPDATE idempotency_keys SET settled = 1
WHERE tenant = :tenant AND key_scope = :key_scope AND key_partition = :key_partition AND key_text = :key_text
    AND action_id = :action_id;

-- name: free_key
-- A certain failure that another attempt may repair lets the fence go.
DELETE FROM idempotency_keys
WHERE tenant = :tenant AND key_scope = :key_scope AND key_partition = :key_partition AND key_text = :key_text
    AND action_id = :action_id;
