"""Which credentials a client gets for the files of a table: for the table's own places, and as far as its caller's rights go."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Any
from urllib.parse import quote
from uuid import UUID

import msgspec

from headwater.access import Privilege
from headwater.catalogs import ContentKey, TableClaim
from headwater.errors import HeadwaterError, RefusedError
from headwater.iceberg import StorageOptions, canonical_location, check_allowed, closest_options, is_within, stated_places
from headwater.iceberg_catalog import LoadedTable, ReadOnlyReferenceError, StagedTable, VersionMark
from headwater.typed_values import json_decoder
from headwater_server.call import Call
from headwater_server.iceberg_rest.addresses import LEVEL_SEPARATOR
from headwater_server.iceberg_rest.caller_rights import holds_marked
from headwater_server.iceberg_rest.models import StorageCredential
from headwater_server.lake_sessions import LakeSession
from headwater_server.storage_credentials import CredentialVendor, StorageGrant, credential_vendor, session_name

_DELEGATION = "x-iceberg-access-delegation"
_VENDED = "vended-credentials"
_REFRESH = "client.refresh-credentials-endpoint"


class _PlacedDocument(msgspec.Struct, frozen=True):
    """The part of a document that says where its table's files are."""

    location: Any = None
    properties: Any = None


_PLACED = json_decoder(_PlacedDocument)


@dataclass(frozen=True, slots=True)
class VendedCredentials:
    """What an answer tells of the way to a table's files.

    config        to its location, with credentials if there are some, for clients that look nowhere else
    """

    config: Mapping[str, str]
    parts: Sequence[StorageCredential]


@dataclass(frozen=True, slots=True)
class _TableFiles:
    """The files of a table, and what the caller may do with them.

    content_id    None: the table is staged, and its places were checked
    """

    key: ContentKey
    places: tuple[str, ...]
    may_write: bool
    content_id: UUID | None = None


def asked_storages(call: Call[Any, Any], session: LakeSession) -> Sequence[StorageOptions]:
    """What ``giving_storages`` returns, if the client says that it takes credentials; else nothing."""
    wanted = {word.strip().lower() for word in call.headers.get(_DELEGATION, "").split(",")}
    return giving_storages(session) if _VENDED in wanted else ()


def giving_storages(session: LakeSession) -> Sequence[StorageOptions]:
    """The options of all storages of a catalog, if any gives clients credentials for something in the catalog's places; else nothing."""
    options, places = session.own_options, session.lake.session.catalog.definition.places
    giving = [each.location for each in options if each.gives_credentials]
    is_any = any(is_within(location, place) or is_within(place, location) for location in giving for place in places)
    return options if is_any else ()


def marked_credentials(
    call: Call[Any, Any],
    session: LakeSession,
    mark: VersionMark,
    storages: Sequence[StorageOptions],
    read_places: Callable[[], tuple[str, ...]],
) -> VendedCredentials | None:
    """The credentials for a table's files; None where the caller may not read them, or there are none for where they lie.

    storages      the options among which the places' are; none: nothing is asked for
    read_places   reads the places in the table's document, which takes longer than to see that the caller has no right
    raises        UnavailableError where there should be some, and the token service gives none: a client that depends on them would
                  only meet a refusal of the storage that says nothing
    """
    may_write = _may_write(session, mark) if storages else None
    if may_write is None:
        return None
    return _vend(call, session, storages, _TableFiles(mark.key, read_places(), may_write, mark.content_id))


def changed_credentials(call: Call[Any, Any], session: LakeSession, table: LoadedTable) -> VendedCredentials | None:
    """The credentials for a table that was created just now. None also where they cannot be had: the change has happened."""
    storages = asked_storages(call, session)
    if not storages:
        return None
    try:
        mark = session.lake.tables.mark(table.key)
        return marked_credentials(call, session, mark, storages, lambda: places_in(table.text))
    except HeadwaterError:  # the vendor has logged it, or the table is gone again
        return None


def staged_credentials(call: Call[Any, Any], session: LakeSession, table: StagedTable) -> VendedCredentials | None:
    """The credentials for a table that a commit is to create: who may do that writes its files before. Raises UnavailableError."""
    storages = asked_storages(call, session)
    if not storages:
        return None
    return _vend(call, session, storages, _TableFiles(table.key, places_in(table.text), may_write=True))


