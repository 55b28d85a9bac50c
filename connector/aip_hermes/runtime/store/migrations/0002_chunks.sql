-- What an action said while it ran, in order. A chunk and its event are one transaction.

CREATE TABLE chunks (
    tenant          TEXT    NOT NULL,
    action_id       TEXT    NOT NULL,
    sequence        BIGINT  NOT NULL,
    kind            TEXT    NOT NULL,
    chunk           TEXT    NOT NULL,
    published_at    BIGINT  NOT NULL,
    PRIMARY KEY (tenant, action_id, sequence)
);
