"""What is wrong with an object, in the words of a real server."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

__all__ = ["OMITTED", "UNCHECKED", "Cause", "InvalidCrd"]

OMITTED = object()
"""Stands for a value that is not shown."""

_BLOCKING = {
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
}


@dataclass(frozen=True, slots=True)
class Cause:
    """One member of ``details.causes`` of a Status."""

    reason: str
    message: str
    field: str

    @property
    def is_blocking(self) -> bool:
        """Whether rules are left unchecked because of it."""
        return self.reason in _BLOCKING

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"

    @classmethod
    def required(cls, field: str, detail: str = "") -> Cause:
        return cls("FieldValueRequired", _sentence("Required value", OMITTED, detail), field)

    @classmethod
    def invalid(cls, field: str, value: Any, detail: str) -> Cause:
        return cls("FieldValueInvalid", _sentence("Invalid value", value, detail), field)

    @classmethod
    def type_invalid(cls, field: str, value: Any, detail: str) -> Cause:
        return cls("FieldValueTypeInvalid", _sentence("Invalid value", value, detail), field)

    @classmethod
    def forbidden(cls, field: str, detail: str) -> Cause:
        return cls("FieldValueForbidden", _sentence("Forbidden", OMITTED, detail), field)

    @classmethod
    def duplicate(cls, field: str, value: Any) -> Cause:
        return cls("FieldValueDuplicate", _sentence("Duplicate value", value, ""), field)

    @classmethod
    def not_supported(cls, field: str, value: Any, choices: Iterable[Any]) -> Cause:
        shown = ", ".join(json.dumps(choice if isinstance(choice, str) else json.dumps(choice)) for choice in choices)
        return cls("FieldValueNotSupported", _sentence("Unsupported value", value, f"supported values: {shown}"), field)

    @classmethod
    def too_long(cls, field: str, most: int) -> Cause:
        return cls("FieldValueTooLong", _sentence("Too long", OMITTED, f"may not be more than {most} bytes"), field)

    @classmethod
    def too_many(cls, field: str, count: int, most: int) -> Cause:
        return cls("FieldValueTooMany", _sentence("Too many", count, f"must have at most {most} items"), field)


class InvalidCrd(Exception):
    """A definition that a real server would not take, or that asks for something that is not evaluated here."""

    def __init__(self, causes: Iterable[Cause]) -> None:
        self.causes = tuple(causes)
        super().__init__("; ".join(map(str, self.causes)))


def _sentence(start: str, value: Any, detail: str) -> str:
    shown = [] if value is OMITTED else [json.dumps(value, separators=(",", ":"), ensure_ascii=False)]
    return ": ".join([start, *shown, *([detail] if detail else [])])


UNCHECKED = Cause.invalid(
    "<nil>",
    None,
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
)