def places_in(text: bytes) -> tuple[str, ...]:
    """The places of a table, given its document."""
    document = _PLACED.decode(text)
    return stated_places({"location": document.location, "properties": document.properties})


def _may_write(session: LakeSession, mark: VersionMark) -> bool | None:
    """Whether the caller may write the files of a table; None where it may not even read them.

    Through a tag or a commit a table is only read, whoever calls.
    """
    if not holds_marked(session, Privilege.TABLE_READ_DATA, mark):
        return None
    try:
        session.lake.session.check_writable()
    except ReadOnlyReferenceError:
        return False
    return holds_marked(session, Privilege.TABLE_WRITE_DATA, mark)


def _vend(
    call: Call[Any, Any], session: LakeSession, storages: Sequence[StorageOptions], files: _TableFiles
) -> VendedCredentials | None:
    vendor = call.served.part(credential_vendor)
    who = session_name(None if call.caller is None else call.caller.name, session.address.realm)
    parts = [
        part
        for options, places in _by_storage(session, storages, files).items()
        for part in _parts(
            vendor, session, files, options, StorageGrant(places, files.may_write, who, str(files.content_id or ""))
        )
    ]
    if not parts:
        return None
    location = files.places[0].rstrip("/") + "/"
    own = next((part.config for part in parts if location.startswith(part.prefix)), None)
    return VendedCredentials(session.storage.client_config(files.places[0]) if own is None else own, parts)


def _by_storage(
    session: LakeSession, storages: Sequence[StorageOptions], files: _TableFiles
) -> dict[StorageOptions, tuple[str, ...]]:
    """The places that the catalog allows, by the storages that give credentials for them."""
    definition, by_storage = session.lake.session.catalog.definition, dict[StorageOptions, tuple[str, ...]]()
    for place in files.places:
        try:
            check_allowed([place], definition.places, of=str(files.key), catalog=definition.name)
            spelled = canonical_location(place)
        except RefusedError:
            continue  # an import took the table from elsewhere: its clients have credentials of their own
        options = closest_options(storages, spelled, realm=session.address.realm, catalog=session.address.catalog)
        if options is not None and options.gives_credentials:
            by_storage[options] = (*by_storage.get(options, ()), place)
    return by_storage


def _parts(
    vendor: CredentialVendor, session: LakeSession, files: _TableFiles, options: StorageOptions, grant: StorageGrant
) -> Iterator[StorageCredential]:
    try:
        credentials = vendor.vend(options, grant, check=partial(_check_claims, session, files))
    except RefusedError:
        return  # the vendor has logged why there are none for these places
    if credentials is None:
        return
    config = {**options.client_config(), **credentials.config}
    if credentials.expires_ms is not None:
        config[_REFRESH] = _credentials_path(session, files.key)
    for prefix in _prefixes(grant.places):
        yield StorageCredential(prefix, config)


def _check_claims(session: LakeSession, files: _TableFiles) -> None:
    """Check that no other table has files in the places, nor that what lies there is being purged; raises RefusedError."""
    if files.content_id is not None:
        claim = TableClaim(session.lake.session.id, files.content_id, files.places[0], None, files.places[1:])
        session.lake.session.check_free([claim], f"no credentials are given for {files.key}")


def _prefixes(places: Sequence[str]) -> list[str]:
    """What the addresses of files begin with, for which a client takes these credentials.

    One where that is possible, for Java's client refreshes one alone. What they allow is said by their policy.
    """
    folders = [place.rstrip("/") + "/" for place in places]
    buckets = {tuple(folder.split("/", 3)[:3]) for folder in folders}
    if len(buckets) > 1:
        return folders
    levels = takewhile(lambda names: len(set(names)) == 1, zip(*(folder.split("/")[:-1] for folder in folders), strict=False))
    return ["/".join(names[0] for names in levels) + "/"]


def _credentials_path(session: LakeSession, key: ContentKey) -> str:
    """Where a client asks for others before these end, below the address of its catalog."""
    namespace = quote(LEVEL_SEPARATOR.join(key.elements[:-1]), safe="")
    return f"v1/{session.address.prefix}/namespaces/{namespace}/tables/{quote(key.name, safe='')}/credentials"
