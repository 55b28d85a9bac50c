-- What is little more than its key stands in the key's own tree: one page less in each commit that writes it.

CREATE TABLE text_subjects_by_key (
    subject         TEXT    NOT NULL,
    tenant          TEXT    NOT NULL,
    action_id       TEXT    NOT NULL,
    PRIMARY KEY (subject, tenant, action_id)
) WITHOUT ROWID;

INSERT INTO text_subjects_by_key (subject, tenant, action_id) SELECT subject, tenant, action_id FROM text_subjects;

DROP TABLE text_subjects;
ALTER TABLE text_subjects_by_key RENAME TO text_subjects;
CREATE INDEX text_subjects_of_action ON text_subjects (tenant, action_id);

CREATE TABLE message_ids_by_key (
    tenant          TEXT    NOT NULL,
    message_id      TEXT    NOT NULL,
    expires_at      BIGINT  NOT NULL,
    PRIMARY KEY (tenant, message_id)
) WITHOUT ROWID;

INSERT INTO message_ids_by_key (tenant, message_id, expires_at) SELECT tenant, message_id, expires_at FROM message_ids;

DROP TABLE message_ids;
ALTER TABLE message_ids_by_key RENAME TO message_ids;
CREATE INDEX message_ids_expiry ON message_ids (expires_at);

CREATE TABLE idempotency_keys_by_key (
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
) WITHOUT ROWID;

INSERT INTO idempotency_keys_by_key (
    tenant, key_scope, key_partition, key_text, action_id, principal_id, principal_kind, input_hash, settled,
    first_seen_at, expires_at)
SELECT
    tenant, key_scope, key_partition, key_text, action_id, principal_id, principal_kind, input_hash, settled,
    first_seen_at, expires_at
FROM idempotency_keys;

DROP TABLE idempotency_keys;
ALTER TABLE idempotency_keys_by_key RENAME TO idempotency_keys;
