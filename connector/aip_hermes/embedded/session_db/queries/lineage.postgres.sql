-- What PostgreSQL says otherwise than lineage.sql.

-- name: given_id
-- An id to begin with, compared as the ids of rows are.
CAST(:id AS TEXT) COLLATE "C";
