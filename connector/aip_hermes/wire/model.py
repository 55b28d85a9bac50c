"""What every AIP object shares: presence, strictness, rules, and the lenient reading of replies.

Presence follows from how a field is declared, so it is written once:

    x: T                                  R    always there, always written
    x: T | None = None                    O    missing or null means absent; left out when absent
    x: list[T] = absent_list()            L    missing means []; null is refused; left out when empty
    x: list[T]                            RL   always there, `[]` is written
    x: dict[str, str] = absent_links()    M    as L, for an object; keys are written in alphabetical order
    x: T = value                          D    missing means `value`; null is refused; always written

Source: wire model §1.1–1.5.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    Strict,
    ValidationError,
    ValidationInfo,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError
from pydantic_core.core_schema import SerializerFunctionWrapHandler

from aip_hermes.wire.times import parse_rfc3339

__all__ = [
    "U32",
    "U64",
    "Bool",
    "Json",
    "Links",
    "Time",
    "Wire",
    "absent_links",
    "absent_list",
    "breaks_rules_only",
    "build_models",
    "lenient",
    "violations",
]

_RULE = "aip_rule"
_LENIENT: dict[str, bool] = {"aip_lenient": True}
_MAX_VIOLATIONS = 16
_MAX_NAME = 64


def _checked_time(text: str) -> str:
    parse_rfc3339(text)
    return text


def _alphabetical(links: dict[str, str]) -> dict[str, str]:
    return dict(sorted(links.items()))


Bool = Annotated[bool, Strict()]
U64 = Annotated[int, Field(strict=True, ge=0, le=2**64 - 1)]
U32 = Annotated[int, Field(strict=True, ge=0, le=2**32 - 1)]
Json = Any
"""Any JSON value, passed through as it came."""
Time = Annotated[str, AfterValidator(_checked_time)]
"""RFC 3339 text, kept as written; `parse_rfc3339` reads it."""
Links = Annotated[dict[str, str], AfterValidator(_alphabetical)]


def absent_list() -> Any:
    """Declare an L field."""
    return Field(default_factory=list)


def absent_links() -> Any:
    """Declare an M field."""
    return Field(default_factory=dict)


class Wire(BaseModel):
    """An AIP object. Frozen; unknown members are refused unless it is read by `lenient`.

    A model is built when it is first used, because a command line uses few of them; see `build_models`.
    Raises pydantic's ValidationError; `violations` turns that into texts that name the place and never a value.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, validate_by_name=True, validate_by_alias=True, defer_build=True
    )

    _omit_none: ClassVar[frozenset[str]] = frozenset()
    _omit_empty: ClassVar[frozenset[str]] = frozenset()
    _names: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        named = {field.alias or name: field for name, field in cls.model_fields.items()}
        cls._names = frozenset(named) | frozenset(cls.model_fields)
        cls._omit_none = frozenset(n for n, f in named.items() if not f.is_required() and f.default is None)
        cls._omit_empty = frozenset(n for n, f in named.items() if f.default_factory in (list, dict))

    def broken_rules(self) -> Iterator[str]:
        """Yield what the protocol's own rules forbid here, beyond types. Source: wire model §9.1."""
        yield from ()

    def wire(self) -> dict[str, Any]:
        """Return the JSON object, members in their published order."""
        return self.model_dump(mode="json", by_alias=True)

    @model_validator(mode="before")
    @classmethod
    def _ignore_unknown(cls, value: Any, info: ValidationInfo) -> Any:
        if info.context is _LENIENT and isinstance(value, dict) and cls.model_config.get("extra") == "forbid":
            return {name: member for name, member in value.items() if name in cls._names}
        return value

    @model_validator(mode="after")
    def _keep_rules(self, info: ValidationInfo) -> Self:
        if info.context is not _LENIENT:
            for problem in self.broken_rules():
                raise PydanticCustomError(_RULE, "{problem}", {"problem": problem})
        return self

    @model_serializer(mode="wrap")
    def _write(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        raw: dict[str, Any] = handler(self)
        return {
            name: value
            for name, value in raw.items()
            if not (value is None and name in self._omit_none) and (value or name not in self._omit_empty)
        }


_W = TypeVar("_W", bound=Wire)


def build_models() -> None:
    """Build every model that is not built yet: what a server does once, before threads and requests use them."""
    pending: list[type[Wire]] = [Wire]
    while pending:
        model = pending.pop()
        pending += model.__subclasses__()
        model.model_rebuild()


def lenient(model: type[_W], value: object) -> _W:
    """Read a reply as a client does: unknown members are dropped at every level, the protocol's rules are not asked.

    Types and required members still hold.

    Raises: ValidationError.
    """
    return model.model_validate(value, context=_LENIENT)


def violations(error: ValidationError) -> list[str]:
    """Return at most 16 texts `place: what is wrong`, none of which contains a value of the input."""
    found = []
    for problem in error.errors(include_url=False, include_input=False)[:_MAX_VIOLATIONS]:
        place = ".".join(str(part)[:_MAX_NAME] for part in problem["loc"]) or "(root)"
        found.append(f"{place}: {problem['msg']}")
    return found


def breaks_rules_only(error: ValidationError) -> bool:
    """Tell a well-formed object that breaks a protocol rule (`action.invalid_input`) from one that does not decode."""
    return all(problem["type"] == _RULE for problem in error.errors(include_url=False, include_input=False))
