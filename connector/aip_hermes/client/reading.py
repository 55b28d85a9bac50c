"""What reads of one AIP server share: one route asked, and ids as path segments."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from aip_hermes.client.reply import JsonObject

__all__ = ["Reading", "segment"]


class Reading:
    """The one thing that every group of reads needs of a connection."""

    async def get(
        self, path: str, params: Mapping[str, object] | None = None, *, expected: str, what: str = "AIP HTTP GET"
    ) -> JsonObject:
        """Read one route; what a connection does. Raises: the failures of `client.failures`, always certain."""
        raise NotImplementedError


def segment(identity: str) -> str:
    """Percent-encode an id as one path segment. An id with a prefix, as actions and approvals have, is never `.`."""
    return quote(identity, safe="")
