"""What the embedded Hermes promises about its routes besides sessions: jobs, listings, completions, responses, runs."""

from __future__ import annotations

from tests.promises.promise import Promise

__all__ = ["PROMISES"]

_API = "API server §"

PROMISES = (
    Promise(
        id="hermes_api:schedule:forms",
        source=_API + "7",
        sentence="A schedule is a delay, an interval, a cron text of five fields or an ISO time; each has its display.",
    ),
    Promise(
        id="hermes_api:schedule:next",
        source=_API + "7",
        sentence="The next moment of a schedule is exact over ranges, steps, month ends, leap days and two day fields.",
    ),
    Promise(
        id="hermes_api:schedule:refused",
        source=_API + "2.3, §7",
        sentence="What is no schedule, waits for nothing, lies in the past or never comes is refused.",
    ),
    Promise(
        id="embedded:listings:shapes",
        source=_API + "6.1",
        sentence="Skills and toolsets list what the agent has: no skills, one set with its one tool.",
    ),
    Promise(
        id="embedded:jobs:life",
        source=_API + "7",
        sentence="A job is made, listed, read, changed, paused, resumed, set to run now and deleted, each with its "
        "documented answer.",
    ),
    Promise(
        id="embedded:jobs:refused",
        source=_API + "2.3, §7; design §7",
        sentence="A bad job or change is 400 with a text, an unknown one 404; nothing is stored or changed.",
        diverges="0.19.0 answers 500 for bad JSON, wrong types and bad schedules.",
    ),
    Promise(
        id="embedded:jobs:durable",
        source="design §6; issue 3",
        sentence="Jobs outlive their server, in the file of the sessions; an older file is migrated.",
    ),
)
