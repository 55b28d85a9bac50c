"""`aipctl` about files that somebody gave: chains that were changed, manifests that are none, text that misleads."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aip_hermes import wire
from tests.support.client_answers import OTHER_ANSWERS
from tests.support.client_command import invoke_aipctl

MANIFEST = OTHER_ANSWERS["/aip/v1/manifest"]


def _chain() -> dict[str, Any]:
    chain = wire.ReceiptChain(chain_id="approval:appr_1", receipts=[])
    for number, kind in enumerate(("approval_requested", "approval_granted", "result_returned")):
        receipt = {
            "id": f"rcpt_{number}",
            "receipt_type": kind,
            "actor": {"id": "human:mira", "kind": "human"},
            "occurred_at": "2031-02-03T04:05:06Z",
            "data": {"n": number},
        }
        chain = wire.append_receipt(chain, wire.Receipt.model_validate(receipt))
    return chain.wire()


def _rooted(chain: dict[str, Any]) -> None:
    """Make the root again, as a forger would."""
    receipts = [wire.Receipt.model_validate(each) for each in chain["receipts"]]
    chain["root_hash"] = wire.receipt_root(receipts)


def _drop_middle(chain: dict[str, Any]) -> None:
    del chain["receipts"][1]
    _rooted(chain)


def _swap(chain: dict[str, Any]) -> None:
    chain["receipts"].reverse()
    _rooted(chain)


def _cut(chain: dict[str, Any]) -> None:
    chain["receipts"].pop()
    _rooted(chain)


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "data": lambda chain: chain["receipts"][1]["data"].update(n=7),
    "actor": lambda chain: chain["receipts"][0]["actor"].update(id="human:other"),
    "time": lambda chain: chain["receipts"][2].update(occurred_at="2031-02-03T04:05:07Z"),
    "a member that no hash covers": lambda chain: chain["receipts"][1].update(note="by the board"),
    "one left out": _drop_middle,
    "another order": _swap,
    "one twice": lambda chain: chain["receipts"].append(chain["receipts"][2]),
    "another root": lambda chain: chain.update(root_hash="00" * 32),
    "no root": lambda chain: chain.pop("root_hash"),
    "no hash": lambda chain: chain["receipts"][2].pop("hash"),
    "a hash that is none": lambda chain: chain["receipts"][2].update(hash="\x1b[2Jé\u202e"),
    "no receipts": lambda chain: chain.update(receipts=[], root_hash=None),
    "receipts of another kind": lambda chain: chain.update(receipts=7),
    "no chain id": lambda chain: chain.pop("chain_id"),
}


@pytest.mark.requirement("aipctl:receipt:verify")
@pytest.mark.parametrize("wrapped", [True, False])
def test_a_chain_holds_as_it_is(wrapped: bool) -> None:
    chain = _chain()
    done = invoke_aipctl(
        "receipt", "verify", "-", stdin=json.dumps({"receipt_chain": chain} if wrapped else chain).encode()
    )
    assert (done.exit_code, json.loads(done.stdout)["valid"], done.stderr) == (0, True, "")


@pytest.mark.requirement("aipctl:receipt:verify")
@pytest.mark.parametrize("change", CHANGES)
def test_a_chain_that_was_changed_is_refused(tmp_path: Path, change: str) -> None:
    chain = copy.deepcopy(_chain())
    CHANGES[change](chain)
    path = tmp_path / "chain.json"
    path.write_text(json.dumps(chain))
    done = invoke_aipctl("receipt", "verify", str(path))
    assert (done.exit_code, done.stdout) == (1, "")
    assert "does not hold" in done.stderr
    assert "next: " in done.stderr
    assert not set("\x1b\u202e\ud800") & set(done.stderr)


@pytest.mark.requirement("aipctl:receipt:verify")
def test_a_cut_off_end_shows_to_who_kept_a_hash() -> None:
    chain = _chain()
    kept = chain["receipts"][-1]["hash"]
    _cut(chain)
    content = json.dumps(chain).encode()
    assert invoke_aipctl("receipt", "verify", "-", stdin=content).exit_code == 0
    assert invoke_aipctl("receipt", "verify", "-", "--holds-hash", kept, stdin=content).exit_code == 1


@pytest.mark.requirement("aipctl:receipt:verify", "aipctl:manifest:validate")
@pytest.mark.parametrize("command", ["receipt verify", "manifest validate"])
@pytest.mark.parametrize(
    ("content", "code"),
    [
        pytest.param(b"", 2, id="empty"),
        pytest.param(b"{", 2, id="cut"),
        pytest.param(b'{"a": 1, "a": 2}', 2, id="twice"),
        pytest.param(b"\xff\xfe", 2, id="no UTF-8"),
        pytest.param(b"[" * 100_000, 2, id="deep"),
        pytest.param(b'{"receipts": NaN}', 2, id="not a number"),
        pytest.param(b'{"receipts": "\\ud800"}', 2, id="half a character"),
        pytest.param(b"{}", 1, id="an empty object"),
        pytest.param(b'{"\\u001b[2J": "\\u202e"}', 1, id="control characters"),
    ],
)
def test_a_file_that_is_something_else_is_said_in_lines(command: str, content: bytes, code: int) -> None:
    done = invoke_aipctl(*command.split(), "-", stdin=content)
    assert (done.exit_code, done.stdout) == (code, "")
    assert done.stderr
    assert "Traceback" not in done.stderr
    assert not set("\x1b\u202e") & set(done.stderr)


@pytest.mark.requirement("aipctl:receipt:verify", "aipctl:manifest:validate")
@pytest.mark.parametrize("command", ["receipt verify", "manifest validate"])
def test_a_file_that_is_not_there_is_a_usage_error(tmp_path: Path, command: str) -> None:
    done = invoke_aipctl(*command.split(), str(tmp_path / "none"))
    assert (done.exit_code, done.stdout) == (2, "")
    assert "can't be read" in done.stderr


@pytest.mark.requirement("aipctl:manifest:validate")
@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"profiles": []}, "profiles"),
        ({"manifest_version": " "}, "manifest_version"),
        ({"agent": {"id": "agent:x"}}, "/agent"),
        ({"capabilities": [{"id": "cap:x"}]}, "/capabilities/0"),
        ({"extra": 1}, "extra"),
    ],
)
def test_a_manifest_that_breaks_a_rule_is_refused_by_place(changes: dict[str, Any], place: str) -> None:
    done = invoke_aipctl("manifest", "validate", "-", stdin=json.dumps({**MANIFEST, **changes}).encode())
    assert (done.exit_code, done.stdout) == (1, "")
    assert place in done.stderr


@pytest.mark.requirement("aipctl:manifest:validate")
def test_a_right_manifest_is_valid() -> None:
    done = invoke_aipctl("manifest", "validate", "-", stdin=json.dumps(MANIFEST).encode())
    assert (done.exit_code, done.stdout, done.stderr) == (0, "manifest valid\n", "")
