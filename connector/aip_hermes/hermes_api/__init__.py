"""What a Hermes endpoint and its callers have to agree on: objects, id and title rules, error codes. No I/O."""

from __future__ import annotations

from aip_hermes.hermes_api.content import (
    IMAGE_PARTS,
    MAX_MESSAGE_CHARS,
    MAX_MESSAGE_PARTS,
    SCREENSHOT,
    TEXT_PARTS,
    part_kind,
    part_text,
    says_something,
    stored_text,
)
from aip_hermes.hermes_api.errors import HermesCode, error_body, header_error_body, unauthorized_body
from aip_hermes.hermes_api.judgement import Judgement, judge_status, looks_like_markup
from aip_hermes.hermes_api.message import MESSAGE_FIELDS, message_object
from aip_hermes.hermes_api.schedules import ScheduleRefused, next_run, parse_schedule
from aip_hermes.hermes_api.session import (
    LINEAGE_MARKERS,
    LIST_FIELDS,
    SESSION_FIELDS,
    SESSION_ROW_FIELDS,
    list_entry,
    session_object,
)
from aip_hermes.hermes_api.session_ids import (
    MAX_SESSION_ID_CHARS,
    MAX_SESSION_KEY_CHARS,
    generated_session_id,
    is_continuation_id,
    new_session_id_problem,
    refused_new_id,
)
from aip_hermes.hermes_api.titles import TITLE_MAX, clean_title, lineage_base, next_lineage_title, title_problem

__all__ = [
    "IMAGE_PARTS",
    "LINEAGE_MARKERS",
    "LIST_FIELDS",
    "MAX_MESSAGE_CHARS",
    "MAX_MESSAGE_PARTS",
    "MAX_SESSION_ID_CHARS",
    "MAX_SESSION_KEY_CHARS",
    "MESSAGE_FIELDS",
    "SCREENSHOT",
    "SESSION_FIELDS",
    "SESSION_ROW_FIELDS",
    "TEXT_PARTS",
    "TITLE_MAX",
    "HermesCode",
    "Judgement",
    "ScheduleRefused",
    "clean_title",
    "error_body",
    "generated_session_id",
    "header_error_body",
    "is_continuation_id",
    "judge_status",
    "lineage_base",
    "list_entry",
    "looks_like_markup",
    "message_object",
    "new_session_id_problem",
    "next_lineage_title",
    "next_run",
    "parse_schedule",
    "part_kind",
    "part_text",
    "refused_new_id",
    "says_something",
    "session_object",
    "stored_text",
    "title_problem",
    "unauthorized_body",
]
