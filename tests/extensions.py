"""A package of a third party that keeps references of its own: installed into a folder as pip would, for this process."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headwater.commits import REFERENCES_GROUP, Transaction, add_reference, commit_change, declared_references
from headwater.index import IndexValue
from headwater.store import ObjectId, RealmStore, StoredObject, object_type

__all__ = ["Widget", "add_widgets", "installed"]

_SOURCE = """
from headwater.commits import DeclaredReference

WIDGETS = (
    DeclaredReference(pattern="widgets", text="the widgets of a realm", commits=3),
    DeclaredReference(pattern="cat/*/widgets", text="the widgets of a catalog"),
    DeclaredReference(pattern="widgets", text="the widgets of the store", is_system=True),
)
"""


@object_type("test-widget")
class Widget(StoredObject, frozen=True, kw_only=True):
    text: str


@contextmanager
def installed(folder: Path) -> Iterator[None]:
    """Within the body a package declares the references ``widgets`` and ``cat/*/widgets``."""
    info = folder / "widgets-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: widgets\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{REFERENCES_GROUP}]\nwidgets = widget_extension:WIDGETS\n")
    (folder / "widget_extension.py").write_text(_SOURCE)
    sys.path.insert(0, str(folder))
    _forget()
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("widget_extension", None)
        _forget()


def _forget() -> None:
    importlib.invalidate_caches()
    declared_references.installed_declarations.cache_clear()


def add_widgets(rows: RealmStore, count: int, *, name: str = "widgets", make: bool = True) -> ObjectId:
    """Put so many widgets, each an object, into the reference, in one commit; returns the commit."""
    if make:
        add_reference(rows, name)

    def change(tx: Transaction) -> None:
        for number in range(count):
            tx.index("by-number").put(b"%d" % number, IndexValue(tx.add_object(Widget(text=f"widget {number}"))))

    done = commit_change(rows, name, change, message=f"put {count} widgets")
    assert done.commit_id is not None
    return done.commit_id
