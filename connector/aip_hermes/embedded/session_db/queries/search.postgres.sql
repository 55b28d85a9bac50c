-- What PostgreSQL says otherwise than search.sql: the words of a message stand in its row, put there with it.

-- name: search_state
-- Every row is indexed as it is written.
SELECT COALESCE(MAX(id), 0) AS indexed_through, COALESCE(MAX(id), 0) AS newest FROM messages;

-- name: index_texts
-- The words of one row, written anew.
UPDATE messages SET
    content_text = CAST(:content_text AS TEXT), calls_text = CAST(:calls_text AS TEXT), folded = :folded,
    words = array_to_tsvector(CAST(:words AS TEXT[])), word_total = :word_total
WHERE id = :id;

-- name: optimize_search_index
-- What the server plans searches by, counted anew.
ANALYZE messages;

-- name: check_search_index
-- The newest row through the index; the server says so where it can't be read.
SELECT COUNT(*) AS rows FROM (SELECT words FROM messages ORDER BY id DESC LIMIT 1) AS newest;

-- name: search_ranked
-- A thousand matches, newest first, with the words by which they are weighed. The filters apply before the count.
SELECT m.id AS id, left(m.folded, 20000) AS folded, m.word_total
/*matched*/
ORDER BY m.id DESC LIMIT :block OFFSET :block_start;

-- name: matched
-- Rows with the words of a query: looked up in the index, then looked at for their order.
FROM messages AS m
WHERE (m.words @@ CAST(:match AS TSQUERY) OR m.words IS NULL) AND {condition} AND /*search_filter*/;

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
-- Rows whose lower-cased texts fulfil a condition, which is put in at each search. Letters beyond ASCII stay as they are.
FROM (
    SELECT messages.*, /*lowered*/ AS haystack FROM messages
) AS m
WHERE {condition} AND /*search_filter*/;

-- name: lowered
-- The texts of a row in one, as the index of trigrams has them, too.
lower((
    COALESCE(content_text, content, '') || E'\n' || COALESCE(tool_name, '') || E'\n' || COALESCE(calls_text, tool_calls, '')
) COLLATE "C");

-- name: fetch_hits
-- Hits in the order of a list of ids, each with the message before and the one after it: one query for all of them.
SELECT
    m.id, m.session_id, m.role, m.timestamp, m.tool_name, s.source, s.model, s.started_at AS session_started,
    t.content, t.tool_calls,
    before.role AS before_role, before.content AS before_content,
    after.role AS after_role, after.content AS after_content
FROM unnest(CAST(:ids AS BIGINT[])) WITH ORDINALITY AS hit (id, place)
JOIN messages AS m ON m.id = hit.id
JOIN search_texts AS t ON t.id = m.id
JOIN sessions AS s ON s.id = m.session_id
LEFT JOIN LATERAL (
    SELECT o.role, left(COALESCE(o.content_text, o.content), 800) AS content FROM messages AS o
    WHERE o.session_id = m.session_id AND o.id < m.id AND (o.active = 1 OR o.compacted = 1 OR :include_inactive = 1)
    ORDER BY o.id DESC LIMIT 1
) AS before ON TRUE
LEFT JOIN LATERAL (
    SELECT o.role, left(COALESCE(o.content_text, o.content), 800) AS content FROM messages AS o
    WHERE o.session_id = m.session_id AND o.id > m.id AND (o.active = 1 OR o.compacted = 1 OR :include_inactive = 1)
    ORDER BY o.id LIMIT 1
) AS after ON TRUE
ORDER BY hit.place;

-- name: text_contains
-- A pattern in the lower-cased texts of a row; what it means is escaped in there.
m.haystack LIKE :{parameter} ESCAPE '\';

-- name: search_filter
-- Which rows of any search are shown. The session is looked up only where its source is asked for.
(m.active = 1 OR m.compacted = 1 OR :include_inactive = 1)
AND (CAST(:roles AS TEXT[]) IS NULL OR m.role = ANY (CAST(:roles AS TEXT[])))
AND (
    CAST(:sources AS TEXT[]) IS NULL
    OR (SELECT s.source FROM sessions AS s WHERE s.id = m.session_id) = ANY (CAST(:sources AS TEXT[]))
)
AND (
    CAST(:excluded AS TEXT[]) IS NULL
    OR (SELECT s.source FROM sessions AS s WHERE s.id = m.session_id) <> ALL (CAST(:excluded AS TEXT[]))
);
