"""Namespaces over Iceberg REST."""

from __future__ import annotations

from functools import partial
from urllib.parse import unquote

from headwater.access import Privilege, SecurableKind
from headwater.catalogs import ContentKey, RequestKey
from headwater.iceberg_catalog import NoSuchNamespaceError
from headwater_server.call import Answer, Call
from headwater_server.iceberg_rest.addresses import parse_namespace, parse_parent
from headwater_server.iceberg_rest.caller_rights import check_content, check_creation, listed_source
from headwater_server.iceberg_rest.idempotency import answer_once
from headwater_server.iceberg_rest.listings import read_listing
from headwater_server.iceberg_rest.models import (
    CreateNamespaceRequest,
    ListNamespacesResponse,
    NamespaceResponse,
    NamespacesQuery,
    UpdateNamespacePropertiesRequest,
    UpdateNamespacePropertiesResponse,
)
from headwater_server.lake_sessions import session_of

_TWICE_ENCODING = "PyIceberg/"


def answer_namespaces(call: Call[NamespacesQuery, None]) -> Answer:
    session, parent = session_of(call), _parent(call)
    if parent is not None:
        check_content(session, Privilege.NAMESPACE_LIST, parent)
    source = listed_source(session, SecurableKind.NAMESPACE, partial(session.lake.namespaces.list_children, parent))
    page = read_listing(call.query, source)
    return Answer(body=ListNamespacesResponse([key.elements for key in page.keys], page.next_token))


def answer_namespace_creation(call: Call[None, CreateNamespaceRequest]) -> Answer:
    def create(request: RequestKey | None) -> Answer:
        session, key = session_of(call), ContentKey(tuple(call.body.namespace))
        check_creation(session, Privilege.NAMESPACE_CREATE, key)
        properties = session.lake.namespaces.create(key, call.body.properties or {}, request=request)
        return Answer(body=NamespaceResponse(key.elements, dict(properties)))

    return answer_once(call, create)


def answer_namespace(call: Call[None, None]) -> Answer:
    session, key = session_of(call), parse_namespace(call.path["namespace"])
    check_content(session, Privilege.NAMESPACE_READ_PROPERTIES, key)
    return Answer(body=NamespaceResponse(key.elements, dict(session.lake.namespaces.read_located_properties(key))))


def answer_namespace_check(call: Call[None, None]) -> Answer:
    session, key = session_of(call), parse_namespace(call.path["namespace"])
    check_content(session, Privilege.NAMESPACE_LIST, key)
    if not session.lake.namespaces.exists(key):
        raise NoSuchNamespaceError.at(key)
    return Answer(204)


def answer_namespace_drop(call: Call[None, None]) -> Answer:
    def drop(request: RequestKey | None) -> Answer:
        session, key = session_of(call), parse_namespace(call.path["namespace"])
        check_content(session, Privilege.NAMESPACE_DROP, key)
        session.lake.namespaces.drop(key, request=request)
        return Answer(204)

    return answer_once(call, drop, status=204)


def answer_namespace_properties(call: Call[None, UpdateNamespacePropertiesRequest]) -> Answer:
    def update(request: RequestKey | None) -> Answer:
        session, key, wish = session_of(call), parse_namespace(call.path["namespace"]), call.body
        check_content(session, Privilege.NAMESPACE_WRITE_PROPERTIES, key)
        done = session.lake.namespaces.update_properties(key, wish.removals or (), wish.updates or {}, request=request)
        return Answer(body=UpdateNamespacePropertiesResponse(done.updated, done.removed, done.missing))

    return answer_once(call, update)


def _parent(call: Call[NamespacesQuery, None]) -> ContentKey | None:
    """The namespace to list below. pyiceberg (seen with 0.12) encodes its levels twice in a query, and once in a path."""
    text = call.query.parent or ""
    parent = parse_parent(text)
    is_twice = "%" in text and call.headers.get("user-agent", "").startswith(_TWICE_ENCODING)
    if not is_twice or parent is None or session_of(call).lake.namespaces.exists(parent):
        return parent
    return parse_parent(unquote(text))
