-- name: store_figures
-- How many actions there are, in which states, stuck, or uncertain with no verdict that decides it.
SELECT
    COUNT(*) AS actions,
    COUNT(*) FILTER (WHERE state = 'queued') AS queued,
    COUNT(*) FILTER (WHERE state = 'running') AS running,
    COUNT(*) FILTER (WHERE state = 'pending_approval') AS pending,
    COUNT(*) FILTER (
        WHERE state = 'running' AND reserved_until <= :now AND COALESCE(lease_expires_at, 0) <= :now) AS stuck,
    COUNT(*) FILTER (WHERE uncertain = 1 AND NOT EXISTS (
        SELECT 1 FROM verdicts v WHERE v.tenant = actions.tenant AND v.action_id = actions.action_id
            AND v.outcome <> 'indeterminate')) AS uncertain
FROM actions;

-- name: load_figures
-- How many actions of a tenant, or of all, are unfinished, by state; bounded by their number.
SELECT
    COUNT(*) FILTER (WHERE state = 'queued') AS queued,
    COUNT(*) FILTER (WHERE state = 'running') AS running,
    COUNT(*) FILTER (WHERE state = 'pending_approval') AS pending
FROM actions
WHERE state IN ('queued', 'running', 'pending_approval') AND (CAST(:tenant AS TEXT) IS NULL OR tenant = :tenant);
