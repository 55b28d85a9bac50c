"""Any OpenAI-compatible chat completions endpoint as the model; not streamed, never repeated."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping
from typing import Any, Final

import httpx

from aip_hermes.embedded.agent.models import ModelFailed, ModelReply, ModelRequest
from aip_hermes.embedded.session_db import Usage
from aip_hermes.secret import Secret

__all__ = ["OpenAIModel"]

_MAX_REPLY_BYTES: Final = 16 * 1024 * 1024


class OpenAIModel:
    """Asks `{base_url}/chat/completions`.

    base_url: ends before `/chat/completions`, usually with `/v1`. model: the name sent. key: sent as bearer, or None.
    timeout_s: for the whole answer. Loopback addresses are never reached through a proxy. transport: for tests.
    """

    def __init__(
        self,
        *,
        base_url: str,
        model: str,
        key: Secret | None = None,
        timeout_s: float = 600.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        url = httpx.URL(base_url)
        if url.scheme not in ("http", "https") or not url.host or url.userinfo:
            raise ValueError("the address of a model is http(s)://host[:port][/path] without credentials")
        self._url = base_url.rstrip("/") + "/chat/completions"
        self._model = model
        self._key = key
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(timeout_s, connect=10.0),
            trust_env=not _is_loopback(url.host),
            follow_redirects=False,
            transport=transport,
        )

    @property
    def name(self) -> str:
        return self._model

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Ask once. Raises ModelFailed for no connection, another status than 200, and an answer without text."""
        messages: list[dict[str, Any]] = [_sent(message) for message in request.messages]
        if request.system:
            messages.insert(0, {"role": "system", "content": request.system})
        headers = {} if self._key is None else {"Authorization": f"Bearer {self._key.reveal()}"}
        body = {"model": self._model, "messages": messages}
        try:
            status, content = await self._post(body, headers)
        except httpx.TimeoutException as exc:
            raise ModelFailed("the model did not answer in time") from exc
        except httpx.HTTPError as exc:
            raise ModelFailed(f"the model could not be reached ({type(exc).__name__})") from exc
        if status != httpx.codes.OK:
            raise ModelFailed(f"the model answered HTTP {status}", status=status)
        return _reply(content)

    async def _post(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> tuple[int, bytes]:
        async with self._client.stream("POST", self._url, json=body, headers=dict(headers)) as response:
            content = bytearray()
            async for chunk in response.aiter_bytes():
                content += chunk
                if len(content) > _MAX_REPLY_BYTES:
                    raise ModelFailed("the model's answer is too large", status=response.status_code)
            return response.status_code, bytes(content)


def _reply(content: bytes) -> ModelReply:
    try:
        answer = json.loads(content)
        choice = answer["choices"][0]
        text = choice["message"]["content"]
    except (ValueError, LookupError, TypeError) as exc:
        raise ModelFailed("the model's answer is no chat completion") from exc
    if not isinstance(text, str) or not text.strip():
        raise ModelFailed("the model's answer has no text")
    reason = choice.get("finish_reason")
    return ModelReply(
        text=text, finish_reason="length" if reason == "length" else "stop", usage=_usage(answer.get("usage"))
    )


def _usage(usage: object) -> Usage:
    if not isinstance(usage, Mapping):
        return Usage()
    prompt, completion = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    return Usage(
        input_tokens=_number(usage.get("prompt_tokens")),
        output_tokens=_number(usage.get("completion_tokens")),
        cache_read_tokens=_number(prompt.get("cached_tokens")) if isinstance(prompt, Mapping) else 0,
        reasoning_tokens=_number(completion.get("reasoning_tokens")) if isinstance(completion, Mapping) else 0,
    )


def _sent(message: Mapping[str, Any]) -> dict[str, Any]:
    names = ("role", "content", "tool_calls", "tool_call_id")
    return {name: message[name] for name in names if message.get(name) is not None}


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
