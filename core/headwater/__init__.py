"""Headwater keeps the catalogs of a data lakehouse in any database that can compare-and-swap one row, and maintains them."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwater.settings import Settings
    from headwater.store import Store, open_store

_HOMES = {
    "headwater.settings": ("Settings",),
    "headwater.store": ("Store", "open_store"),
}
"""Where each name is. It is imported when it is asked for: help of the command line, and Ctrl-C in its first second, wait for none."""

__version__: str
__all__ = ["Settings", "Store", "__version__", "open_store"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("headwater")
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
