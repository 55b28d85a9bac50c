-- name: append_event
-- One event, in the order of commits.
INSERT INTO events (event_id, tenant, action_id, kind, occurred_at, event)
VALUES (:event_id, :tenant, :action_id, :kind, :occurred_at, :event)
ON CONFLICT (event_id) DO NOTHING;

-- name: fetch_event
-- One event by its id.
SELECT event FROM events WHERE tenant = :tenant AND event_id = :event_id;

-- name: append_audit
-- One record per settled attempt or decision; never written again. Its id names its action.
INSERT INTO audit (audit_id, tenant, action_id, session_id, actor_id, occurred_at, record)
SELECT :audit_id, :tenant, :action_id, :session_id, :actor_id, CAST(:occurred_at AS BIGINT), :record
WHERE NOT EXISTS (
    SELECT 1 FROM audit WHERE action_id = :action_id AND tenant || '' = :tenant AND audit_id = :audit_id);

-- name: claim_message
-- Take a message id of a tenant; no row comes back when it was taken before, and its window has not passed.
INSERT INTO message_ids (tenant, message_id, expires_at) VALUES (:tenant, :message_id, :expires_at)
ON CONFLICT (tenant, message_id) DO UPDATE SET expires_at = excluded.expires_at WHERE message_ids.expires_at < :now
RETURNING message_id;

-- name: find_message
-- Whether a message id was taken before, and its window has not passed.
SELECT message_id FROM message_ids WHERE tenant = :tenant AND message_id = :message_id AND expires_at >= :now;

-- name: drop_expired_messages
-- Claims whose window has passed.
DELETE FROM message_ids WHERE expires_at < :now;
