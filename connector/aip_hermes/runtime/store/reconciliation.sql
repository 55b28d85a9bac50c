-- name: fetch_verdict
-- The last verdict about an action.
SELECT number, outcome, verdict, reconciled_at FROM verdicts WHERE tenant = :tenant AND action_id = :action_id;

-- name: keep_verdict
-- The newest verdict takes the place of the one before.
INSERT INTO verdicts (tenant, action_id, number, outcome, verdict, reconciled_at)
VALUES (:tenant, :action_id, :number, :outcome, :verdict, :now)
ON CONFLICT (tenant, action_id) DO UPDATE SET
    number = excluded.number, outcome = excluded.outcome, verdict = excluded.verdict,
    reconciled_at = excluded.reconciled_at;

-- name: fetch_beside
-- Other actions of a connector, behind a place, that were sent about when one was, or later, and may have done what it
-- wanted. Those that are proven to have done nothing did not.
SELECT a.updated_at, a.action_id, a.facts, a.settled_at, a.state = 'completed' OR v.outcome = 'applied' AS took_effect
FROM actions a LEFT JOIN verdicts v ON v.tenant = a.tenant AND v.action_id = a.action_id
WHERE a.tenant = :tenant AND (a.updated_at, a.action_id) > (:after_at, :after_id) AND a.action_id <> :action_id
    AND a.connector_id = :connector_id AND a.read_only = 0 AND a.facts IS NOT NULL AND a.intent_at IS NOT NULL
    AND (a.uncertain = 1 OR a.settled_at IS NULL OR (a.state = 'completed' AND a.settled_at >= :about))
    AND (v.outcome IS NULL OR v.outcome <> 'not_applied')
ORDER BY a.updated_at, a.action_id LIMIT :limit;

-- name: end_uncertain_turn
-- A turn that had ended uncertain is seen to be over: its session opens. A later closing stays in force.
UPDATE serial_locks SET uncertain_action = NULL, closed_until = NULL, closed_by = NULL, work = NULL
WHERE serial_key = :serial_key AND uncertain_action = :action_id AND closed_by = 'uncertain_turn';

-- name: forget_uncertain_turn
-- As `end_uncertain_turn`, where a run that goes on closed the session after it.
UPDATE serial_locks SET before_action = NULL, before_until = NULL, before_by = NULL
WHERE serial_key = :serial_key AND before_action = :action_id AND before_by = 'uncertain_turn';
