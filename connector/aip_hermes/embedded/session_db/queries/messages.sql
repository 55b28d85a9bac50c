-- Rows of transcripts; the row id is the order, never the time.

-- name: message_columns
-- What a message consists of, but for its row id and its session.
role, content, tool_call_id, tool_calls, tool_name, effect_disposition, timestamp, token_count, finish_reason, reasoning,
reasoning_content, reasoning_details, codex_reasoning_items, codex_message_items, platform_message_id, observed, active,
compacted, api_content, display_kind, display_metadata;

-- name: insert_message
-- One row at the end.
INSERT INTO messages (session_id, /*message_columns*/, tool_call_total) VALUES (
    :session_id, :role, :content, :tool_call_id, :tool_calls, :tool_name, :effect_disposition, :timestamp, :token_count,
    :finish_reason, :reasoning, :reasoning_content, :reasoning_details, :codex_reasoning_items, :codex_message_items,
    :platform_message_id, :observed, :active, :compacted, :api_content, :display_kind, :display_metadata,
    :tool_call_total
);

-- name: insert_text
-- One row at the end that holds a text and what nearly every row has; the engine fills in the rest.
INSERT INTO messages (session_id, role, content, timestamp, token_count, finish_reason)
VALUES (:session_id, :role, :content, :timestamp, :token_count, :finish_reason);

-- name: fetch_messages
-- Rows of one transcript in order, in the columns of a message dictionary; hidden ones only on request.
SELECT id, session_id, /*message_columns*/ FROM messages
WHERE session_id = :session_id AND (active = 1 OR :include_inactive = 1) AND id > :after_id
ORDER BY id LIMIT :limit OFFSET :offset;

-- name: told_more
-- What a model may read of a row besides its text.
api_content, display_kind, display_metadata, tool_call_id, tool_name, effect_disposition, tool_calls, platform_message_id,
reasoning, reasoning_content, reasoning_details, codex_reasoning_items, codex_message_items;

-- name: fetch_told_texts
-- Rows of one transcript in order, as far as most rows go; `more` tells of those that hold more for a model.
SELECT
    id, role, content, timestamp, finish_reason, observed,
    COALESCE(/*told_more*/) IS NOT NULL AS more
FROM messages
WHERE session_id = :session_id AND (active = 1 OR :include_inactive = 1)
ORDER BY id;

-- name: fetch_told_rest
-- The rows that hold more, with all that a model may read.
SELECT
    id, role, content, timestamp, finish_reason, observed, /*told_more*/
FROM messages
WHERE session_id = :session_id AND (active = 1 OR :include_inactive = 1)
  AND COALESCE(/*told_more*/) IS NOT NULL;

-- name: fetch_latest_messages
-- The same, counted back from the newest; newest first.
SELECT id, session_id, /*message_columns*/ FROM messages
WHERE session_id = :session_id AND (active = 1 OR :include_inactive = 1)
ORDER BY id DESC LIMIT :limit OFFSET :offset;

-- name: copy_messages
-- The live rows of one transcript into another, with new ids and their old times.
INSERT INTO messages (session_id, /*message_columns*/, tool_call_total)
SELECT :target, /*message_columns*/, tool_call_total FROM messages WHERE session_id = :source AND active = 1 ORDER BY id;

-- name: sum_up_transcript
-- Counters and last time of the live rows.
SELECT COUNT(*) AS messages, COALESCE(SUM(tool_call_total), 0) AS tool_calls, MAX(timestamp) AS newest
FROM messages WHERE session_id = :session_id AND active = 1;

-- name: newest_visible_message
-- The last time of the rows that a person may see: live ones, and those that a summary stands for.
SELECT MAX(timestamp) AS newest FROM messages WHERE session_id = :session_id AND (active = 1 OR compacted = 1);

-- name: visible_user_messages
-- The first user messages that a person may see.
SELECT content FROM messages
WHERE session_id = :session_id AND role = 'user' AND content IS NOT NULL AND (active = 1 OR compacted = 1)
ORDER BY id LIMIT 20;

-- name: count_messages
-- All rows of one transcript, hidden ones included.
SELECT COUNT(*) AS messages FROM messages WHERE session_id = :session_id;

-- name: delete_messages
-- All rows of one transcript.
DELETE FROM messages WHERE session_id = :session_id;

-- name: hide_compacted
-- The live rows of one transcript make room for a summary; they stay readable as hidden ones.
UPDATE messages SET active = 0, compacted = 1 WHERE session_id = :session_id AND active = 1;
