-- The transaction of each event: the log is read as far as every earlier transaction has ended. A smaller number that
-- comes later would be skipped by whoever had read past it.
ALTER TABLE events ADD COLUMN written_by XID8 NOT NULL DEFAULT pg_current_xact_id();
