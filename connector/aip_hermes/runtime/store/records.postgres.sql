-- name: fetch_log_page
-- The next events of a tenant, with the owner of each one's action, as far as no earlier one is still to come.
SELECT e.seq, e.kind, e.event, a.principal_id
FROM events e LEFT JOIN actions a ON a.tenant = e.tenant AND a.action_id = e.action_id
WHERE e.tenant = :tenant AND e.seq > :after AND e.written_by < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY e.seq LIMIT :limit;
