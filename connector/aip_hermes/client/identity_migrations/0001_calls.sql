-- The identities of consequential calls, written before anything is sent, and what became of each; and what a
-- lifecycle remembers. Times are Unix milliseconds; JSON is text. No transcript, no input: its hash only.

CREATE TABLE calls (
    action_id       TEXT    PRIMARY KEY,
    server          TEXT    NOT NULL,
    capability_id   TEXT    NOT NULL,
    endpoint        TEXT,
    idempotency_key TEXT,
    session_id      TEXT,
    new_session_id  TEXT,
    session_key     TEXT,
    mode            TEXT    NOT NULL,
    content_hash    TEXT    NOT NULL,
    call_group      TEXT,
    step            TEXT,
    state           TEXT    NOT NULL CHECK (state IN ('open', 'pending', 'uncertain', 'settled')),
    attempts        INTEGER NOT NULL,
    result          TEXT,
    begun_at        BIGINT  NOT NULL,
    sent_at         BIGINT  NOT NULL,
    updated_at      BIGINT  NOT NULL
);

CREATE INDEX calls_by_group ON calls (call_group, begun_at) WHERE call_group IS NOT NULL;
CREATE INDEX calls_unsettled ON calls (begun_at) WHERE state <> 'settled';

CREATE TABLE memory (
    call_group TEXT   NOT NULL,
    name       TEXT   NOT NULL,
    value      TEXT   NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (call_group, name)
) WITHOUT ROWID;
