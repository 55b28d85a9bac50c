-- Every decision about an approval, votes too. An approver approves once.

CREATE TABLE approval_decisions (
    approval_id     TEXT    NOT NULL,
    decision_id     TEXT    NOT NULL,
    tenant          TEXT    NOT NULL,
    decision        TEXT    NOT NULL,
    approver_id     TEXT    NOT NULL,
    terminal        INTEGER NOT NULL,
    record          TEXT    NOT NULL,
    recorded_at     BIGINT  NOT NULL,
    PRIMARY KEY (approval_id, decision_id)
);

CREATE UNIQUE INDEX approval_decisions_once ON approval_decisions (approval_id, approver_id)
WHERE decision = 'approved';

INSERT INTO approval_decisions (
    approval_id, decision_id, tenant, decision, approver_id, terminal, record, recorded_at)
SELECT approval_id, decision_id, tenant, status, decided_by, 1, decision, updated_at
FROM approvals WHERE decision IS NOT NULL AND decision_id IS NOT NULL;
