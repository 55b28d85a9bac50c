"""Which failed tries are repeated, and when: the whole table."""

from __future__ import annotations

import pytest

from aip_hermes import wire
from aip_hermes.contract import load_operations
from aip_hermes.contract.publish import contract
from aip_hermes.errors import ActionFailed
from aip_hermes.runtime.retry import LONGEST_MS, RetryPolicy, delay_ms
from tests.support.runtime_connector import ScriptedRejected, ScriptedTemporary

PASSING = ScriptedTemporary("down")


def declared(retry_safety: str, *, supports_retry: bool = True) -> wire.CapabilityContract:
    """Return a published contract that declares this instead."""
    published = contract(load_operations()["session_get"], 60_000)
    execution = published.execution.model_copy(update={"supports_retry": supports_retry, "retry_safety": retry_safety})
    return published.model_copy(update={"execution": execution})


@pytest.mark.requirement("queue:retry:declared")
@pytest.mark.parametrize(
    ("retry_safety", "supports_retry", "policy"),
    [
        ("safe", True, RetryPolicy(max_tries=3)),
        ("safe_with_idempotency_key", True, RetryPolicy(max_tries=3, needs_key=True)),
        ("unsafe", True, RetryPolicy()),
        ("unknown", True, RetryPolicy()),
        ("safe", False, RetryPolicy()),
        ("unsafe", False, RetryPolicy()),
    ],
)
def test_a_policy_is_what_the_contract_declares(retry_safety: str, supports_retry: bool, policy: RetryPolicy) -> None:
    assert RetryPolicy.of(declared(retry_safety, supports_retry=supports_retry), tries=3) == policy


@pytest.mark.requirement("queue:retry:declared")
@pytest.mark.parametrize("name", sorted(load_operations()))
def test_of_our_operations_only_reads_are_repeated(name: str) -> None:
    row = load_operations()[name]
    policy = RetryPolicy.of(contract(row, row.timeout_ms), tries=3)
    assert policy == (RetryPolicy(max_tries=3) if row.read_only else RetryPolicy())


@pytest.mark.requirement("queue:retry:declared", "queue:retry:certain-only")
@pytest.mark.parametrize(
    ("policy", "failure", "tries", "has_key", "repeated"),
    [
        (RetryPolicy(max_tries=3), PASSING, 1, False, True),
        (RetryPolicy(max_tries=3), PASSING, 2, False, True),
        (RetryPolicy(max_tries=3), PASSING, 3, False, False),
        (RetryPolicy(max_tries=3), PASSING, 4, False, False),
        (RetryPolicy(), PASSING, 1, True, False),
        (RetryPolicy(max_tries=3, needs_key=True), PASSING, 1, False, False),
        (RetryPolicy(max_tries=3, needs_key=True), PASSING, 1, True, True),
        (RetryPolicy(max_tries=3), ScriptedTemporary("lost", uncertain=True), 1, True, False),
        (RetryPolicy(max_tries=3), ScriptedTemporary("down", retryable=False), 1, True, False),
        (RetryPolicy(max_tries=3), ScriptedRejected("no"), 1, True, False),
        (RetryPolicy(max_tries=3), ScriptedRejected("not now", retryable=True), 1, True, True),
    ],
)
def test_a_failure_is_repeated_only_where_all_allows_it(
    policy: RetryPolicy, failure: ActionFailed, tries: int, has_key: bool, repeated: bool
) -> None:
    assert policy.repeats(failure, tries=tries, has_key=has_key) is repeated


@pytest.mark.requirement("queue:retry:back-off")
@pytest.mark.parametrize(
    ("tries", "asked_ms", "waits_ms"),
    [
        (1, None, 1_000),
        (2, None, 2_000),
        (5, None, 16_000),
        (6, None, 30_000),
        (10_000, None, 30_000),
        (1, 1, 1),
        (3, 12_345, 12_345),
        (1, 30_001, 30_000),
        (2, 0, 2_000),
    ],
)
def test_the_wait_doubles_unless_the_provider_asks(tries: int, asked_ms: int | None, waits_ms: int) -> None:
    failure = ScriptedTemporary("down", retry_after_ms=asked_ms)
    assert delay_ms(failure, tries=tries) == waits_ms


@pytest.mark.requirement("queue:retry:back-off")
@pytest.mark.parametrize(("jitter_ms", "waits_ms"), [(0, 30_000), (250, 30_250), (-5_000, 30_000)])
def test_jitter_adds_what_its_source_says_and_never_takes_away(jitter_ms: int, waits_ms: int) -> None:
    asked: list[int] = []

    def jitter(delay: int) -> int:
        asked.append(delay)
        return jitter_ms

    assert delay_ms(ScriptedTemporary("down", retry_after_ms=90_000), tries=1, jitter=jitter) == waits_ms
    assert asked == [LONGEST_MS]
