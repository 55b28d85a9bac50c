-- name: record_decision
-- One decision, kept for good; no row comes back when its id, or this approver's approval, is there already.
INSERT INTO approval_decisions (
    approval_id, decision_id, tenant, decision, approver_id, terminal, record, recorded_at)
VALUES (
    :approval_id, :decision_id, :tenant, :decision, :approver_id, :terminal, :record, :now)
ON CONFLICT DO NOTHING
RETURNING decision_id;

-- name: fetch_decisions
-- All decisions about an approval, in the order of their recording.
SELECT * FROM approval_decisions WHERE approval_id = :approval_id ORDER BY recorded_at, terminal, decision_id;

-- name: hold_pending
-- Keep others from deciding until this transaction ends; no row when the approval is decided or its time is up.
UPDATE approvals SET updated_at = :now
WHERE approval_id = :approval_id AND status = 'pending' AND (expires_at IS NULL OR expires_at > :now)
RETURNING approval_id;

-- name: hold_released
-- Keep a released action from passing its intent; no row when it has, or has ended.
UPDATE actions SET updated_at = :now
WHERE tenant = :tenant AND action_id = :action_id AND approval_id = :approval_id
    AND state IN ('running', 'queued') AND intent_at IS NULL
RETURNING attempt;

-- name: revoke_approved
-- An approval that was given and not used is taken back.
UPDATE approvals SET
    status = 'revoked', decision = :decision, decision_id = :decision_id, decided_by = :decided_by, updated_at = :now
WHERE approval_id = :approval_id AND status = 'approved'
RETURNING approval_id;

-- name: next_expiry
-- When the next approval's time is up, of those whose time is not; null when none waits with an end.
SELECT MIN(expires_at) AS expires_at FROM approvals WHERE status = 'pending' AND expires_at > :now;
