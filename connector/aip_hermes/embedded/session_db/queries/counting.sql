-- Small questions about all sessions.

-- name: any_sessions
-- As many rows as are asked for, if there are as many.
SELECT id FROM sessions LIMIT :n;

-- name: distinct_cwds
-- Working folders, how many sessions had each, and when the last of them was active.
SELECT cwd, COUNT(*) AS sessions, MAX(active_at) AS last_active FROM sessions
WHERE cwd IS NOT NULL AND TRIM(cwd) <> '' AND (archived = 0 OR :include_archived = 1)
GROUP BY cwd ORDER BY MAX(active_at) DESC, cwd;

-- name: skill_scaffolded
-- Titled rows whose first user message begins as an invoked skill does, newest first.
SELECT s.id, s.title, s.title_source, s.source, s.started_at, s.preview
FROM sessions AS s
WHERE s.title IS NOT NULL AND (
    SELECT substr(m.content, 1, length(:mark)) FROM messages AS m
    WHERE m.session_id = s.id AND m.role = 'user' ORDER BY m.id LIMIT 1
) = :mark
ORDER BY s.started_at DESC, s.id DESC LIMIT :limit;

-- name: names_of_sessions
-- Id and title of every row, for a search by name.
SELECT id, title FROM sessions;

-- name: ids_with_prefix
-- Ids that begin with a text; two are enough to know that there is not one.
SELECT id FROM sessions WHERE substr(id, 1, length(:prefix)) = :prefix LIMIT 2;
