-- What PostgreSQL says otherwise than listing.sql: lists come as arrays.

-- name: listable
-- Whether `root`, with its parent beside it, stands for a conversation: a root, a branch or a reset.
(
    (root.parent_session_id IS NULL AND COALESCE(root.edge, '') <> 'delegate')
    OR root.edge IN ('branch', 'reset')
    OR (root.edge IS NULL AND parent.end_reason = 'branched' AND root.started_at >= parent.ended_at)
    OR (
        root.edge IS NULL AND root.session_key = parent.session_key AND root.session_key <> ''
        AND parent.end_reason = ANY (CAST(:reset_reasons AS TEXT[]))
    )
)

-- name: listing_filter
-- What a caller may ask of `root`; each part is switched off by its flag.
(:any_source = 1 OR root.source = ANY (CAST(:sources AS TEXT[])))
AND (:no_exclusions = 1 OR root.source <> ALL (CAST(:exclude_sources AS TEXT[])))
AND (:any_hidden = 1 OR root.hidden = 0)
AND (:any_archived = 1 OR root.archived = :archived)
AND (:any_pinned = 1 OR root.pinned = 1)
AND (:any_id = 1 OR root.id = ANY (CAST(:ids AS TEXT[])))
AND (:any_key = 1 OR root.session_key = :session_key)
AND (
    :any_cwd = 1 OR root.cwd = CAST(:cwd AS TEXT)
    OR left(root.cwd, length(CAST(:cwd AS TEXT)) + 1) IN (CAST(:cwd AS TEXT) || '/', CAST(:cwd AS TEXT) || '\')
)
AND (:any_workspace = 1 OR COALESCE(root.git_repo_root, root.cwd) = :workspace)
AND (:min_message_count <= 0 OR root.message_count >= :min_message_count)

-- name: join_in_order
-- The server finds the order of work itself.
JOIN;

-- name: roots_of
-- Of each given row the first segment of its chain.
WITH RECURSIVE up (id, top) AS (
    SELECT given.id COLLATE "C", given.id COLLATE "C" FROM unnest(CAST(:ids AS TEXT[])) AS given (id)
    UNION
    SELECT up.id, above.id
    FROM up
    JOIN sessions AS child ON child.id = up.top AND child.edge IS NULL AND child.source <> 'tool'
    JOIN sessions AS above ON above.id = child.parent_session_id AND above.end_reason = 'compression'
)
SELECT id, top FROM up;

-- name: fetch_listed
-- Several rows by their ids, as a listing shows them.
SELECT /*listed_columns*/ FROM sessions AS root WHERE root.id = ANY (CAST(:ids AS TEXT[]));

-- name: fetch_prompts
-- The texts of system prompts.
SELECT hash, text FROM system_prompts WHERE hash = ANY (CAST(:hashes AS TEXT[]));
