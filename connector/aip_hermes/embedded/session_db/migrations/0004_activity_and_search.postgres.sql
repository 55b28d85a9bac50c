-- What is derived from rows, in the words of PostgreSQL: the activity that a listing orders by, and what a search reads.

-- The later of noted activity and newest message, else the start: derived by the engine, so that it can't go stale.
ALTER TABLE sessions ADD COLUMN active_at DOUBLE PRECISION GENERATED ALWAYS AS (
    CASE
        WHEN newest_message_at IS NULL THEN COALESCE(last_activity_at, started_at)
        WHEN last_activity_at > newest_message_at THEN last_activity_at
        ELSE newest_message_at
    END
) STORED;
CREATE INDEX sessions_active ON sessions (active_at);

-- Written with each message, so that both engines agree on what a text and a word is. content_text, calls_text: the
-- texts in a content and in tool calls where those are not the column itself. folded: all words in their order, without
-- case and accents, one space around each and a line break between the three texts. words: the different ones among
-- them, for the index; NULL where they are more than an index takes, and then `folded` tells alone. word_total: how many
-- words there are, by which a hit in a long text weighs less.
ALTER TABLE messages ADD COLUMN content_text TEXT;
ALTER TABLE messages ADD COLUMN calls_text TEXT;
ALTER TABLE messages ADD COLUMN folded TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE messages ADD COLUMN words TSVECTOR;
ALTER TABLE messages ADD COLUMN word_total BIGINT NOT NULL DEFAULT 0;
CREATE INDEX messages_words ON messages USING gin (words);
CREATE INDEX messages_many_words ON messages (id) WHERE words IS NULL;
CREATE INDEX messages_word_total ON messages (word_total);
CREATE INDEX messages_timestamp ON messages (timestamp, id);

-- The text of a message as a person would look for it.
CREATE VIEW search_texts AS
SELECT
    id,
    COALESCE(content_text, content) AS content,
    tool_name,
    COALESCE(calls_text, tool_calls) AS tool_calls
FROM messages;
