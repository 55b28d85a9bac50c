-- Whether a turn that ended uncertain keeps a session closed, or a run that goes on; and the same of what did before it.

ALTER TABLE serial_locks ADD COLUMN closed_by TEXT;
ALTER TABLE serial_locks ADD COLUMN before_by TEXT;

UPDATE serial_locks SET closed_by = CASE WHEN work IS NULL THEN 'uncertain_turn' ELSE 'run' END
WHERE uncertain_action IS NOT NULL;
UPDATE serial_locks SET before_by = 'uncertain_turn' WHERE before_action IS NOT NULL;
