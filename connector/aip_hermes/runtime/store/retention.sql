-- name: mark_text
-- A settled action's result or chunks hold somebody's text.
UPDATE actions SET holds_text = 1 WHERE tenant = :tenant AND action_id = :action_id;

-- name: name_subject
-- What an action's stored text is about.
INSERT INTO text_subjects (subject, tenant, action_id) VALUES (:subject, :tenant, :action_id)
ON CONFLICT (subject, tenant, action_id) DO NOTHING;

-- name: fetch_by_subject
-- Settled actions whose stored text is about a subject.
SELECT a.tenant, a.action_id FROM text_subjects s JOIN actions a ON a.tenant = s.tenant AND a.action_id = s.action_id
WHERE s.subject = :subject AND a.settled_at IS NOT NULL;

-- name: fetch_expired_text
-- Settled actions whose text has been kept long enough, oldest first.
SELECT tenant, action_id FROM actions WHERE holds_text = 1 AND settled_at <= :before ORDER BY settled_at LIMIT :limit;

-- name: fetch_kept_result
-- What is kept of an action's end; no row before it.
SELECT result FROM actions WHERE tenant = :tenant AND action_id = :action_id AND settled_at IS NOT NULL;

-- name: has_chunks
-- Whether anything of an action's stream is stored.
SELECT 1 AS found FROM chunks WHERE tenant = :tenant AND action_id = :action_id LIMIT 1;

-- name: erase_output
-- What is left of a result whose text is gone.
UPDATE actions SET result = :result, holds_text = 0 WHERE tenant = :tenant AND action_id = :action_id;

-- name: erase_chunks
-- The chunks of one action.
DELETE FROM chunks WHERE tenant = :tenant AND action_id = :action_id;

-- name: forget_subjects
-- The subjects of one action.
DELETE FROM text_subjects WHERE tenant = :tenant AND action_id = :action_id;

-- name: fetch_prunable
-- Ended actions that settled long ago, whose decision and whose fence no longer wait for anything, behind a place.
SELECT a.tenant, a.action_id, a.read_only FROM actions a
WHERE (a.tenant, a.action_id) > (:after_tenant, :after_action) AND a.settled_at <= :before
    AND NOT EXISTS (
        SELECT 1 FROM idempotency_keys k
        WHERE k.tenant = a.tenant AND k.key_scope = a.key_scope AND k.key_partition = a.key_partition
            AND k.key_text = a.key_text AND k.action_id = a.action_id
            AND (k.settled = 0 OR k.expires_at IS NULL OR k.expires_at > :now))
    AND NOT EXISTS (
        SELECT 1 FROM approvals p
        WHERE p.tenant = a.tenant AND p.approval_id = a.approval_id AND p.status = 'pending')
ORDER BY a.tenant, a.action_id LIMIT :limit;

-- name: drop_action
-- A read that ended long ago; a repeated Action ID reads once more.
DELETE FROM actions WHERE tenant = :tenant AND action_id = :action_id;

-- name: count_events
-- How many events one action has.
SELECT count(*) AS found FROM events WHERE tenant = :tenant AND action_id = :action_id AND seq < :newest;

-- name: drop_events
-- What happened to one action, but for the newest event of the log: it keeps the place of the next one.
DELETE FROM events WHERE tenant = :tenant AND action_id = :action_id AND seq < :newest;

-- name: last_event_of_action
-- The newest event of one action.
SELECT max(seq) AS seq FROM events WHERE tenant = :tenant AND action_id = :action_id AND seq < :newest;

-- name: move_log_start
-- How far the log was pruned.
INSERT INTO event_log_starts (tenant, pruned_through) VALUES (:tenant, :through)
ON CONFLICT (tenant) DO UPDATE SET pruned_through = excluded.pruned_through
WHERE event_log_starts.pruned_through < excluded.pruned_through;

-- name: log_start
-- How far the log was pruned; 0 where nothing was.
SELECT pruned_through FROM event_log_starts WHERE tenant = :tenant;

-- name: count_chunks
-- How many chunks one action has.
SELECT count(*) AS found FROM chunks WHERE tenant = :tenant AND action_id = :action_id;

-- name: count_verdicts
-- Whether one action has a verdict that `drop_verdicts` removes.
SELECT count(*) AS found FROM verdicts WHERE tenant = :tenant AND action_id = :action_id AND NOT EXISTS (
    SELECT 1 FROM events WHERE events.tenant = :tenant AND events.action_id = :action_id AND events.seq >= :newest);

-- name: drop_verdicts
-- The last verdict about one action, once all its events are gone: the numbers that name them begin anew then.
DELETE FROM verdicts WHERE tenant = :tenant AND action_id = :action_id AND NOT EXISTS (
    SELECT 1 FROM events WHERE events.tenant = :tenant AND events.action_id = :action_id AND events.seq >= :newest);

-- name: count_expired_keys
-- Settled fences whose time has passed.
SELECT count(*) AS found FROM idempotency_keys WHERE settled = 1 AND expires_at <= :before;

-- name: drop_expired_keys
-- Settled fences whose time has passed.
DELETE FROM idempotency_keys WHERE settled = 1 AND expires_at <= :before;

-- name: count_expired_messages
-- Message ids whose window has passed.
SELECT count(*) AS found FROM message_ids WHERE expires_at < :now;

-- name: count_old_state
-- What connectors kept about calls that ended, as `drop_old_state` removes it.
SELECT count(*) AS found FROM connector_state
WHERE updated_at <= :before AND NOT EXISTS (
    SELECT 1 FROM actions
    WHERE actions.tenant = connector_state.tenant AND actions.connector_id = connector_state.connector_id
        AND actions.state IN ('queued', 'running', 'pending_approval') AND actions.created_at <= connector_state.updated_at);

-- name: drop_old_state
-- What connectors kept about calls that ended: nothing unfinished is old enough to have written it.
DELETE FROM connector_state
WHERE updated_at <= :before AND NOT EXISTS (
    SELECT 1 FROM actions
    WHERE actions.tenant = connector_state.tenant AND actions.connector_id = connector_state.connector_id
        AND actions.state IN ('queued', 'running', 'pending_approval') AND actions.created_at <= connector_state.updated_at);
