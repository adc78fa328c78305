"""The context of every check of one realm: its scope, the names that are listed, and the references that exist."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from headwater.catalogs import CONTENT, ContentKey, reference_text
from headwater.catalogs.stored_metadata import piece_text
from headwater.clock import Micros
from headwater.errors import CorruptionError, HeadwaterError
from headwater.fsck.fsck_codes import FindingCode, FsckFinding
from headwater.fsck.object_walk import ObjectUse
from headwater.gc.retention import CollectionScope, ScopeEntry
from headwater.store import ObjectId, RealmReader, RealmStore, Reference, Store

_AT_ONCE = 500
_KEYS_SHOWN = 5


@dataclass(slots=True)
class FsckContext:
    """What every check of one realm starts from.

    listed        the names in the realm's lists; without the lists (``list_fault`` says why), the names that have rows
    references    the rows of those names, tombstones included
    unlisted      rows whose names stand in no list
    lost          ids of objects that were found unreadable, so that each is reported once
    apart         those of them that the check of the heads need not report
    """

    store: Store
    scope: CollectionScope
    now: Micros
    listed: Sequence[ScopeEntry]
    references: dict[str, Reference]
    unlisted: list[Reference]
    list_fault: str = ""
    lost: set[ObjectId] = field(default_factory=set)
    apart: set[ObjectId] = field(default_factory=set)

    @property
    def rows(self) -> RealmStore:
        return self.scope.rows

    @property
    def living(self) -> list[Reference]:
        """The references that point to a commit."""
        return [row for row in self.references.values() if row.deleted is None and row.pointer is not None]

    def finding(
        self,
        code: FindingCode,
        subject: str,
        message: str,
        repair: str,
        *,
        keys: Sequence[str] = (),
        target: str = "",
        is_intact: bool = False,
    ) -> FsckFinding:
        realm, told = self.rows.realm, tuple(keys)
        return FsckFinding(
            code=code,
            realm=realm,
            subject=subject,
            message=message,
            repair=repair,
            keys=told,
            target=target,
            is_intact=is_intact,
        )

    def reference_words(self, reference: str) -> str:
        """The name of a reference as people know it; its stored name where the lists of catalogs cannot be read."""
        try:
            return reference_text(self.rows, reference)
        except HeadwaterError:
            return repr(reference)


def open_context(store: Store, scope: CollectionScope) -> FsckContext:
    """Read a realm's references. A name is listed before its row is created, so the lists are read again for rows that they lack."""
    now = scope.rows.clock.now()
    fault = ""
    try:
        listed = scope.list_references()
    except HeadwaterError as unreadable:
        fault = str(unreadable)
        listed = [ScopeEntry(row.name, "/heads/" in row.name or "/tags/" in row.name) for row in scope.rows.scan_references()]
    references = _read(scope.rows, [entry.name for entry in listed])
    strange = [row.name for row in scope.rows.scan_references() if row.name not in references]
    if strange and not fault:
        names = {entry.name for entry in scope.list_references()}
        strange = [name for name in strange if name not in names]
    return FsckContext(store, scope, now, listed, references, list(_read(scope.rows, strange).values()), fault)


def use_text(use: ObjectUse) -> str:
    """Describe where a reference holds an object: a content's key, a piece of its metadata, or the index and the key in it."""
    if use.of:
        what = f"{piece_text(use.key)} in the metadata" if use.key else "a part of the metadata"
        try:
            return f"{what} of {ContentKey.from_index(use.of)}"
        except CorruptionError:
            return f"{what} of {use.of.hex()}"
    if not use.key:
        return f"a part of index {use.index!r}" if use.index else "a commit beneath it"
    if use.index == CONTENT:
        try:
            return str(ContentKey.from_index(use.key))
        except CorruptionError:
            pass
    try:
        text = use.key.decode()
    except UnicodeDecodeError:
        text = use.key.hex()
    return f"{use.index}: {text if text.isprintable() else use.key.hex()}"


def keys_text(keys: Sequence[str]) -> str:
    """Name a few keys in a sentence."""
    shown = ", ".join(keys[:_KEYS_SHOWN])
    return shown + (f" and {len(keys) - _KEYS_SHOWN} more" if len(keys) > _KEYS_SHOWN else "")


def _read(rows: RealmReader, names: Sequence[str]) -> dict[str, Reference]:
    found: dict[str, Reference] = {}
    for start in range(0, len(names), _AT_ONCE):
        some = names[start : start + _AT_ONCE]
        found.update((name, row) for name, row in zip(some, rows.find_rows(some), strict=True) if row is not None)
    return found
