-- Stored responses, the conversations that end in them, and lasting grants.

-- name: keep_response
-- A response, newest in use; one that is there is replaced.
INSERT INTO responses (id, used, session_id, instructions, history, document)
VALUES (
    :id, (SELECT COALESCE(MAX(used), 0) + 1 FROM responses), :session_id, :instructions, :history, :document
)
ON CONFLICT (id) DO UPDATE SET
    used = excluded.used, session_id = excluded.session_id, instructions = excluded.instructions,
    history = excluded.history, document = excluded.document;

-- name: use_response
-- One response, which is the newest in use from now on.
UPDATE responses SET used = (SELECT MAX(used) + 1 FROM responses) WHERE id = :id
RETURNING id, session_id, instructions, history, document;

-- name: drop_oldest_responses
-- Those used longest ago, beyond the number that is kept.
DELETE FROM responses WHERE id NOT IN (SELECT id FROM responses ORDER BY used DESC LIMIT :keep);

-- name: delete_response
-- One response, gone; the row tells that there was one.
DELETE FROM responses WHERE id = :id RETURNING id;

-- name: point_conversation
-- The response that a conversation ends in.
INSERT INTO conversations (name, response_id) VALUES (:name, :response_id)
ON CONFLICT (name) DO UPDATE SET response_id = excluded.response_id;

-- name: fetch_conversation
-- The response that a conversation ends in.
SELECT response_id FROM conversations WHERE name = :name;

-- name: keep_grant
-- A kind of command that needs no question any more.
INSERT INTO command_grants (pattern, granted_at) VALUES (:pattern, :granted_at) ON CONFLICT (pattern) DO NOTHING;

-- name: fetch_grant
-- Whether a kind of command needs no question any more.
SELECT pattern FROM command_grants WHERE pattern = :pattern;
