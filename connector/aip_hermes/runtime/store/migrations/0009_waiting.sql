-- Counting what waits, of a tenant or of all, reads an index and no action.

CREATE INDEX actions_waiting ON actions (state, tenant) WHERE state IN ('queued', 'pending_approval');
