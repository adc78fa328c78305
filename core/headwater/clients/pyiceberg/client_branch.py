"""The branch that a catalog's properties name. Catalogs of one process that name the same store share it, with its cache and queues."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyiceberg.utils.config import Config

from headwater.errors import RefusedError
from headwater.settings import Settings
from headwater.store import Store, open_store

_STORE, _REALM, _CATALOG, _BRANCH, _AUTHOR = "store", "realm", "catalog", "branch", "author"
_DEFAULT_BRANCH = "-"  # as in every reference
OWN_PROPERTIES = frozenset({_STORE, _REALM, _CATALOG, _BRANCH, _AUTHOR})
"""What says where a catalog is. Never handed on to what reads and writes files: the URL of a store may hold a password."""


@dataclass(frozen=True, slots=True)
class BranchAddress:
    """The address of a branch, and the author of commits.

    store         a URL; None: the setting ``HEADWATER_STORE``, or its default
    reference     a branch, to read and write; any other reference, to read; None: the catalog's default branch
    author        noted in commits; empty: nobody
    """

    store: str | None
    realm: str
    catalog: str
    reference: str | None = None
    author: str = ""

    @classmethod
    def from_properties(cls, name: str, properties: Mapping[str, str]) -> BranchAddress:
        """Read the address from a catalog's properties; raises RefusedError that names the missing ones."""
        missing = [required for required in (_REALM, _CATALOG) if not properties.get(required)]
        if missing:
            raise RefusedError(f"catalog {name!r} of pyiceberg needs the properties {' and '.join(missing)}: name them")
        return cls(
            store=properties.get(_STORE) or None,
            realm=properties[_REALM],
            catalog=properties[_CATALOG],
            reference=None if properties.get(_BRANCH) in (None, "", _DEFAULT_BRANCH) else properties[_BRANCH],
            author=properties.get(_AUTHOR, ""),
        )


def with_configured(name: str, properties: Mapping[str, str]) -> dict[str, str]:
    """The properties, with defaults from pyiceberg's configuration for a catalog of this name.

    pyiceberg hands a catalog that it finds by ``py-catalog-impl`` only what its caller named.
    """
    configured = Config().get_catalog_config(name) or {}
    return {**{key: value for key, value in configured.items() if isinstance(value, str)}, **properties}


def shared_store(url: str | None) -> tuple[Store, Callable[[], None]]:
    """This process's store behind a URL, with its release function; the last release closes the store.

    raises        what ``headwater.open_store`` raises
    """
    settings = Settings.from_environment(store=url)
    with _shared.lock:
        held = _shared.stores.get(settings.store)
        if held is None:
            held = _shared.stores[settings.store] = _Held(open_store(settings.store, settings=settings, create=False))
        held.holders += 1
    return held.store, lambda: _let_go(settings.store, held)


@dataclass(slots=True)
class _Held:
    store: Store
    holders: int = 0


class _Shared:
    """The open stores of this process by URL."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.stores: dict[str, _Held] = {}

    def after_fork(self) -> None:
        self.lock = threading.Lock()  # another thread may have held it; stores themselves know of forks

    def close(self) -> None:
        with self.lock:
            for held in self.stores.values():
                held.store.close()
            self.stores.clear()


def _let_go(url: str, held: _Held) -> None:
    with _shared.lock:
        held.holders -= 1
        if held.holders == 0 and _shared.stores.get(url) is held:
            del _shared.stores[url]
            held.store.close()


_shared = _Shared()
os.register_at_fork(after_in_child=_shared.after_fork)
atexit.register(_shared.close)
