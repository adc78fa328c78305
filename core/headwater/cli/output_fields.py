"""What a view of a result is made of: fields with their JSON names and column heads, and how plain values are written.

Ids are 16 hex digits, times RFC 3339 in UTC, durations as in manifests (``24h``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from headwater.clock import Micros, as_text
from headwater.settings import duration_text
from headwater.store import ObjectId, id_text

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ViewField(Generic[T]):
    """One field of a result.

    value         makes plain data of it
    header        of its column in a table; empty: it is in no table
    inside        what stands in an object or in the objects of a list: the way to it, such as ``.age`` or ``[].name``, and its meaning
    """

    name: str
    about: str
    value: Callable[[T], Any]
    header: str = ""
    inside: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResultView(Generic[T]):
    """One kind of result."""

    name: str
    plural: str
    fields: tuple[ViewField[T], ...]

    def with_columns(self, **headers: str) -> ResultView[T]:
        """The same result with other columns in its table: the head of each, by the name of its field."""
        return replace(self, fields=tuple(replace(field, header=headers.get(field.name, "")) for field in self.fields))

    def data(self, item: T) -> dict[str, Any]:
        """The result as plain data: every field, in the order of the documentation."""
        return {field.name: field.value(item) for field in self.fields}


def identifier(number: ObjectId | int | None) -> str | None:
    return None if number is None else id_text(ObjectId(number))


def time_field(micros: Micros | int | None) -> str | None:
    return None if micros is None else as_text(micros)


def time_after(micros: Micros | None) -> str | None:
    """The first full second that is not before: what waits for a time is over at the one that is shown."""
    return None if micros is None else as_text(micros + 999_999)


def duration_field(seconds: float | None) -> str | None:
    return None if seconds is None else duration_text(seconds)
