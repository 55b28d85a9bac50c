-- What was said about approvals and actions: decisions and requests to cancel, written before anything is sent, and
-- what became of each. `said` holds what a repeat must not change, without the reason: its hash is in content_hash.

CREATE TABLE instructions (
    server         TEXT    NOT NULL,
    instruction_id TEXT    NOT NULL,
    kind           TEXT    NOT NULL CHECK (kind IN ('decision', 'cancel')),
    about          TEXT    NOT NULL,
    content_hash   TEXT    NOT NULL,
    said           TEXT    NOT NULL,
    state          TEXT    NOT NULL CHECK (state IN ('open', 'settled')),
    attempts       INTEGER NOT NULL,
    result         TEXT,
    begun_at       BIGINT  NOT NULL,
    updated_at     BIGINT  NOT NULL,
    PRIMARY KEY (server, instruction_id)
);

CREATE INDEX instructions_open ON instructions (begun_at) WHERE state <> 'settled';
