-- Receipts, what the audit log is asked by, lists in order, and how long text is kept (design D23).

CREATE TABLE receipts (
    tenant          TEXT    NOT NULL,
    chain_id        TEXT    NOT NULL,
    position        BIGINT  NOT NULL,
    receipt_id      TEXT    NOT NULL,
    hash            TEXT    NOT NULL,
    receipt         TEXT    NOT NULL,
    PRIMARY KEY (tenant, chain_id, position)
);

CREATE UNIQUE INDEX receipts_by_id ON receipts (tenant, receipt_id);

ALTER TABLE audit ADD COLUMN session_id TEXT;
CREATE INDEX audit_in_order ON audit (tenant, occurred_at, audit_id);
CREATE INDEX audit_of_action ON audit (tenant, action_id, occurred_at);

-- 1: the result or the chunks hold somebody's text that has not been erased.
ALTER TABLE actions ADD COLUMN holds_text INTEGER NOT NULL DEFAULT 0;
-- Which of the earlier results hold text was not recorded when they were stored.
UPDATE actions SET holds_text = 1 WHERE settled_at IS NOT NULL;
CREATE INDEX actions_with_text ON actions (settled_at) WHERE holds_text = 1;

-- What an action's stored text is about: names that the connector gives; a delete erases by them.
CREATE TABLE text_subjects (
    subject         TEXT    NOT NULL,
    tenant          TEXT    NOT NULL,
    action_id       TEXT    NOT NULL,
    PRIMARY KEY (subject, tenant, action_id)
);

CREATE INDEX text_subjects_of_action ON text_subjects (tenant, action_id);

CREATE INDEX actions_in_order ON actions (
    tenant, updated_at, action_id, principal_id, state, uncertain, capability_id);

CREATE INDEX events_of_tenant ON events (tenant, seq);

-- How far the log of events was pruned: a cursor before it would skip what is gone.
CREATE TABLE event_log_start (
    only_row        INTEGER NOT NULL PRIMARY KEY CHECK (only_row = 1),
    pruned_through  BIGINT  NOT NULL
);
INSERT INTO event_log_start (only_row, pruned_through) VALUES (1, 0);
