"""Namespaces over Iceberg REST."""

from __future__ import annotations

from functools import partial
from urllib.parse import unquote

from headwater.catalogs import ContentKey, RequestKey
from headwater.iceberg_catalog import NoSuchNamespaceError
from headwater_server.call import Answer, Call
from headwater_server.iceberg_rest.addresses import parse_namespace, parse_parent
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
from headwater_server.iceberg_rest.sessions import session_of

_TWICE_ENCODING = "PyIceberg/"


def answer_namespaces(call: Call[NamespacesQuery, None]) -> Answer:
    page = read_listing(call.query, partial(session_of(call).lake.namespaces.list_children, _parent(call)))
    return Answer(body=ListNamespacesResponse([key.elements for key in page.keys], page.next_token))


def answer_namespace_creation(call: Call[None, CreateNamespaceRequest]) -> Answer:
    def create(request: RequestKey | None) -> Answer:
        key = ContentKey(tuple(call.body.namespace))
        stored = session_of(call).lake.namespaces.create(key, call.body.properties or {}, request=request)
        return Answer(body=NamespaceResponse(key.elements, dict(stored)))

    return answer_once(call, create)


def answer_namespace(call: Call[None, None]) -> Answer:
    key = parse_namespace(call.path["namespace"])
    return Answer(body=NamespaceResponse(key.elements, dict(session_of(call).lake.namespaces.read_properties(key))))


def answer_namespace_check(call: Call[None, None]) -> Answer:
    key = parse_namespace(call.path["namespace"])
    if not session_of(call).lake.namespaces.exists(key):
        raise NoSuchNamespaceError.at(key)
    return Answer(204)


def answer_namespace_drop(call: Call[None, None]) -> Answer:
    def drop(request: RequestKey | None) -> Answer:
        session_of(call).lake.namespaces.drop(parse_namespace(call.path["namespace"]), request=request)
        return Answer(204)

    return answer_once(call, drop, status=204)


def answer_namespace_properties(call: Call[None, UpdateNamespacePropertiesRequest]) -> Answer:
    def update(request: RequestKey | None) -> Answer:
        key, wish = parse_namespace(call.path["namespace"]), call.body
        done = session_of(call).lake.namespaces.update_properties(key, wish.removals or (), wish.updates or {}, request=request)
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
