"""Views over Iceberg REST."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from headwater.access import Privilege, SecurableKind
from headwater.catalogs import ContentKey, RequestKey
from headwater.iceberg_catalog import LoadedView, NoSuchViewError, ViewCommit, ViewCreation
from headwater_server.call import Answer, Call
from headwater_server.iceberg_rest.addresses import key_below, parse_namespace
from headwater_server.iceberg_rest.caller_rights import check_content, check_creation, listed_source
from headwater_server.iceberg_rest.client_documents import client_text
from headwater_server.iceberg_rest.idempotency import answer_once
from headwater_server.iceberg_rest.listings import read_listing
from headwater_server.iceberg_rest.models import (
    CommitViewRequest,
    CreateViewRequest,
    ListedIdentifier,
    ListTablesResponse,
    LoadViewResult,
    PageQuery,
    RegisterViewRequest,
    RenameTableRequest,
)
from headwater_server.iceberg_rest.tables import identified_key
from headwater_server.lake_sessions import session_of


def answer_views(call: Call[PageQuery, None]) -> Answer:
    session, namespace = session_of(call), parse_namespace(call.path["namespace"])
    check_content(session, Privilege.NAMESPACE_LIST, namespace)
    page = read_listing(call.query, listed_source(session, SecurableKind.VIEW, partial(session.lake.views.list, namespace)))
    listed = [ListedIdentifier(key.elements[:-1], key.name) for key in page.keys]
    return Answer(body=ListTablesResponse(listed, page.next_token))


def answer_view_creation(call: Call[None, CreateViewRequest]) -> Answer:
    def create(request: RequestKey | None) -> Answer:
        session, wish = session_of(call), call.body
        creation = ViewCreation(
            key=parse_namespace(call.path["namespace"]).child(wish.name),
            schema=wish.schema,
            view_version=wish.view_version,
            properties=session.given_properties("view", wish.properties or {}),
            location=wish.location,
        )
        check_creation(session, Privilege.VIEW_CREATE, creation.key)
        return _loaded(session.lake.views.create(creation, request=request))

    return answer_once(call, create)


def answer_view_registration(call: Call[None, RegisterViewRequest]) -> Answer:
    def register(request: RequestKey | None) -> Answer:
        session, key = session_of(call), parse_namespace(call.path["namespace"]).child(call.body.name)
        check_creation(session, Privilege.VIEW_CREATE, key)
        return _loaded(session.lake.views.register(key, call.body.metadata_location, request=request))

    return answer_once(call, register)


def answer_view(call: Call[None, None]) -> Answer:
    session, key = session_of(call), _view_key(call)
    check_content(session, Privilege.VIEW_READ_PROPERTIES, key)
    return _loaded(session.lake.views.load(key))


def answer_view_check(call: Call[None, None]) -> Answer:
    session, key = session_of(call), _view_key(call)
    check_content(session, Privilege.VIEW_LIST, key)
    if not session.lake.views.exists(key):
        raise NoSuchViewError.at(key)
    return Answer(204)


def answer_view_commit(call: Call[None, CommitViewRequest]) -> Answer:
    def commit(request: RequestKey | None) -> Answer:
        session, wish = session_of(call), ViewCommit(_view_key(call), call.body.requirements or (), call.body.updates)
        check_content(session, Privilege.VIEW_WRITE_PROPERTIES, wish.key)
        return _loaded(session.lake.views.commit(wish, request=request))

    return answer_once(call, commit)


def answer_view_drop(call: Call[None, None]) -> Answer:
    def drop(request: RequestKey | None) -> Answer:
        session, key = session_of(call), _view_key(call)
        check_content(session, Privilege.VIEW_DROP, key, request=request)
        session.lake.views.drop(key, request=request)
        return Answer(204)

    return answer_once(call, drop, status=204)


def answer_view_rename(call: Call[None, RenameTableRequest]) -> Answer:
    def rename(request: RequestKey | None) -> Answer:
        session, source, target = session_of(call), identified_key(call.body.source), identified_key(call.body.destination)
        check_content(session, Privilege.VIEW_DROP, source, request=request)
        check_content(session, Privilege.VIEW_READ_PROPERTIES, source, request=request)
        check_creation(session, Privilege.VIEW_CREATE, target)
        session.lake.views.rename(source, target, request=request)
        return Answer(204)

    return answer_once(call, rename, status=204)


def _loaded(view: LoadedView) -> Answer:
    return Answer(body=LoadViewResult(view.metadata_location, msgspec.Raw(client_text(view.text))))


def _view_key(call: Call[Any, Any]) -> ContentKey:
    return key_below(call.path["namespace"], call.path["view"])
