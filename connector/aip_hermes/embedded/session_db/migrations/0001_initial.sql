-- Sessions, their messages and the system prompts they share. Times are Unix seconds with a fraction.

CREATE TABLE system_prompts (
    hash TEXT PRIMARY KEY,
    text TEXT NOT NULL
);

CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    user_id TEXT,
    session_key TEXT,
    chat_id TEXT,
    chat_type TEXT,
    thread_id TEXT,
    display_name TEXT,
    origin_json TEXT,
    expiry_finalized INTEGER NOT NULL DEFAULT 0,
    model TEXT,
    model_config TEXT,
    system_prompt_hash TEXT REFERENCES system_prompts (hash),
    parent_session_id TEXT REFERENCES sessions (id),
    started_at REAL NOT NULL,
    ended_at REAL,
    end_reason TEXT,
    message_count INTEGER NOT NULL DEFAULT 0,
    tool_call_count INTEGER NOT NULL DEFAULT 0,
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    reasoning_tokens INTEGER NOT NULL DEFAULT 0,
    cwd TEXT,
    git_branch TEXT,
    git_repo_root TEXT,
    billing_provider TEXT,
    billing_base_url TEXT,
    billing_mode TEXT,
    estimated_cost_usd REAL,
    actual_cost_usd REAL,
    cost_status TEXT,
    cost_source TEXT,
    pricing_version TEXT,
    title TEXT,
    title_source TEXT,
    last_activity_at REAL,
    last_activity_description TEXT,
    last_activity_provenance TEXT,
    api_call_count INTEGER NOT NULL DEFAULT 0,
    handoff_state TEXT,
    handoff_platform TEXT,
    handoff_error TEXT,
    compression_failure_cooldown_until REAL,
    compression_failure_error TEXT,
    compression_fallback_streak INTEGER NOT NULL DEFAULT 0,
    compression_ineffective_count INTEGER NOT NULL DEFAULT 0,
    profile_name TEXT,
    rewind_count INTEGER NOT NULL DEFAULT 0,
    archived INTEGER NOT NULL DEFAULT 0,
    pinned INTEGER NOT NULL DEFAULT 0,
    hidden INTEGER NOT NULL DEFAULT 0,
    last_read_at REAL,
    -- Kept here so that a listing reads no messages and no JSON: the kind of edge to the parent, taken from the markers
    -- in model_config, and what the transcript contributes to a list entry.
    edge TEXT CHECK (edge IN ('branch', 'delegate', 'reset')),
    newest_message_at REAL,
    preview TEXT
);

CREATE UNIQUE INDEX sessions_title ON sessions (title) WHERE title IS NOT NULL;
CREATE INDEX sessions_source ON sessions (source, id);
CREATE INDEX sessions_parent ON sessions (parent_session_id);
CREATE INDEX sessions_started ON sessions (started_at DESC);
CREATE INDEX sessions_key ON sessions (session_key, started_at DESC);
CREATE INDEX sessions_chat ON sessions (source, user_id, chat_id, chat_type, thread_id, started_at DESC);
CREATE INDEX sessions_handoff ON sessions (handoff_state, started_at);
CREATE INDEX sessions_prompt ON sessions (system_prompt_hash);

-- The row id is the order of a transcript and is never given twice. `content` has no type: text, numbers and bytes pass.
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions (id),
    role TEXT NOT NULL,
    content,
    tool_call_id TEXT,
    tool_calls TEXT,
    tool_name TEXT,
    effect_disposition TEXT,
    timestamp REAL NOT NULL,
    token_count INTEGER,
    finish_reason TEXT,
    reasoning TEXT,
    reasoning_content TEXT,
    reasoning_details TEXT,
    codex_reasoning_items TEXT,
    codex_message_items TEXT,
    platform_message_id TEXT,
    observed INTEGER NOT NULL DEFAULT 0,
    active INTEGER NOT NULL DEFAULT 1,
    compacted INTEGER NOT NULL DEFAULT 0,
    api_content TEXT,
    display_kind TEXT,
    display_metadata TEXT,
    -- How many calls `tool_calls` holds, so that counters are sums.
    tool_call_total INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX messages_session ON messages (session_id, id);
CREATE INDEX messages_time ON messages (session_id, timestamp);
CREATE INDEX messages_live ON messages (session_id, active, timestamp);
CREATE INDEX messages_platform ON messages (session_id, platform_message_id) WHERE platform_message_id IS NOT NULL;
CREATE INDEX messages_calls ON messages (session_id) WHERE role = 'assistant' AND tool_calls IS NOT NULL;
