-- What is derived from rows, in the words of SQLite: the activity that a listing orders by, and the texts that a search
-- reads. The index of words is made by the store itself: an engine without FTS5 must do without, and one that is damaged
-- is made again.

-- The later of noted activity and newest message, else the start: derived by the engine, so that it can't go stale.
ALTER TABLE sessions ADD COLUMN active_at REAL GENERATED ALWAYS AS (
    CASE
        WHEN newest_message_at IS NULL THEN COALESCE(last_activity_at, started_at)
        WHEN last_activity_at > newest_message_at THEN last_activity_at
        ELSE newest_message_at
    END
) VIRTUAL;
CREATE INDEX sessions_active ON sessions (active_at);

-- The last row id that is in the index; later ones wait, so that an append costs no indexing. NULL: there is no index,
-- and no trigger keeps one.
CREATE TABLE search_index (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    indexed_through INTEGER
);
INSERT INTO search_index VALUES (1, NULL);

-- The text of a message as a person would look for it. Lists and objects, kept as JSON behind a mark, give their texts,
-- without pictures and names of kinds; numbers give their digits, bytes nothing. Tool calls give names and values, those
-- of arguments in JSON too. What is no valid JSON is a text.
CREATE VIEW search_texts AS
SELECT
    id,
    CASE
        WHEN typeof(content) IN ('integer', 'real') THEN CAST(content AS TEXT)
        WHEN typeof(content) <> 'text' THEN NULL
        WHEN content < char(0) || 'json:' OR content >= char(0) || 'json;' THEN content
        ELSE (
            SELECT group_concat(part.atom, char(10))
            FROM (
                -- The engine reads a text in JSON up to its first NUL.
                SELECT replace(CAST(substr(CAST(content AS BLOB), 7) AS TEXT), '\u0000', '\u0020') AS document
            ) AS kept,
                json_tree(CASE WHEN json_valid(kept.document) THEN kept.document ELSE json_quote(kept.document) END)
                    AS part
            WHERE part.type = 'text' AND COALESCE(part.key, '') NOT IN ('type', 'data', 'url', 'image_url', 'media_type')
        )
    END AS content,
    tool_name,
    CASE
        -- Escaped quotes stand between words; every other escape has to be read.
        WHEN tool_calls IS NULL OR instr(replace(tool_calls, '\"', ''), '\') = 0 THEN tool_calls
        ELSE (
            SELECT group_concat(
                CASE WHEN typeof(part.key) = 'text' THEN part.key || ' ' ELSE '' END || CASE
                    WHEN part.type = 'text' AND ltrim(part.atom) GLOB '[[{]*' AND json_valid(part.atom) THEN (
                        SELECT group_concat(
                            CASE WHEN typeof(inside.key) = 'text' THEN inside.key || ' ' ELSE '' END
                            || COALESCE(inside.atom, ''),
                            char(10)
                        )
                        FROM json_tree(part.atom) AS inside
                    )
                    ELSE COALESCE(part.atom, '')
                END,
                char(10)
            )
            FROM (SELECT replace(tool_calls, '\u0000', '\u0020') AS document) AS kept,
                json_tree(CASE WHEN json_valid(kept.document) THEN kept.document ELSE json_quote(kept.document) END)
                    AS part
        )
    END AS tool_calls
FROM messages;
