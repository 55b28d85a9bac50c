-- name: actions_asked_for
-- Which of a tenant's actions a list is about; a part of those that list and count them.
WHERE tenant = :tenant AND updated_at >= :since AND updated_at <= :until
    AND (CAST(:principal AS TEXT) IS NULL OR principal_id = :principal)
    AND (CAST(:state AS TEXT) IS NULL OR state = :state)
    AND (CAST(:dead AS BIGINT) IS NULL OR CASE WHEN dead_letter_reason IS NULL THEN 0 ELSE 1 END = :dead)
    AND (CAST(:uncertain AS BIGINT) IS NULL OR uncertain = :uncertain)
    AND (CAST(:unresolved AS BIGINT) IS NULL OR NOT EXISTS (
        SELECT 1 FROM verdicts v WHERE v.tenant = actions.tenant AND v.action_id = actions.action_id
            AND v.outcome <> 'indeterminate'))
    AND (CAST(:capability AS TEXT) IS NULL OR capability_id = :capability)
    AND (CAST(:endpoint AS TEXT) IS NULL OR capability_id LIKE :endpoint ESCAPE '!')
    AND (CAST(:session AS TEXT) IS NULL OR session_id = :session)
    AND (CAST(:approval AS TEXT) IS NULL OR approval_id = :approval);

-- name: list_actions
-- A slice of a tenant's actions, the one that changed first before the others.
SELECT * FROM actions
/*actions_asked_for*/
ORDER BY updated_at, action_id
LIMIT :limit OFFSET :offset;

-- name: count_actions
-- How many actions `list_actions` would give without a limit.
SELECT count(*) AS found FROM actions
/*actions_asked_for*/;

-- name: fetch_log_page
-- The next events of a tenant, with the owner of each one's action.
SELECT e.seq, e.kind, e.event, a.principal_id
FROM events e LEFT JOIN actions a ON a.tenant = e.tenant AND a.action_id = e.action_id
WHERE e.tenant = :tenant AND e.seq > :after
ORDER BY e.seq LIMIT :limit;

-- name: last_receipt
-- The newest receipt of a chain.
SELECT position, hash FROM receipts WHERE tenant = :tenant AND chain_id = :chain_id ORDER BY position DESC LIMIT 1;

-- name: append_receipt
-- The next receipt of a chain.
INSERT INTO receipts (tenant, chain_id, position, receipt_id, hash, receipt)
VALUES (:tenant, :chain_id, :position, :receipt_id, :hash, :receipt);

-- name: fetch_receipt
-- One receipt by its id.
SELECT chain_id, receipt_id, hash, receipt FROM receipts WHERE tenant = :tenant AND receipt_id = :receipt_id;

-- name: fetch_chain
-- The receipts of a chain, in order.
SELECT receipt FROM receipts WHERE tenant = :tenant AND chain_id = :chain_id ORDER BY position;

-- name: list_audit
-- A slice of a tenant's audit log, oldest first.
SELECT * FROM audit
WHERE tenant = :tenant AND occurred_at >= :since AND occurred_at <= :until
    AND (CAST(:actor AS TEXT) IS NULL OR actor_id = :actor)
    AND (CAST(:session AS TEXT) IS NULL OR session_id = :session)
ORDER BY occurred_at, audit_id
LIMIT :limit OFFSET :offset;

-- name: list_audit_of_action
-- A slice of what the audit log says about one action, oldest first. Sums and joined text keep its index chosen.
SELECT * FROM audit
WHERE action_id = :action_id AND tenant || '' = :tenant AND occurred_at + 0 >= :since AND occurred_at + 0 <= :until
    AND (CAST(:actor AS TEXT) IS NULL OR actor_id = :actor)
    AND (CAST(:session AS TEXT) IS NULL OR session_id = :session)
ORDER BY occurred_at + 0, audit_id
LIMIT :limit OFFSET :offset;
