-- name: insert_approval
-- A request for a decision.
INSERT INTO approvals (
    approval_id, tenant, action_id, capability_id, requester_id, subject_id, status, request, input_hash, content_hash,
    snapshot, expires_at, created_at, updated_at)
VALUES (
    :approval_id, :tenant, :action_id, :capability_id, :requester_id, :subject_id, 'pending', :request, :input_hash,
    :content_hash, :snapshot, :expires_at, :now, :now);

-- name: fetch_approval
-- One approval of a tenant.
SELECT * FROM approvals WHERE tenant = :tenant AND approval_id = :approval_id;

-- name: decide_approval
-- The one terminal decision; no row comes back when another came first, or when the time was up first.
UPDATE approvals SET
    status = :status, decision = :decision, decision_id = :decision_id, decided_by = :decided_by, updated_at = :now
WHERE approval_id = :approval_id AND status = 'pending'
    AND (:status = 'expired' OR expires_at IS NULL OR expires_at > :now)
RETURNING approval_id;

-- name: list_approvals
-- A slice of a tenant's approvals behind a place, oldest first: with the newest vote about an undecided one, and
-- whether the caller, and the approver that is asked for, ever decided or voted.
SELECT p.*,
    (SELECT d.record FROM approval_decisions d WHERE p.decision IS NULL AND d.approval_id = p.approval_id
        ORDER BY d.recorded_at DESC, d.terminal DESC, d.decision_id DESC LIMIT 1) AS vote,
    EXISTS (SELECT 1 FROM approval_decisions d
        WHERE d.approval_id = p.approval_id AND d.approver_id = :me) AS voted,
    EXISTS (SELECT 1 FROM approval_decisions d
        WHERE d.approval_id = p.approval_id AND d.approver_id = :approver) AS approver_voted
FROM approvals p
WHERE p.tenant = :tenant AND (p.created_at, p.approval_id) > (:created_at, :place)
    AND (CAST(:status AS TEXT) IS NULL OR p.status = :status)
    AND (CAST(:requester AS TEXT) IS NULL OR p.requester_id = :requester)
ORDER BY p.created_at, p.approval_id
LIMIT :limit OFFSET :offset;

-- name: fetch_seen_approval
-- One approval of a tenant, with the newest vote about an undecided one, and whether the caller ever decided or voted.
SELECT p.*,
    (SELECT d.record FROM approval_decisions d WHERE p.decision IS NULL AND d.approval_id = p.approval_id
        ORDER BY d.recorded_at DESC, d.terminal DESC, d.decision_id DESC LIMIT 1) AS vote,
    EXISTS (SELECT 1 FROM approval_decisions d
        WHERE d.approval_id = p.approval_id AND d.approver_id = :me) AS voted
FROM approvals p
WHERE p.tenant = :tenant AND p.approval_id = :approval_id;

-- name: fetch_overdue
-- Approvals that nobody decided in time, behind the first few.
SELECT * FROM approvals WHERE status = 'pending' AND expires_at <= :now ORDER BY expires_at LIMIT 100 OFFSET :passed;
