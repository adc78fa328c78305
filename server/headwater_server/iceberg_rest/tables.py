"""Tables over Iceberg REST."""

from __future__ import annotations

from functools import partial
from typing import Any

from headwater.access import Privilege, SecurableKind
from headwater.catalogs import ContentKey, RequestKey
from headwater.errors import RefusedError
from headwater.iceberg_catalog import NoSuchTableError, TableCommit, TableCreation
from headwater_server.call import Answer, Call
from headwater_server.iceberg_rest.addresses import key_below, parse_namespace
from headwater_server.iceberg_rest.caller_rights import (
    check_content,
    check_creation,
    check_marked,
    check_table_updates,
    listed_source,
)
from headwater_server.iceberg_rest.idempotency import answer_once
from headwater_server.iceberg_rest.listings import read_listing
from headwater_server.iceberg_rest.models import (
    CommitTableRequest,
    CommitTransactionRequest,
    CreateTableRequest,
    DropTableQuery,
    ListedIdentifier,
    ListTablesResponse,
    LoadCredentialsResponse,
    LoadTableQuery,
    PageQuery,
    RegisterTableRequest,
    RenameTableRequest,
    TableChange,
    TableIdentifier,
)
from headwater_server.iceberg_rest.table_answers import (
    NOT_KEPT,
    KeptTable,
    committed_answer,
    credentialed_answer,
    entity_tag,
    is_known,
    loaded_answer,
    staged_answer,
)
from headwater_server.iceberg_rest.table_bodies import table_bodies
from headwater_server.iceberg_rest.table_credentials import (
    asked_storages,
    changed_credentials,
    giving_storages,
    marked_credentials,
    staged_credentials,
)
from headwater_server.lake_sessions import LakeSession, session_of


def answer_tables(call: Call[PageQuery, None]) -> Answer:
    session, namespace = session_of(call), parse_namespace(call.path["namespace"])
    check_content(session, Privilege.NAMESPACE_LIST, namespace)
    source = listed_source(session, SecurableKind.TABLE, partial(session.lake.tables.list, namespace))
    page = read_listing(call.query, source)
    listed = [ListedIdentifier(key.elements[:-1], key.name) for key in page.keys]
    return Answer(body=ListTablesResponse(listed, page.next_token))


def answer_table_creation(call: Call[None, CreateTableRequest]) -> Answer:
    """Create a table, or stage it: then nothing is stored until a commit with ``assert-create``, and no key is needed."""
    session = session_of(call)
    creation = _creation(session, parse_namespace(call.path["namespace"]), call.body)
    check_creation(session, Privilege.TABLE_CREATE, creation.key)
    if call.body.stage_create:
        staged = session.lake.tables.stage(creation)
        vended = staged_credentials(call, session, staged)
        session.make_folders(staged.text)
        return staged_answer(staged, session, vended)

    def create(request: RequestKey | None) -> Answer:
        table = session.lake.tables.create(creation, request=request)
        session.make_folders(table.text)
        return loaded_answer(table, session, changed_credentials(call, session, table))

    return answer_once(call, create)


def answer_table_registration(call: Call[None, RegisterTableRequest]) -> Answer:
    def register(request: RequestKey | None) -> Answer:
        session, wish = session_of(call), call.body
        key = parse_namespace(call.path["namespace"]).child(wish.name)
        check_creation(session, Privilege.TABLE_CREATE, key)
        table = session.lake.tables.register(key, wish.metadata_location, overwrite=bool(wish.overwrite), request=request)
        return loaded_answer(table, session, changed_credentials(call, session, table))

    return answer_once(call, register)


def answer_table(call: Call[LoadTableQuery, None]) -> Answer:
    """Load a table; 304 and nothing more where the client has this version: no document is read for that.

    Where the client gets credentials, it gets a whole answer: it may ask because those that it has are about to end.
    """
    session, snapshots = session_of(call), call.query.snapshots
    mark = session.lake.tables.mark(_table_key(call))
    check_marked(session, Privilege.TABLE_READ_PROPERTIES, mark)
    kept = KeptTable(call.served.part(table_bodies), session, mark)
    vended = marked_credentials(call, session, mark, asked_storages(call, session), kept.places)
    if vended is not None:
        return credentialed_answer(kept.opened(snapshots), vended)
    tag = entity_tag(mark.etag, session, snapshots)
    if is_known(call.headers.get("if-none-match"), tag):
        return Answer(304, headers={"ETag": tag})
    return Answer(body=kept.whole(tag, snapshots), headers={"ETag": tag})


