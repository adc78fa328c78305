"""Pages of what a caller may see, and asks for. Of what is hidden or not chosen a bounded amount is passed over in one page.

A page that promises more is never empty: Nessie's Java client fails on one. So a page ends early only where it has something to show.
A full one promises more only where something is left to be shown: otherwise filters would tell what is hidden, a guess at a time.
Where anything is hidden, its token is the one behind the last item that it shows, for a token tells the key that it stands behind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from headwater.access import reference_of
from headwater.clock import Clock
from headwater.errors import ExpiredError, RefusedError
from headwater_server.identity import PageSeal
from headwater_server.nessie.nessie_session import NessieSession, SeenReference

ItemT = TypeVar("ItemT")
ItemT_co = TypeVar("ItemT_co", covariant=True)
ShownT = TypeVar("ShownT")
_READ_TOGETHER = 200
"""Items that are read at once where some of them may not be shown."""
_LOOKED_AT = 20_000
_LOOKED_AT_ONCE = 2_000
PATIENCE_SECONDS = 20
"""How long a page looks for the first thing that it can show; a third of what a request may take."""
_ENOUGH_SECONDS = 1
"""After how long a page that has something to show ends, without knowing whether more comes."""


class ItemSource(Protocol[ItemT_co]):
    """Reads so many items behind a token, and the token behind them; None: from the beginning, and to the end."""

    def __call__(self, token: str | None, limit: int, /) -> tuple[Sequence[ItemT_co], str | None]: ...


@dataclass(frozen=True, slots=True)
class ShownPage(Generic[ShownT]):
    """What a page shows, and the token behind it; None: this is the last one."""

    shown: list[ShownT]
    token: str | None


def read_shown(
    source: ItemSource[ItemT],
    show: Callable[[Sequence[ItemT]], Sequence[ShownT | None]],
    *,
    token: str | None,
    limit: int,
    is_all_shown: bool,
    clock: Clock,
) -> ShownPage[ShownT]:
    """Read a page of so many shown items at most; raises RefusedError where nothing to show is found in time.

    show          what is shown of some items, one for each; None: nothing
    is_all_shown  nothing is hidden: no more is read than is wanted
    """
    found: list[ShownT] = []
    looked, last, started = 0, (token, 0), clock.monotonic()
    until = started + PATIENCE_SECONDS
    while True:
        wanted = limit - len(found)
        items, following = source(token, wanted if is_all_shown else max(wanted, _READ_TOGETHER))
        looked += len(items)
        shown = [(number, each) for number, each in enumerate(show(items), start=1) if each is not None]
        found += [each for _, each in shown[:wanted]]
        if shown:
            last = token, shown[:wanted][-1][0]
        if following is None and len(shown) <= wanted:
            return ShownPage(found, None)
        is_long_enough = looked >= _LOOKED_AT or clock.monotonic() > started + _ENOUGH_SECONDS
        if len(found) == limit or (found and is_long_enough):
            if is_all_shown:
                return ShownPage(found, following)
            is_more = len(found) < limit or len(shown) > wanted or _shows_more(source, show, following, until, clock)
            is_right = last == (token, len(items))
            return ShownPage(found, (following if is_right else source(*last)[1]) if is_more else None)
        if clock.monotonic() > until and not found:
            raise impatience_error(looked)
        token = following


def _shows_more(
    source: ItemSource[ItemT],
    show: Callable[[Sequence[ItemT]], Sequence[ShownT | None]],
    token: str | None,
    until: float,
    clock: Clock,
) -> bool:
    """Whether something is shown behind a token; also where that is not found out in time."""
    while token is not None:
        items, token = source(token, _LOOKED_AT_ONCE)
        if any(each is not None for each in show(items)):
            return True
        if clock.monotonic() > until:
            return True
    return False


def impatience_error(looked: int) -> RefusedError:
    """What a client is told whose filter chooses nothing for so long that it holds up others."""
    return RefusedError(
        f"nothing to be shown was found among {looked} in {PATIENCE_SECONDS} seconds: narrow the request by its bounds, such as"
        " prefix-key or limit-hash, or name in the filter what is cheap to find, such as a namespace"
    )


@dataclass(frozen=True, slots=True)
class PageTokens:
    """Tokens of one listing as its clients have them: where there are callers, each gets its own."""

    seal: PageSeal | None

    @classmethod
    def of_listing(cls, session: NessieSession, listing: str, *seen: SeenReference) -> PageTokens:
        """The tokens of a listing of some references: of those that the rights of its caller are sought on."""
        names = (reference_of(each.rights, session.definition).name for each in seen)
        return cls(session.seal_for(" ".join([listing, *(name or "*" for name in names)])))

    def from_client(self, text: str | None) -> str | None:
        """The token in a client's text; None for the first page. Raises RefusedError for one that was not given to this caller here."""
        if not text:
            return None
        return text if self.seal is None else self.seal.open(text)

    def to_client(self, token: str | None) -> str | None:
        """The text for a client."""
        return token if token is None or self.seal is None else self.seal.close(token)


def page_limit(max_records: int | None, most: int) -> int:
    """The size of a page, for which the client gives a hint; 0 is none."""
    return min(max_records or most, most)


def expired_page_error(fault: ExpiredError) -> RefusedError:
    """What a client is told whose page token has expired. No 404: that would be a reference that is not there."""
    return RefusedError(f"the page token has expired: list again from the beginning, without it ({fault})")
