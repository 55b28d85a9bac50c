-- What connectors keep about their calls: one JSON object per connector, tenant and key.

CREATE TABLE connector_state (
    connector_id    TEXT    NOT NULL,
    tenant          TEXT    NOT NULL,
    state_key       TEXT    NOT NULL,
    version         BIGINT  NOT NULL,
    value           TEXT    NOT NULL,
    created_at      BIGINT  NOT NULL,
    updated_at      BIGINT  NOT NULL,
    PRIMARY KEY (connector_id, tenant, state_key)
);
