"""What is durably known of one run: the binding of an Action ID, and its changes by compare-and-set.

Ids, counts, times, states and hashes, never a run's text: a binding stays, and text must be able to go (design D19,
D23). Status terminal: completed, failed, cancelled, outcome_unknown. Source: connector contract §18.2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Final, Literal, Self

from aip_hermes.contract.handler import JsonObject, State
from aip_hermes.hermes.failures import OperatorStateFailed
from aip_hermes.ids import ActionId
from aip_hermes.wire import sha256_hex

__all__ = ["MAX_COMMANDS", "Binding", "Bindings", "Claim", "Command", "CommandState", "RunState"]

NAMESPACE: Final = "aip.connector.hermes_agent.operator_runs.v1"
MAX_COMMANDS: Final = 256
_MAX_TRIES: Final = 32
_MAX_PLAIN: Final = 512

RunState = Literal[
    "starting", "running", "waiting_for_approval", "completed", "failed", "cancelled", "cancelling", "outcome_unknown"
]
CommandState = Literal["claimed", "applied", "rejected", "outcome_unknown"]

_TERMINAL: Final = frozenset({"completed", "failed", "cancelled", "outcome_unknown"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """Who starts the run. instance_id: of the process. Times: Unix milliseconds."""

    claim_id: str
    instance_id: str
    claimed_at: int
    expires_at: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """One answer to an approval, by the action that gives it.

    generation: which question of the run it answers. asked_at: the run's own time of the question, to tell it from the
    next one; None where the endpoint says none.
    """

    action_id: str
    choice: str
    generation: int
    state: CommandState
    instance_id: str
    claimed_at: int
    asked_at: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Binding:
    """One run. session_id: of the run's transcript. next_sequence: events published so far. pending_approval: ids and a
    hash of what the run asks. output_sha256: of what the endpoint said of the run's end. error: `{code, message}` of a
    failure."""

    action_id: str
    request_fingerprint: str
    endpoint_id: str
    principal_id: str
    session_id: str
    created_at: int
    updated_at: int
    run_id: str | None = None
    start_claim: Claim | None = None
    delegation_id: str | None = None
    parent_action_id: str | None = None
    status: RunState = "starting"
    cancel_requested: bool = False
    last_event: str | None = None
    next_sequence: int = 0
    approval_generation: int = 0
    approval_commands: tuple[Command, ...] = field(default=())
    pending_approval: JsonObject | None = None
    output_sha256: str | None = None
    error: JsonObject | None = None

    @property
    def terminal(self) -> bool:
        """Nothing changes any more."""
        return self.status in _TERMINAL

    def command_of(self, action_id: str) -> Command | None:
        """Return the answer that an action gives."""
        return next((command for command in self.approval_commands if command.action_id == action_id), None)

    def answered(self, command: Command) -> Binding:
        """Return the binding with the action's command put in, or in place of the earlier one."""
        others = tuple(each for each in self.approval_commands if each.action_id != command.action_id)
        return replace(self, approval_commands=(*others, command))

    def to_json(self) -> JsonObject:
        """Return the stored form."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: JsonObject) -> Self:
        """Read the stored form. Raises TypeError for one of another shape."""
        known = {each.name for each in fields(cls)}
        members: dict[str, Any] = {name: member for name, member in value.items() if name in known}
        if members.get("start_claim") is not None:
            members["start_claim"] = Claim(**members["start_claim"])
        members["approval_commands"] = tuple(Command(**each) for each in members.get("approval_commands", ()))
        return cls(**members)


class Bindings:
    """The bindings of one tenant."""

    def __init__(self, state: State, *, now_ms: Callable[[], int]) -> None:
        self._state = state
        self._now_ms = now_ms

    async def read(self, action_id: ActionId | str) -> Binding | None:
        """Return the binding of an action, or None. Raises: ActionFailed of the store."""
        found = await self._state.read(_key(action_id))
        return None if found is None else Binding.from_json(found[0])

    async def create(self, binding: Binding) -> bool:
        """Store a first binding; False where there is one already. Raises: ActionFailed of the store."""
        made = await self._state.compare_and_set(_key(binding.action_id), expected=None, value=binding.to_json())
        return made is not None

    async def change(self, action_id: str, change: Callable[[Binding], Binding | None]) -> tuple[Binding, bool]:
        """Apply a change to the newest binding, again where somebody else was faster.

        change: None leaves the binding as it is. Returns the binding, and whether it was changed.
        Raises: OperatorStateFailed after 32 tries or without a binding; ActionFailed of the store.
        """
        key = _key(action_id)
        for _ in range(_MAX_TRIES):
            found = await self._state.read(key)
            if found is None:
                break
            stored, version = found
            binding = Binding.from_json(stored)
            changed = change(binding)
            if changed is None:
                return binding, False
            changed = replace(changed, updated_at=self._now_ms())
            if await self._state.compare_and_set(key, expected=version, value=changed.to_json()) is not None:
                return changed, True
        raise OperatorStateFailed(f"the binding of the run of action {action_id} could not be changed")


def _key(action_id: str) -> str:
    # An Action ID may be longer than a key, or hold what a key may not.
    plain = len(action_id) <= _MAX_PLAIN and "\0" not in action_id
    return f"{NAMESPACE}:{action_id if plain else 'sha256:' + sha256_hex(action_id)}"
