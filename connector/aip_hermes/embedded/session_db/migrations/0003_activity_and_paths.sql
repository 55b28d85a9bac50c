-- What a listing orders by, values of the store itself, and fewer indexes on the way of a write.

-- Key and text: what the store notes about itself.
CREATE TABLE state_meta (
    key TEXT PRIMARY KEY,
    value TEXT
);

-- The later of noted activity and newest message, else the start: derived by the engine, so that it can't go stale.
ALTER TABLE sessions ADD COLUMN active_at REAL GENERATED ALWAYS AS (
    CASE
        WHEN newest_message_at IS NULL THEN COALESCE(last_activity_at, started_at)
        WHEN last_activity_at > newest_message_at THEN last_activity_at
        ELSE newest_message_at
    END
) VIRTUAL;
CREATE INDEX sessions_active ON sessions (active_at);

-- Rows without a value are not looked for by it, and most rows have none.
DROP INDEX sessions_parent;
CREATE INDEX sessions_parent ON sessions (parent_session_id) WHERE parent_session_id IS NOT NULL;
DROP INDEX sessions_key;
CREATE INDEX sessions_key ON sessions (session_key, started_at) WHERE session_key IS NOT NULL;
DROP INDEX sessions_chat;
CREATE INDEX sessions_chat ON sessions (source, user_id, chat_id, chat_type, thread_id, started_at)
WHERE chat_id IS NOT NULL;
DROP INDEX sessions_handoff;
CREATE INDEX sessions_handoff ON sessions (handoff_state, started_at) WHERE handoff_state IS NOT NULL;
DROP INDEX sessions_prompt;
CREATE INDEX sessions_prompt ON sessions (system_prompt_hash) WHERE system_prompt_hash IS NOT NULL;

-- One path into a transcript serves them all: a session's rows in their order. Time and liveness are looked at on the way.
DROP INDEX messages_time;
DROP INDEX messages_live;
DROP INDEX messages_calls;
