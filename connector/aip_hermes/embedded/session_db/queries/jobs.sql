-- Scheduled jobs; the place is the order in which they were made.

-- name: insert_job
-- A new job.
INSERT INTO jobs (id, enabled, document) VALUES (:id, :enabled, :document);

-- name: fetch_job
-- One job.
SELECT document FROM jobs WHERE id = :id;

-- name: list_jobs
-- Every job, the disabled ones only on request.
SELECT document FROM jobs WHERE enabled = 1 OR :include_disabled = 1 ORDER BY place;

-- name: write_job
-- What a job became.
UPDATE jobs SET enabled = :enabled, document = :document WHERE id = :id;

-- name: delete_job
-- One job, gone; the row tells that there was one.
DELETE FROM jobs WHERE id = :id RETURNING id;
