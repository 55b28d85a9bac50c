"""The commented settings file that `aip-hermes init` writes. What it writes loads back."""

from __future__ import annotations

import json

__all__ = ["render_template"]


def render_template(
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    endpoint_id: str = "primary",
    endpoint_url: str = "http://127.0.0.1:8642/",
    key_file: str = "hermes.key",
    tenant_id: str = "local",
    display_name: str = "Hermes on this machine",
    turn_timeout_s: int = 900,
    requester: str = "agent:local:requester",
    requester_file: str = "tokens/requester",
    reviewer: str = "human:local:reviewer",
    reviewer_file: str = "tokens/reviewer",
    store: str = "data/aip.sqlite3",
    authority_file: str = "approval-authority.json",
) -> str:
    """Return the text of a settings file with one endpoint, a requester and a reviewer.

    Paths may be relative: to the folder of the file.
    """
    return f"""\
# Settings of `aip-hermes serve --config THIS_FILE`. Relative paths are relative to this file.
# Secrets never stand here: they are in files of their own, readable by you alone (chmod 600).
# After a change of [[tokens]] or of a token file: kill -HUP <pid of the server>. Everything else: restart.

[server]
host = {_text(host)}
port = {port}  # 0 picks a free one
# For other machines: a TLS proxy in front, its address here, and tokens of 16 characters or more.
# host = "0.0.0.0"
# public_base_url = "https://aip.example.org"

# One table per Hermes API server. Its operations are published as cap:hermes_agent:<id>:<operation>.
[[endpoints]]
id = {_text(endpoint_id)}  # lower case
base_url = {_text(endpoint_url)}  # scheme, host and port; no path
key_file = {_text(key_file)}  # holds the API_SERVER_KEY of that server
tenant_id = {_text(tenant_id)}  # who may see and call it; without it every tenant
display_name = {_text(display_name)}
turn_timeout_s = {turn_timeout_s}  # how long one turn of the agent may take
on_closed = "forward"  # a turn on a closed session: "forward" as Hermes does, or "refuse"
# approvers = 1  # how many different people have to approve a deletion
# approver_selector = "tenant_policy"  # who may: see "Approvals"
# approval_ttl_s = 900  # how long a request may stay undecided

# One table per bearer token: whom it stands for and what it may do.
[[tokens]]
file = {_text(requester_file)}
principal = {_text(requester)}
tenant = {_text(tenant_id)}
scopes = ["action:read", "action:write", "approval:read", "events:read", "receipt:read", "audit:read"]
invoke = ["cap:hermes_agent:*"]  # which capabilities it may call; [] for none
# expires_at = 2031-01-01T00:00:00Z

# Deletions wait until somebody else approved them. This one decides and calls nothing.
[[tokens]]
file = {_text(reviewer_file)}
principal = {_text(reviewer)}
tenant = {_text(tenant_id)}
scopes = ["action:read", "approval:read", "approval:export", "approval:sensitive", "receipt:read", "audit:read"]
invoke = []

# A third one for monitoring: `metrics:read` shows its own tenant's figures at /metrics, `metrics:read:any` all.
# [[tokens]]
# file = "tokens/metrics"
# principal = "service:local:prometheus"
# scopes = ["metrics:read:any"]
# invoke = []

[store]
dsn = {_text(store)}  # actions, results, approvals; one running server per folder

[approvals]
authority_file = {_text(authority_file)}  # who may decide; without it nobody can

[limits]
max_request_bytes = 1048576
max_running_per_tenant = 1000  # actions at a time; max_running for all tenants together
max_queued_per_tenant = 10000  # waiting for the worker; max_queued for all
max_waiting_per_tenant = 10000  # waiting for a decision; max_waiting for all

[retention]
transcripts_hours = 24  # outputs that hold a conversation go after that; what happened stays known

# After a lost answer: how long it must have been quiet before a reconciliation takes what is missing for not done.
[reconcile]
quiet_rows_s = 60  # after a create, change, fork or delete
# quiet_turns_s = 900  # after a turn or a run; without it the endpoint's turn_timeout_s
clock_slack_s = 5  # how far the endpoint's clock may be behind this machine's

# Runs that the capability `operator` starts. Everything here may be left out; these are some of the defaults.
[operator]
# model = "…"  # what a run names; without it the endpoint's own
# system_instructions = "…"  # instead of the built-in text
timeout_ms = 900000  # of one action, from its start to the run's end or question
poll_interval_ms = 250  # how often the status is read where no events come
cancel_grace_ms = 15000  # how long a run that was stopped may take to end
allowed_capability_prefixes = []  # what a caller may name as a candidate; [] or ["*"] for anything

[log]
level = "info"  # debug, info, warning or error
format = "auto"  # "json" or "text"; "auto": text on a terminal, one JSON object per line elsewhere

# Tells an address that an approval waits, signed with the secret in the file. See "Operate a server".
# [notify]
# url = "https://hooks.example.org/aip"
# secret_file = "notify.secret"

[tracing]
enabled = false  # spans of actions through OpenTelemetry; needs: pip install "aip-hermes-connector[otel]"
"""


def _text(value: str) -> str:
    # A JSON string is a TOML basic string, but for DEL and for the surrogate pairs of escaped text.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
