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
-- A slice of a tenant's approvals, oldest first.
SELECT * FROM approvals
WHERE tenant = :tenant
    AND (:status IS NULL OR status = :status)
    AND (:requester IS NULL OR requester_id = :requester)
ORDER BY created_at, approval_id
LIMIT :limit OFFSET :offset;

-- name: fetch_overdue
-- Approvals that nobody decided in time, behind the first few.
SELECT * FROM approvals WHERE status = 'pending' AND expires_at <= :now ORDER BY expires_at LIMIT 100 OFFSET :passed;