def answer_table_check(call: Call[None, None]) -> Answer:
    session, key = session_of(call), _table_key(call)
    check_content(session, Privilege.TABLE_LIST, key)
    if not session.lake.tables.exists(key):
        raise NoSuchTableError.at(key)
    return Answer(204)


def answer_table_credentials(call: Call[None, None]) -> Answer:
    """Answer with credentials for a table's files. None where its storage gives none: a client has its own there."""
    session = session_of(call)
    mark = session.lake.tables.mark(_table_key(call))
    check_marked(session, Privilege.TABLE_READ_DATA, mark)
    kept = KeptTable(call.served.part(table_bodies), session, mark)
    vended = marked_credentials(call, session, mark, giving_storages(session), kept.places)
    return Answer(body=LoadCredentialsResponse([] if vended is None else vended.parts), headers=NOT_KEPT)


def answer_table_commit(call: Call[None, CommitTableRequest]) -> Answer:
    """Commit to the table that the path names; an identifier in the body, which not all clients send, says nothing more."""

    def commit(request: RequestKey | None) -> Answer:
        session = session_of(call)
        wish = TableCommit(_table_key(call), call.body.requirements, call.body.updates)
        check_table_updates(session, wish)
        return committed_answer(session.lake.tables.commit(wish, request=request), session)

    return answer_once(call, commit)


def answer_table_drop(call: Call[DropTableQuery, None]) -> Answer:
    def drop(request: RequestKey | None) -> Answer:
        session, key = session_of(call), _table_key(call)
        check_content(session, Privilege.TABLE_DROP, key, request=request)
        if call.query.purge_requested:
            check_content(session, Privilege.TABLE_WRITE_DATA, key, request=request)
        session.lake.tables.drop(key, purge=call.query.purge_requested, request=request)
        return Answer(204)

    return answer_once(call, drop, status=204)


def answer_table_rename(call: Call[None, RenameTableRequest]) -> Answer:
    def rename(request: RequestKey | None) -> Answer:
        session, source, target = session_of(call), identified_key(call.body.source), identified_key(call.body.destination)
        check_content(session, Privilege.TABLE_DROP, source, request=request)
        check_content(session, Privilege.TABLE_READ_DATA, source, request=request)
        check_creation(session, Privilege.TABLE_CREATE, target)
        session.lake.tables.rename(source, target, request=request)
        return Answer(204)

    return answer_once(call, rename, status=204)


def answer_metrics(call: Call[None, bytes]) -> Answer:
    """Take a client's report of a scan or a commit. It is counted as a request, and not read: a report never fails or waits."""
    return Answer(204)


def answer_transaction(call: Call[None, CommitTransactionRequest]) -> Answer:
    """Commit to several tables in one commit of the branch."""

    def commit(request: RequestKey | None) -> Answer:
        session, commits = session_of(call), _table_commits(call.body.table_changes)
        for wish in commits:
            check_table_updates(session, wish)
        session.lake.tables.commit_many(commits, request=request)
        return Answer(204)

    return answer_once(call, commit, status=204)


def identified_key(identifier: TableIdentifier) -> ContentKey:
    """The key of a table or view that a body names."""
    return ContentKey((*identifier.namespace, identifier.name))


def _table_commits(changes: list[TableChange]) -> list[TableCommit]:
    commits: dict[ContentKey, TableCommit] = {}
    for number, change in enumerate(changes):
        key = identified_key(change.identifier)
        if key in commits:
            raise RefusedError(
                f"table-changes[{number}]: {'.'.join(key.elements)} is changed by an earlier element, too: put all updates of a table"
                " into one"
            )
        commits[key] = TableCommit(key, change.requirements, change.updates)
    return list(commits.values())


def _creation(session: LakeSession, namespace: ContentKey, wish: CreateTableRequest) -> TableCreation:
    return TableCreation(
        key=namespace.child(wish.name),
        schema=wish.schema,
        partition_spec=wish.partition_spec,
        sort_order=wish.write_order,
        properties=session.given_properties("table", wish.properties or {}),
        location=wish.location,
    )


def _table_key(call: Call[Any, Any]) -> ContentKey:
    return key_below(call.path["namespace"], call.path["table"])
