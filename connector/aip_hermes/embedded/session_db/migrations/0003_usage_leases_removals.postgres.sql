-- Values of the store itself, usage by model, leases, the record of removals, and fewer indexes on the way of a write.
-- Times are Unix seconds.

-- Key and text: what the store notes about itself.
CREATE TABLE state_meta (
    key TEXT PRIMARY KEY,
    value TEXT
);

-- What each session used, by model, billing route and task. '' stands for an unknown one, so that the key holds.

CREATE TABLE model_usage (
    session_id TEXT COLLATE "C" NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    model TEXT COLLATE "C" NOT NULL,
    billing_provider TEXT COLLATE "C" NOT NULL,
    billing_base_url TEXT COLLATE "C" NOT NULL,
    billing_mode TEXT COLLATE "C" NOT NULL,
    task TEXT COLLATE "C" NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cache_read_tokens BIGINT NOT NULL,
    cache_write_tokens BIGINT NOT NULL,
    reasoning_tokens BIGINT NOT NULL,
    api_call_count BIGINT NOT NULL,
    estimated_cost_usd DOUBLE PRECISION,
    actual_cost_usd DOUBLE PRECISION,
    cost_status TEXT,
    cost_source TEXT,
    first_seen DOUBLE PRECISION NOT NULL,
    last_seen DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (session_id, model, billing_provider, billing_base_url, billing_mode, task)
);

CREATE INDEX model_usage_model ON model_usage (model);

-- Who may take the turns of a conversation, and who compresses a session, until when.
-- `turn` is keyed by the oldest row of a chain of compressions, which may not exist yet; `compression` by its session.

CREATE TABLE leases (
    kind TEXT COLLATE "C" NOT NULL CHECK (kind IN ('turn', 'compression')),
    subject TEXT COLLATE "C" NOT NULL,
    holder TEXT NOT NULL,
    acquired_at DOUBLE PRECISION NOT NULL,
    expires_at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (kind, subject)
);

CREATE INDEX leases_expiry ON leases (expires_at);

-- Who removed which session, when, and by what. Ids only; entries go after 400 days.

CREATE TABLE removals (
    session_id TEXT COLLATE "C" NOT NULL,
    removed_at DOUBLE PRECISION NOT NULL,
    cause TEXT NOT NULL,
    actor TEXT NOT NULL
);

CREATE INDEX removals_time ON removals (removed_at);

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
