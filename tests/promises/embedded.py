"""What the embedded Hermes endpoint and the rules it shares with its callers promise."""

from __future__ import annotations

from tests.promises.promise import Promise

__all__ = ["PROMISES"]

_API = "API server §"
_SESSIONS = "Sessions §"

PROMISES = (
    Promise(
        id="hermes_api:session:whitelist",
        source=_API + "3.1",
        sentence="A session object has exactly 21 members; the prompt and the model configuration are only flagged.",
    ),
    Promise(
        id="hermes_api:message:whitelist",
        source=_API + "3.7",
        sentence="A message object has exactly 12 members.",
    ),
    Promise(
        id="hermes_api:session-id:rules",
        source="design D12; " + _API + "3.3",
        sentence="New session ids are 1–256 characters after trimming; no control characters, `..`, slash or drive.",
    ),
    Promise(
        id="hermes_api:title:cleaning",
        source=_API + "5.1; " + _SESSIONS + "5.4; field report F089",
        sentence="Titles are cleaned before they are measured; 100 code points pass, 101 don't.",
    ),
    Promise(
        id="hermes_api:title:lineage",
        source=_SESSIONS + "5.4",
        sentence="A lineage is numbered from ` #2`, one above the highest number in use.",
    ),
    Promise(
        id="hermes_api:error:bodies",
        source=_API + "2.1",
        sentence="Error bodies have the documented shapes: four members, three for a bad key, two for a bad header.",
    ),
)
