-- A tenant's message ids are its own. What was taken before was nobody's, so it is taken for every tenant that is known.

CREATE TABLE message_ids_of_tenants (
    tenant          TEXT    NOT NULL,
    message_id      TEXT    NOT NULL,
    expires_at      BIGINT  NOT NULL,
    PRIMARY KEY (tenant, message_id)
);

INSERT INTO message_ids_of_tenants (tenant, message_id, expires_at)
SELECT known.tenant, message_ids.message_id, message_ids.expires_at
FROM message_ids CROSS JOIN (SELECT DISTINCT tenant FROM actions UNION SELECT '' AS tenant) AS known;

DROP TABLE message_ids;
ALTER TABLE message_ids_of_tenants RENAME TO message_ids;
CREATE INDEX message_ids_expiry ON message_ids (expires_at);

-- So is the beginning of its log: pruning another one's events ends no cursor of its own.
CREATE TABLE event_log_starts (
    tenant          TEXT    NOT NULL PRIMARY KEY,
    pruned_through  BIGINT  NOT NULL
);

INSERT INTO event_log_starts (tenant, pruned_through)
SELECT known.tenant, event_log_start.pruned_through
FROM event_log_start CROSS JOIN (SELECT DISTINCT tenant FROM actions UNION SELECT '' AS tenant) AS known
WHERE event_log_start.pruned_through > 0;

DROP TABLE event_log_start;

-- And its place in the queue: the worker looks for what is due tenant by tenant.
DROP INDEX actions_due;
CREATE INDEX actions_due ON actions (tenant, due_at, queued_at, action_id) WHERE state = 'queued';
