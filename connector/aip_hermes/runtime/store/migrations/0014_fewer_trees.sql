-- What a commit writes costs by the page: audit records stand in the order of their log, where they are read, and the
-- few actions that run are found by their state, whoever has their leases.

CREATE TABLE audit_log (
    tenant          TEXT    NOT NULL,
    occurred_at     BIGINT  NOT NULL,
    audit_id        TEXT    NOT NULL,
    action_id       TEXT    NOT NULL,
    session_id      TEXT,
    actor_id        TEXT    NOT NULL,
    record          TEXT    NOT NULL,
    PRIMARY KEY (tenant, occurred_at, audit_id)
) WITHOUT ROWID;

INSERT INTO audit_log (tenant, occurred_at, audit_id, action_id, session_id, actor_id, record)
SELECT tenant, occurred_at, audit_id, action_id, session_id, actor_id, record FROM audit;

DROP TABLE audit;
ALTER TABLE audit_log RENAME TO audit;
CREATE INDEX audit_of_action ON audit (action_id, occurred_at);

DROP INDEX actions_leased;
