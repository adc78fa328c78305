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


@object_type("test-fleeting", cached_seconds=10)
class Fleeting(StoredObject, frozen=True, kw_only=True):
    """Remembered for ten seconds."""


@object_type("test-uncached", cached_seconds=0)
class Uncached(StoredObject, frozen=True, kw_only=True):
    """Never remembered."""


@object_type("test-sought", absent_seconds=10)
class Sought(StoredObject, frozen=True, kw_only=True):
    """Its absence is remembered for ten seconds."""


@object_type("test-packed", compressed=False)
class Packed(StoredObject, frozen=True, kw_only=True):
    """Not made smaller by its envelope."""

    data: bytes
