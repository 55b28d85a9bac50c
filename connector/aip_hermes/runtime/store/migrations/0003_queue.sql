-- The queue: when an action may be taken and when it has waited too long, its tries, and who works on it until when.

ALTER TABLE actions ADD COLUMN due_at BIGINT;
ALTER TABLE actions ADD COLUMN late_at BIGINT;
ALTER TABLE actions ADD COLUMN tries INTEGER NOT NULL DEFAULT 0;
ALTER TABLE actions ADD COLUMN max_tries INTEGER;
ALTER TABLE actions ADD COLUMN last_error TEXT;
ALTER TABLE actions ADD COLUMN dead_letter_reason TEXT;
ALTER TABLE actions ADD COLUMN lease_owner TEXT;
ALTER TABLE actions ADD COLUMN lease_number BIGINT NOT NULL DEFAULT 0;
ALTER TABLE actions ADD COLUMN lease_expires_at BIGINT;

-- What waits since before this version may be taken at once and has waited too long after ten seconds, as ever.
UPDATE actions SET due_at = queued_at, late_at = queued_at + 10000, max_tries = 1
WHERE queued_at IS NOT NULL AND settled_at IS NULL;

DROP INDEX actions_queued;
CREATE INDEX actions_due ON actions (due_at, queued_at, action_id) WHERE state = 'queued';
CREATE INDEX actions_late ON actions (late_at) WHERE state = 'queued';
CREATE INDEX actions_leased ON actions (lease_owner) WHERE state = 'running';
