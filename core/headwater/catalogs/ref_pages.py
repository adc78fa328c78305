"""Pages of the branches and tags of a catalog, by name.

A page is read from the list as it is then: a name that is created or deleted between two pages may be in the listing or not,
and every other one is in it once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice

import msgspec

from headwater.catalogs.history.commit_meta import log_entry
from headwater.catalogs.history.ref_relation import ReferenceExpression, RefRelation, relate_heads
from headwater.catalogs.registry import CatalogEntry, ListedRef, NamedRef, RefKind, listed_refs_after, read_ref_names
from headwater.commits import Commit, Head, decode_token, encode_token
from headwater.errors import RefusedError
from headwater.settings import check_count
from headwater.store import ObjectId
from headwater.typed_values import msgpack_decoder

_FORMAT = b"\x05"
_READ_TOGETHER = 100
_LOOKED_AT = 1_000
"""Names that a page with a filter looks at before it ends."""


@dataclass(frozen=True, slots=True)
class RefPage:
    """Branches and tags by name. ``next_token`` is None on the last page."""

    refs: tuple[NamedRef, ...]
    next_token: str | None


class RefToken(msgspec.Struct, frozen=True, array_like=True):
    """Where a listing goes on.

    kind          what is listed; empty: both kinds
    where         the text of the filter; empty: there is none
    last          the name and the kind that were looked at last
    """

    kind: str
    where: str
    last: tuple[str, str] = ("", "")

    def as_text(self) -> str:
        return encode_token(self, _FORMAT)

    @classmethod
    def from_text(cls, text: str) -> RefToken:
        """Read the token that ``as_text`` wrote.

        raises        RefusedError for a text that is no such token, or was altered
        """
        token = decode_token(text, _decoder)
        if token is None or token.as_text() != text or token.kind not in ("", *RefKind):
            raise RefusedError(
                f"{text!r} is not a page token of branches and tags: give one as it came with the page before, or none"
            )
        return token


_decoder = msgpack_decoder(RefToken)


def read_ref_page(
    entry: CatalogEntry,
    *,
    kind: RefKind | None,
    where: ReferenceExpression | None,
    limit: int | None,
    page_token: str | None,
) -> RefPage:
    """Read the live branches and tags from a token on. See ``CatalogRefs.list_page``."""
    check_count(limit, "names of a page")
    place = RefToken(kind or "", "" if where is None else where.text)
    if page_token is not None:
        token = RefToken.from_text(page_token)
        if (kind is not None and kind != token.kind) or (where is not None and where.text != token.where):
            raise RefusedError("the page token belongs to another listing of branches and tags: start again without it")
        where = ReferenceExpression.parse(token.where) if token.where else None
        place = token
    return _taken(entry, place, where, limit)


def _taken(entry: CatalogEntry, place: RefToken, where: ReferenceExpression | None, limit: int | None) -> RefPage:
    judge = None if where is None else _RefJudge(entry, where)
    taken: list[NamedRef] = []
    looked, last = 0, place.last
    for ref in _alive(entry, place, _READ_TOGETHER if limit is None else limit + 1):
        if limit is not None and (len(taken) == limit or looked == _LOOKED_AT):
            return RefPage(tuple(taken), msgspec.structs.replace(place, last=last).as_text())
        looked, last = looked + (where is not None), (ref.name, ref.kind.value)
        if judge is None or judge.takes(ref):
            taken.append(ref)
    return RefPage(tuple(taken), None)


def _alive(entry: CatalogEntry, place: RefToken, wanted: int) -> Iterator[NamedRef]:
    """The live ones behind the place. Rows are read in blocks, small ones where few are wanted."""
    names = read_ref_names(entry.rows, entry.definition.id)
    kinds = [RefKind(place.kind)] if place.kind else list(RefKind)
    listed = merge(*(listed_refs_after(names, kind, place.last[0]) for kind in kinds), key=_order)
    behind = (ref for ref in listed if _order(ref) > place.last)
    while block := list(islice(behind, min(wanted, _READ_TOGETHER) if place.where == "" else _READ_TOGETHER)):
        yield from _refs_of(entry, block)


def _refs_of(entry: CatalogEntry, block: Sequence[ListedRef]) -> Iterator[NamedRef]:
    rows = entry.rows.find_rows([entry.reference(ref.kind, ref.name) for ref in block])
    for ref, row in zip(block, rows, strict=True):
        if row is not None and row.deleted is None:
            yield NamedRef(ref.kind, ref.name, row.pointer, row.created)


def _order(ref: ListedRef) -> tuple[str, str]:
    return ref.name, ref.kind.value


class _RefJudge:
    """Asks a filter about branches and tags, and reads what that needs."""

    def __init__(self, entry: CatalogEntry, where: ReferenceExpression) -> None:
        self._rows = entry.rows
        self._where = where
        self._base: Head | None = None
        if where.asks_relation:
            row = entry.find_ref_row(RefKind.BRANCH, entry.default_branch())
            self._base = None if row is None else self._head(row.pointer)

    def takes(self, ref: NamedRef) -> bool:
        head = self._head(ref.head) if self._where.asks_commit else None
        relation: RefRelation | None = relate_heads(head, self._base) if self._where.asks_relation else None
        return self._where.chooses(ref, None if head is None else log_entry(head), relation)

    def _head(self, commit_id: ObjectId | None) -> Head | None:
        commit = None if commit_id is None else self._rows.find_object(commit_id, Commit)
        return None if commit_id is None or commit is None else Head(commit_id, commit, self._rows)
