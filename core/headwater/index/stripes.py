"""What an index spills: stripes of entries, and lists of stripes."""

from __future__ import annotations

from collections.abc import Iterable

from headwater.index.children import Children
from headwater.index.memo import memo
from headwater.index.pages import Page
from headwater.store import ObjectId, StoredObject, object_type

__all__ = ["Stripe", "StripeList"]


@object_type("stripe", compressed=False)
class Stripe(StoredObject, frozen=True, kw_only=True, dict=True):
    """Neighbouring entries of an index. With equal entries it has equal bytes."""

    entries: bytes

    def points_to(self) -> Iterable[ObjectId]:
        return self.page.object_ids()

    @memo
    def page(self) -> Page:
        return Page(self.entries)


@object_type("stripe-list", compressed=False)
class StripeList(StoredObject, frozen=True, kw_only=True, dict=True):
    """Neighbouring stripes of an index, and changes to them: what a commit spills lies here first, and is moved on in handfuls."""

    embedded: bytes
    spilled: bytes

    def points_to(self) -> Iterable[ObjectId]:
        return self.page.object_ids() + self.children.page.object_ids()

    @memo
    def page(self) -> Page:
        return Page(self.embedded)

    @memo
    def children(self) -> Children:
        return Children(Page(self.spilled))
