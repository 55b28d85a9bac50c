"""Any OpenAI-compatible chat completions endpoint as the model: streamed, tried again only before its first word."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any, Final

import httpx

from aip_hermes.embedded.agent.models import ModelFailed, ModelRequest, Pieces
from aip_hermes.embedded.agent.openai_reply import ChunkReader, refusal_text, whole_completion
from aip_hermes.embedded.session_db.columns import scrubbed
from aip_hermes.loopback import dials_this_machine
from aip_hermes.ports import Clock, SystemClock
from aip_hermes.redact import redact_text
from aip_hermes.secret import Secret
from aip_hermes.sse import Decoder, SseError

__all__ = ["OpenAIModel"]

_MAX_REPLY_BYTES: Final = 16 * 1024 * 1024
_MAX_ERROR_BYTES: Final = 64 * 1024
_WAITS_S: Final = (0.5, 2.0)
_TOO_LONG: Final = (
    b"context_length_exceeded",
    b"exceed_context_size",
    b"maximum context length",
    b"context window",
    b"prompt is too long",
)
"""How endpoints say that a request is longer than their context."""
_MAY_BE_TOO_LONG: Final = (httpx.codes.BAD_REQUEST, httpx.codes.REQUEST_ENTITY_TOO_LARGE)
_MAX_REASON_CHARS: Final = 300


class OpenAIModel:
    """Asks `{base_url}/chat/completions`.

    base_url: ends before `/chat/completions`, usually with `/v1`. model: the name sent. key: sent as bearer, or None.
    timeout_s: for each wait on the network, and for a whole answer: one that drips for ever would hold its session.
    This machine is never reached through a proxy. clock: for the waits between tries. transport: for tests.
    """

    def __init__(
        self,
        *,
        base_url: str,
        model: str,
        key: Secret | None = None,
        timeout_s: float = 600.0,
        clock: Clock | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        try:
            url = httpx.URL(base_url)
        except (httpx.InvalidURL, TypeError):
            # Without the cause: what it quotes may hold a credential.
            raise ValueError("the address of a model is no URL") from None
        if key is not None and not key.reveal().isascii():
            raise ValueError("the key of a model is ASCII, as the header that it is sent in")
        if url.scheme not in ("http", "https") or not url.host or url.userinfo:
            raise ValueError("the address of a model is http(s)://host[:port][/path] without credentials")
        self._url = base_url.rstrip("/") + "/chat/completions"
        self._model = model
        self._key = key
        self._clock: Clock = clock or SystemClock()
        self._timeout_s = timeout_s
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(timeout_s, connect=10.0),
            trust_env=not dials_this_machine(url.host),
            follow_redirects=False,
            transport=transport,
        )

    @property
    def name(self) -> str:
        return self._model

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def stream(self, request: ModelRequest) -> Pieces:
        """Answer piece by piece. No connection, 429 and 5xx before the first piece are tried again, three times in all.

        Raises ModelFailed for no connection, another status than 200, an answer without text or calls, and one that was
        cut off.
        """
        for wait_s in (*_WAITS_S, None):
            try:
                async with aclosing(self._once(request)) as pieces:
                    async for piece in pieces:
                        yield piece
                return
            except ModelFailed as failed:
                failed.reason = (
                    redact_text(failed.reason or "", secrets=[self._key], max_chars=_MAX_REASON_CHARS) or None
                )
                if wait_s is None or not failed.transient:
                    raise
                await self._clock.sleep(wait_s)

    async def _once(self, request: ModelRequest) -> Pieces:
        headers = {"Content-Type": "application/json"}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key.reveal()}"
        content = _encoded(self._body(request))
        try:
            async with self._client.stream("POST", self._url, content=content, headers=headers) as response:
                status = response.status_code
                if status != httpx.codes.OK:
                    again = status == httpx.codes.TOO_MANY_REQUESTS or status >= httpx.codes.INTERNAL_SERVER_ERROR
                    said = await self._refusal(response)
                    too_long = status in _MAY_BE_TOO_LONG and any(words in said.lower() for words in _TOO_LONG)
                    told = f"the model answered HTTP {status}" + (": its context is exceeded" if too_long else "")
                    raise ModelFailed(
                        told, status=status, transient=again, too_long=too_long, reason=refusal_text(said)
                    )
                if response.headers.get("content-type", "").startswith("text/event-stream"):
                    async with aclosing(_streamed(self._chunks(response))) as pieces:
                        async for piece in pieces:
                            yield piece
                else:
                    # An endpoint that doesn't stream answers in one piece.
                    reply = whole_completion(await _content(self._chunks(response)))
                    if reply.text:
                        yield reply.text
                    yield reply
        except httpx.TimeoutException as exc:
            raise ModelFailed("the model did not answer in time") from exc
        except httpx.HTTPError as exc:
            unreached = isinstance(exc, httpx.ConnectError)
            raise ModelFailed(f"the model could not be reached ({type(exc).__name__})", transient=unreached) from exc

    async def _refusal(self, response: httpx.Response) -> bytes:
        """Return the beginning of what the endpoint says about a request that it refused; of its own failures nothing:
        they are tried again at once.
        """
        said = b""
        if response.status_code >= httpx.codes.INTERNAL_SERVER_ERROR:
            return said
        async for chunk in self._chunks(response):
            said += chunk
            if len(said) > _MAX_ERROR_BYTES:
                break
        return said

    async def _chunks(self, response: httpx.Response) -> AsyncIterator[bytes]:
        """Yield the body as it comes, within the time for the whole of it."""
        end = self._clock.monotonic() + self._timeout_s
        async for chunk in response.aiter_bytes():
            if self._clock.monotonic() > end:
                raise ModelFailed("the model did not come to an end in time")
            yield chunk

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        messages = [_sent(message) for message in request.messages]
        if request.system:
            messages.insert(0, {"role": "system", "content": request.system})
        body: dict[str, Any] = {
            "model": self._model,
            "messages": messages,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        return body | {"tools": list(request.tools)} if request.tools else body


def _encoded(body: Mapping[str, Any]) -> bytes:
    """Return it as JSON; lone surrogates, which no encoding can hold, are replaced. Raises ModelFailed."""
    try:
        return scrubbed(json.dumps(body, ensure_ascii=False, allow_nan=False)).encode()
    except (TypeError, ValueError, RecursionError) as exc:
        raise ModelFailed("the conversation holds what JSON can't say, so the model was not asked") from exc


async def _streamed(chunks: AsyncIterator[bytes]) -> Pieces:
    reader = ChunkReader()
    decoder = Decoder(
        max_line_bytes=_MAX_REPLY_BYTES,
        max_frame_bytes=_MAX_REPLY_BYTES,
        max_stream_bytes=_MAX_REPLY_BYTES,
        max_events=None,
    )
    try:
        async for chunk in chunks:
            for frame in decoder.feed(chunk):
                if text := reader.take(frame.data or "") if frame.data else "":
                    yield text
            if reader.ended:
                break
    except SseError as exc:
        raise ModelFailed("the model's answer is too large or no event stream") from exc
    yield reader.reply()


async def _content(chunks: AsyncIterator[bytes]) -> bytes:
    content = bytearray()
    async for chunk in chunks:
        content += chunk
        if len(content) > _MAX_REPLY_BYTES:
            raise ModelFailed("the model's answer is too large")
    return bytes(content)


def _sent(message: Mapping[str, Any]) -> dict[str, Any]:
    sent = {name: message[name] for name in ("role", "content", "tool_call_id") if message.get(name) is not None}
    if calls := message.get("tool_calls"):
        sent["tool_calls"] = [{name: call[name] for name in ("id", "type", "function")} for call in calls]
    return sent
