-- Full-text search on SQLite: an FTS5 index over texts that stay where they are, and a plain look into the texts.

-- name: search_state
-- How far the index goes, and the newest row there is.
SELECT indexed_through, (SELECT COALESCE(MAX(id), 0) FROM messages) AS newest FROM search_index;

-- name: create_search_index
-- An empty index.
CREATE VIRTUAL TABLE messages_fts USING fts5 (
    content, tool_name, tool_calls, content = 'search_texts', content_rowid = 'id',
    tokenize = 'unicode61 remove_diacritics 2'
);

-- name: create_append_trigger
-- Rows enter the index many at a time, which costs a tenth of one by one; a backlog shrinks with every row.
CREATE TRIGGER search_append AFTER INSERT ON messages
WHEN new.id >= (SELECT indexed_through FROM search_index) + 256
BEGIN
    INSERT INTO messages_fts (rowid, content, tool_name, tool_calls)
    SELECT id, content, tool_name, tool_calls FROM search_texts
    WHERE id > (SELECT indexed_through FROM search_index)
      AND id <= (SELECT MIN(indexed_through + 512, new.id) FROM search_index);
    UPDATE search_index SET indexed_through = MIN(indexed_through + 512, new.id);
END;

-- name: unindex_old
-- A row leaves the index with its old texts, which have to be there still.
INSERT INTO messages_fts (messages_fts, rowid, content, tool_name, tool_calls)
SELECT 'delete', id, content, tool_name, tool_calls FROM search_texts WHERE id = old.id;

-- name: texts_change
-- Whether an update changes what the index holds of a row.
old.id <= (SELECT indexed_through FROM search_index) AND (
    old.content IS NOT new.content OR old.tool_name IS NOT new.tool_name OR old.tool_calls IS NOT new.tool_calls
);

-- name: create_delete_trigger
-- A row leaves the index before it goes.
CREATE TRIGGER search_delete BEFORE DELETE ON messages
WHEN old.id <= (SELECT indexed_through FROM search_index)
BEGIN
    /*unindex_old*/;
END;

-- name: create_unwrite_trigger
-- A row whose texts change leaves with the old ones.
CREATE TRIGGER search_unwrite BEFORE UPDATE OF content, tool_name, tool_calls ON messages
WHEN /*texts_change*/
BEGIN
    /*unindex_old*/;
END;

-- name: create_rewrite_trigger
-- And comes back with the new ones.
CREATE TRIGGER search_rewrite AFTER UPDATE OF content, tool_name, tool_calls ON messages
WHEN /*texts_change*/
BEGIN
    INSERT INTO messages_fts (rowid, content, tool_name, tool_calls)
    SELECT id, content, tool_name, tool_calls FROM search_texts WHERE id = new.id;
END;

-- name: index_texts
-- The next rows into the index.
INSERT INTO messages_fts (rowid, content, tool_name, tool_calls)
SELECT id, content, tool_name, tool_calls FROM search_texts WHERE id > :after AND id <= :through;

-- name: note_indexed
-- How far the index goes from now on.
UPDATE search_index SET indexed_through = :through;

-- name: optimize_search_index
-- All parts of the index become one.
INSERT INTO messages_fts (messages_fts) VALUES ('optimize');

-- name: check_search_index
-- Fails where the index is damaged.
INSERT INTO messages_fts (messages_fts) VALUES ('integrity-check');

-- name: search_ranked
-- Of 1,000 matches, newest first, those that fit best. The filters apply before the count.
SELECT id FROM (
    SELECT m.id AS id, messages_fts.rank AS score
    /*matched*/
    ORDER BY messages_fts.rowid DESC LIMIT :block OFFSET :block_start
)
ORDER BY score, id DESC LIMIT :limit OFFSET :offset;

-- name: search_newest
-- Matches by the time of the message, the later first.
SELECT m.id AS id
/*matched*/
ORDER BY m.timestamp DESC, m.id DESC LIMIT :limit OFFSET :offset;

-- name: search_oldest
-- Matches by the time of the message, the earlier first.
SELECT m.id AS id
/*matched*/
ORDER BY m.timestamp, m.id LIMIT :limit OFFSET :offset;

