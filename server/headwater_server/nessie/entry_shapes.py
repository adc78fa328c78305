"""The shapes of listings of contents, under the names that Nessie's specification gives them."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from headwater_server.nessie.content_bodies import ContentBody, ContentKeyBody
from headwater_server.nessie.reference_shapes import FilterText, MaxRecords, PageText, ReferenceBody

MinKey = Annotated[str, Meta(description="The first key, as its elements joined by dots")]
MaxKey = Annotated[str, Meta(description="The last key, which belongs to the range itself")]
PrefixKey = Annotated[str, Meta(description="A key: it and everything below it")]
ListedKey = Annotated[str, Meta(description="A key; where there are any, only these")]


class EntriesQuery(Struct, frozen=True, rename="kebab"):
    """Which contents are listed, and what of them."""

    max_records: MaxRecords | None = None
    page_token: PageText | None = None
    min_key: MinKey | None = None
    max_key: MaxKey | None = None
    prefix_key: PrefixKey | None = None
    key: list[ListedKey] = []
    filter: FilterText | None = None
    content: Annotated[bool, Meta(description="With the contents themselves")] = False


class EntriesQueryV1(Struct, frozen=True, rename="camel"):
    """Which contents are listed, at which commit."""

    max_records: MaxRecords | None = None
    page_token: PageText | None = None
    filter: FilterText | None = None
    hash_on_ref: Annotated[str, Meta(description="A commit of the reference, or steps back from it")] | None = None
    namespace_depth: (
        Annotated[int, Meta(ge=0, description="Cut keys after so many elements, and leave out shorter ones")] | None
    ) = None


class EntryBody(Struct, frozen=True, rename="camel"):
    """What stands at a key."""

    type: str
    name: ContentKeyBody
    content_id: UUID
    content: ContentBody | UnsetType = UNSET


class EntriesAnswer(Struct, frozen=True, rename="camel"):
    """A page of contents, and the commit that they were listed at."""

    has_more: bool
    token: str | None
    effective_reference: ReferenceBody
    entries: list[EntryBody]


class EntryBodyV1(Struct, frozen=True):
    """What stands at a key, in version 1."""

    type: str
    name: ContentKeyBody


class EntriesAnswerV1(Struct, frozen=True, rename="camel"):
    """A page of contents, in version 1."""

    has_more: bool
    token: str | None
    entries: list[EntryBodyV1]
