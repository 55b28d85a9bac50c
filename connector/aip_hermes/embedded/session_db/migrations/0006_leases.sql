-- Who may take the turns of a conversation, and who compresses a session, until when. Times are Unix seconds.
-- `turn` is keyed by the oldest row of a chain of compressions, which may not exist yet; `compression` by its session.

CREATE TABLE leases (
    kind TEXT NOT NULL CHECK (kind IN ('turn', 'compression')),
    subject TEXT NOT NULL,
    holder TEXT NOT NULL,
    acquired_at REAL NOT NULL,
    expires_at REAL NOT NULL,
    PRIMARY KEY (kind, subject)
);

CREATE INDEX leases_expiry ON leases (expires_at);
