"""Whether each requester's approvals have somebody else who may, and can, decide them."""

from __future__ import annotations

from collections.abc import Iterator

from aip_hermes import wire
from aip_hermes.cli.doctor.finding import Finding, fail, fine, warn
from aip_hermes.contract import Catalog
from aip_hermes.contract.handler import Connector
from aip_hermes.ports import Clock
from aip_hermes.runtime import Authorities
from aip_hermes.runtime.failures import NotAuthorized
from aip_hermes.runtime.policy import check_invocation
from aip_hermes.settings import Settings, TokenSettings

__all__ = ["reviewers"]

_SEEING = ("approval:read", "approval:export", "approval:sensitive")
"""Who does not hold these can't see the input, and so can't approve it (design D25)."""


def reviewers(
    settings: Settings, known: Authorities, connectors: list[Connector], *, clock: Clock
) -> Iterator[Finding]:
    """One line per tenant and requester that lacks somebody, or one that says that all have somebody."""
    catalog = Catalog(offer for connector in connectors for offer in connector.offers())
    told: set[str] = set()
    asked = 0
    for token in settings.tokens:
        for policy in _policies(catalog, connectors, token):
            asked += 1
            finding = _lack(settings, known, token, policy, clock=clock)
            if finding is not None and finding.detail not in told:
                told.add(finding.detail)
                yield finding
    if not told:
        yield fine(
            "reviewers",
            "whoever asks for an approval has somebody else who can decide it"
            if asked
            else "no token may ask for an approval",
        )


def _policies(catalog: Catalog, connectors: list[Connector], token: TokenSettings) -> list[wire.ApprovalPolicy]:
    """Return the different approval policies of what the token may call."""
    found: dict[str, wire.ApprovalPolicy] = {}
    for connector in connectors:
        for offer in connector.offers():
            if offer.handler.operation.approval is None or not _may_call(token, str(offer.capability_id)):
                continue
            published = catalog.find(offer.capability_id, token.tenant)
            contract = None if published is None else published.capability.contract
            if contract is not None and contract.approval is not None:
                found.setdefault(wire.sha256_hex(contract.approval.approver_selector.wire()), contract.approval)
    return list(found.values())


def _may_call(token: TokenSettings, capability_id: str) -> bool:
    try:
        check_invocation(capability_id, token.invoke)
    except NotAuthorized:
        return False
    return True


def _lack(
    settings: Settings, known: Authorities, token: TokenSettings, policy: wire.ApprovalPolicy, *, clock: Clock
) -> Finding | None:
    """Say what is missing so that others may decide what this token asks for; None where nothing is."""
    needed = policy.minimum_distinct_principals
    where = "" if token.tenant is None else f" in tenant {token.tenant}"
    others = [other for other in settings.tokens if other.principal != token.principal and other.tenant == token.tenant]
    may = {
        other.principal: other
        for other in others
        if (entry := known.resolve(other.principal, now_ms=clock.now_ms())) is not None
        and entry.fits(policy.approver_selector, tenant=token.tenant or "")
    }
    if len(may) < needed:
        remedy = (
            f"give somebody else a token{where} and an entry in {settings.authority_file or 'the authority file'}; "
            "the requester may never decide"
        )
        lacking = "nobody else" if not may else f"only {len(may)} of {needed} others"
        return fail("reviewers", f"{token.principal}{where}: {lacking} may decide what it asks for", remedy)
    sighted = [other for other in may.values() if _sees(other)]
    if len(sighted) < needed:
        remedy = f"give a reviewer's token the scopes {', '.join(_SEEING)} in {settings.path}"
        return warn("reviewers", f"{token.principal}{where}: who may decide can't see the input", remedy)
    return None


def _sees(token: TokenSettings) -> bool:
    return all(not token.scopes.isdisjoint((scope, f"{scope}:any", "*")) for scope in _SEEING)