-- name: scanned
-- Rows whose lower-cased texts fulfil a condition, which is put in at each search.
FROM (SELECT id, /*lowered*/ AS haystack FROM search_texts) AS t
JOIN messages AS m ON m.id = t.id
WHERE {condition} AND /*search_filter*/;

-- name: lowered
-- The texts of a row in one.
lower(COALESCE(content, '') || char(10) || COALESCE(tool_name, '') || char(10) || COALESCE(tool_calls, ''));

-- name: waiting
-- The texts of rows with a greater id.
SELECT
    m.id, CAST(t.content AS BLOB) AS content, CAST(t.tool_name AS BLOB) AS tool_name,
    CAST(t.tool_calls AS BLOB) AS tool_calls
FROM messages AS m JOIN search_texts AS t ON t.id = m.id
WHERE m.id > :after AND /*search_filter*/;

-- name: scan_newest
-- By the time of the message, the later first.
SELECT m.id AS id
/*scanned*/
ORDER BY m.timestamp DESC, m.id DESC LIMIT :limit OFFSET :offset;

-- name: scan_oldest
-- The same, the earlier first.
SELECT m.id AS id
/*scanned*/
ORDER BY m.timestamp, m.id LIMIT :limit OFFSET :offset;

-- name: waiting_newest
-- By the time of the message, the later first.
/*waiting*/
ORDER BY m.timestamp DESC, m.id DESC;

-- name: waiting_oldest
-- The same, the earlier first.
/*waiting*/
ORDER BY m.timestamp, m.id;

-- name: rows_to_index
-- The next rows with what their words are taken from.
SELECT id, content, tool_name, tool_calls FROM messages WHERE id > :after ORDER BY id LIMIT :rows;

-- name: fetch_hits
-- Hits in the order of a list of ids, each with the message before and the one after it: one query for all of them.
SELECT
    m.id, m.session_id, m.role, m.timestamp, m.tool_name, s.source, s.model, s.started_at AS session_started,
    CAST(t.content AS BLOB) AS content, CAST(t.tool_calls AS BLOB) AS tool_calls,
    before.role AS before_role, substr(CAST(before_text.content AS BLOB), 1, 800) AS before_content,
    after.role AS after_role, substr(CAST(after_text.content AS BLOB), 1, 800) AS after_content
FROM json_each(:ids) AS hit
JOIN messages AS m ON m.id = hit.value
JOIN search_texts AS t ON t.id = m.id
JOIN sessions AS s ON s.id = m.session_id
LEFT JOIN messages AS before ON before.id = (
    SELECT MAX(o.id) FROM messages AS o
    WHERE o.session_id = m.session_id AND o.id < m.id AND (o.active = 1 OR o.compacted = 1 OR :include_inactive = 1)
)
LEFT JOIN search_texts AS before_text ON before_text.id = before.id
LEFT JOIN messages AS after ON after.id = (
    SELECT MIN(o.id) FROM messages AS o
    WHERE o.session_id = m.session_id AND o.id > m.id AND (o.active = 1 OR o.compacted = 1 OR :include_inactive = 1)
)
LEFT JOIN search_texts AS after_text ON after_text.id = after.id
ORDER BY hit.key;

-- name: matched
-- Rows with the words of a query, which the index knows.
FROM messages_fts
JOIN messages AS m ON m.id = messages_fts.rowid
WHERE messages_fts MATCH :match AND /*search_filter*/;

-- name: text_contains
-- A text that stands for itself, in the lower-cased texts of a row.
instr(t.haystack, :{parameter}) > 0;

-- name: search_filter
-- Which rows of any search are shown. The session is looked up only where its source is asked for.
(m.active = 1 OR m.compacted = 1 OR :include_inactive = 1)
AND (CAST(:roles AS TEXT) IS NULL OR m.role IN (SELECT value FROM json_each(:roles)))
AND (
    CAST(:sources AS TEXT) IS NULL
    OR (SELECT s.source FROM sessions AS s WHERE s.id = m.session_id) IN (SELECT value FROM json_each(:sources))
)
AND (
    CAST(:excluded AS TEXT) IS NULL
    OR (SELECT s.source FROM sessions AS s WHERE s.id = m.session_id) NOT IN (SELECT value FROM json_each(:excluded))
);
