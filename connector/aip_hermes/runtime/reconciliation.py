"""Reconciliation: what became of an action whose effect nobody knows, as its connector finds by reading (design §5).

A verdict, its event and what follows from it are one transaction. It never changes the action's result: the result says
what was known when the action ended, the verdict what was found out since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import structlog

from aip_hermes import wire
from aip_hermes.contract import load_operations
from aip_hermes.contract.handler import Connector
from aip_hermes.contract.next_steps import next_step
from aip_hermes.contract.operation import ReconcileRule
from aip_hermes.contract.reconciliation import OUTCOMES, Beside, Evidence, Uncertain, Verdict
from aip_hermes.database import Connection, StoreFailure
from aip_hermes.ids import ActionId, TenantId
from aip_hermes.runtime.access import need, owns, refused
from aip_hermes.runtime.caller import Caller
from aip_hermes.runtime.erasure import erase_about
from aip_hermes.runtime.events import action_event_id, append_event
from aip_hermes.runtime.failures import ActionNotFound, NotReconciled
from aip_hermes.runtime.footing import Footing
from aip_hermes.runtime.notices import RECONCILED
from aip_hermes.runtime.serial import open_session
from aip_hermes.runtime.settlement import origin_of
from aip_hermes.runtime.store import QUERIES, from_json, to_json
from aip_hermes.runtime.waiting import Overrun, within

__all__ = ["EVENT_KIND", "Reconciliations"]

log = structlog.get_logger(__name__)

EVENT_KIND: Final = "aip.action.reconciled"
NOT_SETTLED_RETRY_MS: Final = 1_000
BESIDE_MS: Final = 86_400_000
"""How long before an action another one may have ended uncertain whose effect came late."""
ABOUT_MS: Final = 60_000
"""How long before an action another one may have completed whose effect the endpoint's clock puts behind it."""
BESIDE_PAGE: Final = 1_000

_Row = Mapping[str, Any]


