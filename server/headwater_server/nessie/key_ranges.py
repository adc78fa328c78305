"""Which keys a listing or a comparison is about: a range of keys with both its ends, a prefix with what is below it, or some keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headwater.catalogs import ContentKey
from headwater.errors import RefusedError
from headwater_server.nessie.content_key_paths import parse_key_path


@dataclass(frozen=True, slots=True)
class ContentKeyRange:
    """
    first, last   both belong to the range; None: no bound
    prefix        this key, and everything below it
    keys          only these; empty: all
    """

    first: ContentKey | None = None
    last: ContentKey | None = None
    prefix: ContentKey | None = None
    keys: tuple[ContentKey, ...] = ()

    @classmethod
    def of_query(cls, first: str | None, last: str | None, prefix: str | None, keys: Sequence[str]) -> ContentKeyRange:
        """Parse the parameters of a query, of which an empty one is none; raises RefusedError for a prefix beside the ends of a range."""
        if prefix and (first or last):
            raise RefusedError("prefix-key stands for itself: leave out min-key and max-key, or prefix-key")
        return cls(_key(first), _key(last), _key(prefix), tuple(map(parse_key_path, keys)))

    @property
    def bounds(self) -> dict[str, Any]:
        """The range as catalogs take it; the keys themselves are no part of it."""
        return {
            "start": self.first,
            "end": self.last,
            "with_end": self.last is not None,
            "prefix": self.prefix,
            "with_prefix": self.prefix is not None,
        }

    def has_key(self, key: ContentKey) -> bool:
        """Whether a key lies within the range."""
        if self.prefix is not None and key != self.prefix and not key.is_below(self.prefix):
            return False
        return (self.first is None or key >= self.first) and (self.last is None or key <= self.last)

    @property
    def keys_within(self) -> list[ContentKey]:
        """Those keys that lie within the range."""
        return [key for key in self.keys if self.has_key(key)]


def _key(text: str | None) -> ContentKey | None:
    return parse_key_path(text) if text else None
