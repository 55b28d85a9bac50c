"""What a mutation wants, as facts that outlive it: ids, counts and hashes, never text.

Reconciliation compares them later with what the endpoint stored, so each hash is taken of the form that Hermes stores.
Source: design §5, D23.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from aip_hermes.contract.operation import Operation
from aip_hermes.hermes.request import Mapped
from aip_hermes.hermes_api import clean_title, stored_text

__all__ = ["mapped_facts", "sent_facts", "sha256_text", "wanted_facts"]


def mapped_facts(operation: Operation, mapped: Mapped) -> dict[str, Any]:
    """Return the wanted values of a call: about a session by meaning, about anything else by member."""
    if operation.body in ("none", "members", "message"):
        return wanted_facts(new_id=mapped.new_id, body=mapped.body)
    named = {} if mapped.session_id is None else {"session_id": mapped.session_id}
    text = {} if operation.body == "job" else wanted_facts(new_id=None, body=mapped.body)
    return {**mapped.ids, **named, **text, "sent_sha256": sent_facts(mapped.body)}


def wanted_facts(*, new_id: str | None, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the wanted values of a request body about sessions.

    Members, each only where the body has it: `new_session_id`; `title_sha256` of the cleaned title, null where it
    clears; `end_reason_sha256`; `text_sha256` and `text_chars` of the message, or of the last of several.
    """
    facts: dict[str, Any] = {}
    if new_id is not None:
        facts["new_session_id"] = new_id
    if "title" in body:
        title = clean_title(body["title"])
        facts["title_sha256"] = None if title is None else sha256_text(title)
    if isinstance(reason := body.get("end_reason"), str):
        facts["end_reason_sha256"] = sha256_text(reason)
    text = stored_text(_last(body))
    if text is not None:
        facts |= {"text_sha256": sha256_text(text), "text_chars": len(text)}
    return facts


def sent_facts(body: Mapping[str, Any]) -> dict[str, str]:
    """Return a hash of each member of a body, so that a listing can be searched for what was sent."""
    return {name: sha256_text(json.dumps(value, ensure_ascii=True, sort_keys=True)) for name, value in body.items()}


def _last(body: Mapping[str, Any]) -> object:
    """Return what the turn says: `message`, else `input`, else the content of the last of `messages`."""
    if body.get("message") is not None:
        return body["message"]
    several = body.get("messages", body.get("input"))
    last = several[-1] if isinstance(several, list) and several else None
    return last.get("content") if isinstance(last, Mapping) and "role" in last else several


def sha256_text(text: str) -> str:
    """Return the SHA-256 of a text as UTF-8, in lower-case hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
