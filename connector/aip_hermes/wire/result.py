"""How an action ended, and the rich parts of a message.

Source: wire model §7 "ActionResult", "Usage", "MessagePart", "Ack".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from aip_hermes.wire.closed_sets import AckStatus, ActionResultStatus
from aip_hermes.wire.failure import ProtocolError
from aip_hermes.wire.model import U64, Json, Wire, absent_list
from aip_hermes.wire.receipt import ReceiptRef

__all__ = [
    "Ack",
    "ActionResult",
    "AudioPart",
    "CardPart",
    "FilePart",
    "FormPart",
    "ImagePart",
    "JsonPart",
    "MessagePart",
    "TextPart",
    "ToolResultPart",
    "Usage",
]


class TextPart(Wire):
    type: Literal["text"] = "text"
    text: str
    format: str | None = None


class ImagePart(Wire):
    type: Literal["image"] = "image"
    url: str | None = None
    data: str | None = None
    mime_type: str
    alt: str | None = None


class FilePart(Wire):
    type: Literal["file"] = "file"
    url: str | None = None
    data: str | None = None
    mime_type: str
    filename: str
    size_bytes: U64 | None = None


class AudioPart(Wire):
    type: Literal["audio"] = "audio"
    url: str | None = None
    data: str | None = None
    mime_type: str
    transcript: str | None = None


class FormPart(Wire):
    type: Literal["form"] = "form"
    fields: list[Json]
    actions: list[Json]


class CardPart(Wire):
    type: Literal["card"] = "card"
    title: str
    body: str
    actions: list[Json] = absent_list()
    media: Json | None = None


class JsonPart(Wire):
    type: Literal["json"] = "json"
    data: Json
    schema_: Json | None = Field(default=None, alias="schema")


class ToolResultPart(Wire):
    type: Literal["tool_result"] = "tool_result"
    tool_call_id: str
    data: Json | None = None
    error: Json | None = None


MessagePart = Annotated[
    TextPart | ImagePart | FilePart | AudioPart | FormPart | CardPart | JsonPart | ToolResultPart,
    Field(discriminator="type"),
]


class Usage(Wire):
    tokens: Json | None = None
    tools: Json | None = None
    latency_ms: U64 | None = None
    cost: Json | None = None


class ActionResult(Wire):
    """output: as the capability's output schema says."""

    action_id: str
    status: ActionResultStatus
    output: Json | None = None
    message: list[MessagePart] = absent_list()
    memory_update: Json | None = None
    usage: Usage | None = None
    receipt: ReceiptRef | None = None
    error: ProtocolError | None = None

    def broken_rules(self) -> Iterator[str]:
        if self.status == "failed" and self.error is None:
            yield "status failed needs an error"


class Ack(Wire):
    """An action was taken in, or not; its result comes later."""

    action_id: str
    status: AckStatus
    reason: str | None = None
    retry_after_ms: U64 | None = None
    queue: Json | None = None
