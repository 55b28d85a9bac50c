"""Side by side, in one run: what the connector does for each call, beside what one would do without it.

Run: pip install -r bench/requirements.txt && python bench/connector.py
Prints a table on stderr and JSON on stdout; ends with 1 where a limit is missed. The sides of a comparison alternate,
and each counts with its best round, so that a busy machine disturbs both alike and the ratio little.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
from httpx_sse import EventSource
from jsonschema import Draft202012Validator

from aip_hermes.contract import Catalog, load_operations
from aip_hermes.contract.handler import Actor, Call
from aip_hermes.contract.schemas import operation_schema, operation_validator
from aip_hermes.hermes import Endpoint, HermesConnector
from aip_hermes.hermes.request import map_call
from aip_hermes.ids import ActionId, CapabilityId, EndpointId, IdempotencyKey, PrincipalId, TenantId
from aip_hermes.ports import NoFaults, SystemClock
from aip_hermes.secret import Secret
from aip_hermes.sse import Decoder

ROUNDS = 7
FRAMES = 20_000
MANY, FEW = 1_000, 50


@dataclass(frozen=True, kw_only=True)
class Figure:
    """limit: at least, where `at_least`, else at most."""

    name: str
    ours: float
    theirs: float | None
    unit: str
    value: float
    limit: float
    at_least: bool = False

    @property
    def holds(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit


def expect(found: object, wanted: object) -> None:
    """A side that does not do its work has no time."""
    if found != wanted:
        raise SystemExit(f"{found!r} instead of {wanted!r}")


def best(*sides: Callable[[], object], rounds: int = ROUNDS) -> list[float]:
    """Return the best processor time of each side in seconds; they take turns."""
    times = [float("inf")] * len(sides)
    for _ in range(rounds):
        for place, side in enumerate(sides):
            gc.collect()
            start = time.process_time()
            side()
            times[place] = min(times[place], time.process_time() - start)
    return times


class Pieces(httpx.SyncByteStream):
    """The stream as a network hands it over: pieces of one size, whatever the frames are."""

    def __init__(self, data: bytes, size: int) -> None:
        self._pieces = [data[at : at + size] for at in range(0, len(data), size)]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._pieces)


def stream_figures() -> list[Figure]:
    delta = 'event: assistant.delta\ndata: {"message_id": "msg_1", "delta": "word %d, ", "session_id": "case1"}\n\n'
    usual = "".join(delta % number for number in range(FRAMES)).encode()
    frame = len(delta % 10_000)
    figures = []
    for name, size in (("frame by frame", frame), ("pieces of 4 KiB", 4096), ("pieces of 64 KiB", 65_536)):
        data = usual if size != frame else (delta % 10_000).encode() * FRAMES
        pieces = Pieces(data, size)

        def answer(pieces: Pieces = pieces) -> httpx.Response:
            return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=pieces)

        def ours(answer: Callable[[], httpx.Response] = answer) -> None:
            decoder = Decoder(
                max_line_bytes=1 << 20, max_frame_bytes=1 << 20, max_stream_bytes=1 << 26, max_events=None
            )
            count = sum(len(decoder.feed(piece)) for piece in answer().iter_raw())
            expect(count + len(decoder.close()), FRAMES)

        def theirs(answer: Callable[[], httpx.Response] = answer) -> None:
            expect(sum(1 for _ in EventSource(answer()).iter_sse()), FRAMES)

        mine, others = best(ours, theirs)
        figures.append(
            Figure(
                name=f"SSE decoder beside httpx-sse, {name}",
                ours=FRAMES / mine,
                theirs=FRAMES / others,
                unit="frames/s",
                value=others / mine,
                limit=1.5,
                at_least=True,
            )
        )
    return figures


def mapping_figure() -> Figure:
    row = load_operations()["session_create"]
    endpoint = endpoints(1)[0]
    values: dict[str, Any] = {
        "body": {
            "id": "support-case-example-2030",
            "title": "Support case example 2030",
            "model": "hermes-agent",
            "system_prompt": "Keep the transcript factual and concise.",
        }
    }
    text = json.dumps(values)
    call = Call(
        action_id=ActionId("act_1"),
        capability_id=CapabilityId("cap:hermes_agent:e0000:session_create"),
        input=values,
        actor=Actor(principal_id=PrincipalId("agent:a"), kind="agent", tenant_id=TenantId("t"), issuer="bench"),
        idempotency_key=IdempotencyKey("key-1"),
        deadline_ms=1_893_456_000_000,
    )
    checked, prebuilt = operation_validator(row.input), Draft202012Validator(operation_schema(row.input))

    def ours() -> None:
        for _ in range(500):
            expect(checked.violations(values), [])
            map_call(operation=row, endpoint=endpoint, call=call)

    def theirs() -> None:
        for _ in range(500):
            expect(list(prebuilt.iter_errors(json.loads(text))), [])

    mine, others = best(ours, theirs)
    return Figure(
        name="mapping and schema check of session_create beside json.loads and one validator run",
        ours=mine / 500 * 1e6,
        theirs=others / 500 * 1e6,
        unit="µs",
        value=mine / others,
        limit=5,
    )


def endpoints(count: int) -> list[Endpoint]:
    return [
        Endpoint(id=EndpointId(f"e{number:04}"), base_url=f"http://127.0.0.1:{9000 + number}/", key=Secret("k" * 32))
        for number in range(count)
    ]


def connector(count: int) -> HermesConnector:
    return HermesConnector(endpoints(count), clock=SystemClock(), faults=NoFaults())


def repeated(side: Callable[[], object], times: int) -> Callable[[], object]:
    return lambda: [side() for _ in range(times)] and None


def catalogue_figures() -> list[Figure]:
    offers = {count: connector(count).offers() for count in (FEW, MANY)}
    catalogs = {count: Catalog(of) for count, of in offers.items()}

    def built(count: int) -> Callable[[], object]:
        return lambda: Catalog(offers[count])

    def told(count: int) -> Callable[[], object]:
        # One after the other and none kept, as a caller reads page after page.
        return lambda: sum(len(published.wire()) for published in Catalog(offers[count]))

    def asked(count: int) -> Callable[[], object]:
        # A text that rows say, one that ids say, one across both, one of a single endpoint, one that nothing says.
        texts = ("session", "e00", "hermes_agent:e0007:session", "cap:hermes_agent:e0042:", "nothing of the kind")
        return lambda: [catalogs[count].page(tenant_id=None, text=text, limit=20) for text in texts]

    figures = []
    for name, unit, side, limit, rounds, times in (
        (f"catalogue built, {MANY} endpoints beside {FEW}", "ms", built, 25, ROUNDS, MANY // FEW),
        (f"catalogue built and every capability told, {MANY} endpoints beside {FEW}", "ms", told, 25, 3, MANY // FEW),
        (f"first page of 20 of five texts, {MANY} endpoints beside {FEW}", "ms", asked, 3, ROUNDS, 1),
    ):
        # The small side is repeated until both take as long: a short one would find the quiet moments of a machine.
        many, few = best(side(MANY), repeated(side(FEW), times), rounds=rounds)
        few /= times
        figures.append(Figure(name=name, ours=many * 1e3, theirs=few * 1e3, unit=unit, value=many / few, limit=limit))
    return figures


def memory_figure() -> Figure:
    count = 200
    list(Catalog(connector(1).offers()))  # what is shared
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    made = connector(count)
    catalog = Catalog(made.offers())
    shown = sum(1 for _ in catalog)
    gc.collect()
    kib = (tracemalloc.get_traced_memory()[0] - before) / count / 1024
    tracemalloc.stop()
    expect(shown, len(catalog))
    return Figure(
        name="memory of one endpoint: clients, offers, catalogue, kept capabilities",
        ours=kib,
        theirs=None,
        unit="KiB",
        value=kib,
        limit=60,
    )


def table(figures: Sequence[Figure]) -> str:
    lines = ["| what | ours | beside | ratio or value | limit | |", "|---|--:|--:|--:|--:|---|"]
    for figure in figures:
        beside = "" if figure.theirs is None else f"{figure.theirs:,.2f}"
        bound = f"{'≥' if figure.at_least else '≤'} {figure.limit:g}"
        held = "holds" if figure.holds else "MISSED"
        lines.append(
            f"| {figure.name} | {figure.ours:,.2f} {figure.unit} | {beside} | {figure.value:.2f} | {bound} | {held} |"
        )
    return "\n".join(lines)


def main() -> int:
    figures = [*stream_figures(), mapping_figure(), *catalogue_figures(), memory_figure()]
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "operations": len(load_operations())}
    sys.stderr.write(table(figures) + "\n")
    told = [vars(figure) | {"holds": figure.holds} for figure in figures]
    sys.stdout.write(json.dumps({"machine": machine, "figures": told}, indent=2) + "\n")
    return 0 if all(figure.holds for figure in figures) else 1


if __name__ == "__main__":
    raise SystemExit(main())
