-- Changes to rows that are there.

-- name: delete_live_messages
-- The live rows of one transcript.
DELETE FROM messages WHERE session_id = :session_id AND active = 1;

-- name: retire_live_messages
-- The live rows of one transcript, hidden.
UPDATE messages SET active = 0 WHERE session_id = :session_id AND active = 1;

-- name: rewind_messages
-- The live rows from one on, hidden everywhere.
UPDATE messages SET active = 0 WHERE session_id = :session_id AND active = 1 AND id >= :since;

-- name: restore_messages
-- The rows from one on that a rewind had hidden; those that a summary stands for stay away.
UPDATE messages SET active = 1 WHERE session_id = :session_id AND active = 0 AND compacted = 0 AND id >= :since;

-- name: count_rewind
-- One more time that a row was rewound.
UPDATE sessions SET rewind_count = rewind_count + 1 WHERE id = :id;

-- name: newest_live_row
-- The last live row of a transcript.
SELECT MAX(id) AS id FROM messages WHERE session_id = :session_id AND active = 1;

-- name: newest_live_user_row
-- The last live message of a user.
SELECT id, content FROM messages
WHERE session_id = :session_id AND active = 1 AND role = 'user' ORDER BY id DESC LIMIT 1;

-- name: write_api_content
-- What was really sent to the model for one row.
UPDATE messages SET api_content = :api_content WHERE id = :id;

-- name: fetch_message
-- One row of one transcript.
SELECT * FROM messages WHERE id = :id AND session_id = :session_id;

-- name: latest_row_of_role
-- The rows of a role counted back from the newest live one; content is looked at only where text is asked for.
SELECT id FROM messages
WHERE session_id = :session_id AND active = 1 AND role = :role
  AND (:require_text = 0 OR (content IS NOT NULL AND TRIM(content) <> ''))
ORDER BY id DESC LIMIT 1 OFFSET :offset;

-- name: has_platform_message
-- Whether a message of the platform was stored.
SELECT 1 AS present FROM messages WHERE session_id = :session_id AND platform_message_id = :platform_message_id LIMIT 1;

-- name: has_inactive_messages
-- Whether a transcript has hidden rows.
SELECT 1 AS present FROM messages WHERE session_id = :session_id AND active = 0 LIMIT 1;

-- name: assistant_contents
-- What the assistant said first.
SELECT content FROM messages
WHERE session_id = :session_id AND active = 1 AND role = 'assistant' AND content IS NOT NULL ORDER BY id LIMIT 20;

-- name: recent_user_messages
-- What a user said last, newest first; synthesized turns aren't theirs.
SELECT id, timestamp, content FROM messages
WHERE session_id = :session_id AND role = 'user' AND display_kind IS NULL AND (active = 1 OR :include_inactive = 1)
ORDER BY id DESC LIMIT :limit;

-- name: messages_from
-- Rows from one on, hidden ones included.
SELECT * FROM messages WHERE session_id = :session_id AND id >= :id ORDER BY id LIMIT :limit;

-- name: messages_before
-- Rows before one, nearest first, hidden ones included.
SELECT * FROM messages WHERE session_id = :session_id AND id < :id ORDER BY id DESC LIMIT :limit;

-- name: first_visible_messages
-- What a person may see before a row, from the beginning.
SELECT * FROM messages
WHERE session_id = :session_id AND id < :id AND (active = 1 OR compacted = 1) AND content IS NOT NULL
ORDER BY id LIMIT :limit OFFSET :offset;

-- name: last_visible_messages
-- What a person may see after a row, from the end.
SELECT * FROM messages
WHERE session_id = :session_id AND id > :id AND (active = 1 OR compacted = 1) AND content IS NOT NULL
ORDER BY id DESC LIMIT :limit OFFSET :offset;

-- name: count_all_messages
-- All rows of the store.
SELECT COUNT(*) AS messages FROM messages;
