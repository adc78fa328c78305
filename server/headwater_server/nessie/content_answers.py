"""Contents at keys, as both versions of Nessie's API read them: half of all that Iceberg's clients ask for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from headwater.catalogs import Content, ContentKey
from headwater.errors import RefusedError
from headwater_server.call import Answer, Call
from headwater_server.nessie.api_paths import READ_ERRORS, TREE, V1
from headwater_server.nessie.content_bodies import ContentBody, ContentKeyBody, content_body
from headwater_server.nessie.content_key_paths import parse_key_path
from headwater_server.nessie.nessie_errors import NoSuchContentError
from headwater_server.nessie.nessie_session import SeenReference, open_nessie
from headwater_server.nessie.reference_answers import seen_body
from headwater_server.nessie.reference_paths import ReferencePath, parse_reference_path, reference_from_query
from headwater_server.nessie.reference_shapes import ReferenceBody
from headwater_server.route_table import Route

_CONTENTS = f"{TREE}/contents"
_CONTENTS_V1 = f"{V1}/contents"
_NEEDS = "NAMESPACE_READ_PROPERTIES, TABLE_READ_PROPERTIES or VIEW_READ_PROPERTIES on what is at the key"
_NEEDS_EACH = "NAMESPACE_READ_PROPERTIES, TABLE_READ_PROPERTIES or VIEW_READ_PROPERTIES on what is at each key"
KeyText = Annotated[str, Meta(description="The elements of a key, joined by dots")]
Ignored = Annotated[bool, Meta(description="Changes nothing")]
ReferenceName = Annotated[str, Meta(description="A branch or tag; the default branch where it is left out")]
HashOnReference = Annotated[str, Meta(description="A commit of it, or steps back from it")]
_KEYS_LIMIT = 10_000
"""Keys that one request may ask for."""


class ContentQuery(Struct, frozen=True, rename="kebab"):
    """How a content is read."""

    with_doc: Ignored = False
    for_write: Ignored = False


class ContentsQuery(Struct, frozen=True, rename="kebab"):
    """Which contents are read."""

    key: list[KeyText] = []
    with_doc: Ignored = False
    for_write: Ignored = False


class ReferenceQueryV1(Struct, frozen=True, rename="camel"):
    """Where contents are read."""

    ref: ReferenceName | None = None
    hash_on_ref: HashOnReference | None = None

    @property
    def path(self) -> ReferencePath:
        """raises RefusedError"""
        return reference_from_query(self.ref, self.hash_on_ref)


class ContentsRequest(Struct, frozen=True, rename="camel"):
    """The keys whose contents are read."""

    requested_keys: list[ContentKeyBody]


class ContentAnswer(Struct, frozen=True, rename="camel"):
    """A content, and the commit that it was read at."""

    content: ContentBody
    effective_reference: ReferenceBody


class KeyedContent(Struct, frozen=True):
    """A content, and its key."""

    key: ContentKeyBody
    content: ContentBody


class ContentsAnswer(Struct, frozen=True, rename="camel"):
    """The contents of those keys that have any, and the commit that they were read at."""

    contents: list[KeyedContent]
    effective_reference: ReferenceBody


class ContentsAnswerV1(Struct, frozen=True):
    """The contents of those keys that have any."""

    contents: list[KeyedContent]


def content_routes() -> list[Route]:
    """Make the routes of contents."""
    return [*_routes_v2(), *_routes_v1()]


def _routes_v2() -> list[Route]:
    return [
        Route(
            method="GET",
            template=f"{_CONTENTS}/{{key}}",
            handler=answer_content,
            name="nessieGetContent",
            needs=_NEEDS,
            summary="Read the content at a key.",
            query=ContentQuery,
            answers={200: ContentAnswer},
            errors=READ_ERRORS,
        ),
        Route(
            method="GET",
            template=_CONTENTS,
            handler=answer_contents,
            name="nessieGetContents",
            needs=_NEEDS_EACH,
            summary="Read the contents at some keys, which the query names.",
            query=ContentsQuery,
            answers={200: ContentsAnswer},
            errors=READ_ERRORS,
        ),
        Route(
            method="POST",
            template=_CONTENTS,
            handler=answer_requested_contents,
            name="nessieReadContents",
            needs=_NEEDS_EACH,
            summary="Read the contents at some keys, which the body names.",
            query=ContentQuery,
            body=ContentsRequest,
            answers={200: ContentsAnswer},
            errors=READ_ERRORS,
        ),
    ]


def _routes_v1() -> list[Route]:
    return [
        Route(
            method="GET",
            template=f"{_CONTENTS_V1}/{{key}}",
            handler=answer_content_v1,
            name="nessieGetContentV1",
            needs=_NEEDS,
            summary="Read the content at a key.",
            query=ReferenceQueryV1,
            answers={200: ContentBody},
            errors=READ_ERRORS,
        ),
        Route(
            method="POST",
            template=_CONTENTS_V1,
            handler=answer_requested_contents_v1,
            name="nessieReadContentsV1",
            needs=_NEEDS_EACH,
            summary="Read the contents at some keys, which the body names.",
            query=ReferenceQueryV1,
            body=ContentsRequest,
            answers={200: ContentsAnswerV1},
            errors=READ_ERRORS,
        ),
    ]


def answer_content(call: Call[ContentQuery, None]) -> Answer:
    """Read the content at a key."""
    path, key = parse_reference_path(call.path["ref"]), parse_key_path(call.path["key"])
    seen = open_nessie(call).see_reference(path)
    return Answer(body=ContentAnswer(content_body(key, _read_content(seen, key)), seen_body(seen)))


def answer_content_v1(call: Call[ReferenceQueryV1, None]) -> Answer:
    """Read the content at a key."""
    key = parse_key_path(call.path["key"])
    seen = open_nessie(call).see_reference(call.query.path)
    return Answer(body=content_body(key, _read_content(seen, key), version=1))


def answer_contents(call: Call[ContentsQuery, None]) -> Answer:
    """Read the contents at the keys of the query."""
    return _answer_keys(call, [parse_key_path(text) for text in call.query.key])


def answer_requested_contents(call: Call[ContentQuery, ContentsRequest]) -> Answer:
    """Read the contents at the keys of the body."""
    return _answer_keys(call, [key.to_key() for key in call.body.requested_keys])


def answer_requested_contents_v1(call: Call[ReferenceQueryV1, ContentsRequest]) -> Answer:
    """Read the contents at the keys of the body."""
    keys = [key.to_key() for key in call.body.requested_keys]
    contents = _find_contents(open_nessie(call).see_reference(call.query.path), keys)
    return Answer(
        body=ContentsAnswerV1(
            [KeyedContent(ContentKeyBody.of_key(key), content_body(key, content, version=1)) for key, content in contents]
        )
    )


def _answer_keys(call: Call[ContentsQuery, None] | Call[ContentQuery, ContentsRequest], keys: Sequence[ContentKey]) -> Answer:
    seen = open_nessie(call).see_reference(parse_reference_path(call.path["ref"]))
    bodies = [
        KeyedContent(ContentKeyBody.of_key(key), content_body(key, content)) for key, content in _find_contents(seen, keys)
    ]
    return Answer(body=ContentsAnswer(bodies, seen_body(seen)))


def _read_content(seen: SeenReference, key: ContentKey) -> Content:
    content = seen.readable_contents([key], is_asked=True).get(key)
    if content is None:
        raise NoSuchContentError.at(key, seen.label)
    return content


def _find_contents(seen: SeenReference, keys: Sequence[ContentKey]) -> list[tuple[ContentKey, Content]]:
    """The contents that are there, each key once and in the order that was asked for."""
    wanted = list(dict.fromkeys(keys))
    if len(wanted) > _KEYS_LIMIT:
        raise RefusedError(f"{len(wanted)} keys are more than {_KEYS_LIMIT}, which one request may ask for: ask several times")
    contents = seen.readable_contents(wanted, is_asked=True)
    return [(key, contents[key]) for key in wanted if key in contents]
