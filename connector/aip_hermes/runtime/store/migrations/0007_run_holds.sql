-- Which work at a provider keeps a session closed, and what had closed it before: its end opens the session again.

ALTER TABLE serial_locks ADD COLUMN work TEXT;
ALTER TABLE serial_locks ADD COLUMN before_action TEXT;
ALTER TABLE serial_locks ADD COLUMN before_until BIGINT;

CREATE INDEX serial_locks_work ON serial_locks (work) WHERE work IS NOT NULL;
