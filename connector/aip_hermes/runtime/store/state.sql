-- name: fetch_state
-- What a connector keeps under a key.
SELECT value, version FROM connector_state
WHERE connector_id = :connector_id AND tenant = :tenant AND state_key = :state_key;

-- name: create_state
-- The first value of a key; no row comes back when there is one.
INSERT INTO connector_state (connector_id, tenant, state_key, version, value, created_at, updated_at)
VALUES (:connector_id, :tenant, :state_key, 1, :value, :now, :now)
ON CONFLICT (connector_id, tenant, state_key) DO NOTHING
RETURNING version;

-- name: replace_state
-- The next value of a key; no row comes back when its version is another one.
UPDATE connector_state SET version = version + 1, value = :value, updated_at = :now
WHERE connector_id = :connector_id AND tenant = :tenant AND state_key = :state_key AND version = :expected
RETURNING version;
