-- Single values of a row, and values of the store.

-- name: write_config
-- The configuration of a row, with the kind of edge that its markers name.
UPDATE sessions SET model_config = :model_config, edge = :edge WHERE id = :id;

-- name: write_model
-- The model of a row; its stored prompt was another model's.
UPDATE sessions SET model = :model, system_prompt_hash = NULL WHERE id = :id;

-- name: fill_model
-- The model of a row where one is given.
UPDATE sessions SET model = COALESCE(:model, model) WHERE id = :id;

-- name: write_prompt
-- Which prompt a row has.
UPDATE sessions SET system_prompt_hash = :hash WHERE id = :id;

-- name: write_place
-- Where a row works; what git knows is replaced, or kept where nothing is given.
UPDATE sessions SET
    cwd = :cwd,
    git_branch = CASE WHEN :replace = 1 THEN :git_branch ELSE COALESCE(:git_branch, git_branch) END,
    git_repo_root = CASE WHEN :replace = 1 THEN :git_repo_root ELSE COALESCE(:git_repo_root, git_repo_root) END
WHERE id = :id;

-- name: fill_repo_root
-- The repository of the rows that work in a folder and name none.
UPDATE sessions SET git_repo_root = :root WHERE cwd = :cwd AND (git_repo_root IS NULL OR git_repo_root = '');

-- name: write_billing_route
-- Who is paid, and how.
UPDATE sessions SET
    billing_provider = :provider, billing_base_url = :base_url, billing_mode = COALESCE(:billing_mode, billing_mode)
WHERE id = :id;

-- name: note_activity
-- The last sign of life, never earlier than the one before.
UPDATE sessions SET
    last_activity_at = CASE WHEN last_activity_at > :at THEN last_activity_at ELSE :at END,
    last_activity_description = COALESCE(:description, last_activity_description),
    last_activity_provenance = COALESCE(:provenance, last_activity_provenance)
WHERE id = :id;

-- name: clear_activity_labels
-- What a row was busy with; the time stays.
UPDATE sessions SET last_activity_description = NULL, last_activity_provenance = NULL WHERE id = :id;

-- name: write_archived
-- Put away, or not.
UPDATE sessions SET archived = :flag WHERE id = :id;

-- name: write_pinned
-- Kept in sight, or not.
UPDATE sessions SET pinned = :flag WHERE id = :id;

-- name: write_hidden
-- Out of listings, or not.
UPDATE sessions SET hidden = :flag WHERE id = :id;

-- name: write_read
-- Read up to now, and no less than up to its last activity; or never since it began.
UPDATE sessions SET
    last_read_at = CASE WHEN :flag = 0 THEN 0 WHEN active_at > :now THEN active_at ELSE :now END
WHERE id = :id;

-- name: fetch_meta
-- A value of the store.
SELECT value FROM state_meta WHERE key = :key;

-- name: write_meta
-- A value of the store.
INSERT INTO state_meta (key, value) VALUES (:key, :value)
ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: delete_meta
-- A value of the store, gone.
DELETE FROM state_meta WHERE key = :key;
