"""The error tree. A class answers what the caller may do; the message is for a person.

    AipError
    ├── RequestRefused    the request never became an action: answered as an `error` envelope, nothing is stored
    └── ActionFailed      the action ends as a failed result (design D1)
        └── ProviderFailed    a connector's own failure, code `connector.<connector>.…`

Rooms declare their codes next to the rule that raises them. A code belongs to one class; a second claim stops the
import.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

__all__ = ["ActionFailed", "AipError", "ErrorCategory", "ProviderFailed", "RequestRefused"]

ErrorCategory = Literal["temporary", "permanent", "auth", "policy", "economic", "connector", "transport"]

_CLASS_OF_CODE: dict[str, type[AipError]] = {}


class AipError(Exception):
    """Root of the tree.

    code, category: as on the wire. retryable: the same submission may be sent again. uncertain: the provider's effect
    may have happened. outside_request: the cause is no property of the request (credential, connection, busy), so the
    idempotency key is free again (design D2). details: JSON, already free of credentials and transcript text.
    output: what there is of an output, kept with a failed result (a stream that broke off). ends: work at the provider
    that the failure shows to be over, see contract.handler.Answer.
    """

    code: ClassVar[str] = ""
    category: ClassVar[ErrorCategory] = "permanent"
    default_retryable: ClassVar[bool] = False
    outside_request: ClassVar[bool] = False
    component: ClassVar[str] = "aip-runtime"

    def __init_subclass__(
        cls,
        *,
        code: str | None = None,
        category: ErrorCategory | None = None,
        retryable: bool | None = None,
        outside_request: bool | None = None,
        component: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init_subclass__(**kwargs)
        if code is not None:
            holder = _CLASS_OF_CODE.setdefault(code, cls)
            if holder is not cls and (holder.__module__, holder.__qualname__) != (cls.__module__, cls.__qualname__):
                raise TypeError(f"code {code} already belongs to {holder.__qualname__}")
            cls.code = code
        if category is not None:
            cls.category = category
        if retryable is not None:
            cls.default_retryable = retryable
        if outside_request is not None:
            cls.outside_request = outside_request
        if component is not None:
            cls.component = component

    def __init__(
        self,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        retryable: bool | None = None,
        retry_after_ms: int | None = None,
        uncertain: bool = False,
        output: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details: dict[str, Any] = dict(details or {})
        self.retryable = type(self).default_retryable if retryable is None else retryable
        self.retry_after_ms = retry_after_ms
        self.uncertain = uncertain
        self.output = None if output is None else dict(output)
        self.ends: str | None = None

    @property
    def frees_key(self) -> bool:
        """Whether the idempotency key and the Action ID are free again after this failure (design D2, D3)."""
        return not self.uncertain and (self.retryable or self.outside_request)


class RequestRefused(AipError):
    """The request never became an action."""


class ActionFailed(AipError):
    """The action ends, or would end, as a failed result."""


class ProviderFailed(ActionFailed, category="connector"):
    """The connector or its provider failed."""
