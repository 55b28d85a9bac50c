"""Sending with a deadline: a mutation once, a safe read up to three times."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Any, Final

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    wait_exponential,
    wait_random,
)

from aip_hermes.contract.handler import JsonObject
from aip_hermes.hermes.answer import Asked, failure_of, output_of
from aip_hermes.hermes.client import HermesClient, Incoming
from aip_hermes.hermes.exchange import ExchangeFailed, Received, RequestSpec
from aip_hermes.hermes.failures import DeadlineExceeded, HermesFailed
from aip_hermes.hermes.stream_failures import is_event_stream, not_a_stream
from aip_hermes.hermes.wording import step_after
from aip_hermes.ports import Clock

__all__ = ["READ_SENDS", "Attempts", "Shape"]

READ_SENDS: Final = 3
_LONGEST_WAIT_MS: Final = 5_000

Shape = Callable[[JsonObject, Received], JsonObject]
"""Makes the output of a provider's JSON object and the answer that it came in."""


class Attempts:
    """Exchanges of one endpoint, judged."""

    def __init__(self, client: HermesClient, *, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def once(
        self, request: RequestSpec, asked: Asked, *, deadline_ms: int | None, shape: Shape | None = None
    ) -> JsonObject:
        """Send one request within its own time and the deadline.

        Raises: HermesFailed.
        """
        with self._judging(request, asked, deadline_ms) as in_time:
            received = await self._client.send(in_time)
        output = output_of(asked, received, now_ms=self._clock.now_ms())
        return output if shape is None else shape(output, received)

    @asynccontextmanager
    async def streaming(
        self, request: RequestSpec, asked: Asked, *, deadline_ms: int | None, idle_s: float
    ) -> AsyncIterator[Incoming]:
        """Send one request and yield its stream of events, within its own time and the deadline.

        Raises: HermesFailed for an answer that is no such stream, without reading it, and for one that breaks off.
        """
        with self._judging(request, asked, deadline_ms) as in_time:
            async with self._client.stream(in_time, idle_s=idle_s) as incoming:
                if not 200 <= incoming.status < 300:
                    output_of(asked, await incoming.whole(), now_ms=self._clock.now_ms())
                if not is_event_stream(incoming.status, incoming.headers):
                    raise not_a_stream(asked, incoming.status, incoming.headers)
                yield incoming

    @contextmanager
    def _judging(self, request: RequestSpec, asked: Asked, deadline_ms: int | None) -> Iterator[RequestSpec]:
        """Yield the request with the time that the deadline leaves it; raise the failure of an exchange, judged."""
        left_s = float("inf") if deadline_ms is None else (deadline_ms - self._clock.now_ms()) / 1000
        if left_s <= 0:
            raise _too_late(asked, sent=False)
        try:
            yield replace(request, timeout_s=min(request.timeout_s, left_s))
        except ExchangeFailed as exc:
            if exc.reason == "timeout" and left_s < request.timeout_s:
                raise _too_late(asked, sent=exc.sent) from exc
            raise failure_of(asked, exc) from exc

    async def repeated(
        self, request: RequestSpec, asked: Asked, *, deadline_ms: int | None, shape: Shape | None = None
    ) -> JsonObject:
        """Send a safe read, at most three times while the failure is a passing one and the deadline allows.

        Raises: HermesFailed, the last one.
        """
        if request.mutation:
            raise ValueError("a mutation is sent once")

        def worthwhile(exc: BaseException) -> bool:
            if not isinstance(exc, HermesFailed) or not exc.retryable:
                return False
            wait_ms = exc.retry_after_ms or 0
            late = deadline_ms is not None and self._clock.now_ms() + wait_ms >= deadline_ms
            return wait_ms <= _LONGEST_WAIT_MS and not late

        try:
            return await self.once(request, asked, deadline_ms=deadline_ms, shape=shape)
        except HermesFailed as exc:
            if not worthwhile(exc):
                raise
            failures = [exc]

        async def again() -> JsonObject:
            # The first try was made without the machinery that most reads never need.
            if failures:
                raise failures.pop()
            return await self.once(request, asked, deadline_ms=deadline_ms, shape=shape)

        retrying = AsyncRetrying(
            stop=stop_after_attempt(READ_SENDS),
            retry=retry_if_exception(worthwhile),
            wait=_wait_s,
            sleep=self._clock.sleep,
            reraise=True,
        )
        result: JsonObject = await retrying(again)
        return result


_BACK_OFF = wait_exponential(multiplier=0.2, max=2) + wait_random(0, 0.2)


def _wait_s(state: RetryCallState) -> float:
    failure: Any = state.outcome.exception() if state.outcome is not None else None
    asked_ms = failure.retry_after_ms if isinstance(failure, HermesFailed) else None
    return max(_BACK_OFF(state), (asked_ms or 0) / 1000)


def _too_late(asked: Asked, *, sent: bool) -> DeadlineExceeded:
    uncertain = asked.mutation and sent
    when = "did not answer before the deadline of the action" if sent else "was not asked: the action's time was over"
    step = (
        step_after(asked.subject, uncertain=True, mutation=True)
        if uncertain
        else "Nothing was changed; send the same action again, or allow more time under a new Action ID."
    )
    return DeadlineExceeded(
        f"{asked.subject.said} {when}. {step}",
        endpoint_id=asked.endpoint.id,
        session_id=asked.subject.session_id,
        details={**asked.subject.ids, "sent": sent},
        # What never started is no fault of the request: its key is free again (design D2).
        retryable=not uncertain,
        uncertain=uncertain,
    )
