"""The files of tables and views: where they may lie, and their metadata files, written before a commit and removed if it did not happen.

A place is judged by its text alone, before a byte of it is read; local files also by the links below the allowed location, of which
none is followed. No property of a table or view is used, so that none can choose the code, the address or the credentials by which
files are reached.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol
from uuid import UUID

import structlog

from headwater.catalogs import PURGING, ClaimOwner, ContentKey
from headwater.catalogs.known_metadata import own_name
from headwater.errors import ConflictError, RefusedError
from headwater.iceberg.filesystem import LakeStorage
from headwater.iceberg.property_rules import check_properties
from headwater.iceberg.table_places import (
    check_allowed,
    check_change,
    check_files_inside,
    stated_files,
    stated_places,
)
from headwater.iceberg_catalog.branch_session import BranchSession

_log = structlog.get_logger()
_METADATA_PATH = "write.metadata.path"
_NUMBERED = re.compile(r"(\d+)-[\w-]{36}(?:\.\w+)?\.metadata\.json")


class DocumentStorage(Protocol):
    """How metadata files are reached: ``headwater.iceberg.table_storage.TableStorage``, or what a client library is configured with."""

    def read_metadata(self, location: str) -> bytes:
        """Read the text of a metadata file, unpacked; raises RefusedError where it cannot be."""

    def write_new(self, location: str, data: bytes) -> None:
        """Write a new file; raises ConflictError or FileExistsError, and changes nothing, where another file has the name."""

    def delete(self, location: str) -> None:
        """Delete a file."""

    @property
    def lake(self) -> LakeStorage:
        """How walks through the files of tables reach the same storage."""


class LakeFiles:
    """The files of the tables, or of the views, of one catalog.

    noun          what they are, for messages
    own           properties that the owner of the process has configured: a table that has the same one chooses nothing by it
    """

    def __init__(self, session: BranchSession, storage: DocumentStorage, noun: str, *, own: Mapping[str, str]) -> None:
        self._noun = noun
        self._session = session
        self.storage = storage
        self._own = own

    @property
    def allowed(self) -> tuple[str, ...]:
        """The locations that the catalog allows: its base location, its allowed locations, and those of its imports."""
        return tuple(self._session.catalog.definition.places)

    def check_allowed(self, key: ContentKey, places: Iterable[str]) -> None:
        """Check that the catalog allows places, because a collector may one day delete files there; raises RefusedError."""
        check_allowed(places, self.allowed, of=str(key), catalog=self._session.name_of_catalog)

    def check_change(self, key: ContentKey, before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> None:
        """Check what a change brings: properties that choose nothing for readers, allowed places, files in the table's own places.

        before        None: the table or view is created
        raises        RefusedError
        """
        self.check_properties(key, after.get("properties"), None if before is None else before.get("properties"))
        check_change(before, after, self.allowed, of=str(key), catalog=self._session.name_of_catalog)

    def check_properties(self, key: ContentKey, properties: Any, before: Any = None) -> None:
        """Check that properties choose nothing of how files are reached; raises RefusedError that names them."""
        if isinstance(properties, Mapping):
            check_properties(
                properties, of=f"{self._noun} {key}", before=before if isinstance(before, Mapping) else None, own=self._own
            )

    def check_named_file(self, key: ContentKey, location: str) -> None:
        """Check a metadata file that a request names, before it is read: allowed, and in no place of another catalog's table.

        raises        RefusedError
        """
        self.check_allowed(key, [location])
        self._check_holders(key, [location], lambda owner: owner.catalog_id == self._session.id)

    def check_own_file(self, key: ContentKey, location: str, content_id: UUID) -> None:
        """Check a metadata file that a request names as the next version of a content: allowed, and in no place of another one.

        raises        RefusedError
        """
        self.check_allowed(key, [location])
        self._check_holders(
            key, [location], lambda owner: (owner.catalog_id, owner.content_id) == (self._session.id, content_id)
        )

    def check_named_document(self, key: ContentKey, location: str, document: Mapping[str, Any], uuid: UUID | None) -> None:
        """Check the document in such a file: its places and files are allowed, the file lies with it, and nothing is another table's.

        raises        RefusedError
        """
        places, files = stated_places(document), sorted(stated_files(document))
        self.check_properties(key, document.get("properties"))
        self.check_allowed(key, [*places, *files])
        check_files_inside([location], places, of=str(key))
        claims = self._session.claims
        owner = claims.find_by_uuid([uuid]).get(uuid) if uuid else None
        owner = owner or (claims.find_holders([places[0]]).get(places[0]) if places else None)
        mine = None if owner is None else (owner.catalog_id, owner.content_id)
        self._check_holders(key, [location, *files], lambda holder: (holder.catalog_id, holder.content_id) == mine)

    def _check_holders(self, key: ContentKey, files: Iterable[str], is_mine: Callable[[ClaimOwner], bool]) -> None:
        for file, owner in self._session.claims.find_holders(sorted(set(files))).items():
            if owner.catalog_id == PURGING:
                raise RefusedError(f"{key} cannot have {file}: what lies there is being purged")
            if not is_mine(owner):
                raise RefusedError(f"{key} cannot have {file}: it lies in a place of another table")

    def read_text(self, key: ContentKey, location: str) -> bytes:
        """Read the text of a metadata file; raises RefusedError, before a byte is read, where the catalog does not allow it."""
        self.check_allowed(key, [location])
        return self.storage.read_metadata(location)

    def new_file(self, document: Mapping[str, Any], *, after: str | None = None) -> str:
        """A new name for the metadata file of a version, in the form that clients know; no code that a table chooses is called.

        The name tells an import of this catalog that the file is not another writer's, even if its commit never happened.

        after         the file of the version before
        """
        named = document.get("properties")
        folder = named.get(_METADATA_PATH) if isinstance(named, Mapping) else None
        folder = folder or f"{str(document['location']).rstrip('/')}/metadata"
        match = None if after is None else _NUMBERED.fullmatch(after.rpartition("/")[2])
        return f"{folder.rstrip('/')}/{own_name(self._session.id, int(match[1]) + 1 if match else 0)}"

    def write_file(self, location: str, text: bytes) -> None:
        """Write a metadata file of a name that no other should have; what is there already stays as it is."""
        try:
            self.storage.write_new(location, text)
        except (ConflictError, FileExistsError):
            raise  # what is there is another's
        except BaseException:
            self.remove_files([location])
            raise

    def remove_files(self, locations: Iterable[str]) -> None:
        """Remove files again. Best effort: if one stays, its name shows an import that no commit has named it."""
        for location in locations:
            try:
                self.storage.delete(location)
            except Exception as fault:  # noqa: BLE001  whatever a driver raises; the commit's own error is what counts
                _log.debug("a metadata file of a commit that did not happen was left", location=location, fault=str(fault))
