"""`GET /aip/v1/approvals/{id}/context`: one call of the runtime, with the rights of the caller."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.server_site import make_site

PATH = "/aip/v1/approvals/appr_1/context"


@pytest.mark.requirement("approval:context")
async def test_the_context_is_what_the_runtime_says(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    async with site.client:
        found = await site.get(PATH, who="reviewer")
    assert (found.status_code, found.json()) == (
        200,
        {"approval_context": {"approval_id": "appr_1", "touches": None, "not_available": "a script"}},
    )
    assert site.runtime.asked[-1] == ("approval_context", {"approval_id": "appr_1"})


@pytest.mark.requirement("approval:context")
@pytest.mark.parametrize(
    ("path", "who", "status", "code"),
    [
        (PATH, "stranger", 400, "approval.not_found"),
        (PATH, None, 401, "auth.native_http_unauthorized"),
        (f"{PATH}?tenant_id=tenant-b", "reviewer", 401, "auth.tenant_mismatch"),
        ("/aip/v1/approvals/%00/context", "reviewer", 400, None),
    ],
)
async def test_others_learn_nothing(tmp_path: Path, path: str, who: str | None, status: int, code: str | None) -> None:
    site = make_site(tmp_path)
    async with site.client:
        found = await site.get(path, who=who)
    assert found.status_code == status
    error = found.json()["body"]["error"]["error"]
    assert code is None or error["code"] == code