class Reconciliations:
    """Asks connectors and keeps what they say."""

    def __init__(self, footing: Footing, *, connectors: Sequence[Connector]) -> None:
        self._footing = footing
        self._handlers = {
            str(offer.capability_id): offer.handler for connector in connectors for offer in connector.offers()
        }

    async def reconcile(self, action_id: ActionId, caller: Caller) -> dict[str, Any]:
        """Look what became of an action; return the verdict, see `_document`.

        An action whose outcome is certain is answered with it; nothing is read or stored then. Fault point
        `after_look`: the verdict is in hand, neither it nor its event is stored.
        Raises: NotAuthorized; ActionNotFound for an action that this tenant does not have.
        """
        need(caller, "action:write")
        row = await self._row(action_id, caller, others="action:write:any", operation="Write")
        if not _is_uncertain(row):
            return self._certain(row)
        verdict = await self._look(row)
        await self._footing.faults.reach("after_look")
        kept = await self._footing.database.write(lambda connection: self._keep(connection, row, verdict, caller))
        self._footing.watchers.changed(tenant=row["tenant"], action_id=row["action_id"])
        return kept

    async def latest(self, action_id: ActionId, caller: Caller) -> dict[str, Any]:
        """Return the last verdict about an action, or its certain outcome. Reads the store only.

        Raises: NotAuthorized, ActionNotFound; NotReconciled where nobody has looked yet.
        """
        need(caller, "action:read")
        row = await self._row(action_id, caller, others="action:read:any", operation="Read")
        if not _is_uncertain(row):
            return self._certain(row)
        found = await self._footing.database.read(lambda c: c.execute(QUERIES["fetch_verdict"], _address(row)))
        if not found:
            raise NotReconciled(
                f"action {action_id} ended uncertain, and no verdict about it is kept; reconciling it only reads",
                details={"action_id": action_id},
            )
        kept: dict[str, Any] = from_json(found[0]["verdict"])
        return kept

    async def _row(self, action_id: ActionId, caller: Caller, *, others: str, operation: str) -> _Row:
        address = {"tenant": caller.tenant_id or "", "action_id": action_id}
        rows = await self._footing.database.read(lambda c: c.execute(QUERIES["fetch_action"], address))
        if not rows:
            raise ActionNotFound(f"there is no action {action_id}", details={"action_id": action_id})
        if not owns(caller, rows[0]) and not self._may_others(caller, others):
            raise refused("action", operation, "the action belongs to another principal")
        return rows[0]

    def _may_others(self, caller: Caller, scope: str) -> bool:
        if scope == "action:read:any":
            return caller.may_read_others("action")
        return not caller.scopes.isdisjoint((scope, "*"))

    async def _look(self, row: _Row) -> Verdict:
        """Ask the connector, for a bounded time; whatever goes wrong there proves nothing."""
        handler = self._handlers.get(row["capability_id"])
        if handler is None:
            return Verdict(
                outcome="indeterminate",
                reason="capability_withdrawn",
                explanation="the capability is not published any more, so that its endpoint can't be read from here",
            )
        try:
            seconds = self._footing.limits.reconcile_ms / 1000
            suspect = await self._footing.database.read(lambda connection: _suspect(connection, row))
            return await within(seconds, handler.reconcile(suspect), clock=self._footing.clock)
        except StoreFailure:
            raise
        except Overrun:
            return Verdict(
                outcome="indeterminate",
                reason="endpoint_too_slow",
                explanation="the endpoint did not answer in time, so that nothing is proven",
                retry_after_ms=self._footing.limits.reconcile_ms,
            )
        except Exception as exc:
            log.exception("action.reconcile_broken", action_id=row["action_id"], error_type=type(exc).__name__)
            return Verdict(
                outcome="indeterminate",
                reason="connector_broken",
                explanation="the connector failed in a way it does not declare, so that nothing is proven",
            )

    def _keep(self, connection: Connection, row: _Row, verdict: Verdict, caller: Caller) -> dict[str, Any]:
        """Store a verdict, tell it, and do what follows from it."""
        now, address = self._footing.now_ms(), _address(row)
        found = connection.execute(QUERIES["fetch_verdict"], address)
        number = found[0]["number"] + 1 if found else 1
        document = self._document(row, verdict, now=now, number=number)
        if verdict.outcome != "indeterminate":
            document["session_opened"] = verdict.opens is not None and open_session(
                connection, verdict.opens, action_id=row["action_id"], now=now
            )
            if verdict.erases:
                document["erased_actions"] = erase_about(connection, verdict.erases, now=now)
        if found:
            document = _standing(from_json(found[0]["verdict"]), document)
        connection.execute(
            QUERIES["keep_verdict"],
            {**address, "number": number, "outcome": document["verdict"], "verdict": to_json(document), "now": now},
        )
        origin = origin_of(row)
        append_event(
            connection,
            origin,
            event_id=action_event_id(origin, EVENT_KIND, number),
            kind=EVENT_KIND,
            now=now,
            data=document,
            actor=caller.named.wire(),
        )
        connection.note(
            RECONCILED, tenant=row["tenant"], capability_id=row["capability_id"], outcome=document["verdict"]
        )
        return document

    def _certain(self, row: _Row) -> dict[str, Any]:
        """Return what is known without a look: how the action ended, or that it has not."""
        now = self._footing.now_ms()
        if row["settled_at"] is None:
            verdict = Verdict(
                outcome="indeterminate",
                reason="not_settled",
                explanation=f"the action has not ended: its state is {row['state']}",
                retry_after_ms=NOT_SETTLED_RETRY_MS,
            )
        elif row["state"] == "completed":
            verdict = Verdict(outcome="applied", reason="certain", explanation="the action completed; nothing was read")
        else:
            verdict = Verdict(
                outcome="not_applied",
                reason="certain",
                explanation=f"the action ended {row['state']} and its outcome is certain; nothing was read",
            )
        return self._document(row, verdict, now=now, number=0)

    def _document(self, row: _Row, verdict: Verdict, *, now: int, number: int) -> dict[str, Any]:
        """Return a verdict as JSON.

        Members: `action_id`, `capability_id`, `verdict`, `reason`, `explanation`, `next_step`, `evidence`
        (`{read, ids, read_at, found, facts}` each), `number` of the look (0: none was needed), `reconciled_at`, and
        where they apply `retry_after_ms`, `session_opened`, `erased_actions`, `proven_at`, `this_look`.
        """
        document: dict[str, Any] = {
            "action_id": row["action_id"],
            "capability_id": row["capability_id"],
            "verdict": verdict.outcome,
            "reason": verdict.reason,
            "explanation": verdict.explanation,
            "next_step": next_step(self._rule(row), verdict.outcome, retry_after_ms=verdict.retry_after_ms),
            "evidence": [_shown(each) for each in verdict.evidence],
            "number": number,
            "reconciled_at": wire.rfc3339(now),
        }
        if verdict.retry_after_ms is not None:
            document["retry_after_ms"] = verdict.retry_after_ms
        if number and verdict.outcome != "indeterminate":
            document["proven_at"] = document["reconciled_at"]
        return document

    def _rule(self, row: _Row) -> ReconcileRule:
        handler = self._handlers.get(row["capability_id"])
        if handler is not None:
            return handler.operation.reconcile
        known = load_operations().get(row["capability_id"].rpartition(":")[2])
        return "session_patch" if known is None else known.reconcile


