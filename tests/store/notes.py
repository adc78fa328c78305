"""Object types for tests: one immutable, one updateable."""

from __future__ import annotations

from typing import Any

from headwater.store import StoredObject, object_type


@object_type("test-note")
class Note(StoredObject, frozen=True, kw_only=True):
    text: str = ""
    number: int = 0
    data: bytes = b""
    more: dict[str, Any] = {}


@object_type("test-counter", updateable=True)
class Counter(StoredObject, frozen=True, kw_only=True):
    count: int = 0
    data: bytes = b""
