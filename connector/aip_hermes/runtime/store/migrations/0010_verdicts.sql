-- What the last look at the provider said about an action whose effect nobody knew. Earlier looks are events.

CREATE TABLE verdicts (
    tenant          TEXT    NOT NULL,
    action_id       TEXT    NOT NULL,
    number          BIGINT  NOT NULL,
    outcome         TEXT    NOT NULL CHECK (
                        outcome IN ('applied', 'not_applied', 'partially_applied', 'indeterminate')),
    verdict         TEXT    NOT NULL,
    reconciled_at   BIGINT  NOT NULL,
    PRIMARY KEY (tenant, action_id)
);
