"""What tables are answered with: the stored document handed on, and the tag by which a client need not load it again."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from headwater.iceberg_catalog import LoadedTable, StagedTable, VersionMark
from headwater.typed_values import json_decoder
from headwater_server.call import Answer
from headwater_server.iceberg_rest.client_documents import client_text
from headwater_server.iceberg_rest.models import CommitTableResponse, LoadTableResult
from headwater_server.iceberg_rest.table_bodies import TableBodies
from headwater_server.iceberg_rest.table_credentials import VendedCredentials, places_in
from headwater_server.lake_sessions import LakeSession

ALL_SNAPSHOTS = "all"
NOT_KEPT: Final = {"Cache-Control": "no-store"}
_OPENED, _OF_PLACES = "opened", "places"
"""Names of what is kept of a version beside whole answers, whose names are tags: those begin in another way."""
_PLACES = json_decoder(list[str])
_TAGS = re.compile(r'(?:^|,)\s*(?:W/)?"([^"]*)"\s*(?=,|$)')


def loaded_answer(table: LoadedTable, session: LakeSession, vended: VendedCredentials | None = None) -> Answer:
    """Answer a creation or a registration as a whole load is answered."""
    if vended is not None:
        return credentialed_answer(open_load(table), vended)
    return Answer(body=encoded_load(table, session), headers={"ETag": entity_tag(table.etag, session, ALL_SNAPSHOTS)})


def encoded_load(table: LoadedTable, session: LakeSession, *, snapshots: str = ALL_SNAPSHOTS) -> bytes:
    """The body of the answer to a load.

    snapshots     ``refs``: only those that a branch or tag points to
    """
    result = LoadTableResult(_shown_text(table, snapshots), table.metadata_location, session.config_of(table.text))
    return msgspec.json.encode(result)


class KeptTable:
    """The answers to loads of one version, from the memory of the process where they are there, without its document being read."""

    def __init__(self, bodies: TableBodies, session: LakeSession, mark: VersionMark) -> None:
        self._bodies = bodies
        self._session = session
        self._mark = mark
        self._loaded: LoadedTable | None = None

    def whole(self, tag: str, snapshots: str) -> bytes:
        """The body without credentials."""
        return self._find(tag, lambda: encoded_load(self._load(), self._session, snapshots=snapshots))

    def opened(self, snapshots: str) -> bytes:
        """What ``open_load`` returns."""
        return self._find(f"{_OPENED}-{snapshots}", lambda: open_load(self._load(), snapshots=snapshots))

    def places(self) -> tuple[str, ...]:
        """The places of the table, its location first."""
        return tuple(_PLACES.decode(self._find(_OF_PLACES, lambda: msgspec.json.encode(places_in(self._load().text)))))

    def _find(self, name: str, make: Callable[[], bytes]) -> bytes:
        body = self._bodies.find(self._mark, name)
        if body is None:
            body = make()
            self._bodies.keep(self._mark, name, body)
        return body

    def _load(self) -> LoadedTable:
        if self._loaded is None:
            self._loaded = self._session.lake.tables.load_marked(self._mark)
        return self._loaded


def open_load(table: LoadedTable, *, snapshots: str = ALL_SNAPSHOTS) -> bytes:
    """The body of the answer to a load up to its ``config``: what is the same for all who get credentials."""
    return msgspec.json.encode(LoadTableResult(_shown_text(table, snapshots), table.metadata_location))[:-1]


def credentialed_answer(opened: bytes, vended: VendedCredentials) -> Answer:
    """Answer with credentials: nobody on the way keeps it, and it has no tag, for a client that has the version needs them anew.

    opened        of ``open_load``
    """
    told = msgspec.json.encode({"config": vended.config, "storage-credentials": vended.parts})
    return Answer(body=opened + b"," + told[1:], headers=NOT_KEPT)


def staged_answer(table: StagedTable, session: LakeSession, vended: VendedCredentials | None = None) -> Answer:
    """Answer a creation that a later commit completes: without a metadata file, for there is none yet.

    The document is whole: the client sends its properties back, and the creation was checked.
    """
    if vended is None:
        return Answer(body=LoadTableResult(msgspec.Raw(table.text), config=session.config_of(table.text)))
    return credentialed_answer(msgspec.json.encode(LoadTableResult(msgspec.Raw(table.text)))[:-1], vended)


def committed_answer(table: LoadedTable, session: LakeSession) -> Answer:
    """Answer a commit. Its tag is that of a whole load, which the client may ask for next."""
    result = CommitTableResponse(table.metadata_location, msgspec.Raw(client_text(table.text)))
    return Answer(body=result, headers={"ETag": entity_tag(table.etag, session, ALL_SNAPSHOTS)})


def entity_tag(etag: str, session: LakeSession, snapshots: str) -> str:
    """The header ``ETag`` of a loaded table: another one for another version, other snapshots, or another way to the storage.

    It is weak, because what stands between server and client may pack the body.
    """
    parts = [etag, "" if snapshots == ALL_SNAPSHOTS else snapshots, session.config_digest]
    return f'W/"{"-".join(part for part in parts if part)}"'


def is_known(tags: str | None, tag: str) -> bool:
    """Whether a client that sends ``If-None-Match`` has what a tag stands for, by weak comparison."""
    if tags is None:
        return False
    return tags.strip() == "*" or tag.removeprefix("W/").strip('"') in _TAGS.findall(tags)


def _shown_text(table: LoadedTable, snapshots: str) -> msgspec.Raw:
    text = table.text if snapshots == ALL_SNAPSHOTS else referenced_text(table.document)
    return msgspec.Raw(client_text(text))


def referenced_text(document: dict[str, Any]) -> bytes:
    """The JSON text of a table's document with only those snapshots that its branches and tags point to."""
    kept = {reference["snapshot-id"] for reference in (document.get("refs") or {}).values()}
    kept.add(document.get("current-snapshot-id"))  # version 1 knows no references
    snapshots = [snapshot for snapshot in document.get("snapshots") or () if snapshot["snapshot-id"] in kept]
    return msgspec.json.encode(document | {"snapshots": snapshots})
