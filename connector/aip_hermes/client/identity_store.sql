-- name: fetch_call
-- The record of one Action ID.
SELECT * FROM calls WHERE action_id = :action_id;

-- name: begin_call
-- Write a call before its first send.
INSERT INTO calls (
    action_id, server, capability_id, endpoint, idempotency_key, session_id, new_session_id, session_key, mode,
    content_hash, call_group, step, state, attempts, begun_at, sent_at, updated_at
) VALUES (
    :action_id, :server, :capability_id, :endpoint, :idempotency_key, :session_id, :new_session_id, :session_key, :mode,
    :content_hash, :call_group, :step, 'open', 1, :now, :now, :now
) RETURNING *;

-- name: begin_again
-- Write that the same call is about to be sent once more; what was known of it stays until the next answer.
UPDATE calls SET state = :state, attempts = attempts + 1, sent_at = :now, updated_at = :now
WHERE action_id = :action_id RETURNING *;

-- name: keep_answer
-- Write what became of a call.
UPDATE calls SET state = :state, result = :result, updated_at = :now WHERE action_id = :action_id RETURNING *;

-- name: unsettled_calls
-- Calls whose end is not known here, oldest first.
SELECT * FROM calls
WHERE state <> 'settled'
  AND (:server IS NULL OR server = :server)
  AND (:endpoint IS NULL OR endpoint = :endpoint)
  AND (:call_group IS NULL OR call_group = :call_group)
ORDER BY begun_at, action_id;

-- name: calls_of_group
-- Every call of a group, oldest first.
SELECT * FROM calls WHERE call_group = :call_group ORDER BY begun_at, action_id;

-- name: forget_calls
-- Remove what ended before a time.
DELETE FROM calls WHERE state = 'settled' AND updated_at < :before RETURNING action_id;

-- name: remember
-- Write one value of a group, in place of an earlier one.
INSERT INTO memory (call_group, name, value, updated_at) VALUES (:call_group, :name, :value, :now)
ON CONFLICT (call_group, name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at;

-- name: remember_first
-- Write one value of a group unless there is one; the update changes nothing and lets the kept one be returned.
INSERT INTO memory (call_group, name, value, updated_at) VALUES (:call_group, :name, :value, :now)
ON CONFLICT (call_group, name) DO UPDATE SET value = memory.value
RETURNING value;

-- name: recall
-- Every value of a group.
SELECT name, value FROM memory WHERE call_group = :call_group ORDER BY name;

-- name: fetch_instruction
-- One decision or request to cancel.
SELECT * FROM instructions WHERE server = :server AND instruction_id = :instruction_id;

-- name: begin_instruction
-- Write what is about to be said; once more, where it was said before.
INSERT INTO instructions (
    server, instruction_id, kind, about, content_hash, said, state, attempts, begun_at, updated_at
) VALUES (:server, :instruction_id, :kind, :about, :content_hash, :said, 'open', 1, :now, :now)
ON CONFLICT (server, instruction_id) DO UPDATE
SET state = 'open', attempts = instructions.attempts + 1, updated_at = excluded.updated_at
RETURNING *;

-- name: keep_said
-- Write what became of a decision or request to cancel.
UPDATE instructions SET state = :state, result = :result, updated_at = :now
WHERE server = :server AND instruction_id = :instruction_id RETURNING instruction_id;

-- name: open_instructions
-- Decisions and requests to cancel whose end is not known here, oldest first.
SELECT * FROM instructions
WHERE state <> 'settled' AND (:server IS NULL OR server = :server)
ORDER BY begun_at, instruction_id;

-- name: forget_instructions
-- Remove what ended before a time.
DELETE FROM instructions WHERE state = 'settled' AND updated_at < :before RETURNING instruction_id;
