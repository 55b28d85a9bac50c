-- What PostgreSQL says otherwise than pruning.sql.

-- name: logical_size
-- Bytes of the tables and indexes of this store; places that the engine keeps for later rows count, too.
SELECT CAST(COALESCE(SUM(pg_total_relation_size(part.oid)), 0) AS BIGINT) AS bytes
FROM pg_class AS part JOIN pg_namespace AS home ON home.oid = part.relnamespace
WHERE home.nspname = current_schema() AND part.relkind = 'r';
