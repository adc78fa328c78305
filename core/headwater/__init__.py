"""Headwater keeps the catalogs of a data lakehouse in any database that can compare-and-swap one row, and maintains them."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwater.settings import Settings
    from headwater.store import Store, open_store

__all__ = ["Settings", "Store", "open_store"]

_HOMES = {"Settings": "headwater.settings", "Store": "headwater.store", "open_store": "headwater.store"}
"""Where each name is. It is imported when it is asked for: help, and Ctrl-C in the first second of a command, cannot wait for all."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
