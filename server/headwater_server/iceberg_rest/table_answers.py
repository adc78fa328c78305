"""What tables are answered with: the stored document handed on, and the tag by which a client need not load it again."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from headwater.iceberg_catalog import LoadedTable, StagedTable
from headwater_server.call import Answer
from headwater_server.iceberg_rest.client_documents import client_text
from headwater_server.iceberg_rest.models import CommitTableResponse, LoadTableResult
from headwater_server.lake_sessions import LakeSession

ALL_SNAPSHOTS = "all"
_TAGS = re.compile(r'(?:^|,)\s*(?:W/)?"([^"]*)"\s*(?=,|$)')


def loaded_answer(table: LoadedTable, session: LakeSession) -> Answer:
    """Answer a creation or a registration as a whole load is answered."""
    return Answer(body=encoded_load(table, session), headers={"ETag": entity_tag(table.etag, session, ALL_SNAPSHOTS)})


def encoded_load(table: LoadedTable, session: LakeSession, *, snapshots: str = ALL_SNAPSHOTS) -> bytes:
    """The body of the answer to a load.

    snapshots     ``refs``: only those that a branch or tag points to
    """
    text = table.text if snapshots == ALL_SNAPSHOTS else referenced_text(table.document)
    result = LoadTableResult(msgspec.Raw(client_text(text)), table.metadata_location, session.config_of(table.text))
    return msgspec.json.encode(result)


def staged_answer(table: StagedTable, session: LakeSession) -> Answer:
    """Answer a creation that a later commit completes: without a metadata file, for there is none yet.

    The document is whole: the client sends its properties back, and the creation was checked.
    """
    return Answer(body=LoadTableResult(msgspec.Raw(table.text), config=session.config_of(table.text)))


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


def referenced_text(document: dict[str, Any]) -> bytes:
    """The JSON text of a table's document with only those snapshots that its branches and tags point to."""
    kept = {reference["snapshot-id"] for reference in (document.get("refs") or {}).values()}
    kept.add(document.get("current-snapshot-id"))  # version 1 knows no references
    snapshots = [snapshot for snapshot in document.get("snapshots") or () if snapshot["snapshot-id"] in kept]
    return msgspec.json.encode(document | {"snapshots": snapshots})
