"""What `aipctl transcript` promises."""

from __future__ import annotations

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="transcript:show",
        source="issue 5",
        sentence="`transcript show` gives row and active messages as the endpoint has them, and says where they are of "
        "another session.",
    ),
    Promise(
        id="transcript:tree",
        source="issue 5; Hermes sessions §6; design D15",
        sentence="`transcript tree` gives the whole lineage from any of its rows, and names an edge only where the "
        "rows leave one reading.",
    ),
    Promise(
        id="transcript:neutralised",
        source="issue 5; style anchors 2.10",
        sentence="What an endpoint wrote colours, hides and moves nothing on a terminal.",
    ),
)
