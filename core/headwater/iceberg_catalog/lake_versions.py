"""The versions of tables and views: what stands at a key, its document, and the metadata file that a request names as another version.

Nothing is written here. A file that a request names is untrusted: its place is judged before a byte of it is read, its text before
anything that it says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar
from uuid import UUID

import msgspec

from headwater.catalogs import Content, ContentKey, ContentType, IcebergTable, IcebergView, TableClaim
from headwater.catalogs.content import content_digest
from headwater.errors import CorruptionError, RefusedError
from headwater.iceberg import is_same_place
from headwater.iceberg.plain_metadata import plain_metadata
from headwater.iceberg.table_places import check_files_inside, stated_places
from headwater.iceberg.table_storage import MissingFileError
from headwater.iceberg_catalog.branch_session import BranchSession, BranchState
from headwater.iceberg_catalog.lake_documents import Document, document_claim, document_uuid
from headwater.iceberg_catalog.lake_errors import NoSuchTableError, NoSuchViewError, dotted
from headwater.iceberg_catalog.lake_files import LakeFiles
from headwater.iceberg_catalog.lake_values import LoadedTable, LoadedView, decoded_document

C = TypeVar("C", bound=IcebergTable | IcebergView)
L = TypeVar("L", bound=LoadedTable | LoadedView)


@dataclass(frozen=True, slots=True)
class LakeKind(Generic[C, L]):
    """What tables and views differ in.

    missing       the error where there is none
    as_content    of a document, its metadata file and the content id
    check_text    pass if a text is sound metadata of one, or raise RefusedError with nothing of it; given the file, too
    """

    noun: str
    content: type[C]
    content_type: ContentType
    loaded: type[L]
    missing: type[NoSuchTableError] | type[NoSuchViewError]
    as_content: Callable[[Document, str, UUID | None], C]
    check_text: Callable[[bytes, str], object]


@dataclass(frozen=True, slots=True)
class PresentVersion(Generic[C, L]):
    """A table or view as it is before a change, its document decoded once."""

    stored: C
    loaded: L
    document: Document


class LakeVersions(Generic[C, L]):
    """The versions of the Iceberg tables, or of the Iceberg views, of a reference."""

    def __init__(self, kind: LakeKind[C, L], session: BranchSession, files: LakeFiles) -> None:
        self._kind = kind
        self._session = session
        self._files = files

    def as_content(self, document: Document, location: str, content_id: UUID | None) -> C:
        """The content for a document; ``location`` is that of its metadata file."""
        return self._kind.as_content(document, location, content_id)

    def present_version(self, state: BranchState, key: ContentKey, stored: Content | None) -> PresentVersion[C, L] | None:
        """What stands at a key, with its document; None where ``stored`` is nothing, or of another type."""
        if not isinstance(stored, self._kind.content):
            return None
        loaded = self._loaded(state, key, stored)
        return PresentVersion(stored, loaded, loaded.document)

    def read_named(self, key: ContentKey, location: str) -> tuple[bytes, Document]:
        """Read and check the metadata file that a request names; nothing is read where it is not allowed, nor anything that it names.

        returns       its text, and the text decoded
        """
        self._files.check_named_file(key, location)
        text, document = self._read_file(key, location)
        self._files.check_named_document(key, location, document, document_uuid(document))
        return text, document

    def read_next(self, key: ContentKey, location: str, before: PresentVersion[C, L]) -> tuple[bytes, Document]:
        """Read and check the metadata file that a request names as the next version of what is there, and returns as ``read_named`` does.

        What the present version has stays allowed, wherever an import has found it.
        """
        self._files.check_own_file(key, location, before.loaded.content_id)
        text, document = self._read_file(key, location)
        self._files.check_change(key, before.document, document)
        check_files_inside([location], {*stated_places(before.document), *stated_places(document)}, of=str(key))
        if stored_uuid(before.stored) is not None and document_uuid(before.document) != document_uuid(document):
            raise RefusedError(f"{key} cannot have {location}: it is metadata of another {self._word}, with another uuid")
        return text, document

    def _read_file(self, key: ContentKey, location: str) -> tuple[bytes, Document]:
        try:
            text = self._files.storage.read_metadata(location)
        except MissingFileError as fault:  # of what the catalog names itself it would be damage
            raise RefusedError(f"{key}: {fault}: name a metadata file that is there") from None
        self._kind.check_text(text, location)
        text = plain_metadata(msgspec.json.format(text, indent=-1))
        try:
            return text, decoded_document(text)
        except CorruptionError:  # no cause: it may quote the file
            raise RefusedError(f"{location} is no metadata of a {self._word}: it is no JSON that every engine reads") from None

    def new_claim(self, before: PresentVersion[C, L], after: Document) -> TableClaim | None:
        """The claim of a version, if it covers more than the present claim; earlier releases claimed no paths."""
        claim = self.claim_of(before.loaded.content_id, after)
        is_known = document_uuid(after) == stored_uuid(before.stored)  # not where whoever put it stated none
        if not is_known or set(stated_places(after)) != set(stated_places(before.document)):
            return claim
        is_wide = len(claim.places()) > 1 and not self._session.claims.has_taken(claim)
        return claim if is_wide and not self._session.claims.find_conflicts([claim]) else None

    def claim_of(self, content_id: UUID, document: Document, *, is_home: bool = False) -> TableClaim:
        """The claim of a table or view of this catalog to its uuid and to all places that its document names."""
        return document_claim(self._session.id, content_id, document, is_home=is_home)

    @property
    def _word(self) -> str:
        return self._kind.noun.lower()

    def _find(self, state: BranchState, key: ContentKey) -> C | None:
        content = state.find_content(key)
        return content if isinstance(content, self._kind.content) else None

    def _read(self, state: BranchState, key: ContentKey) -> C:
        content = self._find(state, key)
        if content is None:
            raise self._kind.missing.at(key)
        return content

    def _loaded(self, state: BranchState, key: ContentKey, content: C) -> L:
        if content.id is None:
            raise RefusedError(f"{key} was read without its content id")
        return self._version(key, content, content.id, self.text_of(state, key, content))

    def _version(self, key: ContentKey, content: C, content_id: UUID, text: bytes) -> L:
        return self._kind.loaded(key, content_id, content.metadata_location, text, content_digest(content).hex())

    def text_of(self, state: BranchState, key: ContentKey, content: C) -> bytes:
        """The metadata as the catalog stores it, or else as its file has it."""
        text = None if content.id is None else state.find_metadata(content.id)
        if text is None:
            text = self._files.read_text(key, content.metadata_location)
            self._kind.check_text(text, content.metadata_location)  # whoever put it may have named any file of the catalog
            text = plain_metadata(msgspec.json.format(text, indent=-1))
        return text

    def _is_same(self, state: BranchState, key: ContentKey, stored: C, document: Document) -> bool:
        """Whether what stands there is the one of a document: by the uuid; where one of them has none, by the location."""
        held, uuid = stored_uuid(stored), document_uuid(document)
        if held is not None and uuid is not None:
            return held == uuid
        present = decoded_document(self.text_of(state, key, stored))
        return is_same_place(str(present.get("location")), str(document["location"]))

    def _id_for(self, state: BranchState, uuid: UUID | None, fresh_id: UUID) -> UUID:
        """The content id of what is created with this uuid: the one that this catalog knows it by, or else derived from the uuid.

        So an attempt that broke off after its claim can be made again. If the branch has that content already, this one gets
        another id, and its claim meets that of the other.
        """
        if uuid is None:
            return fresh_id
        content_id = self._session.claims.find_content_id(self._session.id, uuid)
        return content_id if state.key_of(content_id) is None else fresh_id


def stored_uuid(content: IcebergTable | IcebergView) -> UUID | None:
    """The uuid that a catalog's content states; None where whoever put it stated none, or no uuid."""
    text = content.table_uuid if isinstance(content, IcebergTable) else content.view_uuid
    try:
        return None if text is None else UUID(text)
    except ValueError:
        return None


def check_keeps_uuid(key: ContentKey, stored: IcebergTable | IcebergView, before: Document, after: Document) -> None:
    """Pass, or raise RefusedError. By Iceberg's specification of a catalog a uuid is assigned once; clients assign any."""
    given, new = document_uuid(before), document_uuid(after)
    if stored_uuid(stored) is not None and given != new:
        raise RefusedError(f"table {dotted(key)} has the uuid {given}, and no table's uuid changes: not to {new}")
