-- Scheduled jobs, stored responses, and commands that a person allowed for good. Documents are JSON.

CREATE TABLE jobs (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    enabled INTEGER NOT NULL,
    document TEXT NOT NULL
);

-- `used` grows with every use, so that the smallest is the one that was used longest ago.
CREATE TABLE responses (
    id TEXT PRIMARY KEY,
    used INTEGER NOT NULL,
    session_id TEXT NOT NULL,
    instructions TEXT,
    history TEXT NOT NULL,
    document TEXT NOT NULL
);

CREATE INDEX responses_used ON responses (used);

CREATE TABLE conversations (
    name TEXT PRIMARY KEY,
    response_id TEXT NOT NULL REFERENCES responses (id) ON DELETE CASCADE
);

CREATE INDEX conversations_response ON conversations (response_id);

CREATE TABLE command_grants (
    pattern TEXT PRIMARY KEY,
    granted_at REAL NOT NULL
);
