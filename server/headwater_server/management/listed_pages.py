"""Pages of the lists of management. A token names the last entry of the page before, so that changes in between harm no listing."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import TypeVar

from headwater.errors import RefusedError
from headwater_server.management.resource_shapes import ListQuery

T = TypeVar("T")


def page_by_name(items: Sequence[T], query: ListQuery, *, name: Callable[[T], str]) -> tuple[Sequence[T], str | None]:
    """A page of a list that is in the order of its names, and the token of the next one; None at the end."""
    last = _last(query)
    rest = items if last is None else [item for item in items if name(item) > last]
    return _page(rest, query, name)


def page_by_place(items: Sequence[T], query: ListQuery, *, name: Callable[[T], str]) -> tuple[Sequence[T], str | None]:
    """A page of a list in an order of its own, whose names are unique.

    raises        RefusedError where the last entry of the page before is not in the list any more
    """
    last = _last(query)
    if last is None:
        return _page(items, query, name)
    place = next((place for place, item in enumerate(items) if name(item) == last), None)
    if place is None:
        raise RefusedError("pageToken: the list has changed too much since it was given; begin again, without it")
    return _page(items[place + 1 :], query, name)


def _page(rest: Sequence[T], query: ListQuery, name: Callable[[T], str]) -> tuple[Sequence[T], str | None]:
    page = rest[: query.page_size]
    return page, _token(name(page[-1])) if len(rest) > len(page) else None


def _token(last: str) -> str:
    return base64.urlsafe_b64encode(last.encode()).decode().rstrip("=")


def _last(query: ListQuery) -> str | None:
    if not query.page_token:
        return None
    try:
        packed = query.page_token.encode("ascii")
        return base64.b64decode(packed + b"=" * (-len(packed) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise RefusedError("pageToken: this is no token that a page ended with") from None
