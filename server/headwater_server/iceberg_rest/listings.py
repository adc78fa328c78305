"""Pages of listings: which part of a namespace a client asks for, and the token by which it gets the next one."""

from __future__ import annotations

from typing import Protocol

from headwater.errors import ExpiredError, RefusedError
from headwater.iceberg_catalog import KeyPage
from headwater_server.iceberg_rest.models import PageQuery

PAGE_LIMIT = 1000
"""The entries of a page: what a client asks for, but no more than these."""


class PageSource(Protocol):
    """A listing; ``token`` None: from its beginning, ``limit`` None: to its end."""

    def __call__(self, *, token: str | None, limit: int | None) -> KeyPage: ...


def read_listing(query: PageQuery, source: PageSource) -> KeyPage:
    """Read the page that is asked for; everything for a client that knows of no pages.

    An empty token asks for the first page. A size without a token does, too: such a client follows the tokens that it gets.

    raises        RefusedError for a token that is malformed, belongs to another listing or has expired; what ``source`` raises
    """
    if query.page_token is None and query.page_size is None:
        return source(token=None, limit=None)
    limit = min(query.page_size or PAGE_LIMIT, PAGE_LIMIT)
    try:
        return source(token=query.page_token or None, limit=limit)
    except ExpiredError as fault:
        # no 404: clients would take that for a namespace that is not there
        raise RefusedError(f"the page token has expired: list again from the beginning, without it ({fault})") from fault
