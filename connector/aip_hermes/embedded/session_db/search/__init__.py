"""Search in transcripts: a query language, an index of words that may break without breaking anything, and snippets."""

from __future__ import annotations

from aip_hermes.embedded.session_db.search.finding import FIELDS, RANKED, Search, find, find_if_complete, projection
from aip_hermes.embedded.session_db.search.index import SearchIndex

__all__ = ["FIELDS", "RANKED", "Search", "SearchIndex", "find", "find_if_complete", "projection"]
