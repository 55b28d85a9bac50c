-- What PostgreSQL says otherwise than removal.sql.

-- name: make_doomed
-- Where the ids of one removal are gathered, for this connection alone; compared as the ids of rows are.
CREATE TEMP TABLE IF NOT EXISTS doomed (id TEXT COLLATE "C" PRIMARY KEY);