def _standing(before: Mapping[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Return what stands after another look: what was proven once is not taken back when the world moves on."""
    if OUTCOMES.index(now["verdict"]) >= OUTCOMES.index(before["verdict"]):
        return now
    look = {name: now[name] for name in ("verdict", "reason", "explanation", "evidence")}
    kept = {name: value for name, value in before.items() if name not in ("this_look", "session_opened")}
    return kept | {"number": now["number"], "reconciled_at": now["reconciled_at"], "this_look": look}


def _is_uncertain(row: _Row) -> bool:
    return row["settled_at"] is not None and bool(row["uncertain"])


def _address(row: _Row) -> dict[str, Any]:
    return {"tenant": row["tenant"], "action_id": row["action_id"]}


def _suspect(connection: Connection, row: _Row) -> Uncertain:
    intent_at = row["claimed_at"] if row["intent_at"] is None else row["intent_at"]
    facts = from_json(row["facts"]) or {}
    details = (from_json(row["result"]).get("error") or {}).get("details")
    return Uncertain(
        action_id=ActionId(row["action_id"]),
        tenant_id=TenantId(row["tenant"]) if row["tenant"] else None,
        facts=facts,
        intent_at_ms=intent_at,
        settled_at_ms=row["settled_at"],
        details=details if isinstance(details, Mapping) else {},
        beside=_beside(connection, row, facts, intent_at=intent_at),
    )


def _beside(connection: Connection, row: _Row, facts: Mapping[str, Any], *, intent_at: int) -> tuple[Beside, ...]:
    """Return the other actions whose facts share a value with those of one: only they can have done the same."""
    asked = {
        **_address(row),
        "connector_id": row["connector_id"],
        "about": intent_at - ABOUT_MS,
        "limit": BESIDE_PAGE,
    }
    mine, found = _values(facts), list[Beside]()
    place = {"after_at": intent_at - BESIDE_MS - 1, "after_id": ""}
    while page := connection.execute(QUERIES["fetch_beside"], {**asked, **place}):
        place = {"after_at": page[-1]["updated_at"], "after_id": page[-1]["action_id"]}
        for each in page:
            if mine.isdisjoint(_values(theirs := from_json(each["facts"]))):
                continue
            earlier = each["settled_at"] is not None and each["settled_at"] < intent_at
            found.append(Beside(facts=theirs, certain=bool(each["took_effect"]), earlier=earlier))
    return tuple(found)


def _values(facts: Mapping[str, Any]) -> frozenset[str]:
    """Return the ids and hashes inside of facts; what stands outside, as the endpoint's name, all of them share."""
    inside = [value for value in facts.values() if isinstance(value, Mapping)]
    texts = {text for each in inside for text in each.values() if isinstance(text, str) and text}
    return frozenset(texts).union(*(_values(each) for each in inside))


def _shown(evidence: Evidence) -> dict[str, Any]:
    return {
        "read": evidence.read,
        "ids": dict(evidence.ids),
        "read_at": wire.rfc3339(evidence.at_ms),
        "found": evidence.found,
        "facts": dict(evidence.facts),
    }
