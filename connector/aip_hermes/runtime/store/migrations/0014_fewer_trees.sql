-- What a commit writes costs by the page: an audit record stands in its key's own tree, and the few actions that run are
-- found by their state, whoever has their leases.

CREATE TABLE audit_by_key (
    audit_id        TEXT    NOT NULL PRIMARY KEY,
    tenant          TEXT    NOT NULL,
    action_id       TEXT    NOT NULL,
    actor_id        TEXT    NOT NULL,
    occurred_at     BIGINT  NOT NULL,
    record          TEXT    NOT NULL,
    session_id      TEXT
) WITHOUT ROWID;

INSERT INTO audit_by_key (audit_id, tenant, action_id, actor_id, occurred_at, record, session_id)
SELECT audit_id, tenant, action_id, actor_id, occurred_at, record, session_id FROM audit;

DROP TABLE audit;
ALTER TABLE audit_by_key RENAME TO audit;
CREATE INDEX audit_in_order ON audit (tenant, occurred_at, audit_id);
CREATE INDEX audit_of_action ON audit (tenant, action_id, occurred_at);

DROP INDEX actions_leased;
