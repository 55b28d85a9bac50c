-- name: append_chunk
-- One chunk behind all that the action has; no row comes back when the attempt that says it has ended or was lost.
INSERT INTO chunks (tenant, action_id, sequence, kind, chunk, published_at)
SELECT :tenant, :action_id, :sequence, :kind, :chunk, :now FROM actions
WHERE tenant = :tenant AND action_id = :action_id AND state = 'running' AND attempt = :attempt
    AND (CAST(:lease AS BIGINT) IS NULL OR lease_number = :lease)
RETURNING sequence;

-- name: last_chunk
-- The highest sequence of an action; no row before the first chunk.
SELECT sequence FROM chunks WHERE tenant = :tenant AND action_id = :action_id ORDER BY sequence DESC LIMIT 1;

-- name: fetch_chunks
-- The next chunks of an action.
SELECT sequence, chunk FROM chunks
WHERE tenant = :tenant AND action_id = :action_id AND sequence > :after
ORDER BY sequence LIMIT :limit;

-- name: fetch_event_page
-- The next events of an action, of all kinds.
SELECT seq, kind, event FROM events
WHERE tenant = :tenant AND action_id = :action_id AND seq > :after
ORDER BY seq LIMIT :limit;

-- name: last_event_of_tenant
-- The newest position of a tenant's log; no row while it is empty.
SELECT seq FROM events WHERE tenant = :tenant ORDER BY seq DESC LIMIT 1;

-- name: last_event
-- The newest position of the whole log; no row while it is empty.
SELECT seq FROM events ORDER BY seq DESC LIMIT 1;
