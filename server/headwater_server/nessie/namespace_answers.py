"""Namespaces as clients of version 1 read them, which has addresses of its own for them. Version 2 reads them as contents."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct

from headwater.catalogs import EntryExpression, Namespace
from headwater_server.call import Answer, Call
from headwater_server.nessie.api_paths import READ_ERRORS, V1
from headwater_server.nessie.content_answers import HashOnReference
from headwater_server.nessie.content_bodies import NamespaceBody, content_body
from headwater_server.nessie.content_key_paths import parse_key_path
from headwater_server.nessie.nessie_errors import UnknownNamespaceError
from headwater_server.nessie.nessie_session import SeenReference, open_nessie
from headwater_server.nessie.reference_paths import reference_from_query
from headwater_server.nessie.shown_contents import filter_entries, read_shown_contents
from headwater_server.route_table import Route

_NAMESPACES: Final = "entry.contentType == 'NAMESPACE'"
_READ_TOGETHER: Final = 1_000


class NamespacesQueryV1(Struct, frozen=True, rename="camel"):
    """Which namespaces are listed, at which commit."""

    name: Annotated[str, Meta(description="A namespace: it and all below it")] | None = None
    hash_on_ref: HashOnReference | None = None


class NamespaceQueryV1(Struct, frozen=True, rename="camel"):
    """At which commit a namespace is read."""

    hash_on_ref: HashOnReference | None = None


class NamespacesAnswerV1(Struct, frozen=True):
    """Namespaces with their properties."""

    namespaces: list[NamespaceBody]


def namespace_routes() -> list[Route]:
    """Make the routes that read namespaces."""
    return [
        Route(
            method="GET",
            template=f"{V1}/namespaces/{{ref}}",
            handler=answer_namespaces_v1,
            name="nessieListNamespacesV1",
            needs="NAMESPACE_LIST on each namespace; others are left out. NAMESPACE_READ_PROPERTIES for its properties",
            summary="List all namespaces of a reference, or one with all below it.",
            query=NamespacesQueryV1,
            answers={200: NamespacesAnswerV1},
            errors=READ_ERRORS,
        ),
        Route(
            method="GET",
            template=f"{V1}/namespaces/namespace/{{ref}}/{{name}}",
            handler=answer_namespace_v1,
            name="nessieGetNamespaceV1",
            needs="NAMESPACE_READ_PROPERTIES on the namespace",
            summary="Read a namespace.",
            query=NamespaceQueryV1,
            answers={200: NamespaceBody},
            errors=READ_ERRORS,
        ),
    ]


def answer_namespaces_v1(call: Call[NamespacesQueryV1, None]) -> Answer:
    """List the namespaces of a reference."""
    seen = open_nessie(call).see_reference(reference_from_query(call.path["ref"], call.query.hash_on_ref))
    return Answer(body=NamespacesAnswerV1(_listed(seen, call.query.name)))


def answer_namespace_v1(call: Call[NamespaceQueryV1, None]) -> Answer:
    """Read a namespace."""
    key = parse_key_path(call.path["name"])
    seen = open_nessie(call).see_reference(reference_from_query(call.path["ref"], call.query.hash_on_ref))
    content = seen.readable_contents([key], is_asked=True).get(key)
    if not isinstance(content, Namespace):
        raise UnknownNamespaceError(f"there is no namespace {key} on {seen.label}")
    return Answer(body=content_body(key, content, version=1))


def _listed(seen: SeenReference, name: str | None) -> list[NamespaceBody]:
    """All namespaces that the caller may list: version 1 knows no pages of them."""
    prefix = parse_key_path(name) if name else None
    where, bodies, token = EntryExpression.parse(_NAMESPACES), list[NamespaceBody](), None
    while seen.commit_text is not None:
        page = seen.state.catalog.entries(
            seen.commit_text,
            prefix=prefix,
            with_prefix=prefix is not None,
            where=where,
            limit=_READ_TOGETHER,
            page_token=token,
        )
        entries = [entry for entry in filter_entries(seen, page.entries) if entry is not None]
        contents = read_shown_contents(seen, [(entry.key, entry.value) for entry in entries])
        for entry, content in zip(entries, contents, strict=True):
            assert isinstance(content, Namespace), "the filter chose namespaces, of which something is always shown"
            bodies.append(
                NamespaceBody(id=content.id, elements=list(entry.key.elements), properties=content.properties or None)
            )
        if (token := page.next_token) is None:
            break
    return bodies
