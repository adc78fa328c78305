"""Values of declared types: the one place that lets msgspec convert to a type and decode into it.

msgspec builds what it knows of a struct at the struct's first use, and publishes it half-built (0.22, its newest release, still does):
a second thread that uses the struct in that moment reads null pointers, and the process dies of SIGSEGV. So nothing here uses a type
before it was built under one lock, and no child is forked while one is being built.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, overload

import msgspec

T = TypeVar("T")

_built: set[Any] = set()
_building = threading.RLock()
# A child that is forked in the middle of a build would keep the half-built type: nobody there goes on with it.
os.register_at_fork(before=_building.acquire, after_in_parent=_building.release, after_in_child=_building.release)


def build_type(kind: Any) -> None:
    """Build a type and all types inside it, so that every thread may use them from now on."""
    if kind not in _built:
        with _building:
            msgspec.msgpack.Decoder(kind)
            _built.add(kind)


@overload
def convert(value: Any, kind: type[T], *, strict: bool = True, builtin_types: Iterable[type] | None = None) -> T: ...
@overload
def convert(value: Any, kind: Any, *, strict: bool = True, builtin_types: Iterable[type] | None = None) -> Any: ...
def convert(value: Any, kind: Any, *, strict: bool = True, builtin_types: Iterable[type] | None = None) -> Any:
    """Convert plain values to a type, as ``msgspec.convert`` does; raises msgspec.ValidationError."""
    build_type(kind)
    return msgspec.convert(value, kind, strict=strict, builtin_types=builtin_types)


def json_decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    """Make a decoder of JSON that all threads may use."""
    build_type(kind)
    return msgspec.json.Decoder(kind)


@overload
def msgpack_decoder(
    kind: type[T], *, ext_hook: Callable[[int, memoryview], Any] | None = None
) -> msgspec.msgpack.Decoder[T]: ...
@overload
def msgpack_decoder(kind: Any, *, ext_hook: Callable[[int, memoryview], Any] | None = None) -> msgspec.msgpack.Decoder[Any]: ...
def msgpack_decoder(kind: Any, *, ext_hook: Callable[[int, memoryview], Any] | None = None) -> msgspec.msgpack.Decoder[Any]:
    """Make a decoder of MessagePack that all threads may use."""
    build_type(kind)
    return msgspec.msgpack.Decoder(kind, ext_hook=ext_hook)


def decode_json(text: bytes | str, kind: type[T]) -> T:
    """Decode JSON into a type; raises msgspec.DecodeError."""
    build_type(kind)
    return msgspec.json.decode(text, type=kind)


def decode_msgpack(data: bytes | memoryview, kind: type[T]) -> T:
    """Decode MessagePack into a type; raises msgspec.DecodeError."""
    build_type(kind)
    return msgspec.msgpack.decode(data, type=kind)
