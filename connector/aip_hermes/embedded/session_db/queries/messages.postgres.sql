-- What PostgreSQL says otherwise than messages.sql: a message brings the words it is found by.

-- name: insert_message
-- One row at the end.
INSERT INTO messages (
    session_id, /*message_columns*/, tool_call_total, content_text, calls_text, folded, words, word_total
) VALUES (
    :session_id, :role, :content, :tool_call_id, :tool_calls, :tool_name, :effect_disposition, :timestamp, :token_count,
    :finish_reason, :reasoning, :reasoning_content, :reasoning_details, :codex_reasoning_items, :codex_message_items,
    :platform_message_id, :observed, :active, :compacted, :api_content, :display_kind, :display_metadata,
    :tool_call_total, CAST(:content_text AS TEXT), CAST(:calls_text AS TEXT), :folded,
    array_to_tsvector(CAST(:words AS TEXT[])), :word_total
);

-- name: insert_text
-- One row at the end that holds a text and what nearly every row has; the engine fills in the rest.
INSERT INTO messages (
    session_id, role, content, timestamp, token_count, finish_reason, content_text, calls_text, folded, words, word_total
) VALUES (
    :session_id, :role, :content, :timestamp, :token_count, :finish_reason, CAST(:content_text AS TEXT),
    CAST(:calls_text AS TEXT), :folded, array_to_tsvector(CAST(:words AS TEXT[])), :word_total
);

-- name: copy_messages
-- The live rows of one transcript into another, with new ids and their old times.
INSERT INTO messages (
    session_id, /*message_columns*/, tool_call_total, content_text, calls_text, folded, words, word_total
) SELECT CAST(:target AS TEXT), /*message_columns*/, tool_call_total, content_text, calls_text, folded, words, word_total
FROM messages WHERE session_id = :source AND active = 1 ORDER BY id;
