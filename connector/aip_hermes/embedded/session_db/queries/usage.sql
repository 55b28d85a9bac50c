-- What sessions used: sums on the row, and sums by model, billing route and task.

-- name: make_accounted
-- A row for what is accounted before its session was made; not for one that was removed.
INSERT INTO sessions (id, source, started_at)
SELECT CAST(:id AS TEXT), 'unknown', :now
WHERE NOT EXISTS (SELECT 1 FROM removals WHERE removals.session_id = :id)
ON CONFLICT (id) DO NOTHING;

-- name: accounted_session
-- What decides how a report is added.
SELECT
    model, billing_provider, billing_base_url, billing_mode,
    input_tokens + output_tokens + cache_read_tokens + cache_write_tokens + reasoning_tokens + api_call_count AS used
FROM sessions WHERE id = :id;

-- name: add_token_counts
-- One report more; it names the model of a row that has none.
UPDATE sessions SET
    model = COALESCE(model, :model),
    input_tokens = input_tokens + :input_tokens,
    output_tokens = output_tokens + :output_tokens,
    cache_read_tokens = cache_read_tokens + :cache_read_tokens,
    cache_write_tokens = cache_write_tokens + :cache_write_tokens,
    reasoning_tokens = reasoning_tokens + :reasoning_tokens,
    api_call_count = api_call_count + :api_call_count,
    estimated_cost_usd = CASE
        WHEN CAST(:estimated_cost_usd AS DOUBLE PRECISION) IS NULL THEN estimated_cost_usd
        ELSE COALESCE(estimated_cost_usd, 0) + :estimated_cost_usd END,
    actual_cost_usd = CASE
        WHEN CAST(:actual_cost_usd AS DOUBLE PRECISION) IS NULL THEN actual_cost_usd
        ELSE COALESCE(actual_cost_usd, 0) + :actual_cost_usd END
WHERE id = :id;

-- name: set_token_counts
-- The sums as somebody else added them up.
UPDATE sessions SET
    input_tokens = :input_tokens,
    output_tokens = :output_tokens,
    cache_read_tokens = :cache_read_tokens,
    cache_write_tokens = :cache_write_tokens,
    reasoning_tokens = :reasoning_tokens,
    api_call_count = :api_call_count,
    estimated_cost_usd = COALESCE(:estimated_cost_usd, estimated_cost_usd),
    actual_cost_usd = COALESCE(:actual_cost_usd, actual_cost_usd)
WHERE id = :id;

-- name: write_route
-- Model and billing route of a session, and how its latest cost was found.
UPDATE sessions SET
    model = :model,
    billing_provider = :billing_provider,
    billing_base_url = :billing_base_url,
    billing_mode = :billing_mode,
    cost_status = COALESCE(:cost_status, cost_status),
    cost_source = COALESCE(:cost_source, cost_source),
    pricing_version = COALESCE(:pricing_version, pricing_version)
WHERE id = :id;

-- name: add_model_usage
-- One report more of a model, a route and a task; '' stands for what is not known, and for the conversation itself.
INSERT INTO model_usage (
    session_id, model, billing_provider, billing_base_url, billing_mode, task, input_tokens, output_tokens,
    cache_read_tokens, cache_write_tokens, reasoning_tokens, api_call_count, estimated_cost_usd, actual_cost_usd,
    cost_status, cost_source, first_seen, last_seen
) VALUES (
    :id, :model, :billing_provider, :billing_base_url, :billing_mode, :task, :input_tokens, :output_tokens,
    :cache_read_tokens, :cache_write_tokens, :reasoning_tokens, :api_call_count, :estimated_cost_usd, :actual_cost_usd,
    :cost_status, :cost_source, :now, :now
)
ON CONFLICT (session_id, model, billing_provider, billing_base_url, billing_mode, task) DO UPDATE SET
    input_tokens = model_usage.input_tokens + excluded.input_tokens,
    output_tokens = model_usage.output_tokens + excluded.output_tokens,
    cache_read_tokens = model_usage.cache_read_tokens + excluded.cache_read_tokens,
    cache_write_tokens = model_usage.cache_write_tokens + excluded.cache_write_tokens,
    reasoning_tokens = model_usage.reasoning_tokens + excluded.reasoning_tokens,
    api_call_count = model_usage.api_call_count + excluded.api_call_count,
    estimated_cost_usd = CASE
        WHEN excluded.estimated_cost_usd IS NULL THEN model_usage.estimated_cost_usd
        ELSE COALESCE(model_usage.estimated_cost_usd, 0) + excluded.estimated_cost_usd END,
    actual_cost_usd = CASE
        WHEN excluded.actual_cost_usd IS NULL THEN model_usage.actual_cost_usd
        ELSE COALESCE(model_usage.actual_cost_usd, 0) + excluded.actual_cost_usd END,
    cost_status = COALESCE(excluded.cost_status, model_usage.cost_status),
    cost_source = COALESCE(excluded.cost_source, model_usage.cost_source),
    last_seen = excluded.last_seen;

-- name: model_usage_of
-- What a session used, by model, route and task.
SELECT * FROM model_usage WHERE session_id = :id
ORDER BY first_seen, model, billing_provider, billing_base_url, billing_mode, task;
