-- Actions, their fences, approvals, events, audit, message ids and session locks.
-- Times are Unix milliseconds; JSON is text. A missing tenant is the empty string, so that it can be part of a key.

CREATE TABLE actions (
    tenant          TEXT    NOT NULL,
    action_id       TEXT    NOT NULL,
    capability_id   TEXT    NOT NULL,
    connector_id    TEXT    NOT NULL,
    principal_id    TEXT    NOT NULL,
    principal       TEXT    NOT NULL,
    content_hash    TEXT    NOT NULL,
    input_hash      TEXT    NOT NULL,
    read_only       INTEGER NOT NULL,
    key_scope       TEXT,
    key_partition   TEXT,
    key_text        TEXT,
    session_id      TEXT,
    correlation_id  TEXT,
    attempt         INTEGER NOT NULL,
    state           TEXT    NOT NULL CHECK (
                        state IN ('queued', 'running', 'pending_approval', 'completed', 'failed', 'cancelled')),
    approval_id     TEXT,
    created_at      BIGINT  NOT NULL,
    claimed_at      BIGINT  NOT NULL,
    reserved_until  BIGINT  NOT NULL,
    intent_at       BIGINT,
    settled_at      BIGINT,
    queued_at       BIGINT,
    updated_at      BIGINT  NOT NULL,
    facts           TEXT,
    parked          TEXT,
    result          TEXT,
    frees_key       INTEGER NOT NULL DEFAULT 0,
    uncertain       INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, action_id)
);

CREATE INDEX actions_unfinished ON actions (state) WHERE state IN ('queued', 'running', 'pending_approval');
CREATE INDEX actions_queued ON actions (queued_at, action_id) WHERE state = 'queued';

CREATE TABLE idempotency_keys (
    tenant          TEXT    NOT NULL,
    key_scope       TEXT    NOT NULL,
    key_partition   TEXT    NOT NULL,
    key_text        TEXT    NOT NULL,
    action_id       TEXT    NOT NULL,
    principal_id    TEXT    NOT NULL,
    principal_kind  TEXT    NOT NULL,
    input_hash      TEXT    NOT NULL,
    settled         INTEGER NOT NULL,
    first_seen_at   BIGINT  NOT NULL,
    expires_at      BIGINT,
    PRIMARY KEY (tenant, key_scope, key_partition, key_text)
);

CREATE TABLE serial_locks (
    serial_key        TEXT    NOT NULL PRIMARY KEY,
    holder_tenant     TEXT,
    holder_action     TEXT,
    use_as            TEXT,
    held_since        BIGINT,
    hold_ms           BIGINT  NOT NULL,
    uncertain_action  TEXT,
    closed_until      BIGINT
);

CREATE INDEX serial_locks_holder ON serial_locks (holder_tenant, holder_action);

CREATE TABLE approvals (
    approval_id     TEXT    NOT NULL PRIMARY KEY,
    tenant          TEXT    NOT NULL,
    action_id       TEXT    NOT NULL,
    capability_id   TEXT    NOT NULL,
    requester_id    TEXT    NOT NULL,
    subject_id      TEXT    NOT NULL,
    status          TEXT    NOT NULL CHECK (status IN ('pending', 'approved', 'denied', 'expired', 'revoked')),
    request         TEXT    NOT NULL,
    input_hash      TEXT    NOT NULL,
    content_hash    TEXT    NOT NULL,
    snapshot        TEXT,
    decision        TEXT,
    decision_id     TEXT,
    decided_by      TEXT,
    expires_at      BIGINT,
    created_at      BIGINT  NOT NULL,
    updated_at      BIGINT  NOT NULL
);

CREATE INDEX approvals_in_order ON approvals (tenant, created_at, approval_id);
CREATE INDEX approvals_overdue ON approvals (expires_at) WHERE status = 'pending';

CREATE TABLE events (
    seq             INTEGER PRIMARY KEY,
    event_id        TEXT    NOT NULL UNIQUE,
    tenant          TEXT    NOT NULL,
    action_id       TEXT,
    kind            TEXT    NOT NULL,
    occurred_at     BIGINT  NOT NULL,
    event           TEXT    NOT NULL
);

CREATE INDEX events_of_action ON events (tenant, action_id, seq);

CREATE TABLE audit (
    audit_id        TEXT    NOT NULL PRIMARY KEY,
    tenant          TEXT    NOT NULL,
    action_id       TEXT    NOT NULL,
    actor_id        TEXT    NOT NULL,
    occurred_at     BIGINT  NOT NULL,
    record          TEXT    NOT NULL
);

CREATE TABLE message_ids (
    message_id      TEXT    NOT NULL PRIMARY KEY,
    expires_at      BIGINT  NOT NULL
);

CREATE INDEX message_ids_expiry ON message_ids (expires_at);
