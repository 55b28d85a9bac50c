"""What is refused before a route looks at a request: keys, paths, pages."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.support.embedded_endpoint import KEY, SESSION_ROUTES, asgi_client, endpoint


@pytest.mark.parametrize(
    "header",
    [None, "Bearer wrong", f"bearer {KEY}", f"Basic {KEY}", "Bearer", f"Bearer {KEY}x", "Bearer k\u00e9y"],
)
@pytest.mark.requirement("embedded:api:key")
async def test_a_wrong_key_is_refused_before_anything_is_looked_at(tmp_path: Path, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header}
    async with endpoint(tmp_path) as hermes:
        app = hermes.client._transport.app  # type: ignore[attr-defined]
        async with asgi_client(app, headers={}) as client:
            for method, path in [*SESSION_ROUTES, ("GET", "/v1/models"), ("GET", "/health/detailed")]:
                answer = await client.request(method, path, headers=encoded(headers), content=b"no json")
                assert answer.status_code == 401
                assert answer.json() == {
                    "error": {"message": "Invalid API key", "type": "invalid_request_error", "code": "invalid_api_key"}
                }
            assert (await client.get("/health")).status_code == 200
            padded = {"Authorization": f"Bearer   {KEY} "}
            assert (await client.get("/v1/models", headers=padded)).status_code == 200
    assert not (tmp_path / "hermes.db").exists()


@pytest.mark.parametrize(
    ("method", "path", "status", "text"),
    [
        ("GET", "/api/nope", 404, "404: Not Found"),
        ("GET", "/api/sessions/", 404, "404: Not Found"),
        ("GET", "/api/sessions/s/chat/extra", 404, "404: Not Found"),
        ("PUT", "/api/sessions/s", 405, "405: Method Not Allowed"),
        ("GET", "/api/sessions/s/fork", 405, "405: Method Not Allowed"),
        ("HEAD", "/health", 405, ""),
    ],
)
@pytest.mark.requirement("embedded:api:unrouted")
async def test_unrouted_requests_are_plain_text(tmp_path: Path, method: str, path: str, status: int, text: str) -> None:
    async with endpoint(tmp_path) as hermes:
        answer = await hermes.client.request(method, path, headers={"Authorization": "Bearer wrong"})

        assert (answer.status_code, answer.text) == (status, text)
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"


@pytest.mark.requirement("embedded:api:browsers")
async def test_pages_are_kept_out(tmp_path: Path) -> None:
    async with endpoint(tmp_path) as hermes:
        for method, path, headers in [
            ("GET", "/health", {"Origin": "http://app.test"}),
            ("OPTIONS", "/api/sessions", {}),
        ]:
            answer = await hermes.client.request(method, path, headers=headers)
            assert (answer.status_code, answer.content) == (403, b"")
        assert (await hermes.client.get("/health", headers={"Origin": ""})).status_code == 200


def encoded(headers: dict[str, str]) -> httpx.Headers:
    return httpx.Headers([(name.encode(), value.encode("utf-8")) for name, value in headers.items()])
