-- Who removed which session, when, and by what. Ids only; entries go after 400 days.

CREATE TABLE removals (
    session_id TEXT NOT NULL,
    removed_at REAL NOT NULL,
    cause TEXT NOT NULL,
    actor TEXT NOT NULL
);

CREATE INDEX removals_time ON removals (removed_at);
