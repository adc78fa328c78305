"""References that an extension keeps in realms: declared by its package, listed in each realm, kept by every collection.

A package declares what it keeps by entry points of the group ``headwater.references``, each a ``DeclaredReference`` or several. It makes
a reference with ``add_reference``, which lists the name first: in the index ``references`` of the realm's reference ``catalogs``, or of
``realms`` in the system realm. The value points to an object ``listed-reference`` with all that a collection has to know, so the package
need not be installed where collections run; only the types of the objects that it stores have to be known there.

Release 0.1.0 enumerates references by their names alone, and would collect what these hold. It does not know the type
``listed-reference`` either, which the head of ``catalogs`` reaches: so its collection, export and restoration of such a realm refuse.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from headwater.clock import Micros
from headwater.commits.commit import Head, Transaction, read_head
from headwater.commits.committer import commit_change
from headwater.commits.ref_updates import create_reference_at, delete_moving_reference
from headwater.errors import CorruptionError, NotFoundError, RefusedError, SwapConflictError
from headwater.index import IndexValue
from headwater.store import SYSTEM_KEY, ObjectId, RealmReader, RealmStore, Reference, StoredObject, object_type
from headwater.store.store_identity import raise_least_release
from headwater.store.stored_objects import claim_of, entry_points_of

REFERENCES_GROUP = "headwater.references"
LISTED: Final = "references"
"""The index that lists them."""
OWN_REFERENCES: Final = {
    False: (
        "root",
        "catalogs",
        "principals",
        "principal-roles",
        "grants",
        "policy-mappings",
        "claims",
        "pins",
        "file-tables",
        "file-marks",
        "file-places",
    ),
    True: ("realms", "tasks", "maintenance-runs"),
}
"""The fixed names of Headwater's own references, of users' realms (False) and the system realm (True). A new one needs a higher
``RELEASE``, see ``headwater.store.store_identity``."""
_OWN_PARTS = ("refs", "roles", "grants", "heads", "tags")
_LIST_REFERENCE = {False: "catalogs", True: "realms"}
_PATTERN = re.compile(r"(?:cat/\*/)?[a-z][a-z0-9-]{0,63}(?:/[a-z][a-z0-9-]{0,63})*")
_CATALOG_ID = "[0-9a-f]{16}"
_IN_CATALOG = "cat/*/"
_TRIES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredReference:
    """A named pointer that an extension keeps. Its commits are made by ``commit_change``; every collection keeps what they hold.

    pattern       its name, such as ``widgets``, or ``cat/*/widgets`` for one in each catalog, where ``*`` stands for the catalog's id.
                  One of a catalog goes when the catalog is purged
    text          what it holds, in a few words
    is_system     it belongs into the system realm; otherwise into the realms of users
    commits       how many commits of its history stay at least; None: as many as of Headwater's own references
    raises        ValueError for a name that cannot be one, or that Headwater has itself
    """

    pattern: str
    text: str
    is_system: bool = False
    commits: int | None = None

    def __post_init__(self) -> None:
        first, _, rest = self.pattern.removeprefix(_IN_CATALOG).partition("/")
        in_catalog = self.pattern.startswith(_IN_CATALOG)
        if not _PATTERN.fullmatch(self.pattern) or (in_catalog and self.is_system):
            raise ValueError(f"{self.pattern!r} is not a name for references of an extension: see DeclaredReference")
        if (
            (in_catalog and first in _OWN_PARTS)
            or self.pattern in OWN_REFERENCES[self.is_system]
            or (first == "files" and rest)
        ):
            raise ValueError(f"{self.pattern!r} is the name of a reference that Headwater has itself")

    def covers(self, name: str) -> bool:
        return re.fullmatch(re.escape(self.pattern).replace(r"\*", _CATALOG_ID), name) is not None


@object_type("listed-reference")
class ListedReferenceKind(StoredObject, frozen=True, kw_only=True):
    """What a collection has to know of a listed reference, see ``DeclaredReference``.

    package       which package declared it, for people
    """

    text: str = ""
    package: str = ""
    commits: int | None = None


@dataclass(frozen=True, slots=True)
class ListedExtension:
    """An entry of the list: a name that is, was, or is about to be a reference.

    listed        when it was listed last
    """

    name: str
    listed: Micros
    kind: ListedReferenceKind


def add_reference(
    rows: RealmStore,
    name: str,
    at: ObjectId | None = None,
    *,
    among: Iterable[str] = (),
    fence: Callable[[], None] | None = None,
) -> Reference:
    """Create a declared reference, or return it if it is there. From then on only releases that keep it may maintain the store.

    at            the commit that it begins with; None: without one
    among         names of references in whose kept history ``at`` may be
    raises        RefusedError for a name that no installed package declares, and as ``create_reference_at`` does
    """
    is_system = rows.key == SYSTEM_KEY
    found = declared_reference(name, is_system=is_system)
    if found is None:
        raise RefusedError(
            f"no installed package declares a reference {name!r} for {rows.realm!r}: add it to the package's entry points of the group"
            f" {REFERENCES_GROUP}"
        )
    declared, package = found
    # Before the name is listed: a collector of a lower number that has read the old one finds the new one after its flag is up.
    raise_least_release(rows.store)
    if is_system:
        rows.ensure_reference(_LIST_REFERENCE[True])
    among = tuple(among)
    for _ in range(_TRIES):
        existing = rows.find_reference(name, fresh=True)
        if existing is not None and any(entry.name == name for entry in listed_extensions(rows)):
            return existing
        listed = _list_name(rows, name, declared, package, fence)
        if existing is not None:
            return existing  # made without being listed: now it is
        try:
            made = create_reference_at(rows, name, at, among=among)
        except SwapConflictError:
            continue  # another process made it just now
        if any(entry.name == name and entry.listed >= listed for entry in listed_extensions(rows)):
            return made
        # This process slept so long that the collector has released the name: list it again.
    raise SwapConflictError(f"reference {name!r} of realm {rows.realm!r} comes and goes: try again")


def remove_reference(rows: RealmStore, name: str, fence: Callable[[], None] | None = None) -> bool:
    """Delete a declared reference wherever it is at; its tombstone keeps what it held for the grace period. False: it is gone already."""
    return delete_moving_reference(rows, name, fence)


def listed_extensions(rows: RealmReader) -> list[ListedExtension]:
    """The listed references of extensions, by name, freshly read.

    raises        CorruptionError when the list cannot be read
    """
    try:
        return extensions_at(read_head(rows, _LIST_REFERENCE[rows.key == SYSTEM_KEY], fresh=True), rows)
    except NotFoundError:
        return []


def extensions_at(head: Head | None, rows: RealmReader) -> list[ListedExtension]:
    """The references of extensions that a commit lists: one of ``catalogs``, or of ``realms`` in the system realm."""
    entries = [] if head is None else list(head.index(LISTED).range())
    kinds = rows.read_many([value.object_id for _, value in entries if value.object_id is not None], ListedReferenceKind)
    if len(kinds) != len(entries) or None in kinds:
        raise CorruptionError(
            f"realm {rows.realm!r} lists a reference of an extension without saying what it is: run `headwater fsck`"
        )
    return [
        ListedExtension(bytes(key).decode(), Micros(int.from_bytes(value.data[:8], "big")), kind)
        for (key, value), kind in zip(entries, kinds, strict=True)
        if kind is not None
    ]


def release_listed(rows: RealmStore, name: str, *, older_than: Micros) -> bool:
    """Remove a name, whose row was removed, from the list. It stays while it has a row, and when it was listed since ``older_than``."""
    key = name.encode()

    def change(tx: Transaction) -> bool:
        value = tx.index(LISTED).get(key)
        if value is None or int.from_bytes(value.data[:8], "big") >= older_than or tx.reader.find_row(name) is not None:
            return False
        return tx.index(LISTED).remove(key)

    if all(entry.name != name for entry in listed_extensions(rows)):
        return False
    reference = _LIST_REFERENCE[rows.key == SYSTEM_KEY]
    return commit_change(rows, reference, change, message=f"release reference {name}").result


def declared_reference(name: str, *, is_system: bool) -> tuple[DeclaredReference, str] | None:
    """What installed packages declare of a name, with the package; None: nothing.

    raises        RefusedError when an entry point cannot be loaded, or is not a DeclaredReference
    """
    return next(
        (found for found in installed_declarations() if found[0].is_system == is_system and found[0].covers(name)),
        None,
    )


def catalog_extensions(rows: RealmReader, catalog_id: str) -> list[str]:
    """The listed references of extensions that belong to a catalog, and go with it."""
    return [entry.name for entry in listed_extensions(rows) if entry.name.startswith(f"cat/{catalog_id}/")]


@cache
def installed_declarations() -> Sequence[tuple[DeclaredReference, str]]:
    found: list[tuple[DeclaredReference, str]] = []
    for points in entry_points_of(REFERENCES_GROUP).values():
        for point in points:
            try:
                loaded = point.load()
            except Exception as fault:  # whatever a stranger's module raises while it is imported
                raise RefusedError(
                    f"the entry point {claim_of(point)} of the group {REFERENCES_GROUP} cannot be loaded: {type(fault).__name__}: {fault}"
                ) from fault
            several = (loaded,) if isinstance(loaded, DeclaredReference) else loaded
            if not isinstance(several, (tuple, list)) or not all(isinstance(each, DeclaredReference) for each in several):
                raise RefusedError(
                    f"the entry point {claim_of(point)} of the group {REFERENCES_GROUP} is not a DeclaredReference"
                )
            found += [(each, "" if point.dist is None else point.dist.name) for each in several]
    return tuple(found)


def _list_name(
    rows: RealmStore, name: str, declared: DeclaredReference, package: str, fence: Callable[[], None] | None
) -> Micros:
    kind = ListedReferenceKind(text=declared.text, package=package, commits=declared.commits)

    def change(tx: Transaction) -> Micros:
        tx.index(LISTED).put(name.encode(), IndexValue(tx.add_object(kind), tx.time.to_bytes(8, "big")))
        return tx.time

    reference = _LIST_REFERENCE[rows.key == SYSTEM_KEY]
    return commit_change(rows, reference, change, message=f"list reference {name}", fence=fence).result
